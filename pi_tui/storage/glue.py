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
_OBJECT = re.compile(r"\{(?=[ \t\r\n]*[\"}])")
_INSIDE = frozenset("[,:")
"""What stands before an object that is a part of another value."""

_EFFORT = 16
"""How many times its length may be read of a line; one of fragments alone needs no more."""
_ATTEMPT_CHARS = 16
_LOCATING_CHARS = 64
"""The reader counts the line ends before a fault, about this many in the time it reads one."""


def cuts_of(text: str) -> list[int]:
    """Where whole objects and lists begin and end in a line, in ascending order.

    After something else an object is looked for at each `{` that does not stand inside another
    value: not after `[`, `,` or `:`, or just where the value before ceased to be JSON.
    """
    return _Search(text).cuts()


class _Search:
    def __init__(self, text: str) -> None:
        self._text = text
        self._scan = JSONDecoder(parse_int=number, parse_constant=_refuse).raw_decode
        self._left = _EFFORT * len(text) + 10_000
        self._ceased = -1
        """Where the value that was tried last ceased to be JSON."""

    def cuts(self) -> list[int]:
        text, cuts = self._text, []
        at = 0
        while at < len(text):
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
            if start == self._ceased or not self._is_inside(start):
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
        reached = start
        try:
            return self._scan(self._text, start)[1]
        except JSONDecodeError as error:
            reached = error.pos
        except RecursionError:
            try:
                return end_of_value(self._text, start)
            except ValueError:
                reached = len(self._text)
        except ValueError:  # a constant that is not JSON
            reached = start
        self._ceased = reached
        self._left -= reached - start + reached // _LOCATING_CHARS + _ATTEMPT_CHARS
        return None


def _refuse(constant: str) -> JSON:
    raise ValueError(f"{constant} is not JSON")
