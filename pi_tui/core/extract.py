"""Copying a path into a session of its own, for fork and clone.

It works on stored entry objects, so that fields this program does not know are copied too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pi_tui.core.messages import JSON
from pi_tui.core.tree import Label


def extract_path(
    path: Sequence[Mapping[str, JSON]],
    labels: Iterable[Label],
    new_id: Callable[[], str],
) -> list[dict[str, JSON]]:
    """The entries of the new session, root to leaf.

    `path` are stored entry objects, root to leaf; `labels` the present labels of the session in
    the order of `SessionTree.labels`. Label entries are dropped and the path is linked again; the
    labels of copied entries are appended at the end under ids from `new_id`, keeping their times.
    A compaction that kept from a label entry on keeps from the next copied entry on.
    """
    copied: list[dict[str, JSON]] = []
    next_kept = _next_kept_ids(path)
    for data in path:
        if data.get("type") == "label":
            continue
        entry = dict(data)
        entry["parentId"] = copied[-1]["id"] if copied else None
        kept = entry.get("firstKeptEntryId")
        if entry.get("type") == "compaction" and isinstance(kept, str) and kept in next_kept:
            entry["firstKeptEntryId"] = next_kept[kept]
        copied.append(entry)
    ids = {entry["id"] for entry in copied}
    for label in labels:
        if label.target_id in ids:
            copied.append(
                {
                    "type": "label",
                    "id": new_id(),
                    "parentId": copied[-1]["id"],
                    "timestamp": label.timestamp,
                    "targetId": label.target_id,
                    "label": label.text,
                }
            )
    return copied


def _next_kept_ids(path: Sequence[Mapping[str, JSON]]) -> dict[str, str]:
    """For each dropped label entry the id of the next entry that is copied."""
    following: str | None = None
    found: dict[str, str] = {}
    for data in reversed(path):
        entry_id = data.get("id")
        if not isinstance(entry_id, str):
            continue
        if data.get("type") != "label":
            following = entry_id
        elif following is not None:
            found[entry_id] = following
    return found
