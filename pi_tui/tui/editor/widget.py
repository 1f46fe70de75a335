"""The editor on screen: border with the status, wrapped text, cursor, completion rows.

Draws with the Line API and keeps no text of its own: `EditorBuffer` has it. Keys come in through
`run` and `insert`, called by the input router in the order in which they were pressed; the widget
has no bindings, because Textual resolves those later than the printable keys of the same read.
Layout and completion list follow when something asks for them, or once all keys of a read are in.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Offset, Region
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.tui.editor.buffer import EditorBuffer, Snapshot
from pi_tui.tui.editor.completion import Completer, Completion, CompletionItem, CompletionList
from pi_tui.tui.editor.history import PromptHistory
from pi_tui.tui.editor.layout import EditorLayout, Row, row_of
from pi_tui.tui.editor.menu_rows import menu_row
from pi_tui.tui.transcript.wrap import clip

StyleOf = Callable[[str], Style]
"""The style of a theme colour used as text colour."""

MIN_TEXT_ROWS = 1
REVERSE = Style(reverse=True)


class PromptEditor(Widget, can_focus=False):
    """A multi-line text field between two rules; the upper one is the status line."""

    DEFAULT_CSS = "PromptEditor { height: 3; }"

    def __init__(
        self, style_of: StyleOf, *, completers: tuple[Completer, ...] = (), menu_rows: int = 5
    ) -> None:
        super().__init__()
        self.buffer = EditorBuffer()
        self._history = PromptHistory()
        self._menu = CompletionList(menu_rows)
        self._style_of = style_of
        self._completers = completers
        self._layout_of = EditorLayout(self._atom_label)
        self._laid_out: list[Row] = []
        self._layout_due = self._completion_due = self._settling = False
        self._top = 0
        self._goal_x: int | None = None
        self._jump: bool | None = None
        self._status = ""
        self._border_colour = "border"
        self._available_rows = 24
        self._height = 3
        self._actions = self._action_table()

    # ------------------------------------------------------------ what the app sets

    @property
    def history(self) -> PromptHistory:
        """The prompts that Up and Down walk through."""
        return self._history

    @history.setter
    def history(self, history: PromptHistory) -> None:
        """Walk through the prompts of another branch; those typed in this run stay reachable."""
        history.carry_over(self._history)
        self._history = history

    def set_status(self, text: str) -> None:
        """Show a text in the upper rule; "" for none."""
        if text != self._status:
            self._status = text
            self.refresh(_line_region(self, 0))

    def set_border_colour(self, name: str) -> None:
        """The theme colour of the rules, unless the text is a shell command."""
        if name != self._border_colour:
            self._border_colour = name
            self.refresh()

    def set_available_rows(self, rows: int) -> None:
        """The height of the terminal; the editor takes a third of it at most."""
        if rows != self._available_rows:
            self._available_rows = rows
            self.changed()

    @property
    def text_rows(self) -> int:
        """How many rows of text are shown at most."""
        return max(MIN_TEXT_ROWS, self._available_rows // 3 - 2)

    # ------------------------------------------------------------ input

    def insert(self, text: str) -> None:
        """Take a typed character, or several that came together."""
        if self._jump is not None and text:
            forward, self._jump = self._jump, None
            self.buffer.jump(text[0], forward=forward)
            text = text[1:]
        if text:
            self.history.leave()
            self._goal_x = None
            self.buffer.insert(text)
        self.changed()

    def paste(self, text: str) -> None:
        """Take pasted text; nothing in it is executed or completed."""
        self.history.leave()
        self.buffer.paste(text)
        self._close_menu()
        self.changed(complete=False)

    def set_text(self, text: str) -> None:
        """Replace everything."""
        self.put(self.buffer.composed(text))

    def put(self, state: Snapshot) -> None:
        """Replace everything by a state of the buffer."""
        self.history.leave()
        self.buffer.put_back(state)
        self._close_menu()
        self.changed(complete=False)

    def clear(self) -> None:
        """Empty the editor; the text stays reachable through history and undo."""
        if not self.buffer.is_blank:
            self.history.add(self.buffer.snapshot(), self.buffer.expanded())
        self.buffer.clear()
        self.changed()

    def run(self, action: str) -> bool:
        """Carry out an editing action; False when it means nothing here at the moment."""
        handler = self._actions.get(action)
        if handler is None:
            return False
        self._jump = None
        done = handler()
        if done is False:
            return False
        self.changed()
        return True

    def accept_completion(self) -> bool:
        """Take the chosen row into the text; True when Enter may send the text as well."""
        completion = self.menu.completion
        if completion is None:
            return False
        item = completion.items[self.menu.chosen]
        whole = item.insert.rstrip() == self.buffer.text[completion.start :].rstrip()
        self._take(completion, item)
        self.menu.close()
        self.changed(complete=False)
        return completion.submits and (whole or not item.hint)

    def close_completion(self) -> bool:
        """Close the list and keep the text; False when none is open."""
        completion = self.menu.completion
        if completion is None:
            return False
        self.menu.dismiss(self.buffer.text[completion.start : self.buffer.cursor])
        self._resize()
        return True

    def changed(self, *, complete: bool = True) -> None:
        """Bring layout, completion list and screen in line with the buffer, soon."""
        self._layout_due = True
        self._completion_due = complete
        self._menu.cursor_at(self.buffer.cursor)
        if not self.is_attached:
            self._settle()
        elif not self._settling:
            self._settling = True
            self.call_later(self._settle)

    def _settle(self) -> None:
        self._settling = False
        self._complete()
        self._resize()

    @property
    def menu(self) -> CompletionList:
        """The completion list for the text as it is now."""
        self._complete()
        return self._menu

    def _complete(self) -> None:
        if not self._completion_due:
            return
        self._completion_due = False
        if self.history.walking:
            self._menu.close()
            return
        text, cursor = self.buffer.text, self.buffer.cursor
        completion = self._first(lambda c: c.complete(text, cursor))
        start = completion.start if completion is not None else 0
        self._menu.update(completion, text[start:cursor])

    def _close_menu(self) -> None:
        self._completion_due = False
        self._menu.close()

    def _first(self, ask: Callable[[Completer], Completion | None]) -> Completion | None:
        for completer in self._completers:
            completion = ask(completer)
            if completion is not None:
                return completion
        return None

    def _take(self, completion: Completion, item: CompletionItem) -> None:
        buffer = self.buffer
        tail = buffer.text[buffer.cursor :]
        insert = item.insert
        if insert.endswith(" ") and tail.startswith(" "):
            insert = insert[:-1]
        buffer.replace(completion.start, buffer.cursor, insert)

    # ------------------------------------------------------------ actions

    def _action_table(self) -> dict[str, Callable[[], bool | None]]:
        b = self.buffer
        return {
            "tui.editor.cursorUp": self._up,
            "tui.editor.cursorDown": self._down,
            "tui.editor.historyPrevious": lambda: self.history.previous(b),
            "tui.editor.historyNext": lambda: self.history.next(b),
            "tui.editor.cursorLeft": self._sideways(b.left),
            "tui.editor.cursorRight": self._sideways(b.right),
            "tui.editor.cursorWordLeft": self._sideways(b.word_left),
            "tui.editor.cursorWordRight": self._sideways(b.word_right),
            "tui.editor.cursorLineStart": self._sideways(b.line_start),
            "tui.editor.cursorLineEnd": self._sideways(b.line_end),
            "tui.editor.jumpForward": lambda: self._await_jump(forward=True),
            "tui.editor.jumpBackward": lambda: self._await_jump(forward=False),
            "tui.editor.pageUp": lambda: self._page(-1),
            "tui.editor.pageDown": lambda: self._page(1),
            "tui.editor.deleteCharBackward": self._edit(b.delete_left),
            "tui.editor.deleteCharForward": self._edit(b.delete_right),
            "tui.editor.deleteWordBackward": self._edit(b.kill_word_left),
            "tui.editor.deleteWordForward": self._edit(b.kill_word_right),
            "tui.editor.deleteToLineStart": self._edit(b.kill_to_line_start),
            "tui.editor.deleteToLineEnd": self._edit(b.kill_to_line_end),
            "tui.editor.yank": self._edit(b.yank),
            "tui.editor.yankPop": self._edit(b.yank_pop),
            "tui.editor.undo": self._edit(b.undo),
            "tui.input.newLine": self._edit(lambda: b.insert("\n")),
            "tui.input.tab": self._tab,
        }

    def _edit(self, change: Callable[[], None]) -> Callable[[], None]:
        def edit() -> None:
            self.history.leave()
            self._goal_x = None
            change()

        return edit

    def _sideways(self, move: Callable[[], None]) -> Callable[[], None]:
        def go() -> None:
            self._goal_x = None
            move()

        return go

    def _await_jump(self, *, forward: bool) -> None:
        self._jump = forward

    def _up(self) -> bool | None:
        if self.menu.is_open:
            self.menu.move(-1)
            self.refresh()
            return True
        if row_of(self._rows, self.buffer.cursor) == 0:
            self._goal_x = None
            return self.history.previous(self.buffer)
        self._vertical(-1)
        return None

    def _down(self) -> bool | None:
        if self.menu.is_open:
            self.menu.move(1)
            self.refresh()
            return True
        if row_of(self._rows, self.buffer.cursor) == len(self._rows) - 1:
            self._goal_x = None
            return self.history.next(self.buffer)
        self._vertical(1)
        return None

    def _page(self, direction: int) -> bool | None:
        if self.menu.is_open:
            self.menu.move(direction * self.menu.rows, wrap=False)
            return True
        if len(self._rows) <= 1:
            return False
        self._vertical(direction * max(1, self.text_rows - 1))
        return None

    def _vertical(self, rows: int) -> None:
        at = row_of(self._rows, self.buffer.cursor)
        if self._goal_x is None:
            self._goal_x = self._rows[at].x_of(self.buffer.cursor)
        target = self._rows[min(max(0, at + rows), len(self._rows) - 1)]
        self.buffer.move_to(target.index_at(self._goal_x))

    def _tab(self) -> bool | None:
        if self.menu.is_open:
            self.accept_completion()
            return True
        text, cursor = self.buffer.text, self.buffer.cursor
        completion = self._first(lambda c: c.complete_on_tab(text, cursor))
        if completion is None or not completion.items:
            return False
        self.history.leave()
        if len(completion.items) == 1:
            self._take(completion, completion.items[0])
            return True
        if completion.common:
            self.buffer.replace(completion.start, cursor, completion.common)
        self.menu.close()  # also forgets that the person has closed a list here
        self.menu.update(completion, self.buffer.text[completion.start : self.buffer.cursor])
        self._resize()
        return True

    def completions_ready(self) -> None:
        """A completer may know more rows than before."""
        self.changed()

    # ------------------------------------------------------------ layout

    def _atom_label(self, character: str) -> str | None:
        atom = self.buffer.atom(character)
        return None if atom is None else atom.label

    @property
    def _rows(self) -> list[Row]:
        """The rows of the text as it is now; `_top` holds for them."""
        if self._layout_due:
            self._layout_due = False
            self._lay_out()
        return self._laid_out

    def _lay_out(self) -> None:
        # One column stays free: there the cursor stands behind a full row.
        rows = self._laid_out = self._layout_of.rows(self.buffer.text, self.size.width - 1)
        at = row_of(rows, self.buffer.cursor)
        shown = self.text_rows
        self._top = min(self._top, at)
        self._top = max(self._top, at - shown + 1)
        self._top = max(0, min(self._top, len(rows) - shown))

    def _resize(self) -> None:
        height = 2 + min(len(self._rows) or 1, self.text_rows) + self._menu_height()
        if height != self._height:
            self._height = height
            self.styles.height = height
        self.refresh()
        self._place_cursor()

    def _menu_height(self) -> int:
        count = len(self.menu.items)
        return 0 if not count else min(count, self.menu.rows) + 1

    def _place_cursor(self) -> None:
        """Tell the terminal where the cursor is: input methods open their window there."""
        if not self.is_attached or not self._rows:
            return
        x, y = self._cursor_cell()
        self.app.cursor_position = Offset(self.region.x + x, self.region.y + y)

    def _cursor_cell(self) -> tuple[int, int]:
        at = row_of(self._rows, self.buffer.cursor)
        x = min(self._rows[at].x_of(self.buffer.cursor), max(0, self.size.width - 1))
        return x, at - self._top + 1

    def on_resize(self, event: events.Resize) -> None:
        event.stop()
        self._layout_due = True
        self._resize()

    # ------------------------------------------------------------ drawing

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        text_rows = min(len(self._rows) or 1, self.text_rows)
        if y == 0:
            return self._rule(width, self._status, above=self._top)
        if y <= text_rows:
            return self._text_row(self._top + y - 1, width)
        if y == text_rows + 1:
            below = len(self._rows) - self._top - text_rows
            return self._rule(width, "", below=max(0, below))
        return menu_row(self.menu, y - text_rows - 2, width, self._style_of)

    def _rule(self, width: int, status: str, *, above: int = 0, below: int = 0) -> Strip:
        shell = self.buffer.text.startswith("!")
        border = self._style_of("bashMode" if shell else self._border_colour)
        more = f" ↑{above} " if above else f" ↓{below} " if below else ""
        segments = []
        used = 0
        if status:
            shown = f" {clip(status, width - 6)} "
            segments = [Segment("──", border), Segment(shown, self._style_of("accent"))]
            used = 2 + cell_len(shown)
        if used + len(more) + 2 > width:
            more = ""
        rest = max(0, width - used - len(more) - (2 if more else 0))
        segments.append(Segment("─" * rest + (more + "──" if more else ""), border))
        return Strip(segments).crop(0, width)

    def _text_row(self, number: int, width: int) -> Strip:
        if number >= len(self._rows):
            return Strip([Segment(" ", REVERSE), Segment(" " * max(0, width - 1))], width)
        row = self._rows[number]
        plain, accent = self._style_of("text"), self._style_of("accent")
        cursor = self.buffer.cursor
        here = row_of(self._rows, cursor) == number
        segments: list[Segment] = []
        run = ""
        done = False
        for cell in row.cells:
            if here and row.offset + cell.start == cursor:
                segments += [Segment(run, plain), Segment(cell.shown, plain + REVERSE)]
                run, done = "", True
            elif cell.is_atom:
                segments += [Segment(run, plain), Segment(cell.shown, accent)]
                run = ""
            else:
                run += cell.shown
        segments.append(Segment(run, plain))
        if here and not done:
            used = sum(cell.cells for cell in row.cells)
            strip = Strip(segments).adjust_cell_length(min(used, max(0, width - 1)))
            return Strip.join([strip, Strip([Segment(" ", REVERSE)])]).adjust_cell_length(width)
        return Strip(segments).adjust_cell_length(width)


def _line_region(widget: Widget, y: int) -> Region:
    return Region(0, y, widget.size.width, 1)
