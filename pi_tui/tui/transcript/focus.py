"""The focus of a transcript: which block that can be opened the keys are for.

It is remembered by the block's key, so it survives that blocks are put before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pi_tui.core.transcript import CoveredBlock, ShownBlock, SummaryBlock
from pi_tui.tui.transcript.items import Items
from pi_tui.tui.transcript.kinds import is_collapsible
from pi_tui.tui.transcript.viewport import Viewport

READS_AT_MOST = 32
"""So many stretches are read in search of a block; farther away only where one surely is."""


class BlockFocus:
    """Moves through the blocks that can be opened."""

    def __init__(self, items: Items, viewport: Viewport) -> None:
        self._items = items
        self._viewport = viewport
        self._key: str | None = None

    @property
    def index(self) -> int | None:
        """The item that has the focus; None when no item has it (any more)."""
        if self._key is None:
            return None
        index = self._items.index_of(self._key)
        if index is None or self._items.is_hidden(index):
            self._key = None
            return None
        return index

    @property
    def origin(self) -> str:
        """The end of the branch the focused summary is about; "" for every other block."""
        index = self.index
        block = None if index is None else self._items[index].block
        return block.from_id if isinstance(block, SummaryBlock) else ""

    def move(self, step: int, height: int) -> bool:
        """Go to the block above (-1) or below (1); False when there is none."""
        at = self.index
        at = self._start(step, height) if at is None else self._next(at, step)
        if at is None:
            return False
        block = self._items[at].block
        assert block is not None
        self._key = block.key
        self._viewport.show_item(at, height)
        return True

    def leave(self) -> None:
        self._key = None

    def find_again(self) -> None:
        """Read the block that has the focus, when the items are others now."""
        if self._key is not None:
            self._items.find(self._key)

    def blocks(self) -> Iterator[ShownBlock]:
        """The block that has the focus, or all that it hides, read one by one."""
        index = self.index
        block = None if index is None else self._items.block_at(index)
        if index is None or block is None:
            return
        if not isinstance(block, CoveredBlock):
            yield block
            return
        for at in self._items.stretches.inside(index):
            inside = self._items.block_at(at)
            if inside is not None:
                yield inside

    def _start(self, step: int, height: int) -> int | None:
        """The last one in sight on the way up, the first on the way down, else the nearest."""
        places = self._viewport.layout(height)
        if not places:
            return None
        seen = sorted({place.item for place in places if place.row > 0})
        fitting = [index for index in seen if self._can_open(index)]
        if fitting:
            return fitting[-1] if step < 0 else fitting[0]
        return self._next(places[0].item if step < 0 else places[-1].item, step)

    def _next(self, index: int, step: int) -> int | None:
        stretches = self._items.stretches
        reads = stretches.reads
        while True:
            index = stretches.after(index) if step > 0 else stretches.before(index)
            if not 0 <= index < stretches.end:
                return None
            if self._can_open(index):
                return index
            if stretches.reads - reads >= READS_AT_MOST:
                index = stretches.edge_with_outputs(index, step)
                reads = stretches.reads

    def _can_open(self, index: int) -> bool:
        block = self._items[index].block
        return block is not None and is_collapsible(block)
