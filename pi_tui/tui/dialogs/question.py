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
        self._yes = False

    @property
    def hint(self) -> str:
        return "y or n · arrows and enter choose"

    def wanted_rows(self) -> int:
        return len(self._lines()) + 1

    def _lines(self) -> list[str]:
        width = self.size.width or self.app.size.width
        rows = self._layout_of.rows(self._text, max(10, width - 2))
        return ["".join(cell.shown for cell in row.cells) for row in rows]

    def key(self, name: str, character: str | None) -> None:
        if character in ("y", "Y"):
            self.finish(True)
        elif character in ("n", "N") or self.keys.means(name, "tui.select.cancel"):
            self.finish(False)
        elif self.keys.means(name, "tui.select.confirm"):
            self.finish(self._yes)
        elif name in ("left", "right", "up", "down", "tab", "shift+tab"):
            self._yes = not self._yes
            self.refresh()

    def body_line(self, y: int, width: int) -> Strip:
        ink = self.palette.ink
        if y < self.body_rows - 1:
            lines = self._lines()
            text = lines[y] if y < len(lines) else ""
            return Strip([Segment(f"  {text}", ink("text"))])
        yes = Segment("› yes" if self._yes else "  yes", ink("accent" if self._yes else "dim"))
        no = Segment(
            "   › no" if not self._yes else "     no", ink("dim" if self._yes else "accent")
        )
        return Strip([yes, no])
