"""The regular expressions of a search, as a tree: what may be written and what it means.

A subset of what Python knows: literals, `.`, classes, groups, `|`, `* + ? {m,n}` (also lazy), `^`
and `$` for the ends of a line, `\\b` and `\\B`, `\\d \\w \\s` and their opposites. Nothing that
needs backtracking is in it. Letter case never counts. Nothing here runs a pattern; see
`linear_pattern`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NoReturn, TypeAlias

from msgspec import Struct

from pi_tui.core.errors import UsageError

MAX_REPEAT = 200
MAX_DEPTH = 50

AssertKind: TypeAlias = Literal["line start", "line end", "word edge", "no word edge"]


class CharSet(Struct, frozen=True):
    """Characters that fit one place. `tests` decide about classes such as digits."""

    chars: frozenset[str] = frozenset()
    ranges: tuple[tuple[str, str], ...] = ()
    tests: tuple[Callable[[str], bool], ...] = ()
    negated: bool = False

    def has(self, char: str) -> bool:
        """True when the character fits, in either case."""
        return self._has(char) != self.negated

    def _has(self, char: str) -> bool:
        forms = {char, char.lower(), char.upper()}
        if not self.chars.isdisjoint(forms) or any(test(char) for test in self.tests):
            return True
        return any(low <= form <= high for low, high in self.ranges for form in forms)


class Sequence(Struct, frozen=True):
    parts: tuple[Node, ...]


class Alternatives(Struct, frozen=True):
    options: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """`most` None: without limit."""

    part: Node
    least: int
    most: int | None


class Assertion(Struct, frozen=True):
    kind: AssertKind


Node: TypeAlias = CharSet | Sequence | Alternatives | Repeat | Assertion


def is_word(char: str) -> bool:
    """True for what `\\w` means."""
    return char.isalnum() or char == "_"


_CLASSES: dict[str, CharSet] = {
    "d": CharSet(tests=(str.isdecimal,)),
    "D": CharSet(tests=(str.isdecimal,), negated=True),
    "w": CharSet(tests=(is_word,)),
    "W": CharSet(tests=(is_word,), negated=True),
    "s": CharSet(tests=(str.isspace,)),
    "S": CharSet(tests=(str.isspace,), negated=True),
}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_ANY = CharSet(chars=frozenset("\n"), negated=True)
_ASSERTIONS: dict[str, AssertKind] = {"b": "word edge", "B": "no word edge"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}


def parse_pattern(pattern: str) -> Node:
    """Parse a pattern. Raises UsageError, naming the place, when it cannot be used."""
    return _Parser(pattern).parse()


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def parse(self) -> Node:
        node = self._alternatives()
        if self._at < len(self._pattern):
            self._fail("there is a ) without a (")
        return node

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        place = (self._at if at is None else at) + 1
        raise UsageError(
            f"the pattern {self._pattern!r} cannot be used: {problem} (character {place})"
        )

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _alternatives(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._fail("its groups are nested too deeply")
        options = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence())
        self._depth -= 1
        return options[0] if len(options) == 1 else Alternatives(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while (char := self._peek()) and char not in "|)":
            parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, node: Node) -> Node:
        start = self._at
        bounds = self._bounds()
        if bounds is None:
            return node
        if self._peek() == "?":
            self._at += 1  # lazy: the same texts fit
        elif self._peek() == "+":
            self._fail("possessive repeats are not possible here")
        if self._bounds() is not None:
            self._fail("a repeat is repeated", start)
        least, most = bounds
        if max(least, most or 0) > MAX_REPEAT:
            self._fail(f"a repeat may count to {MAX_REPEAT} at most", start)
        if most is not None and most < least:
            self._fail("the smaller number of a repeat comes first", start)
        return Repeat(node, least, most)

    def _bounds(self) -> tuple[int, int | None] | None:
        char = self._peek()
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if char in simple:
            self._at += 1
            return simple[char]
        if char != "{":
            return None
        inside, closed, _ = self._pattern[self._at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not _is_number(low or "0") or not _is_number(high or "0"):
            return None  # an ordinary brace
        if not low and not high:
            return None
        self._at += len(inside) + 2
        most = int(high) if high else (None if comma else int(low))
        return int(low or 0), most

    def _atom(self) -> Node:
        start = self._at
        char = self._next()
        if char == "(":
            return self._group(start)
        if char == "[":
            return self._class(start)
        if char == "\\":
            return self._escape(in_class=False)
        if char in "*+?":
            self._fail("there is nothing to repeat here", start)
        if char == ".":
            return _ANY
        if char == "^":
            return Assertion("line start")
        if char == "$":
            return Assertion("line end")
        return CharSet(chars=frozenset(char))

    def _group(self, start: int) -> Node:
        if self._peek() == "?":
            if self._pattern.startswith("?:", self._at) or self._pattern.startswith(
                "?i:", self._at
            ):
                self._at = self._pattern.index(":", self._at) + 1
            elif self._pattern.startswith("?i)", self._at):
                self._at += 3  # letter case never counts
                return Sequence(())
            elif self._pattern.startswith("?P<", self._at):
                end = self._pattern.find(">", self._at)
                if end < 0 or self._pattern.startswith("?P=", self._at):
                    self._fail("the name of a group does not end", start)
                self._at = end + 1
            else:
                self._fail("groups that look ahead or behind are not possible here", start)
        node = self._alternatives()
        if self._next() != ")":
            self._fail("a ( is not closed", start)
        return node

    def _escape(self, *, in_class: bool) -> Node:
        start = self._at - 1
        char = self._next()
        if not char:
            self._fail("it ends with a backslash", start)
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _ASSERTIONS and not in_class:
            return Assertion(_ASSERTIONS[char])
        if char in _CONTROLS:
            return CharSet(chars=frozenset(_CONTROLS[char]))
        if char in _HEX_DIGITS:
            digits = self._pattern[self._at : self._at + _HEX_DIGITS[char]]
            self._at += len(digits)
            try:
                return CharSet(chars=frozenset(chr(int(digits, 16))))
            except (ValueError, OverflowError):
                self._fail("the number of a character is wrong", start)
        if char.isdecimal():
            self._fail("references to groups are not possible here", start)
        if char.isalnum() and not (in_class and char == "b"):
            self._fail(f"\\{char} means nothing", start)
        return CharSet(chars=frozenset("\b" if char == "b" else char))

    def _class(self, start: int) -> Node:
        negated = self._peek() == "^"
        self._at += negated
        chars: set[str] = set()
        ranges: list[tuple[str, str]] = []
        tests: list[Callable[[str], bool]] = []
        first = True
        while first or self._peek() != "]":
            first = False
            low = self._class_member(start)
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._class_member(start)
                ranges.append(self._range(low, high))
            elif low.tests:
                tests.append(low.has)
            else:
                chars |= low.chars
        self._at += 1
        return CharSet(frozenset(chars), tuple(ranges), tuple(tests), negated)

    def _class_member(self, start: int) -> CharSet:
        char = self._next()
        if not char:
            self._fail("a [ is not closed", start)
        if char != "\\":
            return CharSet(chars=frozenset(char))
        node = self._escape(in_class=True)
        assert isinstance(node, CharSet)
        return node

    def _range(self, low: CharSet, high: CharSet) -> tuple[str, str]:
        if low.tests or high.tests:
            self._fail("a range goes from one character to another")
        (first,), (last,) = low.chars, high.chars
        if first > last:
            self._fail(f"the range {first}-{last} is upside down")
        return first, last


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 4
