"""A stretch of a path that is read from the session's store when somebody looks at it.

Nothing of it is kept here but where it lies. What is searched in it is looked for in the stored
lines first; only where a line may have it are entries decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pi_tui.core.entries import Entry
from pi_tui.core.errors import StorageError
from pi_tui.core.transcript import Block, NoticeBlock, blocks_of
from pi_tui.core.tree import SessionTree
from pi_tui.tui.transcript.unread import Clue, Unread

_OPENED_TYPES = frozenset({"compaction", "branch_summary"})
_OPENED_ROLES = frozenset({"toolResult", "bashExecution"})


class LineSource(Protocol):
    """Where stored entries are read; from any thread."""

    def load(self, entry_id: str) -> Entry: ...
    def raw_line(self, entry_id: str) -> bytes: ...


class PathStretch(Unread):
    """The entries of a path from `start` to `stop`; `shown_at` is the first that has blocks."""

    __slots__ = ("_ids", "_source", "_start", "_stop", "_tree")

    def __init__(
        self,
        tree: SessionTree,
        source: LineSource,
        path_ids: Sequence[str],
        start: int,
        stop: int,
        shown_at: int,
    ) -> None:
        # The key begins as those of an entry's blocks do: so it is found out whether it is covered.
        super().__init__(f"{path_ids[shown_at]}:unread", stop - start)
        self._tree = tree
        self._source = source
        self._ids = path_ids
        self._start = start
        self._stop = stop

    @property
    def ids(self) -> Sequence[str]:
        return self._ids[self._start : self._stop]

    @property
    def has_user_messages(self) -> bool:
        return any(self._tree.head(entry_id).role == "user" for entry_id in self.ids)

    @property
    def has_outputs(self) -> bool:
        heads = (self._tree.head(entry_id) for entry_id in self.ids)
        return any(head.role in _OPENED_ROLES or head.type in _OPENED_TYPES for head in heads)

    def holds(self, block_key: str) -> bool:
        ids = self.ids
        return block_key in ids or block_key.rpartition(":")[0] in ids

    def read(self) -> list[Block]:
        try:
            return blocks_of([self._source.load(entry_id) for entry_id in self.ids])
        except StorageError as error:
            return [NoticeBlock(self.key, "error", error.text)]

    def read_if(self, clue: Clue) -> list[Block] | None:
        try:
            if not any(clue.fits(self._source.raw_line(entry_id)) for entry_id in self.ids):
                return None
        except StorageError:
            pass  # `read` says so in the blocks
        return self.read()
