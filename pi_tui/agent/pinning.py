"""Which entry a `/pin` or `/unpin` means. Decides; the journal appends."""

from __future__ import annotations

from pi_tui.core.errors import UsageError
from pi_tui.core.pins import pin_targets
from pi_tui.core.tree import SessionTree

PINNABLE_ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom"})


def pin_target(tree: SessionTree, entry_id: str | None, *, pinned: bool) -> str:
    """The entry to pin, or whose pin is taken away; without an id the newest that fits.

    Raises UsageError when there is none, or when the id is not on the branch.
    """
    path = tree.path_ids()
    if entry_id is not None:
        if entry_id not in path:
            raise UsageError(f"there is no entry {entry_id!r} on this branch")
        return entry_id
    pins = pin_targets(tree.path())
    for candidate in reversed(path):
        if tree.head(candidate).role in PINNABLE_ROLES if pinned else candidate in pins:
            return candidate
    raise UsageError("there is no message to pin yet" if pinned else "nothing is pinned here")
