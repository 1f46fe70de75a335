"""Changes single fields of a stored line and leaves every other byte as it is.

Decoding and encoding a line anew would lose what no value holds: how a number is written, fields
that stand twice, halves of surrogate pairs, blanks. Lines are JSON objects that were decoded
before, so nothing is checked here, and of any depth. Offsets are bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from pi_tui.core.json_text import encode_json
from pi_tui.core.messages import JSON
from pi_tui.storage.lines import decode_line

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]', re.DOTALL)
_OPENING = frozenset(b"{[")
_CLOSING = frozenset(b"}]")
_BLANKS = b" \t\r\n"


class _Field(Struct, gc=False):
    """A field of the object itself: its name as it is written, and where its value stands."""

    name: bytes
    start: int
    end: int


def with_fields(line: bytes, changed: Mapping[str, JSON]) -> bytes:
    """The same line with other values for some fields; those it lacks are added at its end.

    Of a field that stands twice the last one is changed, which is the one that counts.
    """
    if not changed:
        return line
    fields = list(_fields(line))
    last = {decode_line(field.name): field for field in fields}
    edits: list[tuple[int, int, bytes]] = []
    added = b""
    for name, value in changed.items():
        encoded = encode_json(value)
        field = last.get(name)
        if field is not None:
            edits.append((field.start, field.end, encoded))
        else:
            added += b"," + encode_json(name) + b":" + encoded
    if added:
        end = line.rindex(b"}")
        edits.append((end, end, added if fields else added[1:]))
    parts: list[bytes] = []
    at = 0
    for start, end, put in sorted(edits):
        parts += (line[at:start], put)
        at = end
    return b"".join((*parts, line[at:]))


def _fields(line: bytes) -> Iterator[_Field]:
    depth = 0
    name = b""
    value_start = -1
    for token in _TOKEN.finditer(line):
        first = line[token.start()]
        if first in _OPENING:
            depth += 1
        elif first in _CLOSING or first == b","[0]:
            if depth == 1 and value_start >= 0:
                yield _field(line, name, value_start, token.start())
                value_start = -1
            depth -= first in _CLOSING
        elif depth == 1 and value_start < 0:
            if first == b":"[0]:
                value_start = token.end()
            else:
                name = token.group()


def _field(line: bytes, name: bytes, start: int, end: int) -> _Field:
    value = line[start:end]
    return _Field(
        name,
        start + len(value) - len(value.lstrip(_BLANKS)),
        end - (len(value) - len(value.rstrip(_BLANKS))),
    )
