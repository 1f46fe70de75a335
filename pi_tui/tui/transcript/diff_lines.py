"""The difference an edit made, as coloured lines with line numbers.

Reads what the edit tool records (`details.diff`): a sign, a number, the line; `...` between
places. Lines of a unified diff are understood too. Words that changed are emphasised.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from rich.style import Style

from pi_tui.tui.theme import TranscriptStyles
from pi_tui.tui.transcript.lines_column import LinesColumn
from pi_tui.tui.transcript.rows import Span
from pi_tui.tui.transcript.wrap import expand_tabs

MAX_COMPARED_CHARS = 400

_NUMBERED = re.compile(r"([-+ ]) *(\d+) ?(.*)")
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")
_WORD = re.compile(r"\w+|\s+|.")
_EMPHASIS = Style(bold=True, underline=True)


@dataclass(slots=True)
class DiffLine:
    """`sign` is "-", "+", " ", or "" for a remark between places."""

    sign: str
    number: str
    text: str


def parse_diff(diff: str) -> list[DiffLine]:
    """Read a sanitised diff; lines in no known form become remarks."""
    lines: list[DiffLine] = []
    old = new = 0  # counters of a unified hunk; 0: not in one
    for raw in diff.rstrip("\n").split("\n"):
        hunk = _HUNK.match(raw)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            lines.append(DiffLine("", "", f"...{hunk[3]}"))
            continue
        if old or new:
            sign = raw[:1] or " "
            if sign not in "-+ ":
                lines.append(DiffLine("", "", raw))
                continue
            lines.append(DiffLine(sign, str(new if sign == "+" else old), raw[1:]))
            old, new = old + (sign != "+"), new + (sign != "-")
            continue
        numbered = _NUMBERED.fullmatch(raw)
        if numbered:
            lines.append(DiffLine(numbered[1], numbered[2], numbered[3]))
        elif raw[:1] in ("-", "+") and raw[:3] not in ("---", "+++"):
            lines.append(DiffLine(raw[0], "", raw[1:]))
        else:
            lines.append(DiffLine("", "", raw.strip()))
    return lines


def diff_column(lines: Sequence[DiffLine], styles: TranscriptStyles, width: int) -> LinesColumn:
    """Draw lines of a diff; numbers are decoration, signs and texts are content."""
    inks = {"-": styles.removed, "+": styles.added, " ": styles.context, "": styles.dim}
    digits = max((len(line.number) for line in lines), default=0)
    gutters = [[(f"{line.number:>{digits}} ", styles.dim)] for line in lines]
    spans: list[list[Span]] = [
        [(f"{line.sign} {expand_tabs(line.text)}" if line.sign else line.text, inks[line.sign])]
        for line in lines
    ]
    for at, partner in _pairs(lines):
        old, new = expand_tabs(lines[at].text), expand_tabs(lines[partner].text)
        if max(len(old), len(new)) <= MAX_COMPARED_CHARS:
            gone, come = _changed_words(old, new, inks["-"], inks["+"])
            spans[at] = [("- ", inks["-"]), *gone]
            spans[partner] = [("+ ", inks["+"]), *come]
    return LinesColumn(spans, width, gutters)


def _pairs(lines: Sequence[DiffLine]) -> list[tuple[int, int]]:
    """Removed lines with the added ones in their place, where both runs are equally long."""
    pairs: list[tuple[int, int]] = []
    at, size = 0, len(lines)
    while at < size:
        start = at
        while at < size and lines[at].sign == "-":
            at += 1
        middle = at
        while at < size and lines[at].sign == "+":
            at += 1
        if middle - start == at - middle:
            pairs += zip(range(start, middle), range(middle, at), strict=True)
        if at == start:
            at += 1
    return pairs


def _changed_words(
    old: str, new: str, old_style: Style, new_style: Style
) -> tuple[list[Span], list[Span]]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < 0.4:  # another line, not a changed one
        return [(old, old_style)], [(new, new_style)]
    gone: list[Span] = []
    come: list[Span] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        for spans, text, style in (
            (gone, "".join(before[a:b]), old_style),
            (come, "".join(after[c:d]), new_style),
        ):
            plain = tag == "equal" or text.isspace()
            spans.append((text, style if plain else style + _EMPHASIS))
    return [span for span in gone if span[0]], [span for span in come if span[0]]
