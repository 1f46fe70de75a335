"""Which paths git would ignore, and the globs of `find` and `grep`. Pure but for `load_rules`.

Paths are relative, with `/` between their names. Matching goes name by name; stars are matched
without backtracking into earlier ones, so a hostile pattern costs no more than an honest one.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

_MAX_RULES_BYTES = 1024 * 1024
_MAX_BRACES = 256
_CLASSES = {
    "alpha": "A-Za-z",
    "digit": "0-9",
    "alnum": "A-Za-z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": r"\s",
    "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "word": r"\w",
}

_Test = Callable[[str], bool]


class _BadPatternError(ValueError):
    """A pattern that can match nothing."""


class Glob:
    """One pattern. Without a slash it means a name at any depth, with one a path from the root."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self.directories_only = pattern.endswith("/") and not pattern.endswith("\\/")
        pattern = pattern.rstrip("/") if self.directories_only else pattern
        self._name_only = "/" not in pattern
        self._parts: list[_Test | None] = []
        self.valid = True
        try:
            for part in pattern.removeprefix("/").split("/"):
                if part != "**":
                    self._parts.append(_name_test(part, ignore_case))
                elif not self._parts or self._parts[-1] is not None:
                    self._parts.append(None)
        except (_BadPatternError, re.error):
            self.valid = False

    def matches(self, path: str) -> bool:
        """Whether the path (not its parents) fits."""
        if not self.valid:
            return False
        if self._name_only:
            test = self._parts[0]
            return test is None or test(path.rpartition("/")[2])
        return self._fits(path.split("/"))

    def _fits(self, names: list[str]) -> bool:
        parts = self._parts
        at = name = 0
        star_at = star_name = -1
        while name < len(names):
            if at < len(parts) and parts[at] is None:
                if at == len(parts) - 1:
                    return True  # a last ** means anything below
                star_at, star_name = at, name
                at += 1
            elif at < len(parts) and (test := parts[at]) is not None and test(names[name]):
                at += 1
                name += 1
            elif star_at >= 0:
                star_name += 1
                at, name = star_at + 1, star_name
            else:
                return False
        return at == len(parts)


def _name_test(pattern: str, ignore_case: bool) -> _Test:
    if not ignore_case:
        if not re.search(r"[*?\[\\]", pattern):
            return pattern.__eq__
        if pattern[0] == "*" and not re.search(r"[*?\[\\]", pattern[1:]):
            end = pattern[1:]
            return lambda name: name.endswith(end)
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    expression = re.compile(_name_expression(pattern), flags)
    return lambda name: expression.fullmatch(name) is not None


def _name_expression(pattern: str) -> str:
    """A regular expression for one name, each star but the last atomic."""
    pieces = [""]
    position = 0
    while position < len(pattern):
        char = pattern[position]
        position += 1
        if char == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif char == "?":
            pieces[-1] += "."
        elif char == "[":
            text, position = _character_class(pattern, position)
            pieces[-1] += text
        elif char == "\\":
            if position == len(pattern):
                raise _BadPatternError(pattern)
            pieces[-1] += re.escape(pattern[position])
            position += 1
        else:
            pieces[-1] += re.escape(char)
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1])
    return f"{pieces[0]}{middle}.*{pieces[-1]}"


def _character_class(pattern: str, position: int) -> tuple[str, int]:
    """Translate `[...]`, the position being just after its bracket."""
    negated = pattern[position : position + 1] in ("!", "^")
    position += negated
    inner = ""
    first = True
    while True:
        char = pattern[position : position + 1]
        if not char:
            raise _BadPatternError(pattern)
        if char == "]" and not first:
            break
        named = re.compile(r"\[:([a-z]+):\]").match(pattern, position)
        if named:
            if named.group(1) not in _CLASSES:
                raise _BadPatternError(pattern)
            inner += _CLASSES[named.group(1)]
            position = named.end()
        elif char == "\\" and position + 1 < len(pattern):
            inner += re.escape(pattern[position + 1])
            position += 2
        elif char == "-" and not first and pattern[position + 1 : position + 2] not in ("]", ""):
            inner += "-"
            position += 1
        else:
            inner += re.escape(char)
            position += 1
        first = False
    return f"[{'^' if negated else ''}{inner}]", position + 1


def expand_braces(pattern: str) -> list[str]:
    """`*.{ts,tsx}` as two patterns; braces without a comma stay as they are."""
    done: list[str] = []
    waiting = [pattern]
    while waiting and len(done) + len(waiting) <= _MAX_BRACES:
        current = waiting.pop()
        match = re.search(r"\{([^{}]*,[^{}]*)\}", current)
        if match is None:
            done.append(current)
            continue
        waiting += [
            current[: match.start()] + choice + current[match.end() :]
            for choice in reversed(match.group(1).split(","))
        ]
    return done + waiting


VALID_GLOB = (
    "a glob with every [ closed by a ] and no backslash at its end "
    "(put a backslash before a bracket that is meant itself)"
)
BRACKETS_NOTE = (
    "A [ in a glob begins a choice of characters; put a backslash before one that is meant itself."
)


class GlobSet:
    """Patterns of an argument, braces expanded; a path fits when one of them does."""

    def __init__(self, pattern: str) -> None:
        pattern = pattern.removeprefix("./")
        self._globs = [Glob(choice) for choice in expand_braces(pattern)]

    @property
    def valid(self) -> bool:
        """False when no path can fit."""
        return any(glob.valid for glob in self._globs)

    def matches(self, path: str, is_directory: bool) -> bool:
        return any(
            (is_directory or not glob.directories_only) and glob.matches(path)
            for glob in self._globs
        )


class IgnoreRules:
    """The rules of one ignore file; paths are relative to the directory it stands in."""

    def __init__(self, text: str) -> None:
        self._rules: list[tuple[Glob, bool]] = []
        for line in text.removeprefix("\ufeff").split("\n"):
            pattern = _without_trailing_blanks(line.removesuffix("\r"))
            if not pattern or pattern.startswith("#"):
                continue
            negated = pattern.startswith("!")
            glob = Glob(pattern[negated:])
            if glob.valid and pattern[negated:].strip("/"):
                self._rules.append((glob, negated))

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, path: str, is_directory: bool) -> bool | None:
        """True: ignored, False: kept on purpose, None: nothing said. The last fitting rule wins."""
        for glob, negated in reversed(self._rules):
            if (is_directory or not glob.directories_only) and glob.matches(path):
                return not negated
        return None


def _without_trailing_blanks(line: str) -> str:
    bare = line.rstrip(" ")
    if bare != line and (len(bare) - len(bare.rstrip("\\"))) % 2:
        return bare + " "
    return bare


def load_rules(file: Path) -> IgnoreRules | None:
    """Read an ignore file; None when there is none or it cannot be read."""
    try:
        # A foreign project may hold a named pipe of that name; waiting for it would take for ever.
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as opened:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            rules = IgnoreRules(opened.read(_MAX_RULES_BYTES).decode("utf-8", "replace"))
    except OSError:
        return None
    return rules or None


class IgnoreStack:
    """Rules from the top of a repository down to a directory, deeper ones first.

    `layers` are pairs of a directory and its rules, outer first; directories are relative to the
    top, empty for the top itself.
    """

    def __init__(self, layers: Iterable[tuple[str, IgnoreRules]] = ()) -> None:
        self._layers = list(layers)

    def with_layer(self, directory: str, rules: IgnoreRules | None) -> IgnoreStack:
        """The stack for a directory that has rules of its own."""
        return self if rules is None else IgnoreStack([*self._layers, (directory, rules)])

    def ignores(self, path: str, is_directory: bool) -> bool:
        """Whether the path, relative to the top, is ignored; its parents are not asked."""
        for directory, rules in reversed(self._layers):
            inside = path[len(directory) + 1 :] if directory else path
            decision = rules.decide(inside, is_directory)
            if decision is not None:
                return decision
        return False
