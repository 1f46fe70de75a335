"""Which entry a `/pin` or `/unpin` means. Decides; the journal appends."""

from __future__ import annotations

from pi_tui.core.entries import EntryHead
from pi_tui.core.errors import UsageError
from pi_tui.core.pins import pin_targets
from pi_tui.core.tree import SessionTree

PINNABLE_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom"})
PINNABLE_TYPES = frozenset({"custom_message", "branch_summary"})


def branch_pins(tree: SessionTree) -> frozenset[str]:
    """The ids pinned on the path to the leaf."""
    customs = (i for i in tree.path_ids() if tree.head(i).type == "custom")
    return pin_targets(tree.entry(entry_id) for entry_id in customs)


def pin_target(tree: SessionTree, entry_id: str | None, *, pinned: bool) -> str:
    """The entry to pin, or whose pin is taken away; without an id the newest that fits.

    Raises UsageError when there is none, or when the id is not that of a message on the branch.
    """
    path = tree.path_ids()
    pins = branch_pins(tree)
    if entry_id is None:
        for candidate in reversed(path):
            if _is_message(tree.head(candidate)) if pinned else candidate in pins:
                return candidate
        raise UsageError("there is no message to pin yet" if pinned else "nothing is pinned here")
    if entry_id not in path:
        raise UsageError(f"there is no entry {entry_id!r} on this branch; /tree shows the ids")
    if not pinned and entry_id not in pins:
        raise UsageError(f"{entry_id} is not pinned")
    if pinned and not _is_message(tree.head(entry_id)):
        raise UsageError(
            f"{entry_id} is no message, so there is nothing to keep", hint="Pin a message instead."
        )
    return entry_id


def _is_message(head: EntryHead) -> bool:
    return head.role in PINNABLE_ROLES or head.type in PINNABLE_TYPES
