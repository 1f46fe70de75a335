"""Which rows of which items are in sight.

The place is remembered as an item and a row in it, not as a distance from the top. So nothing that
happens above (a guess that becomes exact, an item that is opened or removed) moves what is read.
Rows are counted exactly while moving, by drawing what is passed.
"""

from __future__ import annotations

from typing import NamedTuple

from pi_tui.tui.transcript.items import Items


class Place(NamedTuple):
    """A row of an item; row 0 is the margin above it."""

    item: int
    row: int


class Viewport:
    """The place at the top of the window, or the end of everything while `following`."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self.following = True
        self.top = Place(0, 0)
        self._before_redraw: tuple[int, int] | None = None

    def anchor(self) -> tuple[str, int] | None:
        """The key of the topmost block that is still there, and the row of it at the top."""
        items, stretches = self._items, self._items.stretches
        index = self.top.item
        if stretches.is_hidden(index):
            index = stretches.after(index)
        while index < stretches.end:
            block = items.block_at(index)
            if block is not None:
                return block.key, self.top.row if index == self.top.item else 0
            index = stretches.after(index)
        return None

    def return_to(self, anchor: tuple[str, int] | None) -> None:
        """Go where an `anchor` was, in other items; to the end when it is not among them."""
        items = self._items
        index = None if anchor is None else items.find(anchor[0])
        if anchor is None or index is None:
            self.following = True
            return
        if (fold := items.stretches.fold_of(index)) is not None:
            items.open(fold)  # what is being read must not vanish
        items.ensure(index)
        self.top = Place(index, anchor[1])

    def note_redraw(self) -> None:
        """Call before all items are redrawn at another width."""
        if self.following:  # the end stays in sight; the top is found anew
            self._before_redraw = None
        elif (item := self._items.stretches.item(self.top.item)) is not None and item.exact:
            self._before_redraw = (self.top.row, self._items.heights[self.top.item])

    def layout(self, height: int) -> list[Place]:
        """Draw what is in sight and return its rows, top to bottom; at most `height`."""
        if self._items.stretches.is_empty or height <= 0:
            self.top = Place(0, 0)
            return []
        if not self.following:
            self._settle_top()
            places = self._down(height)
            if len(places) == height and not self._is_end(places[-1]):
                return places
            self.following = True
        self.top = self._up_from_end(height)
        return self._down(height)

    def move(self, rows: int, height: int) -> None:
        """Scroll by rows, up when negative."""
        stretches = self._items.stretches
        if stretches.is_empty:
            return
        if self.following:
            if rows > 0:
                return
            self.layout(height)  # the top is that of the last window, not of the end
        self.following = False
        self._settle_top()
        index, row = self.top
        row += rows
        while row < 0 and (before := stretches.before(index)) >= 0:
            index = before
            row += self._exact_height(index)
        while row >= (size := self._exact_height(index)):
            after = stretches.after(index)
            if after >= stretches.end:
                break
            index, row = after, row - size
        self.top = Place(index, max(0, row))
        self.layout(height)

    def move_to_position(self, position: int, height: int) -> None:
        """Put a position of the column of (partly guessed) heights at the top."""
        if self._items.stretches.is_empty:
            return
        self.following = position >= self._items.heights.total - height
        self.top = Place(*self._items.place_at(position))

    def move_to_item(self, index: int) -> None:
        """Put an item at the top; its margin is left out."""
        self.following = False
        self.top = Place(index, min(1, max(0, self._exact_height(index) - 1)))

    def show_row(self, index: int, row: int, height: int) -> None:
        """Bring one row into sight, a third down the window, unless it is in sight already."""
        if Place(index, row) in self._sight(height):
            return
        self.following = False
        self.top = Place(index, row)
        self.move(-(height // 3), height)

    def show_item(self, index: int, height: int) -> None:
        """Bring an item into sight, all of it where it fits, moving as little as possible."""
        size = self._exact_height(index)
        seen = [place.row for place in self._sight(height) if place.item == index]
        if seen and (len(seen) >= size - 1 or (seen[0] <= 1 and len(seen) >= height - 1)):
            return
        if index < self.top.item or (index == self.top.item and self.top.row > 1):
            self.move_to_item(index)
            return
        # One row more than needed: the last line of the window may hold a hint.
        self.following = False
        self.top = Place(index, 0)
        self.move(-max(0, height - size - 1), height)

    def _sight(self, height: int) -> list[Place]:
        return self.layout(height)[: max(1, height - 1)]

    def user_message(self, step: int) -> int | None:
        """The nearest user message above (-1) or below (1) the top."""
        at = self.top
        return self._items.stretches.user_message(at.item + (step < 0 and at.row > 1), step)

    @property
    def position(self) -> int:
        return self._items.heights.top(self.top.item) + self.top.row

    def _settle_top(self) -> None:
        stretches = self._items.stretches
        index = self.top.item
        if stretches.is_hidden(index):  # it was folded away: stay at the fold
            index = stretches.fold_of(index) or 0
        index = stretches.nearest(index)
        if index < 0:  # nothing that can be shown
            self.top = Place(0, 0)
            return
        row = self.top.row if index == self.top.item else 0
        guess, was_exact = self._items.heights[index], self._items[index].exact
        size = self._exact_height(index)
        if self._before_redraw is not None:
            old_row, old_size = self._before_redraw
            self._before_redraw = None
            row = old_row if old_row <= 1 or not old_size else round(old_row * size / old_size)
        elif not was_exact:  # what is below the top row is what was in sight: keep that
            row += size - guess
        self.top = Place(index, max(0, min(row, size - 1)))

    def _down(self, height: int) -> list[Place]:
        places: list[Place] = []
        index, row = self.top
        stretches = self._items.stretches
        while len(places) < height and index < stretches.end:
            size = self._exact_height(index)
            places += [Place(index, at) for at in range(row, min(size, row + height - len(places)))]
            index, row = stretches.after(index), 0
        return places

    def _up_from_end(self, height: int) -> Place:
        stretches = self._items.stretches
        index, left = stretches.end, height
        while left > 0 and (before := stretches.before(index)) >= 0:
            index = before
            left -= self._exact_height(index)
        return Place(index, max(0, -left))

    def _is_end(self, place: Place) -> bool:
        if place.row < self._items.heights[place.item] - 1:
            return False
        heights = self._items.heights
        return heights.top(place.item + 1) == heights.total

    def _exact_height(self, index: int) -> int:
        drawn = self._items.ensure(index)
        return drawn.height if drawn is not None else 0
