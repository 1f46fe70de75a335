"""A list to choose from, narrowed by typing. A title too long for the rule stands above the list.

Where there is little room, the lines around the list go first: the reason for a question matters
more. What still does not fit can be scrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.commands.ui import Choice
from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.dialogs.panel import RULE_CELLS, Panel
from pi_tui.tui.editor.layout import EditorLayout
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip

BESIDE_LABEL_CELLS = 6
"""What a row needs beside label and detail: the mark before, the tick, the gap."""


QUESTION_INDENT_CELLS = 2
AROUND_PANEL_ROWS = 5
"""What a question leaves of the terminal: its own rules, the footer, a line of the transcript."""
LEAST_LIST_ROWS = 2
SHORT_LIST_ROWS = 6
"""A list up to this long is seen at a glance, and does without the line to search in."""


class _Parts(NamedTuple):
    """How many body lines each part gets, from above."""

    question: int
    search: int
    listed: int
    position: int


class Picker(Panel[str]):
    """Gives the `value` of the chosen row. The current one is marked and chosen at first."""

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        palette: Palette,
        keys: KeyMap,
        *,
        current: str | None = None,
    ) -> None:
        super().__init__(title, palette, keys)
        self._choices = tuple(choices)
        self._current = current
        self._query = ""
        self._shown = list(self._choices)
        self._label_cells = _widest(self._shown)
        self._at = next((n for n, c in enumerate(choices) if c.value == current), 0)
        self._top = 0
        self._layout_of = EditorLayout(lambda character: None)
        self._question: list[str] = []
        self._question_for = -1
        self._question_top = 0

    @property
    def hint(self) -> str:
        confirm = self.keys.label("tui.select.confirm")
        cancel = self.keys.label("tui.select.cancel")
        if self._is_cut:
            on = self.keys.label("tui.select.pageDown")
            return f"{cancel} cancels · {on} reads on · {confirm} chooses"
        if self._query:
            return f"{cancel} clears the search · {confirm} chooses"
        return f"{cancel} cancels · {confirm} chooses · type to search"

    def wanted_rows(self) -> int:
        # As high as the whole list, so that the screen does not jump while typing.
        return len(self._question_rows()) + len(self._choices) + 2

    @property
    def heading(self) -> str:
        return "" if self._question_rows() else self.title

    @property
    def most_rows(self) -> int:
        if not self._question_rows():
            return super().most_rows
        short = len(self._question_rows()) + min(len(self._choices), SHORT_LIST_ROWS) + 2
        return max(super().most_rows, min(short, self._available_rows - AROUND_PANEL_ROWS))

    def _question_rows(self) -> list[str]:
        """The title as lines of the body, where the rule has no room for it; else none."""
        width = self.size.width or self.app.size.width
        if width != self._question_for:
            self._question_for, self._question_top = width, 0
            self._question = []
            if cell_len(self.title) > width - RULE_CELLS:
                rows = self._layout_of.rows(self.title, max(1, width - 2 * QUESTION_INDENT_CELLS))
                self._question = ["".join(cell.shown for cell in row.cells) for row in rows]
        return self._question

    @property
    def _parts(self) -> _Parts:
        rows, question, wanted = self.body_rows, len(self._question_rows()), len(self._choices)
        if not question:
            return _Parts(0, 1, max(1, rows - 2), 1)
        spare = rows - question - wanted
        search = int(bool(self._query) or spare >= 2 or wanted > SHORT_LIST_ROWS)
        position = int(spare - search >= 1)
        listed = max(min(wanted, LEAST_LIST_ROWS), min(wanted, rows - question - search - position))
        return _Parts(max(0, rows - search - listed - position), search, listed, position)

    @property
    def _is_cut(self) -> bool:
        return self._parts.question < len(self._question_rows())

    # ------------------------------------------------------------ keys

    def key(self, name: str, character: str | None) -> None:
        keys = self.keys
        if keys.means(name, "tui.select.confirm"):
            if self._shown:
                self.finish(self._shown[self._at].value)
        elif keys.means(name, "tui.select.cancel"):
            if self._query:
                self._search("")
            else:
                self.finish(None)
        elif keys.means(name, "tui.select.up"):
            self._move(-1, wrap=True)
        elif keys.means(name, "tui.select.down"):
            self._move(1, wrap=True)
        elif keys.means(name, "tui.select.pageUp"):
            self._page(-1)
        elif keys.means(name, "tui.select.pageDown"):
            self._page(1)
        elif keys.means(name, "tui.editor.deleteCharBackward"):
            self._search(self._query[:-1])
        elif keys.means(name, "tui.editor.deleteToLineStart"):
            self._search("")
        elif character is not None and character.isprintable():
            self._search(self._query + character)

    def paste(self, text: str) -> None:
        self._search(self._query + sanitise_line(text).strip())

    def _search(self, query: str) -> None:
        chosen = self._shown[self._at].value if self._shown else self._current
        self._query = query
        words = query.lower().split()
        ranked = [
            (rank, number, choice)
            for number, choice in enumerate(self._choices)
            if (rank := _rank(words, choice)) is not None
        ]
        ranked.sort(key=lambda row: row[:2])
        self._shown = [choice for _, _, choice in ranked]
        self._label_cells = _widest(self._shown)
        if words:
            self._at = 0
        else:
            self._at = next((n for n, c in enumerate(self._shown) if c.value == chosen), 0)
        self._top = 0
        self.refresh()

    def _move(self, rows: int, *, wrap: bool = False) -> None:
        count = len(self._shown)
        if count:
            at = self._at + rows
            self._at = at % count if wrap else min(max(0, at), count - 1)
            self.refresh()

    def _page(self, step: int) -> None:
        """Go on by a page: in the question while it is cut, else in the list."""
        parts = self._parts
        if not self._is_cut:
            self._move(step * parts.listed)
            return
        last = len(self._question_rows()) - parts.question
        self._question_top = min(max(0, self._question_top + step * parts.question), last)
        self.refresh()

    # ------------------------------------------------------------ drawing

    def body_line(self, y: int, width: int) -> Strip:
        ink = self.palette.ink
        parts = self._parts
        if y < parts.question:
            question = self._question_rows()
            top = min(self._question_top, len(question) - parts.question)
            text = question[top + y]
            return Strip([Segment(" " * QUESTION_INDENT_CELLS + text, ink("accent"))])
        y -= parts.question
        if y == 0 and parts.search:
            return Strip(
                [
                    Segment("  > ", ink("muted")),
                    Segment(self._query, ink("text")),
                    Segment(" ", Style(reverse=True)),
                ]
            )
        y -= parts.search
        rows = parts.listed
        if y >= rows:
            return self._position_line(width) if parts.position else Strip([])
        self._top = min(self._top, self._at)
        self._top = max(0, self._at - rows + 1, min(self._top, len(self._shown) - rows))
        number = self._top + y
        if number >= len(self._shown):
            text = "  nothing fits" if not self._shown and y == 0 else ""
            return Strip([Segment(text, ink("dim"))])
        return self._row(number, width)

    def _position_line(self, width: int) -> Strip:
        """Which row is chosen, and the rest of what is said about it where its row is too short."""
        at = self._at + 1 if self._shown else 0
        text = f"  ({at}/{len(self._shown)})"
        if self._shown:
            detail = sanitise_line(self._shown[self._at].detail)
            if cell_len(detail) > self._detail_room(width):
                text += f"  {detail}"
        return Strip([Segment(clip(text, width), self.palette.ink("dim"))])

    def _label_column(self, width: int) -> int:
        return min(self._label_cells, width * 2 // 3)

    def _detail_room(self, width: int) -> int:
        return width - self._label_column(width) - BESIDE_LABEL_CELLS

    def _row(self, number: int, width: int) -> Strip:
        ink = self.palette.ink
        choice = self._shown[number]
        chosen = number == self._at
        column = self._label_column(width)
        label = clip(sanitise_line(choice.label), column)
        name = ink("accent") if chosen else ink("text")
        room = self._detail_room(width)
        mark = " ✓" if choice.value == self._current else "  "
        left = Strip([Segment("› " if chosen else "  ", name), Segment(label, name)])
        return Strip.join(
            [
                left.adjust_cell_length(column + 2),
                Strip([Segment(mark, ink("success"))]),
                Strip([Segment("  " + clip(sanitise_line(choice.detail), room), ink("dim"))]),
            ]
        )


def _widest(choices: Sequence[Choice]) -> int:
    return max((cell_len(sanitise_line(choice.label)) for choice in choices), default=0)


def _rank(words: Sequence[str], choice: Choice) -> int | None:
    """0: the label begins with it, 1: all words occur, 2: letters in order; None: does not fit."""
    label = choice.label.lower()
    text = f"{label} {choice.value} {choice.detail}".lower()
    if words and label.startswith(words[0]) and all(word in text for word in words):
        return 0
    if all(word in text for word in words):
        return 1
    letters = iter(choice.value.lower())
    return 2 if all(letter in letters for word in words for letter in word) else None
