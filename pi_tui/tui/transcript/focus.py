"""The focus of a transcript: which block that can be opened the keys are for.

It is remembered by the block's key, so it survives that blocks are put before it.
"""

from __future__ import annotations

from pi_tui.core.transcript import CoveredBlock, ShownBlock
from pi_tui.tui.transcript.items import Items, is_collapsible
from pi_tui.tui.transcript.viewport import Viewport


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

    def blocks(self) -> list[ShownBlock]:
        """The block that has the focus, or all that it hides."""
        index = self.index
        if index is None:
            return []
        block = self._items.block_at(index)
        if block is None:
            return []
        if not isinstance(block, CoveredBlock):
            return [block]
        inside = (self._items.block_at(at) for at in self._items.fold_range(index))
        return [block for block in inside if block is not None]

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
        items = self._items
        while True:
            index = items.after(index) if step > 0 else items.before(index)
            if not 0 <= index < len(items):
                return None
            if self._can_open(index):
                return index

    def _can_open(self, index: int) -> bool:
        block = self._items[index].block
        return block is not None and is_collapsible(block)
