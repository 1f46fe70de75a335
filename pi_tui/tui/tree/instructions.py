"""A few lines to type: what the summary of a branch should look at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.strip import Strip

from pi_tui.core.errors import PiTuiError
from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.editor.buffer import EditorBuffer
from pi_tui.tui.editor.layout import EditorLayout, Row, row_of
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette

LEAST_ROWS = 4
INDENT_CELLS = 2


class InstructionsPanel(Panel[str]):
    """Gives the text that was typed. `text` has it as well when the person steps back."""

    def __init__(
        self,
        text: str,
        palette: Palette,
        keys: KeyMap,
        edit_externally: Callable[[str], Awaitable[str | None]] | None = None,
    ) -> None:
        super().__init__("What should the summary look at?", palette, keys)
        self._buffer = EditorBuffer()
        self._buffer.set_text(text)
        self._layout_of = EditorLayout(self._atom_label)
        self._edit_externally = edit_externally
        self._problem = ""
        self._top = 0
        b = self._buffer
        self._edits: dict[str, Callable[[], None]] = {
            "tui.input.newLine": lambda: b.insert("\n"),
            "tui.editor.cursorUp": lambda: self._vertical(-1),
            "tui.editor.cursorDown": lambda: self._vertical(1),
            "tui.editor.cursorLeft": b.left,
            "tui.editor.cursorRight": b.right,
            "tui.editor.cursorWordLeft": b.word_left,
            "tui.editor.cursorWordRight": b.word_right,
            "tui.editor.cursorLineStart": b.line_start,
            "tui.editor.cursorLineEnd": b.line_end,
            "tui.editor.deleteCharBackward": b.delete_left,
            "tui.editor.deleteCharForward": b.delete_right,
            "tui.editor.deleteWordBackward": b.kill_word_left,
            "tui.editor.deleteWordForward": b.kill_word_right,
            "tui.editor.deleteToLineStart": b.kill_to_line_start,
            "tui.editor.deleteToLineEnd": b.kill_to_line_end,
            "tui.editor.yank": b.yank,
            "tui.editor.yankPop": b.yank_pop,
            "tui.editor.undo": b.undo,
        }

    @property
    def text(self) -> str:
        """What stands there now, long pastes in full."""
        return self._buffer.expanded()

    @property
    def hint(self) -> str:
        keys = self.keys
        if self._problem:
            return self._problem
        words = [  # the way out stands first: a narrow terminal cuts the end
            f"{keys.label('tui.select.cancel')} back, text kept",
            f"{keys.label('tui.select.confirm')} summarise",
            f"{keys.label('tui.input.newLine')} new line",
        ]
        if self._edit_externally is not None and keys.label("app.editor.external"):
            words.append(f"{keys.label('app.editor.external')} editor")
        return " · ".join(words)

    def wanted_rows(self) -> int:
        return max(LEAST_ROWS, len(self._rows()))

    def key(self, name: str, character: str | None) -> None:
        keys = self.keys
        self._problem = ""
        if keys.means(name, "tui.input.newLine"):
            self._buffer.insert("\n")
        elif keys.means(name, "tui.select.confirm"):
            self.finish(self.text)
        elif keys.means(name, "tui.select.cancel"):
            self.finish(None)
        elif keys.means(name, "app.editor.external"):
            self._open_editor()
        elif character is not None:
            self._buffer.insert(character)
        else:
            for action in keys.actions(name, ("tui.editor.",)):
                edit = self._edits.get(action)
                if edit is not None:
                    edit()
                    break
        self.fit()

    def paste(self, text: str) -> None:
        self._buffer.paste(text)
        self.fit()

    def _open_editor(self) -> None:
        if self._edit_externally is not None:
            self.run_worker(self._edit(), exclusive=True, exit_on_error=False)

    async def _edit(self) -> None:
        if self._edit_externally is None:
            return
        try:
            text = await self._edit_externally(self.text)
        except PiTuiError as error:
            self._problem = sanitise_line(error.text)
        else:
            if text is not None:
                self._buffer.set_edited_text(text)
        self.fit()

    def _vertical(self, step: int) -> None:
        rows = self._rows()
        at = row_of(rows, self._buffer.cursor)
        x = rows[at].x_of(self._buffer.cursor)
        target = rows[min(max(0, at + step), len(rows) - 1)]
        self._buffer.move_to(target.index_at(x))

    def _atom_label(self, character: str) -> str | None:
        atom = self._buffer.atom(character)
        return None if atom is None else atom.label

    def _rows(self) -> list[Row]:
        width = self.size.width or self.app.size.width
        return self._layout_of.rows(self._buffer.text, max(4, width - 3))

    async def _on_click(self, event: events.Click) -> None:
        """Put the cursor where it was clicked."""
        event.stop()
        rows = self._rows()
        number = self._top + event.y - 1
        if event.button == 1 and 0 <= event.y - 1 < self.body_rows:
            row = rows[min(number, len(rows) - 1)]
            self._buffer.move_to(row.index_at(max(0, event.x - INDENT_CELLS)))
            self.fit()

    def body_line(self, y: int, width: int) -> Strip:
        rows = self._rows()
        at = row_of(rows, self._buffer.cursor)
        self._top = max(0, min(self._top, at, len(rows) - self.body_rows))
        self._top = max(self._top, at - self.body_rows + 1)
        number = self._top + y
        if number >= len(rows):
            return Strip([])
        row, cursor = rows[number], self._buffer.cursor
        ink, reverse = self.palette.ink("text"), Style(reverse=True)
        pieces = [Segment(" " * INDENT_CELLS)]
        shown = False
        for cell in row.cells:
            here = number == at and row.offset + cell.start == cursor
            shown = shown or here
            pieces.append(Segment(cell.shown, ink + reverse if here else ink))
        if number == at and not shown:
            pieces.append(Segment(" ", reverse))
        return Strip(pieces)
