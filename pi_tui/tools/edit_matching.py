"""Finds the places an edit means, and plans what is put there. Pure: text in, text out.

Every edit is matched against the original text: first exactly (line ends aside), then tolerantly
(typographic quotes and dashes, unusual spaces, white space at line ends, stand-ins of control
characters). A text that fits no place or several is refused, and so are edits that overlap.
Positions are characters; "view" positions belong to a normalised copy of the text.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.tools.diffs import line_changes
from pi_tui.tools.limits import cut_line
from pi_tui.tools.visible_text import CONTROL_PICTURES, plural, visible

_SPACES = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_CR = re.compile(r"\r(?=\n)")
_TRAILING = re.compile(rf"(?<![ \t\r{_SPACES}])[ \t\r{_SPACES}]++(?=\n|\Z)")
_GUTTER = re.compile(r" *\d+\t")
_COUNTED_PLACES = 1000
_NAMED_PLACES = 6

_LOOK_ALIKES: dict[int, str | int] = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-"),
    **dict.fromkeys([0xA0, 0x1680, 0x202F, 0x205F, 0x3000, *range(0x2000, 0x200B)], " "),
    **{code: picture for code, picture in CONTROL_PICTURES.items() if code != 0x0D},
    **dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd"),
}


class Edit(Struct, frozen=True):
    """Replace the one place that reads `old` by `new`."""

    old: str
    new: str


class Region(Struct, frozen=True):
    """The characters [start, end) of the text become `replacement`. `number` is the edit's."""

    number: int
    start: int
    end: int
    first_line: int
    last_line: int
    replacement: str
    exact: bool


class _View:
    """A text with some characters left out, and the way back to positions of the original."""

    def __init__(self, original: str, left_out: re.Pattern[str], look_alikes: bool) -> None:
        pieces: list[str] = []
        self._at: list[int] = []
        self._sum: list[int] = [0]
        taken = length = 0
        for match in left_out.finditer(original):
            pieces.append(original[taken : match.start()])
            length += match.start() - taken
            taken = match.end()
            self._at.append(length)
            self._sum.append(self._sum[-1] + match.end() - match.start())
        pieces.append(original[taken:])
        text = "".join(pieces)
        self.text = text.translate(_LOOK_ALIKES) if look_alikes else text

    def original(self, boundary: int) -> int:
        """The original position just after the character before a boundary of the view.

        What is left out (the CR of a line end, blanks before it) belongs to what follows.
        """
        if boundary == 0:
            return 0
        return boundary + self._sum[bisect_right(self._at, boundary - 1)]

    def line(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def _tolerant(text: str) -> str:
    return _TRAILING.sub("", _unix(text)).translate(_LOOK_ALIKES)


def _places(view: str, wanted: str) -> list[int]:
    """Where the text stands, overlapping places too, at most `_COUNTED_PLACES` of them."""
    found: list[int] = []
    position = view.find(wanted)
    while position >= 0 and len(found) < _COUNTED_PLACES:
        found.append(position)
        position = view.find(wanted, position + 1)
    return found


def plan_edits(text: str, edits: Sequence[Edit], name: str) -> list[Region]:
    """Find all edits in the text, in order of position.

    Raises ToolError, listing every edit that cannot be made, and then nothing must be written.
    """
    exact_view = _View(text, _CR, look_alikes=False)
    tolerant_view: _View | None = None
    regions: list[Region] = []
    problems: list[str] = []
    for number, edit in enumerate(edits, 1):
        label = f"Edit {number} of {len(edits)}" if len(edits) > 1 else "The edit"
        old = _unix(edit.old).removeprefix("\ufeff")
        new = _unix(edit.new).removeprefix("\ufeff")
        if not old:
            problems.append(
                f"{label}: oldText is empty. Give the text to be replaced; to make or fill a whole "
                "file use write."
            )
            continue
        view, exact = exact_view, True
        places = _places(view.text, old)
        if not places:
            tolerant_view = tolerant_view or _View(text, _TRAILING, look_alikes=True)
            view, exact = tolerant_view, False
            old, new, places = _find_tolerantly(view, old, new)
        if len(places) == 1:
            regions.append(_region(text, view, number, places[0], old, new, exact))
        elif places:
            problems.append(f"{label}: {_ambiguous(view, places, old, exact)}")
        else:
            problems.append(f"{label}: {_not_found(exact_view.text, old)}")
    regions.sort(key=lambda region: (region.start, region.end))
    for first, second in pairwise(regions):
        if second.start < first.end:
            problems.append(_overlap(first, second))
    if problems:
        raise ToolError(" ".join([*problems, f"{name} was not changed."]))
    return regions


def _overlap(first: Region, second: Region) -> str:
    a, b = sorted((first.number, second.number))
    if (first.start, first.end) == (second.start, second.end):
        return f"Edits {a} and {b} replace the same text ({_lines(first)}). Give one edit for it."
    return (
        f"Edits {a} and {b} overlap ({_lines(first)} and {_lines(second)}). "
        "Join them into one edit."
    )


def _lines(region: Region) -> str:
    if region.first_line == region.last_line:
        return f"line {region.first_line}"
    return f"lines {region.first_line}-{region.last_line}"


def apply_regions(text: str, regions: Sequence[Region]) -> str:
    """The text with all regions replaced; regions in order of position."""
    pieces: list[str] = []
    taken = 0
    for region in regions:
        pieces += (text[taken : region.start], region.replacement)
        taken = region.end
    return "".join([*pieces, text[taken:]])


def _find_tolerantly(view: _View, old: str, new: str) -> tuple[str, str, list[int]]:
    """Search without regard to look-alikes, then without a gutter of line numbers."""
    old, new = _without_blank_tail(old, new)
    wanted = _tolerant(old)
    places = _places(view.text, wanted) if wanted.strip() else []
    bare = _without_gutter(old)
    if not places and bare is not None:
        wanted = _tolerant(bare)
        places = _places(view.text, wanted) if wanted.strip() else []
        if places:
            bare_new = _without_gutter(new)
            return bare, new if bare_new is None else bare_new, places
    return old, new, places


def _without_blank_tail(old: str, new: str) -> tuple[str, str]:
    """Drop blanks at the end of both, as far as they are the same."""
    bare = old.rstrip(" \t")
    tail = old[len(bare) :]
    return (bare, new.removesuffix(tail)) if tail and new.endswith(tail) else (old, new)


def _without_gutter(text: str) -> str | None:
    """The text as `read` showed it, freed of line numbers; None when it has none."""
    lines = text.split("\n")
    last = lines.pop() if lines[-1] == "" and len(lines) > 1 else None
    bare: list[str] = []
    for line in lines:
        match = _GUTTER.match(line)
        if match is None:
            return None
        bare.append(line[match.end() :])
    return "\n".join(bare if last is None else [*bare, last])


def _region(
    text: str, view: _View, number: int, place: int, old: str, new: str, exact: bool
) -> Region:
    length = len(old) if exact else len(_tolerant(old))
    stop = place + length
    last_line = view.line(max(place, stop - 1))
    whole = (view.original(place), view.original(stop))
    newline = _newline(text, *whole)
    if exact:
        # Equal ends stay as they are on disk, so line ends there are kept whatever they are.
        head = _common_start(old, new)
        tail = _common_start(old[head:][::-1], new[head:][::-1])
        start, end = view.original(place + head), view.original(stop - tail)
        replacement = new[head : len(new) - tail].replace("\n", newline)
    else:
        start, end = whole
        replacement = _merge(text[start:end], old, new, newline)
    return Region(number, start, end, view.line(place), last_line, replacement, exact)


def _common_start(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[:middle] == b[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _newline(text: str, start: int, end: int) -> str:
    """The line end to write in a place: that of the place itself, else of its neighbours."""
    position = text.find("\n", start)
    if position < 0:
        position = text.rfind("\n", 0, start)
    return "\r\n" if position > 0 and text[position - 1] == "\r" else "\n"


def _merge(original: str, old: str, new: str, newline: str) -> str:
    """Make the change from `old` to `new` in the original, whose lines pair with those of `old`.

    Lines the edit does not change keep the bytes they have; changed ones are as `new` says.
    """
    old_lines, new_lines = old.split("\n"), new.split("\n")
    kept = original.split("\n")
    last = len(kept) - 1
    # A CR before the newline is the line end, not the line; the last piece has no newline.
    ends = [("\r\n" if line.endswith("\r") else "\n") for line in kept[:-1]] + [newline]
    kept = [line.removesuffix("\r") if i < last else line for i, line in enumerate(kept)]
    controls = any(ord(char) in CONTROL_PICTURES and char != "\r" for char in original)
    pieces: list[tuple[str, str]] = []
    position = 0
    for a, b, c, d in line_changes(old_lines, new_lines):
        pieces += zip(kept[position:a], ends[position:a], strict=True)
        for line in new_lines[c:d]:
            pieces.append((_with_controls(line, original) if controls else line, newline))
        position = b
    pieces += zip(kept[position:], ends[position:], strict=True)
    return "".join(
        line + (end if index < len(pieces) - 1 else "") for index, (line, end) in enumerate(pieces)
    )


def _with_controls(line: str, original: str) -> str:
    """Turn stand-ins back into the control characters the original has."""
    for code, picture in CONTROL_PICTURES.items():
        if picture in line and chr(code) in original and picture not in original:
            line = line.replace(picture, chr(code))
    return line


def _ambiguous(view: _View, places: list[int], old: str, exact: bool) -> str:
    length = len(old if exact else _tolerant(old).rstrip("\n")) or 1
    if exact and old.endswith("\n") and length > 1:
        length -= 1
    named: list[str] = []
    for place in places[:_NAMED_PLACES]:
        first, last = view.line(place), view.line(place + length - 1)
        column = place - (view.text.rfind("\n", 0, place) + 1) + 1
        named.append(f"{first}-{last}" if last > first else f"{first} (column {column})")
    count = f"more than {len(places) - 1}" if len(places) == _COUNTED_PLACES else str(len(places))
    how = "" if exact else " when quotes, dashes and blanks at line ends are taken loosely"
    more = "" if len(places) <= _NAMED_PLACES else ", …"
    return (
        f"oldText fits {count} places{how}: lines {', '.join(named)}{more}. "
        "Give more of the lines around the one you mean, so that it fits only there."
    )


def _not_found(view: str, old: str) -> str:
    lines = view.split("\n")
    near = _same_but_for_blanks(lines, old)
    if near:
        return (
            f"oldText was not found. Lines {near[0]}-{near[1]} differ from it only in white space; "
            "read them again and copy them as they are."
        )
    first = next((line.strip() for line in old.split("\n") if line.strip()), "")
    hint = ""
    number = _nearest_line(lines, first)
    if number:
        text = visible(cut_line(lines[number - 1].strip(), 120))
        hint = f" The line most like its first one is {number}: `{text}`."
    return (
        f"oldText ({plural(old.strip(chr(10)).count(chr(10)) + 1, 'line')}) was not found.{hint} "
        "Read that part of the file again and copy the text as it is now."
    )


def _same_but_for_blanks(lines: list[str], old: str) -> tuple[int, int] | None:
    """The first and last line of a place that reads the same when all blanks are taken as one."""
    wanted = [line for line in (" ".join(part.split()) for part in old.split("\n")) if line]
    if not wanted:
        return None
    given = [(n, s) for n, s in enumerate((" ".join(x.split()) for x in lines), 1) if s]
    texts = [text for _, text in given]
    size = len(wanted)
    for index, text in enumerate(texts[: len(texts) - size + 1]):
        if size == 1:
            fits = wanted[0] in text
        else:
            fits = (
                text.endswith(wanted[0])
                and texts[index + 1 : index + size - 1] == wanted[1:-1]
                and texts[index + size - 1].startswith(wanted[-1])
            )
        if fits:
            return given[index][0], given[index + size - 1][0]
    return None


def _nearest_line(lines: list[str], wanted: str) -> int | None:
    if not wanted:
        return None
    stripped = [line.strip() for line in lines[:5000]]
    for index, line in enumerate(stripped):
        if wanted in line:
            return index + 1
    candidates = [line for line in stripped if line and abs(len(line) - len(wanted)) < 60]
    near = difflib.get_close_matches(wanted[:200], [c[:200] for c in candidates], n=1, cutoff=0.6)
    if not near:
        return None
    return next(i for i, line in enumerate(stripped, 1) if line[:200] == near[0])
