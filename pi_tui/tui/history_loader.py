"""Reads the conversation into the transcript: the end of it first, the rest when nobody waits.

Decoding ten thousand stored messages takes longer than a person should look at an empty screen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pi_tui.core.entries import Entry
from pi_tui.core.tree import SessionTree

FIRST_ENTRIES = 120
SLICE_ENTRIES = 200


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

    async def beginning(self) -> list[Entry]:
        """Everything before `end`; lets the event loop run in between."""
        entries: list[Entry] = []
        for start in range(0, self._cut, SLICE_ENTRIES):
            stop = min(start + SLICE_ENTRIES, self._cut)
            entries += [self._tree.entry(entry_id) for entry_id in self._ids[start:stop]]
            await asyncio.sleep(0)
        return entries

    def _find_cut(self) -> int:
        cut = len(self._ids) - FIRST_ENTRIES
        if cut <= 0:
            return 0
        # A tool result must not be parted from its call.
        while cut > 0 and self._tree.head(self._ids[cut]).role == "toolResult":
            cut -= 1
        return cut
