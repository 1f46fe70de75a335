"""Selected text: which part of a row, and what is copied.

A row has a stable line number made of its item and its row in the item, so a selection stays on
its text when heights elsewhere change. Columns are characters of the row. Copies are plain text:
no decoration, no padding, wrapped lines joined again.
"""

from __future__ import annotations

import re

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Offset
from textual.selection import Selection
from textual.strip import Strip

from pi_tui.tui.transcript.drawn import Drawn
from pi_tui.tui.transcript.items import Items
from pi_tui.tui.transcript.rows import Row
from pi_tui.tui.transcript.viewport import Place

ROWS_PER_ITEM = 1 << 24
MAX_COPIED_ROWS = 100_000

_WORD = re.compile(r"[\w./~@:+#%=&?-]+|\S")


def line_number(place: Place) -> int:
    """The line number of a row for Textual's selection."""
    return place.item * ROWS_PER_ITEM + place.row


def highlighted(strip: Strip, selection: Selection, place: Place, style: Style) -> Strip:
    """The strip with its selected part in a style."""
    span = selection.get_span(line_number(place))
    if span is None:
        return strip
    start, end = span
    if end == -1:
        end = max(start, len(strip.text.rstrip()))
    return restyled(strip, start, end, style)


def restyled(strip: Strip, start: int, end: int, style: Style) -> Strip:
    """The strip with a style on some of its characters."""
    if end <= start:
        return strip
    text = strip.text
    first, last = cell_len(text[:start]), cell_len(text[:end])
    selected = [
        Segment(piece, own + style if own else style, control)
        for piece, own, control in strip.crop(first, last)
    ]
    return Strip.join(
        [strip.crop(0, first), Strip(selected, last - first), strip.crop(last, strip.cell_length)]
    )


def copied_text(items: Items, selection: Selection) -> str:
    """The plain text of a selection over the items, drawing what was never in sight."""
    stretches = items.stretches
    first = _place(selection.start) if selection.start is not None else Place(0, 0)
    end = Place(stretches.end, ROWS_PER_ITEM)
    last = _place(selection.end) if selection.end is not None else end
    pieces: list[str] = []
    count = 0
    after = stretches.at_or_after(first.item)
    while (index := after) <= last.item and index < stretches.end:
        after = stretches.after(index)
        drawn = items.ensure(index)
        if drawn is None:
            continue
        start = first.row if index == first.item else 0
        stop = min(drawn.height, last.row + 1) if index == last.item else drawn.height
        for at in range(start, stop):
            row = drawn.row(at)
            here = line_number(Place(index, at))
            span = selection.get_span(here)
            if span is None:
                continue
            text = row_text(row, *span)
            pieces.append(text if not pieces else row.join + text)
            count += 1
            if count >= MAX_COPIED_ROWS:
                return "".join(pieces)
    return "".join(pieces)


def row_text(row: Row, start: int, end: int) -> str:
    """A part of a row without decoration; `end` -1: to its end."""
    text = row.text
    return text[max(start, row.lead) : len(text) if end == -1 else end].rstrip()


def selection_at(drawn: Drawn, place: Place, x: int, *, whole: bool) -> Selection | None:
    """The word under a cell of a row, or the `whole` row; None where nothing stands."""
    row = drawn.row(place.row)
    column = len(drawn.strip(place.row).crop(0, x).text)
    span = (row.lead, len(row.text)) if whole else _word_at(row, column)
    if span is None or not row_text(row, *span):
        return None
    line = line_number(place)
    return Selection(Offset(span[0], line), Offset(span[1], line))


def _word_at(row: Row, column: int) -> tuple[int, int] | None:
    """The word at a character of a row, as start and end."""
    for match in _WORD.finditer(row.text, row.lead):
        if match.start() <= column < match.end():
            return match.span()
    return None


def _place(offset: Offset) -> Place:
    return Place(*divmod(offset.y, ROWS_PER_ITEM))
