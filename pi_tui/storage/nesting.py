"""Reads JSON text of any depth without recursion.

The ordinary decoders give up at a depth that depends on the stack of the caller, and a value they
just manage breaks whoever walks it next. Here what lies deeper than a limit stays text: the JSON
of that part as one string. Nothing here knows what an entry is.
"""

from __future__ import annotations

import re
from json import JSONDecoder
from typing import TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from pi_tui.core.messages import JSON

MAX_DEPTH = 128
"""Levels of nesting that are kept as values."""

_TOKEN = re.compile(
    r"[ \t\n\r]*(?:(?P<mark>[\[\]{},:])|(?P<quote>\")"
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<word>true|false|null))"
)
_WORDS: dict[str, JSON] = {"true": True, "false": False, "null": None}
_read_string = JSONDecoder().raw_decode
_Container: TypeAlias = "list[JSON] | dict[str, JSON]"


def is_deep(value: JSON) -> bool:
    """True when something lies deeper than the limit."""
    level: list[JSON] = [value]
    for _ in range(MAX_DEPTH + 1):
        below: list[JSON] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(v for v in item.values() if isinstance(v, (dict, list)))
            elif isinstance(item, list):
                below.extend(v for v in item if isinstance(v, (dict, list)))
        if not below:
            return False
        level = below
    return True


def number(text: str) -> int | float:
    """A JSON number; integers too long to be meant become floats."""
    if len(text) < 300 and text.lstrip("-").isdigit():
        return int(text)
    return float(text)


def decode_capped(text: str) -> JSON:
    """Decode one JSON value; parts below the depth limit become their own text.

    Raises ValueError when the text is not exactly one JSON value.
    """
    reader = _Reader(text)
    value = reader.read()
    if text[reader.position :].strip(" \t\n\r"):
        raise ValueError("something follows the value")
    return value


def end_of_value(text: str, start: int) -> int:
    """Where the JSON value ends that begins at a place. Raises ValueError when none does."""
    reader = _Reader(text, start)
    reader.read()
    return reader.position


_Value = TypeVar("_Value")


def pruned(value: _Value) -> _Value:
    """The same entry, with a remark in place of what lies too deep to be encoded."""
    return cast(_Value, _pruned(value, 0))


def _pruned(value: JSON, depth: int) -> JSON:
    if isinstance(value, Struct):
        fields = {
            name: _pruned(getattr(value, name), depth + 1) for name in value.__struct_fields__
        }
        return replace(value, **fields)
    if not isinstance(value, (dict, list, tuple)):
        return value
    if depth > MAX_DEPTH:
        return "[nested too deeply to be stored]"
    if isinstance(value, dict):
        return {key: _pruned(item, depth + 1) for key, item in value.items()}
    return type(value)(_pruned(item, depth + 1) for item in value)


class _Reader:
    """A pushdown automaton: open containers on a list, one token at a time."""

    def __init__(self, text: str, position: int = 0) -> None:
        self._text = text
        self._open: list[tuple[_Container, str, int]] = []  # container, pending key, start
        self.position = position

    def read(self) -> JSON:
        expects = "value"  # value | value-or-end | key | key-or-end | colon | comma
        result: JSON = None
        while True:
            kind, token, start = self._next()
            if kind == "mark" and token in "]}":
                if expects not in ("value-or-end", "key-or-end", "comma"):
                    raise ValueError("unexpected end of a container")
                result = self._close(token, expects)
            elif expects in ("key", "key-or-end"):
                self._key(kind)
                expects = "colon"
                continue
            elif expects == "colon":
                if token != ":":
                    raise ValueError("a colon is missing")
                expects = "value"
                continue
            elif expects == "comma":
                if token != ",":
                    raise ValueError("a comma is missing")
                expects = "key" if isinstance(self._open[-1][0], dict) else "value"
                continue
            elif kind == "mark":
                if token not in "[{":
                    raise ValueError("a value is missing")
                fresh: _Container = {} if token == "{" else []
                self._open.append((fresh, "", start))
                expects = "key-or-end" if token == "{" else "value-or-end"
                continue
            else:
                result = self._scalar(kind, token)
            if not self._open:
                break
            self._put(result)
            expects = "comma"
        return result

    def _next(self) -> tuple[str, str, int]:
        found = _TOKEN.match(self._text, self.position)
        if found is None or found.lastgroup is None:
            raise ValueError("not JSON")
        self.position = found.end()
        return found.lastgroup, found[found.lastgroup], found.start(found.lastgroup)

    def _key(self, kind: str) -> None:
        if kind != "quote":
            raise ValueError("a key is missing")
        key, self.position = _read_string(self._text, self.position - 1)
        container, _, start = self._open[-1]
        self._open[-1] = (container, key, start)

    def _scalar(self, kind: str, token: str) -> JSON:
        if kind == "quote":
            text, self.position = _read_string(self._text, self.position - 1)
            return text
        return number(token) if kind == "number" else _WORDS[token]

    def _close(self, token: str, expects: str) -> JSON:
        if not self._open:
            raise ValueError("unexpected end of a container")
        container, _, start = self._open.pop()
        if (token == "}") != isinstance(container, dict):
            raise ValueError("brackets do not match")
        if expects == "value-or-end" and token == "}":
            raise ValueError("brackets do not match")
        too_deep = len(self._open) >= MAX_DEPTH
        return self._text[start : self.position] if too_deep else container

    def _put(self, value: JSON) -> None:
        if len(self._open) > MAX_DEPTH:
            return  # the container becomes text; what is in it need not be kept
        container, key, _ = self._open[-1]
        if isinstance(container, dict):
            container[key] = value
        else:
            container.append(value)
