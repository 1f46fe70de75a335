"""Heights of many items as one column: sums, search and change in logarithmic time.

Heights are rows, positions count from the top of the column. Knows nothing of what the items are.
A column may be made of stretches, some of which are known only as a whole. There an index is that
of the stretch, shifted by `OFFSET_BITS`, and that of the item within; it stays the same when a
stretch becomes known or is forgotten. In the first stretch it is the number of the item.
"""

from __future__ import annotations

from collections.abc import Iterable

OFFSET_BITS = 24
OFFSET_MASK = (1 << OFFSET_BITS) - 1


class Heights:
    """A Fenwick tree over the heights of the items, which are numbered from 0."""

    __slots__ = ("_heights", "_tree")

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights = list(heights)
        tree = [0, *self._heights]
        for at in range(1, len(tree)):
            parent = at + (at & -at)
            if parent < len(tree):
                tree[parent] += tree[at]
        self._tree = tree

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        return self.top(len(self._heights))

    def top(self, index: int) -> int:
        """The position at which an item begins: the sum of the heights before it."""
        tree, total = self._tree, 0
        while index > 0:
            total += tree[index]
            index &= index - 1
        return total

    def append(self, height: int) -> None:
        self._heights.append(height)
        at = len(self._heights)
        self._tree.append(self.top(at - 1) - self.top(at & (at - 1)) + height)

    def set(self, index: int, height: int) -> None:
        change = height - self._heights[index]
        if change == 0:
            return
        self._heights[index] = height
        tree, at = self._tree, index + 1
        while at < len(tree):
            tree[at] += change
            at += at & -at

    def find(self, position: int) -> tuple[int, int]:
        """The item that covers a position, and the row within it.

        Clamped to the first and the last row; only for a column that is not empty.
        """
        position = max(0, min(position, self.total - 1))
        tree, index = self._tree, 0
        step = 1 << (len(tree) - 1).bit_length()
        while step:
            ahead = index + step
            if ahead < len(tree) and tree[ahead] <= position:
                index = ahead
                position -= tree[ahead]
            step >>= 1
        return index, position


class StretchHeights:
    """A column of stretches: each with the heights of its items, or only the sum of them."""

    __slots__ = ("_stretches", "_totals")

    def __init__(self, stretches: Iterable[Heights | int] = ()) -> None:
        self._stretches = list(stretches)
        self._totals = Heights(_sum(stretch) for stretch in self._stretches)

    def __len__(self) -> int:
        """How many items are known."""
        return sum(len(part) for part in self._stretches if isinstance(part, Heights))

    def __getitem__(self, index: int) -> int:
        part = self._stretches[index >> OFFSET_BITS]
        return part[index & OFFSET_MASK] if isinstance(part, Heights) else part

    @property
    def total(self) -> int:
        return self._totals.total

    def top(self, index: int) -> int:
        """The position at which an item begins; that of the stretch where it is not known."""
        number = index >> OFFSET_BITS
        top = self._totals.top(number)
        part = self._stretches[number] if number < len(self._stretches) else 0
        return top + part.top(index & OFFSET_MASK) if isinstance(part, Heights) else top

    def append(self, height: int) -> None:
        """Add an item to the last stretch, which has to be known."""
        number = len(self._stretches) - 1
        self._part(number).append(height)
        self._totals.set(number, self._totals[number] + height)

    def set(self, index: int, height: int) -> None:
        number, offset = index >> OFFSET_BITS, index & OFFSET_MASK
        part = self._part(number)
        change = height - part[offset]
        if change:
            part.set(offset, height)
            self._totals.set(number, self._totals[number] + change)

    def stretch(self, number: int) -> Heights | int:
        """What is known of a stretch."""
        return self._stretches[number]

    def set_stretch(self, number: int, heights: Heights | int) -> None:
        """Put other knowledge of a stretch in the place of what was known."""
        self._stretches[number] = heights
        self._totals.set(number, _sum(heights))

    def find(self, position: int) -> tuple[int, int]:
        """The item that covers a position, and the row within it; as `Heights.find`.

        Of a stretch that is known as a whole: its first index, and the row within the stretch.
        """
        number, row = self._totals.find(position)
        part = self._stretches[number]
        if not isinstance(part, Heights):
            return number << OFFSET_BITS, row
        offset, row = part.find(row)
        return number << OFFSET_BITS | offset, row

    def _part(self, number: int) -> Heights:
        part = self._stretches[number]
        if not isinstance(part, Heights):
            raise IndexError(f"the items of stretch {number} are not known")
        return part


def _sum(stretch: Heights | int) -> int:
    return stretch.total if isinstance(stretch, Heights) else stretch
