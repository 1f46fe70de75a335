"""Finds out which answers of a session are quiet: nothing but tool calls, and not cut short.

The navigator leaves quiet answers out. To know, an answer has to be decoded, which takes too long
for all of a large session at once: those in sight come first, the others a few at a time. What was
found out is kept by id and stays true, because entries never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pi_tui.core.entries import Entry, MessageEntry
from pi_tui.core.errors import StorageError
from pi_tui.core.messages import AssistantMessage, TextContent, ToolCall
from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_shape import ANSWER, QUIET_ANSWER, UNREAD_ANSWER, TreeShape


def is_quiet(entry: Entry) -> bool:
    """True for an answer that holds only tool calls and was neither aborted nor failed."""
    if not isinstance(entry, MessageEntry) or not isinstance(entry.message, AssistantMessage):
        return False
    message = entry.message
    if message.stop_reason in ("aborted", "error"):
        return False
    has_calls = any(isinstance(part, ToolCall) for part in message.content)
    return has_calls and not any(
        isinstance(part, TextContent) and part.text.strip() for part in message.content
    )


class AnswerReader:
    """Looks at the answers of a shape and notes there what they are."""

    def __init__(
        self,
        tree: SessionTree,
        known: dict[str, bool],
        read: Callable[[str], bool] | None = None,
    ) -> None:
        """`known` says of ids whether they are quiet, and is added to. `read` tells it, if there is
        a quicker way than decoding the entry."""
        self._tree = tree
        self._known = known
        self._read = read
        self._shape: TreeShape | None = None
        self._leaf = -1
        self._unread: list[int] | None = None

    def begin(self, shape: TreeShape, leaf: int) -> None:
        """Look at this shape from now on. Answers near the leaf come first."""
        self._shape, self._leaf, self._unread = shape, leaf, None

    def fill(self, shape: TreeShape) -> None:
        """Note in a new shape what is known already."""
        for entry_id, quiet in self._known.items():
            at = shape.find(entry_id)
            if at is not None:
                shape.kinds[at] = QUIET_ANSWER if quiet else ANSWER

    @property
    def unread_count(self) -> int:
        """About how many answers are still to be looked at; exactly when there are none."""
        return len(self._waiting())

    def look_at(self, indexes: Iterable[int]) -> bool:
        """Look at those of these entries that are unread answers. True when one is quiet."""
        if self._shape is None:
            return False
        kinds = self._shape.kinds
        # All of them: `any` would stop at the first one.
        return sum(self._look(at) for at in indexes if kinds[at] == UNREAD_ANSWER) > 0

    def look_at_some(self, count: int) -> bool:
        """Look at some more answers, nearest to the leaf first. True when one is quiet."""
        waiting = self._waiting()
        nearest = [waiting.pop() for _ in range(min(count, len(waiting)))]
        return self.look_at(nearest)

    def _waiting(self) -> list[int]:
        """Answers nobody looked at when the shape was taken, the nearest to the leaf last."""
        if self._unread is None:
            unread: list[int] = []
            if self._shape is not None:
                kinds = self._shape.kinds
                at = kinds.find(UNREAD_ANSWER)
                while at >= 0:
                    unread.append(at)
                    at = kinds.find(UNREAD_ANSWER, at + 1)
            leaf = self._leaf
            unread.sort(key=lambda at: -abs(at - leaf))
            self._unread = unread
        return self._unread

    def _look(self, at: int) -> bool:
        shape = self._shape
        if shape is None:
            return False
        entry_id = shape.ids[at]
        try:
            quiet = self._read(entry_id) if self._read else is_quiet(self._tree.entry(entry_id))
        except StorageError:
            quiet = False  # the row then says that the entry cannot be read
        self._known[entry_id] = quiet
        shape.kinds[at] = QUIET_ANSWER if quiet else ANSWER
        return quiet
