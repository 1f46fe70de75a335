"""Finds whole JSON values in a line that is none: where entries are glued to others or to rests.

Values are read, not guessed by how they begin, so blanks and the order of fields do not matter.
Time follows the length of the line, whatever stands in it. Nothing here knows what an entry is.
"""

from __future__ import annotations

import re
from json import JSONDecodeError, JSONDecoder

from pi_tui.core.messages import JSON
from pi_tui.storage.nesting import end_of_value, number

_BLANK = " \t\r\n\0"
_FILLING = re.compile(rf"[{_BLANK}]*")
_OBJECT = re.compile(r"\{[ \t\r\n]*+[\"}]")
_INSIDE = frozenset("[,:")
"""What stands before an object that is a part of another value."""

_EFFORT = 16
"""How many times its length may be read of a line; one of fragments alone needs no more."""
_ATTEMPT_CHARS = 16
_COPYING_CHARS = 16
"""About so many characters are copied in the time one is read."""
_FIRST_CHARS = 4096
_LONGEST_WORD_CHARS = 10


def cuts_of(text: str) -> list[int]:
    """Where whole objects and lists begin and end in a line, in ascending order.

    After something else an object is looked for at each `{` that does not stand inside another
    value: not after `[`, `,` or `:`, or just where what stood before ceased to be JSON.
    """
    return _Search(text).cuts()


class _Search:
    def __init__(self, text: str) -> None:
        self._text = text
        self._scan = JSONDecoder(parse_int=number, parse_constant=_refuse).raw_decode
        self._left = _EFFORT * len(text) + 10_000
        self._ceased: set[int] = set()
        """Where values that were tried ceased to be JSON."""

    def cuts(self) -> list[int]:
        text, cuts = self._text, []
        at = 0
        while at < len(text) and self._left >= 0:
            filling = _FILLING.match(text, at)
            at = filling.end() if filling else at
            start, end = at, (self._end(at) if text[at : at + 1] in ("{", "[") else None)
            if end is None:
                start, end = self._next(at)
            if end is None:
                break
            cuts += [start, end]
            at = end
        return cuts

    def _next(self, at: int) -> tuple[int, int | None]:
        """The next whole object after something that is none."""
        for found in _OBJECT.finditer(self._text, at + 1):
            start = found.start()
            # A fragment that ends inside a string takes the first quote for the end of that.
            is_fault = start in self._ceased or found.end() in self._ceased
            if is_fault or not self._is_inside(start):
                end = self._end(start)
                if end is not None or self._left < 0:
                    return start, end
        return at, None

    def _is_inside(self, start: int) -> bool:
        before = start - 1
        while before >= 0 and self._text[before] in _BLANK:
            before -= 1
        return before >= 0 and self._text[before] in _INSIDE

    def _end(self, start: int) -> int | None:
        """Where the value ends that begins at a place; None when it is none.

        It is read from a part of the line, which grows as long as it may be too short: the reader
        counts line ends from the beginning of its text to each fault.
        """
        width = _FIRST_CHARS
        while True:
            part = self._text[start : start + width]
            try:
                return start + self._scan(part, 0)[1]
            except JSONDecodeError as error:
                reached = error.pos
            except RecursionError:
                return self._deep_end(start)
            except ValueError:  # a constant that is not JSON
                reached = 0
            self._left -= reached + len(part) // _COPYING_CHARS + _ATTEMPT_CHARS
            # A text without an end is told at its quote, a number or a word at its beginning.
            certain = reached < len(part) - _LONGEST_WORD_CHARS and part[reached] != '"'
            if certain or start + width >= len(self._text) or self._left < 0:
                self._ceased.add(start + reached)
                return None
            width *= 8

    def _deep_end(self, start: int) -> int | None:
        try:
            return end_of_value(self._text, start)
        except ValueError:
            self._left -= 4 * (len(self._text) - start)
            return None


def _refuse(constant: str) -> JSON:
    raise ValueError(f"{constant} is not JSON")
