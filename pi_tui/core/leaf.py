"""The leaf across restarts: how a move in the tree that adds nothing is remembered.

The format knows no position: after loading, the leaf is the last entry of the file. So a move
appends a `custom` entry of type `pi-tui.leaf` with `{"leafId": id | null}` whose parent is the
entry that was moved to; moved before the first entry, it has no parent and is a root. Why so:

- Any other reader of the format ends at this entry as its leaf, and the path to it is the path to
  the entry moved to, plus one extension entry that gives no message: the right conversation.
- This program goes back to the entry moved to. New entries follow that one, so a marker never has
  children of ours and never stands on a path of ours.
- A file beside the session would be lost by copying, and a label would show and could be edited.

A marker counts only while it is the last entry; anything appended after it is the leaf, as ever.
The parent decides, not the data: copying a path may give entries other parents, and keeps it right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UNSET, UnsetType

from pi_tui.core.entries import CustomEntry, Entry, EntryHead
from pi_tui.core.messages import JSON

LEAF_TYPE = "pi-tui.leaf"


def leaf_data(leaf_id: str | None) -> JSON:
    """The data of a marker."""
    return {"leafId": leaf_id}


def stored_leaf(heads: Sequence[EntryHead], load: Callable[[str], Entry]) -> str | UnsetType | None:
    """The leaf a session was left with, as `SessionTree` takes it: UNSET is the last entry.

    `heads` in file order. At most one entry is loaded. Raises what `load` raises.
    """
    last = heads[-1] if heads else None
    if last is None or last.type != "custom":
        return UNSET
    entry = load(last.id)
    if not isinstance(entry, CustomEntry) or entry.custom_type != LEAF_TYPE:
        return UNSET
    if last.parent_id is None:
        return None if isinstance(entry.data, dict) and entry.data.get("leafId") is None else UNSET
    # A parent that is missing makes a root of the marker, as of any entry.
    return last.parent_id if any(head.id == last.parent_id for head in heads) else UNSET
