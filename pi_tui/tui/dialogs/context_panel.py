"""What fills the context window: a coloured bar, the parts with their tokens, then notes in words.

The parts of the bar differ in colour and, side by side, in their pattern: it reads without colours.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment

from pi_tui.core.context_report import ContextPart, ContextReport, PartKind
from pi_tui.core.numbers import compact_count
from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.dialogs.text_panel import Line, TextPanel
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette

MAX_BAR_CELLS = 100
FREE_CELL = "·"

_COLOURS: Mapping[PartKind, str] = {
    "system": "accent",
    "context-file": "mdLink",
    "tools": "warning",
    "summary": "customMessageLabel",
    "pins": "success",
    "messages": "mdHeading",
    "tool-results": "bashMode",
}
_PATTERNS = "█▓▒"


class ContextPanel(TextPanel):
    """Shows a `ContextReport`. True: it was closed with Enter."""

    def __init__(
        self,
        report: ContextReport,
        window_tokens: int,
        notes: str,
        palette: Palette,
        keys: KeyMap,
    ) -> None:
        super().__init__("Context", notes, palette, keys)
        self._report = report
        self._window_tokens = window_tokens

    def make_lines(self, width: int) -> list[Line]:
        parts = self._report.parts
        lines: list[Line] = [self._bar(min(width - 2, MAX_BAR_CELLS)), self._total(), ()]
        lines += [self._part(number, part, width) for number, part in enumerate(parts)]
        if not parts:
            lines.append([Segment("Nothing yet.", self.palette.ink("text"))])
        return [*lines, (), *super().make_lines(width)]

    def _bar(self, cells: int) -> Line:
        """The parts one after the other; scaled so that all of them are the total."""
        report = self._report
        filled_tokens = min(report.tokens, self._window_tokens)
        scale = filled_tokens / max(1, report.estimated_tokens)
        segments: list[Segment] = []
        done_tokens, done_cells = 0.0, 0
        for number, part in enumerate(report.parts):
            done_tokens += part.tokens * scale
            end = round(done_tokens * cells / max(1, self._window_tokens))
            segments.append(self._pattern(number, part, end - done_cells))
            done_cells = end
        free = Segment(FREE_CELL * max(0, cells - done_cells), self.palette.ink("dim"))
        return [*segments, free]

    def _pattern(self, number: int, part: ContextPart, cells: int) -> Segment:
        pattern = _PATTERNS[number % len(_PATTERNS)]
        return Segment(pattern * max(0, cells), self.palette.ink(_COLOURS[part.kind]))

    def _total(self) -> Line:
        report, window = self._report, self._window_tokens
        percent = report.tokens * 100 / window if window else 0.0
        about = "" if report.is_reported else "~"
        used = f"{about}{report.tokens:,} of {window:,} tokens"
        return [
            Segment(used, self.palette.ink("text")),
            Segment(f" ({about}{percent:.1f} %)", self.palette.ink("dim")),
        ]

    def _part(self, number: int, part: ContextPart, width: int) -> Line:
        ink = self.palette.ink
        label = sanitise_line(part.label)
        if part.count > 1:
            label += f" ({part.count:,})"
        share = part.tokens * 100 / max(1, self._report.estimated_tokens)
        numbers = f" {compact_count(part.tokens):>6} {share:>5.1f} %"
        room = max(4, min(width - cell_len(numbers) - 2, 60))
        if cell_len(label) > room:  # the end of a path says more than its beginning
            while cell_len(label) > room - 1:
                label = label[1:]
            label = f"…{label}"
        return [
            self._pattern(number, part, 1),
            Segment(f" {set_cell_size(label, room)}", ink("text")),
            Segment(numbers, ink("dim")),
        ]
