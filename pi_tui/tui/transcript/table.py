"""Markdown tables as rows with box lines; where there is no room for columns, as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from rich.cells import cell_len
from rich.style import Style

from pi_tui.tui.transcript.rows import EMPTY_ROW, Row, Span
from pi_tui.tui.transcript.wrap import wrap

Cell: TypeAlias = list[Span]
Alignment: TypeAlias = Literal["left", "right", "center"]

MIN_COLUMN_CELLS = 6


def table_rows(
    header: Sequence[Cell],
    body: Sequence[Sequence[Cell]],
    alignments: Sequence[Alignment],
    line: Style,
    width: int,
) -> list[Row]:
    """Draw a table in `width` cells; cells wrap, widths follow the content as far as it fits."""
    columns = len(header)
    room = width - (3 * columns + 1)
    natural = [
        max(_cells(row[at]) for row in (header, *body) if at < len(row)) for at in range(columns)
    ]
    if room < sum(min(cells, MIN_COLUMN_CELLS) for cells in natural):
        return _records(header, body, line, width)
    widths = _fitted(natural, room)
    rows = [_border("┌┬┐", widths, line), *_line(header, widths, alignments, line)]
    rows.append(_border("├┼┤", widths, line))
    for cells in body:
        rows += _line(
            [*cells, *([] for _ in range(columns - len(cells)))], widths, alignments, line
        )
    rows.append(_border("└┴┘", widths, line))
    return rows


def _fitted(natural: Sequence[int], room: int) -> list[int]:
    """Widths of at most `natural`, in sum at most `room`: the widest give way first."""
    widths = [max(1, cells) for cells in natural]
    if sum(widths) <= room:
        return widths
    left, open_columns = room, sorted(range(len(widths)), key=lambda at: widths[at])
    while open_columns:
        share = left // len(open_columns)
        at = open_columns[0]
        if widths[at] > share:
            for extra, column in enumerate(open_columns):
                widths[column] = share + (extra < left - share * len(open_columns))
            break
        left -= widths[at]
        open_columns.pop(0)
    return widths


def _line(
    cells: Sequence[Cell], widths: Sequence[int], alignments: Sequence[Alignment], line: Style
) -> list[Row]:
    wrapped = [wrap(cell, max(2, size)) for cell, size in zip(cells, widths, strict=False)]
    rows: list[Row] = []
    for at in range(max(map(len, wrapped))):
        spans: list[Span] = [("│", line)]
        for column, size in enumerate(widths):
            content = wrapped[column][at].spans if at < len(wrapped[column]) else ()
            blank = max(0, size - _cells(content))
            alignment = alignments[column] if column < len(alignments) else "left"
            before = {"left": 0, "right": blank, "center": blank // 2}[alignment]
            spans.append((" " * (1 + before), line))
            spans += content
            spans += [(" " * (1 + blank - before), line), ("│", line)]
        rows.append(Row(tuple(spans)))
    return rows


def _border(corners: str, widths: Sequence[int], line: Style) -> Row:
    inside = corners[1].join("─" * (size + 2) for size in widths)
    return Row(((corners[0] + inside + corners[2], line),))


def _records(
    header: Sequence[Cell], body: Sequence[Sequence[Cell]], line: Style, width: int
) -> list[Row]:
    rows: list[Row] = []
    for number, cells in enumerate(body):
        if number:
            rows.append(EMPTY_ROW)
        for name, cell in zip(header, cells, strict=False):
            rows += wrap([*name, (": ", line), *cell], width)
    return rows or wrap([span for name in header for span in (*name, (" ", line))], width)


def _cells(spans: Sequence[Span]) -> int:
    return sum(cell_len(text) for text, _ in spans)
