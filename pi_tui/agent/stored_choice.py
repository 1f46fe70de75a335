"""Which model and thinking level a stored session was left with, found without decoding it all."""

from __future__ import annotations

from msgspec import Struct

from pi_tui.core.entries import MessageEntry, ModelChangeEntry, ThinkingLevelChangeEntry
from pi_tui.core.messages import AssistantMessage
from pi_tui.core.protocols import OpenedSession


class StoredChoice(Struct, frozen=True):
    """`model` is `provider/id`; None where the path says nothing."""

    model: str | None = None
    thinking_level: str | None = None


def stored_choice(opened: OpenedSession) -> StoredChoice:
    """The last choice on the path to the last entry of the file."""
    heads = {head.id: head for head in opened.heads}
    at = opened.heads[-1].id if opened.heads else None
    model: str | None = None
    level: str | None = None
    seen: set[str] = set()
    while at is not None and at in heads and at not in seen and (model is None or level is None):
        seen.add(at)
        head = heads[at]
        if level is None and head.type == "thinking_level_change":
            entry = opened.store.load(at)
            if isinstance(entry, ThinkingLevelChangeEntry):
                level = entry.thinking_level
        elif model is None and (head.type == "model_change" or head.role == "assistant"):
            entry = opened.store.load(at)
            if isinstance(entry, ModelChangeEntry):
                model = f"{entry.provider}/{entry.model_id}"
            elif isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                model = f"{entry.message.provider}/{entry.message.model}"
        at = head.parent_id
    return StoredChoice(model, level)
