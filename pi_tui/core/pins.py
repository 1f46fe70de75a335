"""Pins: entries the user wants verbatim in the context after any compaction on their path.

A pin is a `custom` entry of type `pi-tui.pin` with `{"targetId": …, "pinned": true | false}`; the
last one on the path decides. Other programs see an extension entry they do not know and pass it by.
A pin covers a whole exchange of calls and results, because neither may be sent without the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pi_tui.core.entries import CustomEntry, Entry, EntryHead
from pi_tui.core.messages import JSON

PIN_TYPE = "pi-tui.pin"


def pin_data(target_id: str, *, pinned: bool) -> JSON:
    """The data of a pin entry."""
    return {"targetId": target_id, "pinned": pinned}


def pin_targets(path: Iterable[Entry]) -> frozenset[str]:
    """The ids pinned on a path, entries root to leaf."""
    pinned: dict[str, bool] = {}
    for entry in path:
        if isinstance(entry, CustomEntry) and entry.custom_type == PIN_TYPE:
            data = entry.data
            if isinstance(data, dict) and isinstance(data.get("targetId"), str):
                pinned[data["targetId"]] = data.get("pinned") is True
    return frozenset(target for target, on in pinned.items() if on)


def with_pin_partners(heads: Sequence[EntryHead], targets: frozenset[str]) -> set[int]:
    """Indices of the pinned entries among `heads` with the calls and results that go with them.

    An assistant message takes the tool results that follow it, and a tool result its assistant
    message with all results of it. System messages and compactions are never taken.
    """
    kept: set[int] = set()
    for i, head in enumerate(heads):
        if head.id not in targets or head.type == "compaction" or head.role == "system":
            continue
        start = i
        if head.role == "toolResult":
            while start > 0 and heads[start].role != "assistant":
                start -= 1
        kept.add(i)
        if heads[start].role != "assistant":
            continue
        kept.add(start)
        for later in range(start + 1, len(heads)):
            if heads[later].role in ("assistant", "user"):
                break
            if heads[later].role == "toolResult":
                kept.add(later)
    return kept
