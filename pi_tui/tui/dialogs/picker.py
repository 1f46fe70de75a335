"""A list to choose from, narrowed by typing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.commands.ui import Choice
from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip

BESIDE_LABEL_CELLS = 6
"""What a row needs beside label and detail: the mark before, the tick, the gap."""


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

    @property
    def hint(self) -> str:
        confirm = self.keys.label("tui.select.confirm")
        cancel = self.keys.label("tui.select.cancel")
        if self._query:
            return f"{cancel} clears the search · {confirm} chooses"
        return f"{cancel} cancels · {confirm} chooses · type to search"

    def wanted_rows(self) -> int:
        # As high as the whole list, so that the screen does not jump while typing.
        return len(self._choices) + 2

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
            self._move(-self._list_rows)
        elif keys.means(name, "tui.select.pageDown"):
            self._move(self._list_rows)
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

    # ------------------------------------------------------------ drawing

    @property
    def _list_rows(self) -> int:
        return max(1, self.body_rows - 2)

    def body_line(self, y: int, width: int) -> Strip:
        ink = self.palette.ink
        if y == 0:
            return Strip(
                [
                    Segment("  > ", ink("muted")),
                    Segment(self._query, ink("text")),
                    Segment(" ", Style(reverse=True)),
                ]
            )
        if y == self.body_rows - 1:
            at = self._at + 1 if self._shown else 0
            return Strip([Segment(f"  ({at}/{len(self._shown)})", ink("dim"))])
        rows = self._list_rows
        self._top = min(self._top, self._at)
        self._top = max(0, self._at - rows + 1, min(self._top, len(self._shown) - rows))
        number = self._top + y - 1
        if number >= len(self._shown):
            text = "  nothing fits" if not self._shown and y == 1 else ""
            return Strip([Segment(text, ink("dim"))])
        return self._row(number, width)

    def _row(self, number: int, width: int) -> Strip:
        ink = self.palette.ink
        choice = self._shown[number]
        chosen = number == self._at
        column = min(self._label_cells, width * 2 // 3)
        label = clip(sanitise_line(choice.label), column)
        name = ink("accent") if chosen else ink("text")
        room = width - column - BESIDE_LABEL_CELLS
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
