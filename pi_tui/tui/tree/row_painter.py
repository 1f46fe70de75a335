"""Draws the rows of the navigator: gutter, marks, text, hits, and columns where there is room.

Made for the rows in sight only; what is costly about a row's text is kept while it may be seen
again. Widths are cells, times Unix milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.core.entries import timestamp_ms
from pi_tui.core.numbers import compact_count
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.session_search import Query, Span
from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_layout import Step, TreeRow
from pi_tui.core.tree_rows import (
    EntryTexts,
    Part,
    RowMarks,
    age_text,
    mark_parts,
    path_tokens,
    said_parts,
)
from pi_tui.core.tree_view import TreeView
from pi_tui.tui.palette import Palette
from pi_tui.tui.tree.entry_query import EntryQuery
from pi_tui.tui.tree.row_room import (
    CURSOR_CELLS,
    STEP_CELLS,
    RowNeeds,
    cells_of,
    fitting,
    least_cells_of,
    most_steps,
    share,
)

COLUMNS_FROM_CELLS = 60
TOKEN_CELLS = 8
AGE_CELLS = 6
KEPT_ROWS = 4_096
EXCERPT_BEFORE_CHARS = 16
EXCERPT_CHARS = 60

_DEEPER = {True: "›─ ", False: "›  "}
"""The last step in sight when there are more, for the start of a branch and for other rows."""
_STEPS: dict[Step, str] = {"blank": "   ", "line": "│  ", "branch": "├─ ", "last": "└─ "}


class MarkedEntries(Struct, frozen=True):
    """Which entries stand out: pinned, left out of the context, marked for a comparison."""

    pinned: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    compared: str | None = None


class RowPainter:
    """Draws rows of one view."""

    def __init__(
        self,
        tree: SessionTree,
        palette: Palette,
        estimator: TokenEstimator,
        now_ms: Callable[[], int],
        texts_of: Callable[[str], EntryTexts],
    ) -> None:
        """`texts_of` gives all texts of an entry in which a search looks."""
        self._tree = tree
        self._palette = palette
        self._estimator = estimator
        self._now_ms = now_ms
        self._texts_of = texts_of
        self._parts: dict[str, tuple[tuple[Part, ...], tuple[Part, ...]]] = {}
        self._tokens: dict[str, str] = {}
        self._excerpts: dict[str, tuple[str, str, str] | None] = {}
        self.marks = MarkedEntries()
        self.label_times = False
        self._query = EntryQuery(Query())

    # ------------------------------------------------------------ what it draws with

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette

    def forget(self) -> None:
        """Make all texts anew: labels or marks are others."""
        self._parts.clear()
        self._tokens.clear()

    def set_query(self, query: EntryQuery) -> None:
        """Mark what fits this query from now on."""
        self._query = query
        self._excerpts.clear()

    @property
    def drawn_texts(self) -> int:
        """How many rows' texts were made and are kept."""
        return len(self._parts)

    # ------------------------------------------------------------ geometry

    def is_on_fold(self, x: int, row: TreeRow, width: int, pan: int, *, selected: bool) -> bool:
        """True when a column is on the mark with which a row is folded."""
        if not row.foldable:
            return False
        start = CURSOR_CELLS
        steps = share(width, self._needs(row, width, pan), selected=selected).steps
        if steps:
            start += (pan > 0) + (steps - row.is_start) * STEP_CELLS
        return start <= x < start + STEP_CELLS

    # ------------------------------------------------------------ drawing

    def draw(self, view: TreeView, number: int, width: int, pan: int, *, selected: bool) -> Strip:
        """Draw a visible row; levels before `pan` are out of sight to the left."""
        row = view.row(number)
        base = self._palette.ground("selectedBg") if selected else Style()
        faded = view.searching and not row.hit
        shared = share(width, self._needs(row, width, pan), selected=selected)
        left = self._gutter(view, row, shared.steps, pan, selected=selected)
        columns = self._columns(row) if shared.columns else Strip([])
        room = max(1, width - left.cell_length - columns.cell_length)
        marks, said = self._parts_of(row.entry_id)
        text = self._text(row, [*fitting(marks, shared.marks), *said], room, faded=faded)
        gap = Strip([Segment(" " * max(0, room - text.cell_length), self._palette.ink("dim"))])
        strip = Strip.join([left, text, gap, columns])
        strip = strip.adjust_cell_length(width).simplify()
        return strip.apply_style(base) if selected else strip

    def _needs(self, row: TreeRow, width: int, pan: int) -> RowNeeds:
        marks, said = self._parts_of(row.entry_id)
        steps = max(0, min(row.level - pan, most_steps(width)))
        # Where the gutter is cut at the left, a sign says so, or the row's own mark stands there.
        aside = (1 if steps else 3) if pan > 0 else 0
        beside = sum(cell_len(text) for text, _ in _signs(row))
        wide = width >= COLUMNS_FROM_CELLS
        return RowNeeds(
            steps=steps,
            beside=beside + aside,
            marks=cells_of(marks),
            least_marks=least_cells_of(marks),
            text=cells_of(said),
            columns=TOKEN_CELLS + AGE_CELLS if wide else 0,
        )

    def _gutter(
        self, view: TreeView, row: TreeRow, count: int, pan: int, *, selected: bool
    ) -> Strip:
        """What stands before the text. `‹` and `›` say that there are more steps."""
        dim, accent = self._palette.ink("dim"), self._palette.ink("accent")
        shown = [_STEPS[step] for step in view.gutter(row.number, pan, count)]
        if row.level - pan > count and shown:
            shown[-1] = _DEEPER[row.is_start]
        fold = "⊞ " if row.folded else "⊟ "
        own = row.is_start and bool(shown)
        if own and row.foldable:
            shown[-1] = shown[-1][0] + fold
        text = "".join(shown)
        if pan > 0:
            # Where the row's own connector is out of sight, its mark stands here.
            aside = " " if not row.is_start else fold if row.foldable else "─ "
            text = "‹" + (text or aside)
        segments = [
            Segment("› ", accent) if selected else Segment("  ", dim),
            Segment(text, dim),
        ]
        segments += [Segment(text, self._palette.ink(role)) for text, role in _signs(row)]
        return Strip([segment for segment in segments if segment.text])

    def _columns(self, row: TreeRow) -> Strip:
        dim = self._palette.ink("dim")
        entry_id = row.entry_id
        tokens = self._tokens.get(entry_id)
        if tokens is None:
            if len(self._tokens) >= KEPT_ROWS:
                self._tokens.clear()
            count = path_tokens(self._tree, entry_id, self._estimator)
            tokens = self._tokens[entry_id] = "" if count is None else compact_count(count)
        age = age_text(self._tree.head(entry_id).timestamp, self._now_ms())
        return Strip([Segment(f"{tokens:>{TOKEN_CELLS}}{age:>{AGE_CELLS}}", dim)])

    def _text(self, row: TreeRow, parts: Sequence[Part], room: int, *, faded: bool) -> Strip:
        pieces: list[Segment] = []
        if not row.hit or not self._query:
            for text, role in parts:
                pieces.append(Segment(text, self._palette.ink("dim" if faded else role)))
            return _clipped(Strip(pieces), room)
        found = Style.combine(
            [self._palette.ink("searchMatchText"), self._palette.ground("searchMatchBg")]
        )
        plain = "".join(text for text, _ in parts)
        spans = self._query.row_spans(plain)
        strip = Strip(_highlighted(parts, spans, self._palette.ink, found))
        in_sight = [start for start, _ in spans if cell_len(plain[:start]) < room - 2]
        if in_sight:
            return _clipped(strip, room)
        excerpt = self._excerpt(row.entry_id)
        if excerpt is None:
            return _clipped(strip, room)
        before, hit, after = excerpt
        muted = self._palette.ink("muted")
        tail = Strip([Segment(f" ⋯{before}", muted), Segment(hit, found), Segment(after, muted)])
        head_room = max(room // 3, min(room - tail.cell_length, strip.cell_length))
        return _clipped(Strip.join([_clipped(strip, head_room), tail]), room)

    def _parts_of(self, entry_id: str) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """What stands before the text of a row, and the text."""
        parts = self._parts.get(entry_id)
        if parts is None:
            if len(self._parts) >= KEPT_ROWS:
                self._parts.clear()
            marks = RowMarks(
                pinned=entry_id in self.marks.pinned,
                left_out=entry_id in self.marks.left_out,
                compared=entry_id == self.marks.compared,
                label_time=self._label_time(entry_id) if self.label_times else "",
            )
            before = mark_parts(self._tree, entry_id, marks)
            parts = self._parts[entry_id] = before, said_parts(self._tree, entry_id)
        return parts

    def _label_time(self, entry_id: str) -> str:
        """When the label was set: the time today, the date on other days."""
        ms = timestamp_ms(self._tree.label_timestamp(entry_id) or "")
        if ms is None:
            return ""
        then = datetime.fromtimestamp(ms / 1000)
        today = datetime.fromtimestamp(self._now_ms() / 1000).date()
        return f"{then:%H:%M}" if then.date() == today else f"{then:%Y-%m-%d}"

    def _excerpt(self, entry_id: str) -> tuple[str, str, str] | None:
        """The first hit in the full text of an entry, with what stands around it."""
        if entry_id not in self._excerpts:
            if len(self._excerpts) >= KEPT_ROWS:
                self._excerpts.clear()
            self._excerpts[entry_id] = self._find_excerpt(entry_id)
        return self._excerpts[entry_id]

    def _find_excerpt(self, entry_id: str) -> tuple[str, str, str] | None:
        found = self._query.first_place(self._texts_of(entry_id))
        if found is None:
            return None
        text, (start, end) = found
        end = min(end, start + EXCERPT_CHARS)
        before = text[max(0, start - EXCERPT_BEFORE_CHARS) : start]
        after = text[end : end + EXCERPT_CHARS]
        return sanitise_line(before), sanitise_line(text[start:end]), sanitise_line(after)


def _signs(row: TreeRow) -> list[Part]:
    """What is said of a row between its gutter and its marks."""
    signs: list[Part] = []
    if row.folded and not row.is_start:
        signs.append(("⊞ ", "accent"))
    if row.hidden:
        signs.append((f"+{row.hidden:,} ", "accent"))
    if row.skipped:
        signs.append(("⋮ ", "dim"))
    if row.on_path:
        signs.append(("• ", "accent"))
    if row.is_leaf:
        signs.append(("[here] ", "accent"))
    if row.hidden_branch:
        signs.append(("[hidden] ", "dim"))
    return signs


def _highlighted(
    parts: Sequence[Part], spans: Sequence[Span], ink: Callable[[str], Style], found: Style
) -> list[Segment]:
    """The parts in their colours, with the spans (over all parts joined) in another."""
    pieces: list[Segment] = []
    offset = 0
    for text, role in parts:
        style, at = ink(role), 0
        for start, end in spans:
            first, last = max(0, start - offset), min(len(text), end - offset)
            if first >= last:
                continue
            pieces += [Segment(text[at:first], style), Segment(text[first:last], found)]
            at = last
        pieces.append(Segment(text[at:], style))
        offset += len(text)
    return [piece for piece in pieces if piece.text]


def _clipped(strip: Strip, room: int) -> Strip:
    """The strip cut to a width, with an ellipsis when something is left out."""
    if strip.cell_length <= room:
        return strip
    if room < 2:
        return strip.crop(0, room)
    kept = strip.crop(0, room - 1)
    style = next((segment.style for segment in reversed(list(kept)) if segment.text), None)
    return Strip.join([kept, Strip([Segment("…", style)])])
