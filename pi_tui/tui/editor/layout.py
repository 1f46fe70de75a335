"""Soft-wrapping of the editor's text: from text to rows of cells and back to positions.

Widths are cells, as Rich measures them, so that rows and the terminal agree. A logical line is laid
out once and kept while it is in the text; one that changes is laid out from the change on. Control
characters are shown, never sent to the screen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct
from rich.cells import cell_len, split_graphemes

from pi_tui.core.sanitise import reveal

TAB = "    "

Wrapped: TypeAlias = "tuple[tuple[Cell, ...], ...]"
"""The rows of one logical line."""

Label = Callable[[str], str | None]
"""The label of an atom character, None for ordinary characters."""


class Cell(Struct, frozen=True):
    """One grapheme on screen: where it stands in its line, what is drawn, how wide."""

    start: int
    end: int
    shown: str
    cells: int
    is_atom: bool = False
    blank: bool = False


class Row(Struct, frozen=True):
    """One screen row. `start` is a position in the whole text; so are the cells' once shifted.

    `last`: no further row of the same logical line follows.
    """

    start: int
    end: int
    cells: tuple[Cell, ...]
    offset: int
    last: bool

    def x_of(self, index: int) -> int:
        """The column of a position in the text."""
        x = 0
        for cell in self.cells:
            if self.offset + cell.start >= index:
                break
            x += cell.cells
        return x

    def index_at(self, x: int) -> int:
        """The position nearest to a column, inside this row."""
        at = 0
        for cell in self.cells:
            if at + cell.cells > x:
                return self.offset + cell.start
            at += cell.cells
        if self.last or not self.cells:
            return self.end
        return self.offset + self.cells[-1].start  # the row's end belongs to the next row


def visible(character: str) -> str:
    """A character that may go to the terminal, for one that may not."""
    return TAB if character == "\t" else reveal(character)


class EditorLayout:
    """Lays out a text for a width; asks for labels of atoms."""

    def __init__(self, label: Label) -> None:
        self._label = label
        self._width = 0
        self._lines: list[str] = []
        self._wrapped: dict[str, Wrapped] = {}

    def rows(self, text: str, width_cells: int) -> list[Row]:
        """All rows of the text; at least one."""
        width = max(1, width_cells)
        if width != self._width:
            self._wrapped.clear()
            self._width = width
        before, lines = self._wrapped, text.split("\n")
        self._wrapped = {}
        rows: list[Row] = []
        offset = 0
        for number, line in enumerate(lines):
            wrapped = self._wrapped.get(line) or before.get(line)
            if wrapped is None:
                old = self._lines[number] if number < len(self._lines) else ""
                wrapped = self._rewrap(old, before.get(old, ()), line)
            self._wrapped[line] = wrapped
            for at, cells in enumerate(wrapped):
                last = at == len(wrapped) - 1
                start = cells[0].start if cells else 0
                end = cells[-1].end if cells else 0
                rows.append(Row(offset + start, offset + end, cells, offset, last))
            offset += len(line) + 1
        self._lines = lines
        return rows

    def _rewrap(self, old: str, wrapped: Wrapped, line: str) -> Wrapped:
        """Wrap a line that was another one before, keeping the rows the change cannot reach.

        Where a row ends is decided by itself and the word that begins the next one, and what
        stands before a change may still join with it: two whole rows before it are certain.
        """
        changed_at = _common_prefix(old, line) - 1
        kept = 0
        while kept + 2 < len(wrapped) and wrapped[kept + 2][0].start <= changed_at:
            kept += 1
        start = wrapped[kept][0].start if kept else 0
        return (*wrapped[:kept], *wrap(self._cells(line, start), self._width))

    def _cells(self, line: str, first: int = 0) -> list[Cell]:
        cells: list[Cell] = []
        spans, _ = split_graphemes(line[first:] if first else line)
        for start, end, width in spans:
            start, end = start + first, end + first
            grapheme = line[start:end]
            # A zero-width character after an atom would hide it: atoms stand alone.
            label = self._label(grapheme[0])
            if label is not None:
                cells.append(Cell(start, start + 1, label, cell_len(label), is_atom=True))
                start += 1
                grapheme = line[start:end]
                if not grapheme:
                    continue
            shown = "".join(map(visible, grapheme))
            if shown != grapheme or not width:
                width = cell_len(shown)
            cells.append(Cell(start, end, shown, width, blank=grapheme in (" ", "\t")))
        return cells


def _common_prefix(one: str, other: str) -> int:
    """How many characters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def wrap(cells: list[Cell], width: int) -> Wrapped:
    """Break a line into rows, after a blank where there is one, else anywhere.

    Blanks that do not fit hang over the end of the row (they are invisible there).
    """
    rows: list[tuple[Cell, ...]] = []
    start = 0
    while True:
        used, at, after_blank = 0, start, -1
        while at < len(cells) and used + cells[at].cells <= width:
            used += cells[at].cells
            at += 1
            if cells[at - 1].blank:
                after_blank = at
        if at == len(cells):
            rows.append(tuple(cells[start:]))
            return tuple(rows)
        if cells[at].blank and at > start:
            while at < len(cells) and cells[at].blank:
                at += 1
            if at == len(cells):
                rows.append(tuple(cells[start:]))
                return tuple(rows)
            end = at
        elif after_blank > start:
            end = after_blank
        else:
            end = max(at, start + 1)  # one grapheme wider than the row: cropped when drawn
        rows.append(tuple(cells[start:end]))
        start = end
        if start >= len(cells):
            return tuple(rows)


def row_of(rows: list[Row], index: int) -> int:
    """The row that shows the cursor at a position."""
    low, high = 0, len(rows) - 1
    while low < high:
        middle = (low + high + 1) // 2
        if rows[middle].start <= index:
            low = middle
        else:
            high = middle - 1
    return low
