"""The page with all keys of the navigator, scrolled by rows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.strip import Strip

from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip


class HelpPage:
    """Rows of keys and what they do, and which of them stands at the top."""

    def __init__(self, rows: Sequence[tuple[str, str]]) -> None:
        self._rows = tuple(rows)
        self._column = max((len(keys) for keys, _ in self._rows), default=0)
        self._top = 0

    def open(self) -> None:
        self._top = 0

    def scroll(self, rows: int, height: int) -> None:
        """Scroll, down when positive, within the ends."""
        self._top = max(0, min(len(self._rows) - height, self._top + rows))

    def line(self, y: int, width: int, palette: Palette) -> Strip:
        """Draw one line of the page."""
        number = self._top + y
        if number >= len(self._rows):
            return Strip([])
        keys, words = self._rows[number]
        column = min(self._column, max(8, width // 3))
        left = Strip([Segment(f"  {clip(keys, column)}", palette.ink("accent"))])
        text = clip(words, max(1, width - column - 5))
        return Strip.join(
            [left.adjust_cell_length(column + 4), Strip([Segment(text, palette.ink("text"))])]
        )
