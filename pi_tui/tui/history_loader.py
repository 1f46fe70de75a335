"""Reads the conversation into the transcript: the end of it first, the rest when nobody waits.

Decoding ten thousand stored messages takes longer than a person should look at an empty screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pi_tui.core.entries import Entry
from pi_tui.core.transcript import Block, blocks_of
from pi_tui.core.tree import SessionTree
from pi_tui.tui.garbage import set_aside

FIRST_ENTRIES = 120
SLICE_ENTRIES = 100
"""So many are decoded in one turn of the event loop: a few milliseconds."""
PAUSE_S = 0.001
"""Between two slices: whatever else is going on has all its turns, not every second one."""


class PathReader:
    """Entries of one path, decoded in two steps."""

    def __init__(self, tree: SessionTree, path_ids: Sequence[str]) -> None:
        self._tree = tree
        self._ids = tuple(path_ids)
        self._cut = self._find_cut()

    @property
    def complete_at_once(self) -> bool:
        """True when the end is the whole."""
        return self._cut == 0

    def end(self) -> list[Entry]:
        """The last entries."""
        return [self._tree.entry(entry_id) for entry_id in self._ids[self._cut :]]

    async def beginning(self) -> list[Block]:
        """The blocks of everything before `end`; lets the event loop run in between."""
        blocks: list[Block] = []
        start = 0
        while start < self._cut:
            stop = self._whole_turns(min(start + SLICE_ENTRIES, self._cut), self._cut)
            blocks += blocks_of([self._tree.entry(entry_id) for entry_id in self._ids[start:stop]])
            start = stop
            set_aside()
            await asyncio.sleep(PAUSE_S)
        return blocks

    def _whole_turns(self, cut: int, most: int) -> int:
        """This place or the next one that parts no tool result from its call."""
        while cut < most and self._tree.head(self._ids[cut]).role == "toolResult":
            cut += 1
        return cut

    def _find_cut(self) -> int:
        cut = len(self._ids) - FIRST_ENTRIES
        if cut <= 0:
            return 0
        # A tool result must not be parted from its call.
        while cut > 0 and self._tree.head(self._ids[cut]).role == "toolResult":
            cut -= 1
        return cut
