"""What every panel has: rules above and below, a title, keys, and one result.

A panel replaces the editor in place while the transcript and the footer stay. All keys go to it,
in the order they were pressed. Its result is a future; None means the person cancelled.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip

T = TypeVar("T")

RULE_CELLS = 6
"""What a rule needs beside its text."""


class Panel(Widget, Generic[T], can_focus=False):
    """Base of the panels. A subclass draws `body_line` and handles `key`."""

    DEFAULT_CSS = "Panel { height: 5; }"

    def __init__(self, title: str, palette: Palette, keys: KeyMap) -> None:
        super().__init__()
        self.title = sanitise_line(title)
        self.palette = palette
        self.keys = keys
        self.result: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()
        self._available_rows = 24
        self._body_rows = 3

    # ------------------------------------------------------------ for subclasses

    def key(self, name: str, character: str | None) -> None:
        """Handle one key: its normalised name, and what it types, if anything."""
        raise NotImplementedError

    def paste(self, text: str) -> None:
        """Handle pasted text."""

    def body_line(self, y: int, width: int) -> Strip:
        """Draw line y of the body."""
        raise NotImplementedError

    def wanted_rows(self) -> int:
        """How many body lines would show everything."""
        raise NotImplementedError

    @property
    def hint(self) -> str:
        """The keys, for the lower rule."""
        return ""

    @property
    def heading(self) -> str:
        """What stands in the upper rule."""
        return self.title

    @property
    def most_rows(self) -> int:
        """How many body lines it may take: with the rules a bit more than half of the terminal."""
        return max(3, self._available_rows * 3 // 5 - 2)

    # ------------------------------------------------------------ common

    def finish(self, value: T | None) -> None:
        """Close with a result."""
        if not self.result.done():
            self.result.set_result(value)

    @property
    def body_rows(self) -> int:
        """How many body lines are on screen."""
        return self._body_rows

    def set_available_rows(self, rows: int) -> None:
        """The height of the terminal; see `most_rows`."""
        self._available_rows = rows
        self.fit()

    def fit(self) -> None:
        """Take the height the content needs, within bounds."""
        self._body_rows = max(1, min(self.wanted_rows(), self.most_rows))
        self.styles.height = self._body_rows + 2
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        event.stop()
        self.fit()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._rule(clip(self.heading, width - RULE_CELLS), width, "accent")
        if y == self._body_rows + 1:
            return self._rule(fitting_hint(self.hint, width - RULE_CELLS), width, "dim")
        return self.body_line(y - 1, width).adjust_cell_length(width)

    def _rule(self, text: str, width: int, role: str) -> Strip:
        border = self.palette.ink("border")
        if not text or width < 8:
            return Strip([Segment("─" * width, border)])
        shown = f" {text} "
        rest = max(0, width - 2 - cell_len(shown))
        return Strip(
            [
                Segment("──", border),
                Segment(shown, self.palette.ink(role)),
                Segment("─" * rest, border),
            ]
        ).crop(0, width)


def fitting_hint(hint: str, room_cells: int) -> str:
    """As many of the hint's parts as fit, whole. The first, the way out, is always there."""
    first, *others = hint.split(" · ")
    shown = first
    for part in others:
        if cell_len(longer := f"{shown} · {part}") > room_cells:
            break
        shown = longer
    return clip(shown, room_cells)
