"""The state of the tree navigator: filter, search hits, folds, selection; pure.

Knows neither keys nor colours nor widths. Entries are decoded only to find out whether an answer
is quiet, and that a few at a time: `settle` does it for the rows that are about to be looked at,
`settle_some` for the rest. Rows are laid out when somebody asks for them after a change. Row
numbers count visible rows from 0; they are good until the next change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import compress

from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_answers import AnswerReader
from pi_tui.core.tree_layout import Step, TreeLayout, TreeRow
from pi_tui.core.tree_memory import TreeMemory
from pi_tui.core.tree_shape import (
    BACKSTAGE,
    FILTERS,
    UNREAD_ANSWER,
    TreeFilter,
    TreeShape,
)


class TreeView:
    """What the navigator shows of a tree, and where it stands."""

    def __init__(
        self,
        tree: SessionTree,
        memory: TreeMemory | None = None,
        *,
        default_filter: TreeFilter = "default",
        selected_id: str | None = None,
        hidden: Collection[str] = (),
        read: Callable[[str], bool] | None = None,
    ) -> None:
        """`hidden`: where branches begin that are not to be shown; the active path always is.
        `read` tells of an answer whether it is quiet, if there is a quicker way than decoding it.
        """
        self.tree = tree
        self.memory = memory or TreeMemory()
        self._default_filter = default_filter
        self._hidden: Collection[str] = hidden
        self._searching = False
        self._hits: set[int] = set()
        self._answers = AnswerReader(tree, self.memory.quiet, read)
        self.shape = self._shape()
        self._pull_tree()
        wanted = selected_id if selected_id in tree else tree.leaf_id
        self._wanted = self.shape.find(wanted) or 0
        self._stale = True
        self._made_layout = TreeLayout(self.shape, (), ())
        self._made_row = 0
        self._made_flags = bytearray()
        self._made_hits: list[int] = []
        self._made_hidden_count = 0
        self._made_here_row: int | None = None

    # ------------------------------------------------------------ the tree itself

    def refresh(self) -> None:
        """Take in what was appended, labelled or moved to since."""
        selected, hits = self.selected_id, [self.shape.ids[at] for at in self._hits]
        self.shape = self._shape()
        self._pull_tree()
        self._wanted = self.shape.find(selected) or 0
        found = (self.shape.find(entry_id) for entry_id in hits)
        self._hits = {at for at in found if at is not None}
        self._stale = True

    @property
    def leaf_moved(self) -> bool:
        """True when the leaf is not where it was when the tree was looked at."""
        leaf = self.shape.ids[self._leaf] if self._leaf >= 0 else None
        return leaf != self.tree.leaf_id

    def _shape(self) -> TreeShape:
        memory, shape = self.memory, self.memory.shape
        if shape is not None and memory.shape_of is self.tree and len(shape) == len(self.tree):
            return shape
        shape = TreeShape(self.tree)
        self._answers.fill(shape)
        memory.shape, memory.shape_of, memory.layout = shape, self.tree, None
        return shape

    def _pull_tree(self) -> None:
        """Read what may change without a new entry: the leaf; and the labels."""
        shape, leaf = self.shape, self.shape.find(self.tree.leaf_id)
        self._leaf = -1 if leaf is None else leaf
        # Labels and pins are appended at the leaf; the place is what one sees above them.
        self._place = shape.above(self._leaf, lambda at: shape.kinds[at] != BACKSTAGE)
        self._on_path = bytearray(len(shape))
        for at in shape.path(self._leaf):
            self._on_path[at] = 1
        found = (shape.find(label.target_id) for label in self.tree.labels)
        self._labelled = sorted(at for at in found if at is not None)
        self._answers.begin(shape, self._leaf)

    # ------------------------------------------------------------ quiet answers

    @property
    def unread_count(self) -> int:
        """How many answers are still to be looked at."""
        return self._answers.unread_count

    def settle(self, above: int, below: int) -> bool:
        """Look at the answers on so many rows around the selection: none of them vanishes later.

        Quiet ones vanish and others move up; to lay out seldom, more than asked for are looked at.
        True when rows vanished.
        """
        changed = False
        spare = above + below
        while True:
            rows, kinds = self._layout.rows, self.shape.kinds
            first, end = max(0, self._row - above), self._row + below + 1
            if all(kinds[at] != UNREAD_ANSWER for at in rows[first:end]):
                return changed
            if not self._answers.look_at(rows[max(0, first - spare) : end + spare]):
                return changed
            changed = self._stale = True

    def settle_some(self, count: int) -> bool:
        """Look at some more answers, nearest to the leaf first. True when one is quiet.

        The rows stay as they are until `relayout`.
        """
        return self._answers.look_at_some(count)

    def relayout(self) -> None:
        """Lay the rows out now: without answers that turned out to be quiet, with new hits."""
        self._stale = True
        self._lay_out()

    # ------------------------------------------------------------ what is shown

    @property
    def filter(self) -> TreeFilter:
        return self.memory.filter or self._default_filter

    def set_filter(self, mode: TreeFilter) -> None:
        """Show another kind of entries; everything is unfolded, the selection stays."""
        self.memory.filter = mode
        self.memory.folded.clear()
        self._stale = True

    def toggle_filter(self, mode: TreeFilter) -> None:
        """Set a filter, or go back to the default one when it is set."""
        self.set_filter("default" if self.filter == mode else mode)

    def cycle_filter(self, step: int) -> None:
        at = FILTERS.index(self.filter)
        self.set_filter(FILTERS[(at + step) % len(FILTERS)])

    def set_hidden(self, entry_ids: Collection[str]) -> None:
        """Say where hidden branches begin."""
        self._hidden = entry_ids
        self._stale = True

    def toggle_hidden(self) -> None:
        """Show hidden branches, or hide them again."""
        self.memory.show_hidden = not self.memory.show_hidden
        self._stale = True

    def branch_start(self, entry_id: str) -> str | None:
        """The first entry of the branch an entry is on, filters aside; None on the active path.

        Where a branch leaves the active path, it begins.
        """
        at = self.shape.find(entry_id)
        if at is None or self._on_path[at]:
            return None
        return self.shape.ids[self.shape.branch_start(at, self._on_path)]

    def _flags(self) -> bytearray:
        """One byte for each entry: may it be shown, folds and search aside?"""
        flags = self.shape.flags(self.filter, self._place, self._labelled)
        self._made_hidden_count = 0
        if not self.memory.show_hidden:
            for first, end in self._hidden_ranges():
                self._made_hidden_count += flags.count(1, first, end)
                flags[first:end] = bytes(end - first)
        return flags

    def _hidden_ranges(self) -> Iterator[tuple[int, int]]:
        for entry_id in self._hidden:
            at = self.shape.find(entry_id)
            if at is not None and not self._on_path[at]:
                yield at, self.shape.ends[at]

    # ------------------------------------------------------------ laying out

    def _lay_out(self) -> None:
        """Make the rows anew, if something changed since."""
        if not self._stale:
            return
        self._stale = False
        self._made_flags = flags = self._flags()
        folded = {at for i in self.memory.folded if (at := self.shape.find(i)) is not None}
        self._made_layout = (
            self._search_layout(flags)
            if self._searching
            else (self._plain_layout(flags, frozenset(folded)))
        )
        rows, hits = self._made_layout.rows, self._hits
        self._made_hits = [row for row, at in enumerate(rows) if at in hits] if hits else []
        self._made_here_row = self._here_row()
        self._choose_row()

    def _here_row(self) -> int | None:
        """The row of the leaf or of its nearest visible ancestor. Among hits, no other stands in
        for it: what lies between is left out there."""
        here = self.shape.above(self._leaf, lambda at: bool(self._made_flags[at]))
        if here < 0:
            return None
        layout = self._made_layout
        return layout.row_of(here) if self._searching else layout.nearest(here)

    def _search_layout(self, flags: bytearray) -> TreeLayout:
        return TreeLayout(self.shape, self.shape.with_ancestors(self._hits, flags), ())

    def _plain_layout(self, flags: bytearray, folded: frozenset[int]) -> TreeLayout:
        memory, made_of = self.memory, (bytes(flags), folded)
        if memory.layout is None or memory.layout_of != made_of:
            shown = list(compress(range(len(self.shape)), flags))
            memory.layout, memory.layout_of = TreeLayout(self.shape, shown, folded), made_of
        return memory.layout

    @property
    def _layout(self) -> TreeLayout:
        self._lay_out()
        return self._made_layout

    @property
    def _row(self) -> int:
        self._lay_out()
        return self._made_row

    @property
    def _shown_hits(self) -> list[int]:
        self._lay_out()
        return self._made_hits

    @property
    def _shown_flags(self) -> bytearray:
        self._lay_out()
        return self._made_flags

    def _choose_row(self) -> None:
        layout = self._layout
        row = layout.row_of(self._wanted)
        if self._searching and self._shown_hits and (row is None or not self.row(row).hit):
            at = bisect_left(self._shown_hits, layout.first_at_or_after(self._wanted))
            row = self._shown_hits[min(at, len(self._shown_hits) - 1)]
        if row is None:
            row = layout.nearest(self._wanted)
        if row is None:
            row = max(0, min(layout.first_at_or_after(self._wanted), len(layout) - 1))
        self._made_row = row

    # ------------------------------------------------------------ searching

    @property
    def searching(self) -> bool:
        return self._searching

    def begin_search(self) -> None:
        """Show only hits from now on; there are none yet. Everything is unfolded."""
        self._keep_selection()
        self._searching = True
        self._hits = set()
        self.memory.folded.clear()

    def add_hits(self, entry_ids: Iterable[str]) -> None:
        """Take in more hits; `relayout` shows them."""
        found = (self.shape.find(entry_id) for entry_id in entry_ids)
        self._hits.update(at for at in found if at is not None)

    def end_search(self) -> None:
        """Show everything again; the selection stays on its entry."""
        self._keep_selection()
        self._searching = False
        self._hits = set()
        self._stale = True

    def is_shown_kind(self, entry_id: str) -> bool:
        """True when filter and hidden branches let an entry through; a quiet answer never is."""
        at = self.shape.find(entry_id)
        return at is not None and bool(self._shown_flags[at])

    @property
    def hit_count(self) -> int:
        """How many hits are among the rows."""
        return len(self._shown_hits)

    @property
    def hit_number(self) -> int:
        """Which hit is selected, from 1; 0 when the selection is on none."""
        at = bisect_left(self._shown_hits, self._row)
        found = at < len(self._shown_hits) and self._shown_hits[at] == self._row
        return at + 1 if found else 0

    def next_hit(self, step: int) -> bool:
        """Select the next (1) or previous (-1) hit, around the end; False when there is none."""
        hits = self._shown_hits
        if not hits:
            return False
        at = bisect_left(hits, self._row)
        if step > 0:
            at += at < len(hits) and hits[at] == self._row
        else:
            at -= 1
        self._go(hits[at % len(hits)])
        return True

    # ------------------------------------------------------------ rows

    def __len__(self) -> int:
        return len(self._layout)

    def row(self, number: int) -> TreeRow:
        """What is to be drawn of one row."""
        layout, shape = self._layout, self.shape
        at = layout.rows[number]
        return TreeRow(
            number=number,
            entry_id=shape.ids[at],
            level=layout.levels[number],
            on_path=bool(self._on_path[at]),
            is_leaf=number == self._made_here_row,
            is_start=layout.is_start(number),
            foldable=layout.is_foldable(number),
            folded=layout.is_folded(number),
            hidden=layout.folded_count(number),
            hit=at in self._hits,
            skipped=self._searching and self._skips(number),
            hidden_branch=shape.ids[at] in self._hidden,
        )

    def levels(self, first: int, count: int) -> list[int]:
        """The levels of some rows from a row on, fewer at the end."""
        return self._layout.levels[first : first + count]

    def gutter(self, number: int, first_level: int, count: int) -> list[Step]:
        """The gutter steps before a row that are in sight."""
        return self._layout.gutter(number, first_level, count)

    def _skips(self, number: int) -> bool:
        parent = self._layout.parent(number)
        above = self._layout.rows[parent] if parent >= 0 else -1
        at = self.shape.parents[self._layout.rows[number]]
        flags = self._shown_flags
        at = self.shape.above(at, lambda at: at == above or bool(flags[at]))
        return at >= 0 and at != above

    @property
    def total(self) -> int:
        """How many rows there would be without folds and search."""
        return self._shown_flags.count(1)

    @property
    def hidden_count(self) -> int:
        """How many entries of hidden branches are left out."""
        self._lay_out()
        return self._made_hidden_count

    # ------------------------------------------------------------ selection

    @property
    def selected_row(self) -> int:
        return self._row

    @property
    def selected_id(self) -> str | None:
        """The selected entry; None when there are no rows."""
        rows = self._layout.rows
        return self.shape.ids[rows[self._row]] if rows else None

    def select(self, entry_id: str) -> bool:
        """Select an entry or its nearest visible ancestor; False when there is neither."""
        at = self.shape.find(entry_id)
        row = None if at is None else self._layout.nearest(at)
        if row is None:
            return False
        self._go(row)
        return True

    def reveal(self, entry_id: str) -> bool:
        """Select an entry as `select` does, after taking it out of folds and hidden branches."""
        at = self.shape.find(entry_id)
        if at is None:
            return False
        self.memory.folded.difference_update(self.shape.ids[above] for above in self.shape.path(at))
        if any(first <= at < end for first, end in self._hidden_ranges()):
            self.memory.show_hidden = True
        self._stale = True
        return self.select(entry_id)

    def select_row(self, number: int) -> None:
        """Select a row; numbers beyond the ends mean the ends."""
        if len(self):
            self._go(min(max(0, number), len(self) - 1))

    def move(self, rows: int, *, wrap: bool = False) -> None:
        """Move the selection; with `wrap`, on from the other end."""
        count = len(self)
        if count:
            row = self._row + rows
            self._go(row % count if wrap else min(max(0, row), count - 1))

    def fold_or_up(self) -> None:
        """Fold the branch that starts here; else go to where it starts, at last to the root."""
        layout, row = self._layout, self._row
        if not len(self):
            return
        if layout.is_foldable(row) and not layout.is_folded(row):
            self._fold(row, folded=True)
            return
        start = layout.start_of(row)
        if start == row:
            start = layout.outer_start(row)
        self._go(start if start >= 0 else layout.root_of(row))

    def unfold_or_down(self) -> None:
        """Unfold; else go to the next start of a branch, or to the end of this one."""
        layout, row = self._layout, self._row
        if not len(self):
            return
        if layout.is_folded(row):
            self._fold(row, folded=False)
            return
        end = layout.chain_end(row)
        self._go(end + 1 if layout.children_count(end) > 1 else end)

    def toggle_fold(self, number: int) -> bool:
        """Fold or unfold a row; False when it cannot be."""
        layout = self._layout
        if not 0 <= number < len(self) or not layout.is_foldable(number):
            return False
        self._go(number)
        self._fold(number, folded=not layout.is_folded(number))
        return True

    def _fold(self, row: int, *, folded: bool) -> None:
        entry_id = self.shape.ids[self._layout.rows[row]]
        if folded:
            self.memory.folded.add(entry_id)
        else:
            self.memory.folded.discard(entry_id)
        self._stale = True

    def _go(self, row: int) -> None:
        self._made_row = row
        self._keep_selection()

    def _keep_selection(self) -> None:
        if len(self):
            self._wanted = self._layout.rows[self._row]
