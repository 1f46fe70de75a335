"""Which move of the leaf was the last, read from the stored entries, so that it can be undone.

Nothing is kept beside the session: entries stand in the order they were appended, so wherever one
does not follow the place the entry before it led to, the leaf was moved in between. That holds for
branch summaries, for the markers of `core.leaf`, and for files of programs that know no markers. A
move that undoes another one says so in its marker, and both are passed over.
"""

from __future__ import annotations

from msgspec import Struct

from pi_tui.core.entries import CustomEntry
from pi_tui.core.leaf import LEAF_TYPE
from pi_tui.core.messages import JSON
from pi_tui.core.tree import SessionTree

UNDO_KEY = "undo"


class LeafMove(Struct, frozen=True):
    """A move of the leaf; None is the place before the first entry."""

    old_leaf_id: str | None
    new_leaf_id: str | None


def mark_undo(data: JSON) -> JSON:
    """The data of a marker whose move takes back an earlier one."""
    return {**data, UNDO_KEY: True}


def last_move(tree: SessionTree) -> LeafMove | None:
    """The newest move that was not undone; None when there is none.

    Of the entries only those of type custom are loaded, newest first, as far as needed.
    """
    ids = tree.ids()
    undone = 0
    for index in reversed(range(len(ids))):
        came_from = place_of(tree, ids[index - 1]) if index else None
        parent = tree.parent(ids[index])
        if parent == came_from:
            continue
        if _undoes(tree, ids[index]):
            undone += 1
        elif undone:
            undone -= 1
        else:
            return LeafMove(came_from, parent)
    return None


def place_of(tree: SessionTree, entry_id: str) -> str | None:
    """Where an entry stands for: itself, or for a marker the place it marks."""
    return entry_id if _marker(tree, entry_id) is None else tree.parent(entry_id)


def _undoes(tree: SessionTree, entry_id: str) -> bool:
    marker = _marker(tree, entry_id)
    data = marker.data if marker is not None else None
    return isinstance(data, dict) and data.get(UNDO_KEY) is True


def _marker(tree: SessionTree, entry_id: str) -> CustomEntry | None:
    if tree.head(entry_id).type != "custom":
        return None
    entry = tree.entry(entry_id)
    return entry if isinstance(entry, CustomEntry) and entry.custom_type == LEAF_TYPE else None
