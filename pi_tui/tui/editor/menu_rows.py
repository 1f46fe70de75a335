"""The completion list as lines: name and argument in one column, what it does in the other.

What does not fit ends in an ellipsis, so that nothing cut looks whole. The row that Enter would
take is marked; while it would take none, no row is.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.editor.completion import CompletionItem, CompletionList
from pi_tui.tui.transcript.wrap import clip

LEAST_COLUMN_CELLS = 8
MARK_CELLS = 2
GAP = "  "
LEAST_HINT_CELLS = 4
"""A shorter beginning of an argument says nothing."""


def menu_row(menu: CompletionList, y: int, width: int, style_of: Callable[[str], Style]) -> Strip:
    """Row y of the list, counted from its first row on screen; the one below it counts all."""
    count = len(menu.items)
    shown = menu.items[menu.top : menu.top + min(count, menu.rows)]
    dim = style_of("dim")
    if y >= len(shown):
        text = f"  ({menu.chosen + 1}/{count})" if shown else ""
        return Strip([Segment(text, dim)]).adjust_cell_length(width)
    column = max(sum(map(cell_len, _left(item))) for item in shown)
    column = min(column, max(LEAST_COLUMN_CELLS, width // 2))
    item = shown[y]
    chosen = menu.top + y == menu.chosen and menu.certain
    name = style_of("accent") if chosen else style_of("text")
    label, hint = _left(item)
    label = clip(label, column)
    room = column - cell_len(label)
    hint = clip(hint, room) if min(room, cell_len(hint)) >= LEAST_HINT_CELLS else hint[:0]
    mark = "› " if chosen else "  "
    left = Strip([Segment(mark + label, name), Segment(hint, dim)])
    room = width - column - MARK_CELLS - len(GAP)
    right = Strip([Segment(GAP + clip(sanitise_line(item.detail), room), dim)])
    strip = Strip.join([left.adjust_cell_length(column + MARK_CELLS), right])
    return strip.adjust_cell_length(width)


def _left(item: CompletionItem) -> tuple[str, str]:
    """Name, and argument with a blank before it."""
    hint = sanitise_line(item.hint)
    return sanitise_line(item.label), f" {hint}" if hint else ""
