"""The two lines at the bottom: where we are, what was used, who answers."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.palette import Palette
from pi_tui.tui.view_state import (
    FooterFacts,
    FooterPart,
    fitting,
    model_parts,
    number_parts,
    place_parts,
)

GAP_CELLS = 2


class StatusFooter(Widget, can_focus=False):
    """Draws `FooterFacts`; drops the less important parts where the terminal is narrow."""

    DEFAULT_CSS = "StatusFooter { height: 2; }"

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._facts: FooterFacts | None = None

    def show(self, facts: FooterFacts) -> None:
        """Draw other facts from now on."""
        if facts != self._facts:
            self._facts = facts
            self.refresh()

    def set_palette(self, palette: Palette) -> None:
        self._palette = palette
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._facts is None:
            return Strip.blank(width)
        if y == 0:
            return self._line(place_parts(self._facts), (), width)
        return self._line(number_parts(self._facts), model_parts(self._facts), width)

    def _line(self, left: Sequence[FooterPart], right: Sequence[FooterPart], width: int) -> Strip:
        parts = [*left, *right]
        texts = [sanitise_line(part.text) for part in parts]
        cells = [cell_len(text) for text in texts]
        room = width - (GAP_CELLS - 1 if right else 0)
        kept = fitting(parts, room, cells)
        left_kept = [i for i in kept if i < len(left)]
        right_kept = [i for i in kept if i >= len(left)]
        segments = self._segments(parts, texts, left_kept)
        if right_kept:
            used = sum(cells[i] for i in kept) + max(0, len(left_kept) - 1) + len(right_kept) - 1
            segments.append(Segment(" " * max(0, width - used)))
            segments += self._segments(parts, texts, right_kept)
        return Strip(segments).adjust_cell_length(width)

    def _segments(
        self, parts: Sequence[FooterPart], texts: Sequence[str], kept: Sequence[int]
    ) -> list[Segment]:
        segments = []
        for place, i in enumerate(kept):
            if place:
                segments.append(Segment(" "))
            segments.append(Segment(texts[i], self._palette.ink(parts[i].role)))
        return segments
