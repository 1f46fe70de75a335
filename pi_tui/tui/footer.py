"""The two lines at the bottom: where we are, what was used, who answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip
from textual.widget import Widget

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip, clusters
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
    """Draws `FooterFacts`; shortens or drops parts where the terminal is narrow."""

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
        cells = [cell_len(sanitise_line(part.text)) for part in parts]
        room = fitting(parts, width - (GAP_CELLS - 1 if right else 0), cells)
        texts = {i: _shown(parts[i], given) for i, given in room.items()}
        left_kept = [i for i in room if i < len(left)]
        right_kept = [i for i in room if i >= len(left)]
        segments = self._segments(parts, texts, left_kept)
        if right_kept:
            used = sum(map(cell_len, texts.values()))
            used += max(0, len(left_kept) - 1) + len(right_kept) - 1
            segments.append(Segment(" " * max(0, width - used)))
            segments += self._segments(parts, texts, right_kept)
        return Strip(segments).adjust_cell_length(width)

    def _segments(
        self, parts: Sequence[FooterPart], texts: Mapping[int, str], kept: Sequence[int]
    ) -> list[Segment]:
        segments = []
        for place, i in enumerate(kept):
            if place:
                segments.append(Segment(" "))
            segments.append(Segment(texts[i], self._palette.ink(parts[i].role)))
        return segments


def _shown(part: FooterPart, room_cells: int) -> str:
    """A part's text in the room that it has; what is left out is marked by an ellipsis."""
    text = sanitise_line(part.text)
    if part.short and cell_len(text) > room_cells:
        text = sanitise_line(part.short)
    return _clip_start(text, room_cells) if part.keeps_end else clip(text, room_cells)


def _clip_start(text: str, width: int) -> str:
    """Shorten one line to its end of `width` cells, an ellipsis before it."""
    if cell_len(text) <= width:
        return text
    start, used = len(text), 1
    for begin, _, cells in reversed(list(clusters(text))):
        if used + cells > width:
            break
        start, used = begin, used + cells
    return "…" + text[start:] if width > 0 else ""
