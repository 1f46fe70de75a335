"""The messages that wait, above the editor, with the key that takes them back."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip

MAX_ROWS = 5
_LINE_CHARS = 500


class QueueView(Widget, can_focus=False):
    """One line for each queued message; hidden while nothing waits."""

    DEFAULT_CSS = "QueueView { height: 0; display: none; }"

    def __init__(self, palette: Palette, take_back_key: str) -> None:
        super().__init__()
        self._palette = palette
        self._take_back_key = take_back_key
        self._lines: list[tuple[str, str]] = []

    def show(self, steering: tuple[str, ...], follow_up: tuple[str, ...]) -> None:
        """Draw these messages from now on."""
        lines = [("Steering: ", text) for text in steering]
        lines += [("Follow-up: ", text) for text in follow_up]
        if len(lines) > MAX_ROWS:
            more = len(lines) - MAX_ROWS + 1
            lines = [*lines[: MAX_ROWS - 1], (f"and {more} more", "")]
        if lines and self._take_back_key:
            lines.append((f"{self._take_back_key} takes them back into the editor", ""))
        if lines == self._lines:
            return
        self._lines = lines
        self.display = bool(lines)
        self.styles.height = len(lines)
        self.refresh()

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y >= len(self._lines):
            return Strip.blank(width)
        label, text = self._lines[y]
        label = clip(f"  {label}", width)
        room = width - cell_len(label)
        segments = [
            Segment(label, self._palette.ink("muted")),
            Segment(clip(sanitise_line(text[:_LINE_CHARS]), room), self._palette.ink("dim")),
        ]
        return Strip(segments).adjust_cell_length(width)
