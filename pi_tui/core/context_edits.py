"""Which context edits may be appended: they replace or leave out another entry's message."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.entries import CustomMessageEntry, Entry, MessageEntry
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    ToolResultMessage,
    UserMessage,
)
from pi_tui.core.tree import SessionTree

EditRefusal: TypeAlias = Literal["bad-replacement", "not-found", "not-on-branch", "not-editable"]


class PlannedEdit(Struct, frozen=True):
    """An edit that may be appended: the replacement as it is stored, and its parent entry."""

    target_id: str
    replacement: JSON
    parent_id: str | None


class RefusedEdit(Struct, frozen=True):
    """Why an edit cannot be appended; `reasons` are tested in the order of `EditRefusal`."""

    reason: EditRefusal


def plan_context_edit(
    tree: SessionTree, target_id: str, replacement: JSON
) -> PlannedEdit | RefusedEdit:
    """Check an edit at the current leaf; `replacement` None leaves the target out.

    A replacement is an object whose `content` is a string or a list of blocks.
    """
    content = replacement.get("content") if isinstance(replacement, dict) else None
    if replacement is not None and not isinstance(content, str | list):
        return RefusedEdit("bad-replacement")
    if target_id not in tree:
        return RefusedEdit("not-found")
    if target_id not in set(tree.path_ids()):
        return RefusedEdit("not-on-branch")
    entry = tree.entry(target_id)
    if not _is_editable(entry):
        return RefusedEdit("not-editable")
    if isinstance(content, str) and _takes_blocks(entry):
        replacement = {**replacement, "content": [{"type": "text", "text": content}]}
    return PlannedEdit(target_id, replacement, tree.leaf_id)


def _is_editable(entry: Entry) -> bool:
    if isinstance(entry, CustomMessageEntry):
        return True
    return isinstance(entry, MessageEntry) and isinstance(
        entry.message, UserMessage | AssistantMessage | ToolResultMessage
    )


def _takes_blocks(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and isinstance(
        entry.message, AssistantMessage | ToolResultMessage
    )
