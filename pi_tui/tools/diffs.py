"""A difference of two texts for people, with line numbers, in nearly linear time and bounded size.

Lines look like `-  12 old`, `+  12 new`, `   13 same`; `...` stands between distant places. Removed
and unchanged lines carry the number of the old text, added ones that of the new. Common ends are
trimmed, lines that occur once on both sides are anchors, and only small gaps between anchors are
compared in the quadratic way.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from pi_tui.tools.limits import cut_line
from pi_tui.tools.visible_text import size_bytes, visible

CONTEXT_LINES = 3
MAX_DIFF_LINES = 600
MAX_DIFF_BYTES = 48 * 1024
MAX_LINE_CHARS = 600
_GAP_PRODUCT = 250_000
"""Gaps up to this many line pairs are worth a careful comparison (a few milliseconds)."""

_NO_NEWLINE = "\0"
"""Marks a last line without newline while comparing; no text file holds the character."""

Change = tuple[int, int, int, int]
"""Old lines [a, b) become new lines [c, d), 0-based."""


class Diff(Struct, frozen=True):
    """A difference. `first_changed_line` is 1-based in the new text, None when nothing changed."""

    text: str
    added: int
    removed: int
    first_changed_line: int | None


def readable_diff(old: str, new: str) -> Diff:
    """Compare two texts by lines; CRLF and LF count as the same line end."""
    before, after = _lines(old), _lines(new)
    changes = line_changes(before, after)
    added = sum(d - c for _, _, c, d in changes)
    removed = sum(b - a for a, b, _, _ in changes)
    first = changes[0][2] + 1 if changes else None
    return Diff(_render(before, after, changes), added, removed, first)


def _lines(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += _NO_NEWLINE
    return lines


def line_changes(old: Sequence[str], new: Sequence[str]) -> list[Change]:
    """The changed places, in order, not touching one another."""
    start = 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    changes: list[Change] = []
    position = (start, start)
    stop = (len(old) - end, len(new) - end)
    for a, c in [*_anchors(old, new, start, *stop), stop]:
        changes.extend(_gap_changes(old, new, position[0], a, position[1], c))
        position = (a + 1, c + 1)
    return _joined(changes)


def _anchors(
    old: Sequence[str], new: Sequence[str], start: int, old_stop: int, new_stop: int
) -> list[tuple[int, int]]:
    """Pairs of equal lines that are unique on both sides, rising on both."""
    if (old_stop - start) * (new_stop - start) <= _GAP_PRODUCT:
        return []
    old_counts = Counter(old[start:old_stop])
    new_counts = Counter(new[start:new_stop])
    places = {new[i]: i for i in range(start, new_stop) if new_counts[new[i]] == 1}
    pairs = [
        (i, places[old[i]])
        for i in range(start, old_stop)
        if old_counts[old[i]] == 1 and old[i] in places
    ]
    return _longest_rising(pairs)


def _longest_rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    tails: list[int] = []
    tail_index: list[int] = []
    previous: list[int] = []
    for index, (_, value) in enumerate(pairs):
        slot = bisect_left(tails, value)
        previous.append(tail_index[slot - 1] if slot else -1)
        if slot == len(tails):
            tails.append(value)
            tail_index.append(index)
        else:
            tails[slot] = value
            tail_index[slot] = index
    chain: list[tuple[int, int]] = []
    index = tail_index[-1] if tail_index else -1
    while index >= 0:
        chain.append(pairs[index])
        index = previous[index]
    return chain[::-1]


def _gap_changes(
    old: Sequence[str], new: Sequence[str], a: int, b: int, c: int, d: int
) -> list[Change]:
    if a == b and c == d:
        return []
    if a == b or c == d or (b - a) * (d - c) > _GAP_PRODUCT:
        return [(a, b, c, d)]
    matcher = difflib.SequenceMatcher(None, old[a:b], new[c:d], autojunk=False)
    return [
        (a + i, a + j, c + k, c + m) for tag, i, j, k, m in matcher.get_opcodes() if tag != "equal"
    ]


def _joined(changes: list[Change]) -> list[Change]:
    joined: list[Change] = []
    for change in changes:
        if joined and joined[-1][1] == change[0] and joined[-1][3] == change[2]:
            joined[-1] = (joined[-1][0], change[1], joined[-1][2], change[3])
        else:
            joined.append(change)
    return joined


class _Page:
    """Collects lines until the size is used up, then only counts."""

    def __init__(self, width: int) -> None:
        self.lines: list[str] = []
        self.left_out = 0
        self._width = width
        self._used = 0

    def add(self, sign: str, number: int, text: str) -> None:
        if self.left_out or len(self.lines) >= MAX_DIFF_LINES or self._used >= MAX_DIFF_BYTES:
            self.left_out += sign != " "
            return
        if text.endswith(_NO_NEWLINE):
            text = cut_line(text[:-1], MAX_LINE_CHARS) + "  (no newline at the end)"
        else:
            text = cut_line(text, MAX_LINE_CHARS)
        line = f"{sign}{number:>{self._width}} {visible(text)}"
        self.lines.append(line)
        self._used += size_bytes(line) + 1

    def gap(self) -> None:
        if not self.left_out:
            self.lines.append("...")


def _render(old: Sequence[str], new: Sequence[str], changes: list[Change]) -> str:
    page = _Page(max(4, len(str(max(len(old), len(new))))))
    shown_to = 0  # first old line not yet considered
    for index, (a, b, c, d) in enumerate(changes):
        start = max(shown_to, a - CONTEXT_LINES)
        if index and start > shown_to:
            page.gap()
        for i in range(start, a):
            page.add(" ", i + 1, old[i])
        for i in range(a, b):
            page.add("-", i + 1, old[i])
        for i in range(c, d):
            page.add("+", i + 1, new[i])
        following = changes[index + 1][0] if index + 1 < len(changes) else len(old)
        shown_to = min(b + CONTEXT_LINES, following)
        for i in range(b, shown_to):
            page.add(" ", i + 1, old[i])
    if page.left_out:
        page.lines.append(f"... {page.left_out} more changed lines")
    return "\n".join(page.lines)
