"""Reads a session file line by line for the doctor, keeping whatever was odd on the way.

Stricter than opening, which tolerates and goes on. Line numbers count from 1; sizes are bytes.
"""

from __future__ import annotations

from msgspec import Struct, field

from pi_tui.core.messages import JSON
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.index import BYTE_ORDER_MARK, Header, blocks, find_header
from pi_tui.storage.lines import decode_line, is_blank, pieces_of


class StoredLine(Struct):
    """An entry as it stands in the file; `raw` are its bytes without a line end."""

    number: int
    raw: bytes
    data: dict[str, JSON]

    @property
    def id(self) -> str:
        """The id; "" when there is none."""
        entry_id = self.data.get("id")
        return entry_id if isinstance(entry_id, str) else ""

    @property
    def parent(self) -> str | None:
        parent = self.data.get("parentId")
        return parent if isinstance(parent, str) else None

    @property
    def message(self) -> dict[str, JSON]:
        """The message of a message entry; empty for any other."""
        message = self.data.get("message")
        if self.data.get("type") == "message" and isinstance(message, dict):
            return message
        return {}


class SeenFile(Struct):
    """Everything that was read, and what was odd while reading."""

    header: Header | None
    lines: list[StoredLine] = field(default_factory=list)
    odd: dict[str, list[int]] = field(default_factory=dict)
    size_bytes: int = 0

    def note(self, code: str, number: int) -> None:
        self.odd.setdefault(code, []).append(number)


def read_file(fs: FileSystem, fd: int) -> SeenFile:
    """Read an open file to its end. Raises OSError."""
    seen = SeenFile(find_header(fs, fd))
    offset = 0
    if seen.header is None:
        seen.note("header-missing", 1)
    else:
        offset = seen.header.end
        if seen.header.garbage_before:
            seen.note("before-header", 1)
        if not is_utf8(seen.header.line):
            seen.note("not-utf8", seen.header.lines_before + 1)
        if fs.read_at(fd, len(BYTE_ORDER_MARK), 0) == BYTE_ORDER_MARK:
            seen.note("byte-order-mark", 1)
    number = seen.header.lines_before + 1 if seen.header is not None else 0
    for start, lines, is_last in blocks(fs, fd, offset):
        for line in lines:
            number += 1
            _take(seen, number, line, unfinished=is_last and bool(line))
        if is_last:
            seen.size_bytes = start + len(lines[0])
    return seen


def _take(seen: SeenFile, number: int, line: bytes, *, unfinished: bool) -> None:
    """Take one line in."""
    if is_blank(line):
        return
    value = _value(line)
    if value is not _NOT_JSON:
        if unfinished:
            seen.note("no-line-end", number)
        _take_value(seen, number, line.strip(b" \t\r"), value)
        return
    pieces = [(piece, _value(piece)) for _, piece in pieces_of(line)]
    if not pieces:
        seen.note("zero-block", number)
        return
    if any(isinstance(value, dict) for _, value in pieces):
        seen.note("glued", number)
    for piece, value in pieces:
        if value is _NOT_JSON:
            seen.note("torn" if unfinished else "garbage", number)
        else:
            _take_value(seen, number, piece, value)


def _take_value(seen: SeenFile, number: int, raw: bytes, value: JSON) -> None:
    if not isinstance(value, dict):
        if value:
            seen.note("not-an-entry", number)
    elif value.get("type") == "session":
        seen.note("second-header", number)
    else:
        if not is_utf8(raw):
            seen.note("not-utf8", number)
        seen.lines.append(StoredLine(number, raw, value))


def is_utf8(line: bytes) -> bool:
    """True when reading a line replaces nothing of it."""
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


_NOT_JSON = object()


def _value(line: bytes) -> JSON:
    try:
        return decode_line(line)
    except ValueError:
        return _NOT_JSON
