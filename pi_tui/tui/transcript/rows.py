"""What a block is drawn as: rows of styled pieces, and columns of rows that are made when needed.

A row is one screen line without its background. It knows how much of its left end is decoration
(not copied) and how it joins the row above when text is copied. Widths are cells. Texts in rows
are sanitised already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

Span: TypeAlias = tuple[str, Style]

BLANK_STYLE = Style()


class Row(NamedTuple):
    """One line. `lead`: decoration at the left, in characters. `join`: text between it and the row
    above in a copy: a line end, a blank where a blank was wrapped away, or nothing."""

    spans: tuple[Span, ...]
    lead: int = 0
    join: str = "\n"

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.spans)

    def indented(self, spans: Sequence[Span]) -> Row:
        """The row with decoration put before it."""
        return Row(
            (*spans, *self.spans), self.lead + sum(len(text) for text, _ in spans), self.join
        )

    def restyled(self, style: Style) -> Row:
        """The row with a style beneath the styles it has."""
        return Row(tuple((text, style + own) for text, own in self.spans), self.lead, self.join)

    def strip(self, width: int, ground: Style) -> Strip:
        """The row as a strip of exactly that width on a background."""
        segments = [Segment(text, ground + style) for text, style in self.spans if text]
        cells = sum(cell_len(text) for text, _ in self.spans)
        strip = Strip(segments, cells)
        return strip if cells == width else strip.adjust_cell_length(width, ground)


EMPTY_ROW = Row(())


class Column(Protocol):
    """Rows one below the other; making a row may be put off until it is asked for."""

    @property
    def height(self) -> int: ...
    def row(self, index: int) -> Row: ...


class FixedColumn:
    """Rows that are there already."""

    __slots__ = ("rows",)

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows = list(rows)

    @property
    def height(self) -> int:
        return len(self.rows)

    def row(self, index: int) -> Row:
        return self.rows[index]


class StackedColumn:
    """Columns below each other. The heights of the parts must not change afterwards."""

    __slots__ = ("_parts", "_starts", "height")

    def __init__(self, parts: Iterable[Column]) -> None:
        self._parts = [part for part in parts if part.height]
        self._starts: list[int] = []
        height = 0
        for part in self._parts:
            self._starts.append(height)
            height += part.height
        self.height = height

    def row(self, index: int) -> Row:
        at = bisect_right(self._starts, index) - 1
        return self._parts[at].row(index - self._starts[at])
