"""What NO_COLOR asks for: bold, underline and reverse stay, every colour goes."""

from __future__ import annotations

from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter


class WithoutColours(LineFilter):
    """Takes the place of Textual's own filter: that makes greys, and fails without a style."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            Segment(text, None if style is None else _without_colours(style), control)
            for text, style, control in segments
        ]


@lru_cache(1024)
def _without_colours(style: Style) -> Style:
    return style.without_color
