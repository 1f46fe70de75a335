"""The page with all keys of the navigator, wrapped to the width and scrolled by rows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import wrap_text

INDENT_CELLS = 2
GAP_CELLS = 2
LEAST_KEYS_CELLS = 10


class HelpPage:
    """Sentences, then rows of keys and what they do. Each line is (keys, text)."""

    def __init__(self, notes: Sequence[str], rows: Sequence[tuple[str, str]]) -> None:
        self._notes = tuple(notes)
        self._rows = tuple(rows)
        self._widest = max((len(keys) for keys, _ in self._rows), default=0)
        self._top = 0
        self._lines: list[tuple[str, str]] = []
        self._column = 0
        self._keys_lines = 0
        self._width = -1

    def open(self) -> None:
        self._top = 0

    def scroll(self, rows: int, height: int, width: int) -> None:
        """Scroll, down when positive, within the ends."""
        self._wrap(width)
        self._top = max(0, min(len(self._lines) - height, self._top + rows))

    def line(self, y: int, width: int, palette: Palette) -> Strip:
        """Draw one line of the page."""
        self._wrap(width)
        number = self._top + y
        if number >= len(self._lines):
            return Strip([])
        keys, text = self._lines[number]
        pieces = [Segment(" " * INDENT_CELLS)]
        if number >= len(self._lines) - self._keys_lines:
            left = f"{keys:<{self._column + GAP_CELLS}}"
            pieces.append(Segment(left, palette.ink("accent")))
            pieces.append(Segment(text, palette.ink("text")))
        else:
            pieces.append(Segment(text, palette.ink("muted")))
        return Strip(pieces)

    def _wrap(self, width: int) -> None:
        if width == self._width:
            return
        self._width = width
        room = max(8, width - 2 * INDENT_CELLS)
        notes: list[tuple[str, str]] = []
        for note in self._notes:
            notes += [("", line) for line in _wrapped(note, room)]
            notes.append(("", ""))
        self._column = min(self._widest, max(LEAST_KEYS_CELLS, room * 2 // 5))
        right = max(8, room - self._column - GAP_CELLS)
        lines: list[tuple[str, str]] = []
        for keys, text in self._rows:
            left, said = _wrapped(keys, self._column), _wrapped(text, right)
            count = max(len(left), len(said))
            left += [""] * (count - len(left))
            said += [""] * (count - len(said))
            lines += zip(left, said, strict=True)
        self._keys_lines = len(lines)
        self._lines = notes + lines


def _wrapped(text: str, width: int) -> list[str]:
    return [row.text for row in wrap_text(text, Style(), width)]
