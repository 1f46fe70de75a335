"""Many lines of output or code as rows that are cut when they are looked at.

Making the column only counts rows; two thousand lines of which forty are visible cost forty. Lines
are cut hard at the width, tabs are expanded, texts are sanitised already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from rich.style import Style

from pi_tui.tui.transcript.rows import Row, Span
from pi_tui.tui.transcript.wrap import chop, clip, cut_hard, expand_tabs, is_simple


class LinesColumn:
    """Styled lines; each has a gutter before its first row and blanks before the others."""

    __slots__ = ("_cut", "_cut_line", "_gutters", "_lines", "_starts", "_width", "height")

    def __init__(
        self,
        lines: Sequence[Sequence[Span]],
        width: int,
        gutters: Sequence[Sequence[Span]] | None = None,
    ) -> None:
        self._lines = lines
        self._gutters = gutters
        gutter_cells = sum(len(text) for text, _ in gutters[0]) if gutters else 0
        self._width = max(2, width - gutter_cells)
        self._starts: list[int] = []
        height = 0
        for spans in lines:
            self._starts.append(height)
            height += self._count(spans)
        self.height = height
        self._cut_line = -1
        self._cut: list[Row] = []

    def row(self, index: int) -> Row:
        line = bisect_right(self._starts, index) - 1
        if line != self._cut_line:
            self._cut = cut_hard(self._lines[line], self._width)
            self._cut_line = line
        part = index - self._starts[line]
        row = self._cut[part]
        if self._gutters is None:
            return row
        gutter = self._gutters[line]
        if part:
            gutter = [(" " * len(text), style) for text, style in gutter]
        return row.indented(gutter)

    def _count(self, spans: Sequence[Span]) -> int:
        text = spans[0][0] if len(spans) == 1 else "".join(text for text, _ in spans)
        if is_simple(text):
            return max(1, -(-len(text) // self._width))
        if len(text) * 2 <= self._width:  # no character takes more than two cells
            return 1
        return len(chop(text, self._width))


def plain_lines(lines: Sequence[str], style: Style, width: int) -> LinesColumn:
    return LinesColumn([[(expand_tabs(line), style)] for line in lines], width)


def clipped_lines(lines: Sequence[str], style: Style, width: int, rows: int) -> LinesColumn:
    """As `plain_lines`, each line cut off after about that many rows."""
    return plain_lines([clip(expand_tabs(line), rows * width) for line in lines], style, width)
