"""What is drawn over the lines of a transcript: the mark of the focus, hits, a label at the end."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.tui.theme import TranscriptStyles
from pi_tui.tui.transcript.finder import Mark
from pi_tui.tui.transcript.key_hints import KeyHints
from pi_tui.tui.transcript.selection import restyled

_STRONG = Style(bold=True)
_FOUND = Style(bold=True, underline=True)


def with_focus_mark(strip: Strip, row: int, base: Style, styles: TranscriptStyles) -> Strip:
    """The left edge of the block as the mark; it is as wide, so the text does not move."""
    mark = Segment("▶ " if row == 1 else "┃ ", base + styles.accent + _STRONG)
    return Strip.join([Strip([mark], 2), strip.crop(2, strip.cell_length)])


def with_hits(strip: Strip, marks: Iterable[Mark], styles: TranscriptStyles) -> Strip:
    """The hits of a search made visible, without colours too."""
    for mark in marks:
        ink = styles.jump_hint if mark.current else styles.accent + _FOUND
        strip = restyled(strip, mark.start, mark.end, ink)
    return strip


def focus_label(keys: KeyHints, width: int, *, has_origin: bool = False) -> str:
    """The keys of the block that has the focus, as many as fit."""
    origin = keys.origin if has_origin else ""
    named = (
        (keys.toggle, "opens"),
        (origin, "its branch"),
        (keys.copy, "copies"),
        (keys.leave, "leaves"),
    )
    words = [f"{key} {what}" for key, what in named if key]
    while words and len(label := f" {' · '.join(words)} ") > width:
        words.pop()
    return label if words else ""


def with_label(strip: Strip, label: str, width: int, style: Style) -> Strip:
    """A label in the middle of the strip."""
    start = max(0, (width - len(label)) // 2)
    hint = Strip([Segment(label, style)])
    return Strip.join([strip.crop(0, start), hint, strip.crop(start + len(label), width)])
