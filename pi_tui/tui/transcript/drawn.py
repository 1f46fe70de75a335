"""A block as it stands on the screen: rows on a background, with a margin above.

Strips are made when a row becomes visible and kept as long as the row is the same object.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.strip import Strip

from pi_tui.tui.transcript.rows import BLANK_STYLE, EMPTY_ROW, Column, Row, Span

MARGIN_ROWS = 1
RIGHT_MARGIN_CELLS = 1


class Drawn:
    """Rows of one block at one width; row 0 is the margin. `lead` stands left of each other row."""

    __slots__ = ("_dim", "_ground", "_lead", "_strips", "_width", "column")

    def __init__(self, column: Column, lead: Sequence[Span], ground: Style, width: int) -> None:
        self.column = column
        self._lead = lead
        self._ground = ground
        self._width = width
        self._dim: Style | None = None
        self._strips: dict[int, tuple[Row, Strip]] = {}

    def dim(self, style: Style) -> None:
        """Show all of it in the colour of one style and on no ground of its own."""
        self._dim = style
        self._ground = BLANK_STYLE

    @property
    def height(self) -> int:
        height = self.column.height
        return height + MARGIN_ROWS if height else 0

    def row(self, index: int) -> Row:
        """The row with everything that is left of it."""
        if index < MARGIN_ROWS:
            return EMPTY_ROW
        return self.column.row(index - MARGIN_ROWS).indented(self._lead)

    def strip(self, index: int) -> Strip:
        """The row as a strip of the full width."""
        if index < MARGIN_ROWS:
            return EMPTY_ROW.strip(self._width, BLANK_STYLE)
        row = self.column.row(index - MARGIN_ROWS)
        kept = self._strips.get(index)
        if kept is not None and kept[0] is row:
            return kept[1]
        whole = row.indented(self._lead)
        if self._dim is not None:
            whole = Row(tuple((text, own + self._dim) for text, own in whole.spans))
        strip = whole.strip(self._width, self._ground)
        self._strips[index] = (row, strip)
        return strip
