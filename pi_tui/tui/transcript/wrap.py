"""Breaking text into rows by the width it takes on the screen.

Widths are cells as Rich measures them. Text is never cut inside a cluster (a base character with
its combining marks, variation selector or joined emoji), so a row's width is the sum of its
clusters. Words wrap in prose, code and output are cut hard. Linear in the text, also for one line
of 100,000 characters. No markup: texts are taken as they are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from rich.cells import cell_len, get_character_cell_size
from rich.style import Style

from pi_tui.tui.transcript.rows import Row, Span

TAB_CELLS = 4

# Characters that are all one cell wide and never join: most text needs no measuring.
_SIMPLE = re.compile(
    "[ -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0377\u037a-\u037f\u0384-\u0482"
    "\u2010-\u2027\u2030-\u205e\u2190-\u2199\u2400-\u2426\u2500-\u25fc]*"
)
is_simple = _SIMPLE.fullmatch
"""Truthy when a text takes one cell for each character."""

_WORD = re.compile(r" +|[^ ]+")


def expand_tabs(text: str) -> str:
    return text.expandtabs(TAB_CELLS) if "\t" in text else text


def clusters(text: str) -> Iterator[tuple[int, int, int]]:
    """Pieces that must stay together, as start, end and cells."""
    size = len(text)
    at = 0
    while at < size:
        start = at
        cells = get_character_cell_size(text[at])
        plain = text[at] != "\u200d"
        at += 1
        if not plain and at < size:  # a joiner at the start takes the next one along
            at += 1
        while at < size:
            char = text[at]
            if char == "\u200d":
                at += 2
                plain = False
            elif char == "\ufe0f" or get_character_cell_size(char) == 0:
                at += 1
                plain = plain and char != "\ufe0f"
            else:
                break
        at = min(at, size)
        yield start, at, cells if plain else cell_len(text[start:at])


def chop(text: str, width: int) -> list[str]:
    """Cut one line into pieces of at most `width` cells; at least one piece."""
    if is_simple(text):
        return [text[at : at + width] for at in range(0, len(text), width)] or [""]
    pieces: list[str] = []
    start = used = 0
    for begin, _, cells in clusters(text):
        if used and used + cells > width:
            pieces.append(text[start:begin])
            start, used = begin, 0
        used += cells
    pieces.append(text[start:])
    return pieces


def cut_hard(spans: Sequence[Span], width: int) -> list[Row]:
    """Cut one styled line into rows of at most `width` cells, at any cluster."""
    text = "".join(piece for piece, _ in spans)
    if len(text) <= width and is_simple(text):
        return [Row(tuple(span for span in spans if span[0]))]
    if len(spans) > 1 and not is_simple(text):
        spans = _by_clusters(spans, text)
    ends = list(accumulate(len(piece) for piece in chop(text, width)))
    return _cut(spans, list(zip([0, *ends], ends, strict=False)), ["\n", *[""] * len(ends)])


def _by_clusters(spans: Sequence[Span], text: str) -> list[Span]:
    """The same text in the same styles, without a border of spans inside a cluster."""
    moved: list[Span] = []
    ends = list(accumulate(len(piece) for piece, _ in spans))
    at = start = 0
    for _, end, _ in clusters(text):
        if end >= ends[at]:
            moved.append((text[start:end], spans[at][1]))
            start = end
            while at < len(ends) - 1 and ends[at] <= end:
                at += 1
    return moved


def clip(text: str, width: int) -> str:
    """Shorten one line to `width` cells, with an ellipsis when something is left out."""
    if width <= 0:
        return ""
    if len(text) > 4 * width:
        text = text[: 4 * width + 1]
    if cell_len(text) <= width:
        return text
    start = chop(text, width - 1)[0] if width > 1 else ""
    return start + "…" if cell_len(start) < width else "…"


def wrap(spans: Sequence[Span], width: int) -> list[Row]:
    """Wrap styled text at words; line ends in it break. At least one row.

    A word longer than the row, and text in scripts without blanks, breaks between clusters.
    """
    rows: list[Row] = []
    line: list[Span] = []
    for text, style in spans:
        if "\n" not in text:
            line.append((text, style))
            continue
        first, *rest = text.split("\n")
        line.append((first, style))
        for piece in rest:
            rows += _wrap_line(line, width)
            line = [(piece, style)]
    rows += _wrap_line(line, width)
    return rows


def wrap_text(text: str, style: Style, width: int) -> list[Row]:
    return wrap([(expand_tabs(text), style)], width)


def _wrap_line(spans: Sequence[Span], width: int) -> list[Row]:
    text = "".join(piece for piece, _ in spans)
    if is_simple(text):
        if len(text) <= width:
            return [Row(tuple(span for span in spans if span[0]))]
        cuts = _simple_cuts(text, width)
    else:
        if cell_len(text) <= width and len(spans) == 1:
            return [Row(tuple(spans))]
        cuts = _cluster_cuts(spans, text, width)
    joins = ["\n"]
    joins += [text[a[1] : b[0]][:1] for a, b in pairwise(cuts)]
    return _cut(spans, cuts, joins)


def _simple_cuts(text: str, width: int) -> list[tuple[int, int]]:
    """Where rows start and end; blanks at a break belong to no row."""
    cuts: list[tuple[int, int]] = []
    start, size = 0, len(text)
    while size - start > width:
        limit = start + width
        if text[limit] == " ":
            end = limit
        else:
            blank = text.rfind(" ", start, limit)
            end = blank if blank > start and text[start:blank].strip(" ") else limit
        following = end
        while following < size and text[following] == " ":
            following += 1
        cuts.append((start, _without_trailing_blanks(text, start, end)))
        start = following
    if start < size:
        cuts.append((start, size))
    return cuts


def _without_trailing_blanks(text: str, start: int, end: int) -> int:
    while end > start + 1 and text[end - 1] == " ":
        end -= 1
    return end


def _cluster_cuts(spans: Sequence[Span], text: str, width: int) -> list[tuple[int, int]]:
    """As `_simple_cuts`, measuring clusters; a cluster never reaches over two spans."""
    pieces: list[tuple[int, int, int]] = []
    offset = 0
    for piece, _ in spans:
        if is_simple(piece):
            pieces += [(offset + at, offset + at + 1, 1) for at in range(len(piece))]
        else:
            pieces += [(offset + a, offset + b, cells) for a, b, cells in clusters(piece)]
        offset += len(piece)
    cuts: list[tuple[int, int]] = []
    start = used = 0  # of the row: its first character, its cells
    break_end = break_next = used_at_next = 0  # last break: end of this row, start of the next
    ink = after_wide = after_blank = False
    for begin, end, cells in pieces:
        if text[begin:end] == " ":  # a blank with a combining mark on it is ink
            if ink:
                if not after_blank:
                    break_end = begin
                break_next, used_at_next = end, used + cells
            used += cells
            after_wide, after_blank = False, True
            continue
        if begin > start and (after_wide or cells > 1):
            break_end = break_next = begin
            used_at_next = used
        while used + cells > width and begin > start:
            if break_next <= start:
                break_end = break_next = begin
                used_at_next = used
            cuts.append((start, _without_trailing_blanks(text, start, break_end)))
            used -= used_at_next
            start = break_next
        ink = True
        used += cells
        after_wide, after_blank = cells > 1, False
    if start < len(text) or not cuts:
        end = len(text) if used <= width else _without_trailing_blanks(text, start, len(text))
        cuts.append((start, end))
    return cuts


def _cut(spans: Sequence[Span], cuts: Sequence[tuple[int, int]], joins: Sequence[str]) -> list[Row]:
    starts = [0, *accumulate(len(piece) for piece, _ in spans)]
    rows: list[Row] = []
    for (start, end), join in zip(cuts, joins, strict=False):
        row: list[Span] = []
        at = bisect_right(starts, start) - 1
        while at < len(spans) and starts[at] < end:
            piece, style = spans[at]
            part = piece[max(0, start - starts[at]) : end - starts[at]]
            if part:
                row.append((part, style))
            at += 1
        rows.append(Row(tuple(row), 0, join))
    return rows
