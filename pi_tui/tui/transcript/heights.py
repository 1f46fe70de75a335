"""Heights of many items as one column: sums, search and change in logarithmic time.

Heights are rows, positions count from the top of the column. Knows nothing of what the items are.
"""

from __future__ import annotations

from collections.abc import Iterable


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
