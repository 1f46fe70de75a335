"""The visible rows of the navigator: which row hangs below which, how far it is moved in, folds.

Made in two passes over the rows that are shown, however deep the tree is. Straight chains are not
moved in; every fork adds a level, and so does the first row after the start of a branch. A *branch
start* is a row that has visible siblings. Levels are counted in steps of the gutter; what a step
looks like is decided elsewhere.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.tree_shape import TreeShape

Step: TypeAlias = Literal["blank", "line", "branch", "last"]
"""One step of the gutter before a row: nothing, a branch that goes on below, or the row's own
connector, the last one of its siblings or not."""


class TreeRow(Struct, frozen=True):
    """One visible row. `is_leaf`: the leaf is here, or below where it cannot be seen. `hidden`:
    entries folded away below it. `skipped`: entries between it and the row it hangs below are left
    out by a search. `level` counts steps of the gutter."""

    number: int
    entry_id: str
    level: int
    on_path: bool
    is_leaf: bool
    is_start: bool
    foldable: bool
    folded: bool
    hidden: int
    hit: bool
    skipped: bool
    hidden_branch: bool


class TreeLayout:
    """Rows for some entries. `shown` are rising indexes of the shape, folds not yet applied."""

    def __init__(self, shape: TreeShape, shown: Sequence[int], folded: Container[int]) -> None:
        self.shape = shape
        self._shown = shown
        self.rows: list[int] = []
        self._parents: list[int] = []
        self._below: list[int] = []
        self._roots: list[int] = []
        self._last_child: list[int] = []
        self._folded_rows: dict[int, int] = {}
        self._hang(folded)
        self.levels: list[int] = []
        self._starts: list[int] = []
        self._outer: dict[int, int] = {}
        self._jump: dict[int, int] = {}
        self._depth: dict[int, int] = {}
        self._place()

    def __len__(self) -> int:
        return len(self.rows)

    # ------------------------------------------------------------ building

    def _hang(self, folded: Container[int]) -> None:
        """Find each row's visible parent; leave out what is folded away."""
        ends, shown = self.shape.ends, self._shown
        rows, parents, below, last = self.rows, self._parents, self._below, self._last_child
        open_rows: list[int] = []
        open_ends: list[int] = []
        at, count = 0, len(shown)
        while at < count:
            index = shown[at]
            while open_ends and open_ends[-1] <= index:
                open_ends.pop()
                open_rows.pop()
            row = len(rows)
            rows.append(index)
            below.append(0)
            last.append(-1)
            end = ends[index]
            at += 1
            if open_rows:
                parent = open_rows[-1]
                parents.append(parent)
                below[parent] += 1
                last[parent] = row
            else:
                parents.append(-1)
                self._roots.append(row)
            if index in folded:
                after = bisect_left(shown, end, at)
                if after > at:
                    self._folded_rows[row] = after - at
                    at = after
                    continue
            open_rows.append(row)
            open_ends.append(end)

    def _place(self) -> None:
        """Find levels and branch starts, with jumps by which a far level is found quickly."""
        levels, starts, below, parents = self.levels, self._starts, self._below, self._parents
        outer, jump, depth = self._outer, self._jump, self._depth
        many_roots = len(self._roots) > 1
        for row, parent in enumerate(parents):
            if parent < 0:
                level, start, is_start = (1, -1, True) if many_roots else (0, -1, False)
            else:
                level, start = levels[parent], starts[parent]
                is_start = below[parent] > 1
                if is_start or start == parent:
                    level += 1
            levels.append(level)
            if not is_start:
                starts.append(start)
                continue
            starts.append(row)
            outer[row] = start
            if start < 0:
                jump[row], depth[row] = -1, 1
                continue
            depth[row] = depth[start] + 1
            far = jump[start]
            further = jump[far] if far >= 0 else -1
            far_depth = depth[far] if far >= 0 else 0
            further_depth = depth[further] if further >= 0 else 0
            even = depth[start] - far_depth == far_depth - further_depth
            jump[row] = further if even else start

    # ------------------------------------------------------------ asking

    def row_of(self, index: int) -> int | None:
        """The row of an entry; None when it has none."""
        row = bisect_left(self.rows, index)
        return row if row < len(self.rows) and self.rows[row] == index else None

    def nearest(self, index: int) -> int | None:
        """The row of an entry or of its nearest visible ancestor; None when there is none."""
        row = bisect_right(self.rows, index) - 1
        ends = self.shape.ends
        while row >= 0 and ends[self.rows[row]] <= index:
            row = self._parents[row]
        return row if row >= 0 else None

    def first_at_or_after(self, index: int) -> int:
        """The first row that does not stand before an entry; the number of rows if none."""
        return bisect_left(self.rows, index)

    def parent(self, row: int) -> int:
        """The visible parent's row; -1 for a root."""
        return self._parents[row]

    def children_count(self, row: int) -> int:
        return self._below[row]

    def is_start(self, row: int) -> bool:
        """True for the first row of a branch."""
        return self._starts[row] == row

    def start_of(self, row: int) -> int:
        """The first row of the branch a row is on; itself when it is one, -1 on the trunk."""
        return self._starts[row]

    def outer_start(self, row: int) -> int:
        """The branch start around a branch start; -1 when that is the trunk."""
        return self._outer[row]

    def root_of(self, row: int) -> int:
        return self._roots[bisect_right(self._roots, row) - 1]

    def is_folded(self, row: int) -> bool:
        return row in self._folded_rows

    def folded_count(self, row: int) -> int:
        """How many entries a folded row hides."""
        return self._folded_rows.get(row, 0)

    def is_foldable(self, row: int) -> bool:
        """True for branch starts and roots that have something below them."""
        if row in self._folded_rows:
            return True
        return self._below[row] > 0 and (self.is_start(row) or self._parents[row] < 0)

    def is_last(self, row: int) -> bool:
        """True when no sibling stands below the row."""
        parent = self._parents[row]
        return row == (self._roots[-1] if parent < 0 else self._last_child[parent])

    def chain_end(self, row: int) -> int:
        """The last row that is reached from here without a fork."""
        while self._below[row] == 1:
            row += 1
        return row

    def gutter(self, row: int, first: int, count: int) -> list[Step]:
        """The steps before a row, from level `first` on, at most `count` of them."""
        count = min(count, self.levels[row] - first)
        steps: list[Step] = ["blank"] * max(0, count)
        if count <= 0:
            return steps
        start = self._starts[row]
        if start == row:
            slot = self.levels[row] - 1 - first
            if slot < count:
                steps[slot] = "last" if self.is_last(row) else "branch"
            start = self._outer[row]
        levels = self.levels
        while start >= 0 and levels[start] - 1 >= first + count:
            far = self._jump[start]
            start = far if far >= 0 and levels[far] - 1 >= first + count else self._outer[start]
        while start >= 0 and levels[start] - 1 >= first:
            if not self.is_last(start):
                steps[levels[start] - 1 - first] = "line"
            start = self._outer[start]
        return steps
