"""Yes or no."""

from __future__ import annotations

from rich.segment import Segment
from textual.strip import Strip

from pi_tui.core.sanitise import reveal
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.editor.layout import EditorLayout
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette


class Question(Panel[bool]):
    """Gives True for yes; Escape and every other way out mean no.

    The text is shown with nothing removed: it may be a command somebody has to judge.
    """

    def __init__(self, title: str, text: str, palette: Palette, keys: KeyMap) -> None:
        super().__init__(title, palette, keys)
        self._text = reveal(text)
        self._layout_of = EditorLayout(lambda character: None)
        self._laid_out: tuple[int, list[str]] = (0, [])
        self._yes = False
        self._top = 0

    @property
    def hint(self) -> str:
        return "y or n · left, right and enter choose"

    def wanted_rows(self) -> int:
        return len(self._lines()) + 1

    def _lines(self) -> list[str]:
        """The text as lines; asked for by each line drawn, so the answer is kept."""
        width = max(10, (self.size.width or self.app.size.width) - 2)
        if self._laid_out[0] != width:
            rows = self._layout_of.rows(self._text, width)
            self._laid_out = width, ["".join(c.shown for c in row.cells) for row in rows]
        return self._laid_out[1]

    def key(self, name: str, character: str | None) -> None:
        if character in ("y", "Y"):
            self.finish(True)
        elif character in ("n", "N") or self.keys.means(name, "tui.select.cancel"):
            self.finish(False)
        elif self.keys.means(name, "tui.select.confirm"):
            self.finish(self._yes)
        elif self.keys.means(name, "tui.select.up"):
            self._scroll(-1)
        elif self.keys.means(name, "tui.select.down"):
            self._scroll(1)
        elif self.keys.means(name, "tui.select.pageUp"):
            self._scroll(1 - self.body_rows)
        elif self.keys.means(name, "tui.select.pageDown"):
            self._scroll(self.body_rows - 1)
        elif name in ("left", "right", "tab", "shift+tab"):
            self._yes = not self._yes
            self.refresh()

    def _scroll(self, rows: int) -> None:
        last = max(0, len(self._lines()) - self.body_rows + 1)
        self._top = min(max(0, self._top + rows), last)
        self.refresh()

    def body_line(self, y: int, width: int) -> Strip:
        ink = self.palette.ink
        if y < self.body_rows - 1:
            lines = self._lines()
            number = self._top + y
            text = lines[number] if number < len(lines) else ""
            return Strip([Segment(f"  {text}", ink("text"))])
        yes = Segment("› yes" if self._yes else "  yes", ink("accent" if self._yes else "dim"))
        no = Segment(
            "   › no" if not self._yes else "     no", ink("dim" if self._yes else "accent")
        )
        below = len(self._lines()) - self._top - self.body_rows + 1
        more = f"   {below} more lines below: scroll to read all" if below > 0 else ""
        return Strip([yes, no, Segment(more, ink("warning"))])
