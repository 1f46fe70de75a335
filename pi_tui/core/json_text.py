"""JSON text that others wrote, where half of a surrogate pair may stand in a string.

Such a half is legal JSON (`"\\ud83d"`) and no character: the fast decoder refuses it, with words
that hide the cause, and nothing can be encoded that holds one. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import msgspec

from pi_tui.core.messages import JSON

_HALF = re.compile("[\ud800-\udfff]")
_WRITTEN_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def decode_json(text: str, *, keep_halves: bool = False) -> JSON:
    """Decode one JSON value. Raises ValueError for anything else, also for absurd depth.

    Lone halves become U+FFFD; with `keep_halves` they stay, so that the next piece of the same text
    may bring the other one.
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeEncodeError):
        if not _WRITTEN_HALF.search(text) and not _HALF.search(text):
            raise
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
        return value if keep_halves else mended(value)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def encode_json(value: JSON) -> bytes:
    """JSON bytes in UTF-8. Halves of surrogate pairs, which no server takes, become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return mended_text(json.dumps(value, ensure_ascii=False)).encode()


def mended(value: JSON) -> JSON:
    """The same value with pairs of surrogates joined and lone ones replaced, keys included.

    Of any depth: a value that was just decoded may be too deep for a recursive walk.
    """
    top: list[JSON] = [None]
    todo: list[tuple[JSON, JSON, JSON]] = [(top, 0, value)]
    while todo:
        place, key, item = todo.pop()
        if isinstance(item, str):
            place[key] = mended_text(item)
        elif isinstance(item, Mapping):
            names = [(_mended_key(name), below) for name, below in item.items()]
            place[key] = fresh = dict.fromkeys(name for name, _ in names)
            todo.extend((fresh, name, below) for name, below in names)
        elif isinstance(item, list | tuple):
            place[key] = several = [None] * len(item)
            todo.extend((several, number, below) for number, below in enumerate(item))
        else:
            place[key] = item
    return top[0]


def _mended_key(name: JSON) -> JSON:
    return mended_text(name) if isinstance(name, str) else name


def mended_text(text: str) -> str:
    """The same text with pairs of surrogates joined and lone ones replaced by U+FFFD."""
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _refuse_constant(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")
