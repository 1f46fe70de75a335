"""Shows the whole path to an entry in the preview; the leaf stays where it is."""

from __future__ import annotations

import asyncio

from pi_tui.core.errors import StorageError
from pi_tui.core.transcript import NoticeBlock, blocks_of
from pi_tui.core.tree import SessionTree
from pi_tui.tui.history_loader import PathReader
from pi_tui.tui.tree.preview import PreviewPane


class PathPreview:
    """One path at a time: its end at once, the beginning when it was read."""

    def __init__(self, tree: SessionTree, pane: PreviewPane) -> None:
        self._tree = tree
        self._pane = pane
        self._entry_id: str | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def active(self) -> bool:
        return self._entry_id is not None

    def start(self, entry_id: str) -> None:
        """Show the path from the root to an entry."""
        self.stop()
        self._entry_id = entry_id
        reader = PathReader(self._tree, self._tree.path_ids(entry_id))
        try:
            self._pane.show(blocks_of(reader.end()), from_end=True)
        except StorageError as error:
            self._pane.show([NoticeBlock("problem", "error", error.text)])
            return
        if not reader.complete_at_once:
            self._task = asyncio.get_running_loop().create_task(self._beginning(reader))

    def stop(self) -> None:
        """Show it no longer."""
        self._entry_id = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _beginning(self, reader: PathReader) -> None:
        try:
            blocks = [*await reader.beginning(), *blocks_of(reader.end())]
        except StorageError as error:
            blocks = [NoticeBlock("problem", "error", error.text), *blocks_of(reader.end())]
        self._pane.set_blocks(blocks, keep_position=True)
