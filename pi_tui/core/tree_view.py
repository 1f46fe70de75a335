"""The state of the tree navigator: filter, search hits, folds, selection; pure.

Knows neither keys nor colours nor widths. Entries are decoded only to find out whether an answer
is quiet (nothing but tool calls), and that a few at a time: `settle` does it for the rows that are
about to be looked at, `settle_some` for the rest. Row numbers count visible rows from 0; they are
good until the next change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import compress

from msgspec import Struct, field

from pi_tui.core.entries import Entry, MessageEntry
from pi_tui.core.errors import StorageError
from pi_tui.core.messages import AssistantMessage, TextContent, ToolCall
from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_layout import Step, TreeLayout
from pi_tui.core.tree_shape import (
    ANSWER,
    FILTERS,
    QUIET_ANSWER,
    UNREAD_ANSWER,
    TreeFilter,
    TreeShape,
    admits_answers,
    admitted,
)


def is_quiet(entry: Entry) -> bool:
    """True for an answer that holds only tool calls and was neither aborted nor failed."""
    if not isinstance(entry, MessageEntry) or not isinstance(entry.message, AssistantMessage):
        return False
    message = entry.message
    if message.stop_reason in ("aborted", "error"):
        return False
    has_calls = any(isinstance(part, ToolCall) for part in message.content)
    return has_calls and not any(
        isinstance(part, TextContent) and part.text.strip() for part in message.content
    )


class TreeMemory(Struct):
    """What a session's navigator remembers while the program runs: its view, and what it found out.

    `filter` None: the one from the settings. `quiet` says of answers whether they are quiet, which
    stays true because entries never change.
    """

    filter: TreeFilter | None = None
    show_hidden: bool = False
    folded: set[str] = field(default_factory=set)
    quiet: dict[str, bool] = field(default_factory=dict)
    shape: TreeShape | None = None
    shape_of: SessionTree | None = None


class TreeRow(Struct, frozen=True):
    """One visible row. `hidden`: entries folded away below it. `skipped`: entries between it and
    the row it hangs below are left out by a search. `level` counts steps of the gutter."""

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
        self._read = read
        self._hidden: Collection[str] = hidden
        self._searching = False
        self._hits: set[int] = set()
        self._unread: list[int] | None = None
        self.shape = self._shape()
        self._wanted = 0
        self._pull_tree()
        wanted = selected_id if selected_id in tree else tree.leaf_id
        self._wanted = self.shape.index.get(wanted, 0) if wanted else 0
        self._lay_out()

    # ------------------------------------------------------------ the tree itself

    def refresh(self) -> None:
        """Take in what was appended, labelled or moved to since."""
        selected, hits = self.selected_id, [self.shape.ids[at] for at in self._hits]
        self.shape = self._shape()
        self._unread = None
        self._pull_tree()
        self._wanted = self.shape.index.get(selected or "", 0)
        self._hits = {self.shape.index[entry_id] for entry_id in hits}
        self._lay_out()

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
        for entry_id, quiet in memory.quiet.items():
            at = shape.index.get(entry_id)
            if at is not None:
                shape.kinds[at] = QUIET_ANSWER if quiet else ANSWER
        memory.shape, memory.shape_of = shape, self.tree
        return shape

    def _pull_tree(self) -> None:
        """Read what may change without a new entry: the leaf; and the labels."""
        index = self.shape.index
        self._path = [index[entry_id] for entry_id in self.tree.path_ids()]
        self._on_path = bytearray(len(self.shape))
        for at in self._path:
            self._on_path[at] = 1
        self._leaf = self._path[-1] if self._path else -1
        found = (index.get(label.target_id) for label in self.tree.labels)
        self._labelled = sorted(at for at in found if at is not None)

    # ------------------------------------------------------------ quiet answers

    @property
    def unread_count(self) -> int:
        """How many answers are still to be looked at."""
        return len(self._unread_answers())

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
            quiet = 0
            for at in rows[max(0, first - spare) : end + spare]:
                if kinds[at] == UNREAD_ANSWER:
                    quiet += self._look_at(at)
            if not quiet:
                return changed
            changed = True
            self._lay_out()

    def settle_some(self, count: int) -> bool:
        """Look at some more answers, nearest to the leaf first. True when one is quiet.

        The rows stay as they are until `relayout`.
        """
        unread, kinds = self._unread_answers(), self.shape.kinds
        quiet = 0
        while unread and count > 0:
            at = unread.pop()
            if kinds[at] == UNREAD_ANSWER:
                quiet += self._look_at(at)
                count -= 1
        return quiet > 0

    def relayout(self) -> None:
        """Leave out the answers that turned out to be quiet."""
        self._lay_out()

    def _unread_answers(self) -> list[int]:
        if self._unread is None:
            leaf = self._leaf
            kinds = self.shape.kinds
            unread: list[int] = []
            at = kinds.find(UNREAD_ANSWER)
            while at >= 0:
                unread.append(at)
                at = kinds.find(UNREAD_ANSWER, at + 1)
            unread.sort(key=lambda at: -abs(at - leaf))
            self._unread = unread
        return self._unread

    def _look_at(self, at: int) -> bool:
        entry_id = self.shape.ids[at]
        try:
            quiet = self._read(entry_id) if self._read else is_quiet(self.tree.entry(entry_id))
        except StorageError:
            quiet = False  # the row then says that the entry cannot be read
        self.memory.quiet[entry_id] = quiet
        self.shape.kinds[at] = QUIET_ANSWER if quiet else ANSWER
        return quiet

    # ------------------------------------------------------------ what is shown

    @property
    def filter(self) -> TreeFilter:
        return self.memory.filter or self._default_filter

    def set_filter(self, mode: TreeFilter) -> None:
        """Show another kind of entries; everything is unfolded, the selection stays."""
        self.memory.filter = mode
        self.memory.folded.clear()
        self._lay_out()

    def toggle_filter(self, mode: TreeFilter) -> None:
        """Set a filter, or go back to the default one when it is set."""
        self.set_filter("default" if self.filter == mode else mode)

    def cycle_filter(self, step: int) -> None:
        at = FILTERS.index(self.filter)
        self.set_filter(FILTERS[(at + step) % len(FILTERS)])

    def set_hidden(self, entry_ids: Collection[str]) -> None:
        """Say where hidden branches begin."""
        self._hidden = entry_ids
        self._lay_out()

    def toggle_hidden(self) -> None:
        """Show hidden branches, or hide them again."""
        self.memory.show_hidden = not self.memory.show_hidden
        self._lay_out()

    def branch_start(self, entry_id: str) -> str | None:
        """The first entry of the branch an entry is on, filters aside; None on the active path.

        Where a branch leaves the active path, it begins.
        """
        at = self.shape.index.get(entry_id)
        if at is None or self._on_path[at]:
            return None
        start = self.shape.structure[1][at]
        while start < 0 or self._on_path[start]:
            parent = self.shape.parents[at]
            if parent < 0 or self._on_path[parent]:
                return self.shape.ids[at]
            at = parent
        return self.shape.ids[start]

    def _flags(self) -> bytearray:
        """One byte for each entry: may it be shown, folds and search aside?"""
        kinds, mode = self.shape.kinds, self.filter
        flags = kinds.translate(admitted(mode))
        if admits_answers(mode) and self._leaf >= 0 and kinds[self._leaf] == QUIET_ANSWER:
            flags[self._leaf] = 1
        if mode == "labeled-only":
            allowed, flags = flags, bytearray(len(kinds))
            for at in self._labelled:
                flags[at] = allowed[at]
        self._hidden_count = 0
        if not self.memory.show_hidden:
            for first, end in self._hidden_ranges():
                self._hidden_count += flags.count(1, first, end)
                flags[first:end] = bytes(end - first)
        return flags

    def _hidden_ranges(self) -> Iterator[tuple[int, int]]:
        for entry_id in self._hidden:
            at = self.shape.index.get(entry_id)
            if at is not None and not self._on_path[at]:
                yield at, self.shape.ends[at]

    def _lay_out(self) -> None:
        self._shown_flags = flags = self._flags()
        shape = self.shape
        if self._searching:
            shown = shape.with_ancestors(self._hits, flags)
        else:
            shown = list(compress(range(len(shape)), flags))
        folded = {shape.index[i] for i in self.memory.folded if i in shape.index}
        self._layout = TreeLayout(shape, shown, folded)
        self._shown_hits = (
            [r for r, at in enumerate(self._layout.rows) if at in self._hits] if self._hits else []
        )
        self._choose_row()

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
        self._row = row

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
        index = self.shape.index
        self._hits.update(index[entry_id] for entry_id in entry_ids if entry_id in index)

    def end_search(self) -> None:
        """Show everything again; the selection stays on its entry."""
        self._keep_selection()
        self._searching = False
        self._hits = set()
        self._lay_out()

    def is_shown_kind(self, entry_id: str) -> bool:
        """True when filter and hidden branches let an entry through; a quiet answer never is."""
        at = self.shape.index.get(entry_id)
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
            is_leaf=at == self._leaf,
            is_start=layout.is_start(number),
            foldable=layout.is_foldable(number),
            folded=layout.is_folded(number),
            hidden=layout.folded_count(number),
            hit=at in self._hits,
            skipped=self._searching and self._skips(number),
            hidden_branch=shape.ids[at] in self._hidden,
        )

    def gutter(self, number: int, first_level: int, count: int) -> list[Step]:
        """The gutter steps before a row that are in sight."""
        return self._layout.gutter(number, first_level, count)

    def _skips(self, number: int) -> bool:
        parent = self._layout.parent(number)
        above = self._layout.rows[parent] if parent >= 0 else -1
        at = self.shape.parents[self._layout.rows[number]]
        while at >= 0 and at != above and not self._shown_flags[at]:
            at = self.shape.parents[at]
        return at >= 0 and at != above

    @property
    def total(self) -> int:
        """How many rows there would be without folds and search."""
        return self._shown_flags.count(1)

    @property
    def hidden_count(self) -> int:
        """How many entries of hidden branches are left out."""
        return self._hidden_count

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
        at = self.shape.index.get(entry_id)
        row = None if at is None else self._layout.nearest(at)
        if row is None:
            return False
        self._go(row)
        return True

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
        self._lay_out()

    def _go(self, row: int) -> None:
        self._row = row
        self._keep_selection()

    def _keep_selection(self) -> None:
        if len(self):
            self._wanted = self._layout.rows[self._row]
