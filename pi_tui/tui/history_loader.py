"""Parts of a path for a transcript: its end at once, what is before it when it is looked at.

Decoding a hundred thousand stored messages takes seconds and as many megabytes as they are long.
Nobody looks at most of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from pi_tui.core.coverage import Coverage, is_shown
from pi_tui.core.entries import Entry
from pi_tui.core.transcript import Block, blocks_of
from pi_tui.core.tree import SessionTree
from pi_tui.tui.path_stretch import LineSource, PathStretch

FIRST_ENTRIES = 120
SLICE_ENTRIES = 100
"""So many are decoded in one turn of the event loop: a few milliseconds."""
PAUSE_S = 0.001
"""Between two slices: whatever else is going on has all its turns, not every second one."""
STRETCH_ENTRIES = 64
"""So many are read when one of them comes into sight."""
STRETCH_ENTRIES_AT_MOST = 1024


class PathReader:
    """Entries of one path, in two parts."""

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

    def earlier_ids(self) -> Sequence[str]:
        """The ids of everything before `end`, root to leaf."""
        return self._ids[: self._cut]

    def earlier(self, coverage: Coverage, source: LineSource) -> list[PathStretch]:
        """Everything before `end`, unread: stretches that are covered as a whole or not at all."""
        stretches: list[PathStretch] = []
        for start, stop in self._bounds(coverage):
            shown_at = next((at for at in range(start, stop) if self._is_shown(at)), None)
            if shown_at is not None:
                stretches.append(PathStretch(self._tree, source, self._ids, start, stop, shown_at))
        return stretches

    async def beginning(self) -> list[Block]:
        """The blocks of everything before `end`; lets the event loop run in between."""
        blocks: list[Block] = []
        start = 0
        while start < self._cut:
            stop = self._whole_turns(min(start + SLICE_ENTRIES, self._cut), self._cut)
            blocks += blocks_of([self._tree.entry(entry_id) for entry_id in self._ids[start:stop]])
            start = stop
            await asyncio.sleep(PAUSE_S)
        return blocks

    # ------------------------------------------------------------ where to cut

    def _bounds(self, coverage: Coverage) -> Iterator[tuple[int, int]]:
        start = 0
        for end in self._ends_of_runs(coverage):
            while start < end:
                stop = self._whole_turns(min(start + STRETCH_ENTRIES, end), end)
                yield start, stop
                start = stop

    def _ends_of_runs(self, coverage: Coverage) -> Iterator[int]:
        """Where what is covered begins or ends, and the end of all."""
        if coverage.runs:
            now: int | None = None
            for at in range(self._cut):
                if not self._is_shown(at):
                    continue
                run = coverage.run_of_entry.get(self._ids[at])
                # The results of a call that is covered go with it.
                if run != now and self._tree.head(self._ids[at]).role != "toolResult":
                    now = run
                    yield at
        yield self._cut

    def _is_shown(self, at: int) -> bool:
        return is_shown(self._tree.head(self._ids[at]))

    def _whole_turns(self, cut: int, most: int) -> int:
        """This place or a later one at which no tool result is parted from its call."""
        last = min(most, cut + STRETCH_ENTRIES_AT_MOST)
        while cut < last and not self._begins_turn(cut):
            cut += 1
        return cut

    def _find_cut(self) -> int:
        wanted = len(self._ids) - FIRST_ENTRIES
        if wanted <= 0:
            return 0
        cut, least = wanted, max(0, wanted - STRETCH_ENTRIES_AT_MOST)
        while cut > least and not self._begins_turn(cut):
            cut -= 1
        return cut

    def _begins_turn(self, at: int) -> bool:
        head = self._tree.head(self._ids[at])
        return head.role in ("user", "assistant") or head.type in ("compaction", "branch_summary")
