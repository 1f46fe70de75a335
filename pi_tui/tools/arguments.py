"""Reads the arguments of a call: tolerant of harmless mistakes, exact in what it complains about.

Accepted without complaint: other usual names of an argument, numbers written as strings, whole
floats, flags as words, null for "not given", arguments nobody asked for. Everything else is a
ToolError that names the argument, what was expected and what came.
"""

from __future__ import annotations

import math
import re

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import JSON
from pi_tui.tools.visible_text import visible_line

PATH_NAMES = ("path", "file_path", "filePath", "filepath", "file", "filename")

_SURROGATE = re.compile("[\ud800-\udfff]")
_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}


def describe(value: JSON) -> str:
    """Say what a wrong value is, shortly."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the flag {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        if not value:
            return "an empty string"
        shown = visible_line(value[:60]) + ("…" if len(value) > 60 else "")
        return f'the string "{shown}"'
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    return "an object"


class Arguments:
    """The arguments of one call of one tool."""

    def __init__(self, tool: str, values: dict[str, JSON]) -> None:
        if not isinstance(values, dict):
            raise ToolError(f"{tool}: the arguments must be one object, got {describe(values)}.")
        self._tool = tool
        self._values = values

    def find(self, *names: str) -> JSON:
        """The first value that is given under one of the names, else None."""
        for name in names:
            if self._values.get(name) is not None:
                return self._values[name]
        return None

    def wrong(self, name: str, expected: str, value: JSON) -> ToolError:
        """The error for a value of the wrong kind."""
        return ToolError(f'{self._tool}: "{name}" must be {expected}, got {describe(value)}.')

    def missing(self, name: str, expected: str) -> ToolError:
        """The error for an argument that was not given."""
        names = [key for key, value in self._values.items() if value is not None]
        given = ", ".join(visible_line(str(key)[:40]) for key in names[:12]) or "none"
        return ToolError(
            f'{self._tool}: the argument "{name}" is missing; expected {expected}. '
            f"Arguments given: {given}."
        )

    def text(self, *names: str, expected: str, empty: bool = True) -> str:
        """A string that must be given. `empty` False refuses a blank one."""
        value = self.optional_text(*names, expected=expected)
        if value is None:
            raise self.missing(names[0], expected)
        if not empty and not value.strip():
            raise ToolError(f'{self._tool}: "{names[0]}" is empty; expected {expected}.')
        return value

    def optional_text(self, *names: str, expected: str = "a string") -> str | None:
        """A string, or None when it is not given."""
        value = self.find(*names)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.wrong(names[0], expected, value)
        if _SURROGATE.search(value):
            raise ToolError(
                f'{self._tool}: "{names[0]}" holds half of a surrogate pair, which is no character.'
            )
        return value

    def path(self, *, required: bool = True) -> str | None:
        """The path, under any of its usual names."""
        expected = "a string, the path of a file or directory"
        if required:
            return self.text(*PATH_NAMES, expected=expected, empty=False)
        value = self.optional_text("path", "directory", "dir", *PATH_NAMES[1:], expected=expected)
        return value if value is None or value.strip() else None

    def number(self, *names: str, expected: str) -> float | None:
        """A finite number above 0, or None when it is not given."""
        value = self.find(*names)
        if value is None:
            return None
        number = _as_number(value)
        if number is None or not math.isfinite(number) or number <= 0:
            raise self.wrong(names[0], expected, value)
        return number

    def whole_number(self, *names: str, least: int = 1) -> int | None:
        """A whole number of at least `least`, or None when it is not given."""
        value = self.find(*names)
        if value is None:
            return None
        number = _as_number(value)
        if number is None or number != number // 1 or number < least or number >= 2**53:
            raise self.wrong(names[0], f"a whole number of at least {least}", value)
        return int(number)

    def flag(self, *names: str) -> bool:
        """True or false; false when it is not given."""
        value = self.find(*names)
        if value is None:
            return False
        if isinstance(value, str):
            value = _FLAGS.get(value.strip().lower(), value)
        if isinstance(value, (bool, int)) and value in (0, 1):
            return bool(value)
        raise self.wrong(names[0], "true or false", value)


def _as_number(value: JSON) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return float(value) if abs(value) < 2**63 else None
    if isinstance(value, float):
        return value
    if isinstance(value, str):
        try:
            return float(value.strip())
        except ValueError:
            return None
    return None
