"""A text to read: wrapped, scrolled, closed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from pi_tui.core.sanitise import sanitise
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.editor.layout import EditorLayout
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette

Line: TypeAlias = Sequence[Segment]

FIRST_COLUMN_CHARS = 48
"""A gap further to the right is no column of a list."""
NARROW_INDENT_CELLS = 4
_FIRST_COLUMN = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")
"""A name, and the gap before what is said about it."""


class TextPanel(Panel[bool]):
    """Shows a plain text; title and text may be foreign. True: it was closed with Enter."""

    def __init__(self, title: str, text: str, palette: Palette, keys: KeyMap) -> None:
        super().__init__(title, palette, keys)
        self._text = sanitise(text).rstrip("\n")
        self._layout_of = EditorLayout(lambda character: None)
        self._lines: list[Line] = []
        self._laid_out_for = -1
        self._top = 0

    @property
    def hint(self) -> str:
        close = f"{self.keys.label('tui.select.cancel')} closes"
        last = self._top + self.body_rows
        if len(self._lines) <= self.body_rows:
            return close
        return f"{self._top + 1}-{last} of {len(self._lines)} · {close}"

    def wanted_rows(self) -> int:
        self._lay_out()
        return len(self._lines)

    def key(self, name: str, character: str | None) -> None:
        keys = self.keys
        if keys.means(name, "tui.select.confirm"):
            self.finish(True)
        elif character == "q" or keys.means(name, "tui.select.cancel"):
            self.finish(None)
        elif keys.means(name, "tui.select.up"):
            self._scroll(-1)
        elif keys.means(name, "tui.select.down"):
            self._scroll(1)
        elif keys.means(name, "tui.select.pageUp"):
            self._scroll(-self.body_rows)
        elif keys.means(name, "tui.select.pageDown") or name == "space":
            self._scroll(self.body_rows)
        elif keys.means(name, "tui.editor.cursorLineStart"):
            self._scroll(-len(self._lines))
        elif keys.means(name, "tui.editor.cursorLineEnd"):
            self._scroll(len(self._lines))

    def _scroll(self, rows: int) -> None:
        last = max(0, len(self._lines) - self.body_rows)
        self._top = min(max(0, self._top + rows), last)
        self.refresh()

    def _lay_out(self) -> None:
        width = self.size.width or self.app.size.width
        if width == self._laid_out_for:
            return
        self._laid_out_for = width
        self._lines = self.make_lines(max(10, width - 2))
        self._top = 0

    def make_lines(self, width: int) -> list[Line]:
        """The lines at a width; a subclass may put others before those of the text."""
        ink = self.palette.ink("text")
        lines = self._text.split("\n")
        return [[Segment(row, ink)] for line in lines for row in self._rows(line, width)]

    def _rows(self, line: str, width: int) -> list[str]:
        """A line as rows; what follows a first column stays in its own, where there is room."""
        rows = self._wrapped(line, width)
        columns = _FIRST_COLUMN.match(line, 0, FIRST_COLUMN_CHARS) if len(rows) > 1 else None
        if columns is None:
            return rows
        first, rest = columns[0], line[columns.end() :]
        indent = cell_len(first)
        if indent * 2 <= width:
            head, *others = self._wrapped(rest, width - indent)
            return [first + head, *(" " * indent + row for row in others)]
        below = self._wrapped(rest, width - NARROW_INDENT_CELLS)
        return [
            *self._wrapped(first.rstrip(), width),
            *(" " * NARROW_INDENT_CELLS + row for row in below),
        ]

    def _wrapped(self, text: str, width: int) -> list[str]:
        rows = self._layout_of.rows(text, width)
        return ["".join(cell.shown for cell in row.cells) for row in rows]

    def body_line(self, y: int, width: int) -> Strip:
        number = self._top + y
        line = self._lines[number] if number < len(self._lines) else ()
        return Strip([Segment("  "), *line])
