"""Reads a session file into an index: what the tree needs of each entry, and where its line lies.

The file goes through in blocks and only the few fields of the index are decoded, so time and
memory follow the number of entries, not the size of their messages. Lines end at the byte 0x0A and
nowhere else. Offsets and lengths are bytes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from pi_tui.core.entries import FORMAT_VERSION, EntryHead, SessionHeader
from pi_tui.core.messages import JSON
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.lines import decode_line, is_blank, pieces_of

BLOCK_BYTES = 1 << 20
HEADER_SEARCH_BYTES = 16 << 20
"""How far into a file a header is looked for; a session has it at the very beginning."""

_HEADER_BLOCK_BYTES = 8192
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_FILLING = b"\0 \t\r"


class _MessageFields(Struct, gc=False):
    role: str = ""


class _LineFields(Struct, gc=False, rename="camel"):
    type: str = ""
    id: str = ""
    parent_id: str | None = None
    timestamp: str = ""
    message: _MessageFields | None = None


class Findings(Struct):
    """What was odd about a file. Line numbers count from 1."""

    skipped_before_header: int = 0
    bad_lines: list[int] = field(default_factory=list)
    without_id: int = 0
    zero_blocks: int = 0
    recovered: int = 0
    duplicate_ids: int = 0
    missing_parents: int = 0
    own_ancestors: int = 0
    torn: bool = False
    lacks_newline: bool = False


class Header(Struct):
    """The header as it stands in the file. `end` is the offset of what follows, a line or glue."""

    value: SessionHeader
    data: dict[str, JSON]
    line: bytes
    end: int
    lines_before: int
    garbage_before: int

    @property
    def text(self) -> bytes:
        """The bytes of the object alone."""
        return self.line.removeprefix(BYTE_ORDER_MARK).strip(_FILLING)


class Index:
    """Heads in file order, and for each the offset and length of its line."""

    def __init__(self) -> None:
        self.heads: list[EntryHead] = []
        self.starts = array("Q")
        self.lengths = array("Q")
        self.rows: dict[str, int] = {}
        self.findings = Findings()
        self.size_bytes = 0

    def add(self, head: EntryHead, start: int, length: int) -> None:
        """Take in one entry; with equal ids the later one is found by its id."""
        if head.id in self.rows:
            self.findings.duplicate_ids += 1
        self.rows[head.id] = len(self.heads)
        self.heads.append(head)
        self.starts.append(start)
        self.lengths.append(length)


def blocks(
    fs: FileSystem,
    fd: int,
    offset: int,
    *,
    block_bytes: int = BLOCK_BYTES,
    limit_bytes: int | None = None,
) -> Iterator[tuple[int, list[bytes], bool]]:
    """Yield whole lines in batches: offset of the first, lines without their end, is-last.

    The last batch holds exactly one line, the rest of the file after its last line end; it is
    empty when the file ends with one. Reading stops once `limit_bytes` are passed.
    """
    start = offset
    rest: list[bytes] = []
    while block := fs.read_at(fd, block_bytes, offset):
        offset += len(block)
        rest.append(block)
        if limit_bytes is not None and offset > limit_bytes:
            break
        if b"\n" not in block:
            continue
        lines = b"".join(rest).split(b"\n")
        rest = [lines.pop()]
        yield start, lines, False
        start = offset - len(rest[0])
    yield start, [b"".join(rest)], True


def find_header(fs: FileSystem, fd: int) -> Header | None:
    """Find the header line; None when the first thing that can be read is something else."""
    number = garbage = 0
    found = blocks(fs, fd, 0, block_bytes=_HEADER_BLOCK_BYTES, limit_bytes=HEADER_SEARCH_BYTES)
    for start, lines, is_last in found:
        position = start
        for line in lines:
            text = line.removeprefix(BYTE_ORDER_MARK) if position == 0 else line
            position += len(line) + (not is_last)
            value = _first_value(text)
            if value is not None:
                if not isinstance(value, dict):
                    return None
                header = header_from_data(value)
                if header is None:
                    return None
                return Header(header, value, line, position, number, garbage)
            glued = _glued_header(text, position - len(text) - (not is_last))
            if glued is not None:
                # What follows it on the line is read as a line, which has the same number.
                return replace(glued, lines_before=number - 1, garbage_before=garbage)
            number += 1
            garbage += not is_blank(text)
    return None


def _glued_header(line: bytes, start: int) -> Header | None:
    """A header that other entries or a rest were glued to; the line begins at `start`."""
    if b'"session"' not in line:
        return None
    for offset, piece in pieces_of(line):
        value = _object(piece)
        header = header_from_data(value) if isinstance(value, dict) else None
        if header is not None:
            return Header(header, value, piece, start + offset + len(piece), 0, 0)
    return None


def _first_value(line: bytes) -> JSON:
    body = line.strip(_FILLING)
    if not body:
        return None
    try:
        value = decode_line(body)
    except ValueError:
        return None
    # The format's own reader skips false, 0 and "" like null; -0.0 equals 0 here as well.
    return None if isinstance(value, (bool, int, float, str)) and not value else value


def header_from_data(data: dict[str, JSON]) -> SessionHeader | None:
    """The header an object stands for; None when it is none."""
    session_id = data.get("id")
    if data.get("type") != "session" or not isinstance(session_id, str):
        return None
    timestamp, cwd, parent = data.get("timestamp"), data.get("cwd"), data.get("parentSession")
    return SessionHeader(
        id=session_id,
        timestamp=timestamp if isinstance(timestamp, str) else "",
        cwd=cwd if isinstance(cwd, str) else "",
        version=version_of(data),
        parent_session=parent if isinstance(parent, str) else UNSET,
    )


def version_of(header: dict[str, JSON]) -> int:
    """The format version a header names; 1 when it names none."""
    version = header.get("version")
    if version is None:
        return 1
    if isinstance(version, str):
        try:
            version = float(version)
        except ValueError:
            return FORMAT_VERSION
    if isinstance(version, (int, float)) and -1e9 < version < 1e9:
        return int(version)
    return FORMAT_VERSION


def read_index(fs: FileSystem, fd: int, header: Header) -> Index:
    """Index everything after the header. Raises OSError."""
    index = Index()
    index.findings.skipped_before_header = header.garbage_before
    _Indexer(index, header.lines_before + 1).run(fs, fd, header.end)
    if header.end and index.size_bytes < header.end:
        index.size_bytes = header.end
    _check_parents(index)
    return index


class _Indexer:
    def __init__(self, index: Index, lines_before: int) -> None:
        self._index = index
        self._lines = lines_before
        self._decode = msgspec.json.Decoder(_LineFields).decode
        self._names: dict[str, str] = {}
        self._last_id = ""

    def run(self, fs: FileSystem, fd: int, offset: int) -> None:
        index = self._index
        for start, lines, is_last in blocks(fs, fd, offset):
            if is_last:
                self._last_line(fs, fd, start, lines[0])
                index.size_bytes = start + len(lines[0])
            else:
                self._batch(start, lines)

    def _batch(self, position: int, lines: list[bytes]) -> None:
        decode, index, names = self._decode, self._index, self._names
        last_id = self._last_id
        for number, line in enumerate(lines, self._lines + 1):
            length = len(line)
            try:
                fields = decode(line)
            except (msgspec.MsgspecError, RecursionError):
                self._odd_line(position, line, number)
                position += length + 1
                continue
            entry_id, kind = fields.id, fields.type
            if entry_id and kind != "session":
                parent = fields.parent_id
                if parent == last_id:
                    parent = last_id  # one string object for both
                message = fields.message
                role = message.role if message is not None and kind == "message" else ""
                head = EntryHead(
                    entry_id,
                    parent,
                    names.setdefault(kind, kind),
                    fields.timestamp,
                    names.setdefault(role, role),
                )
                index.add(head, position, length)
                last_id = entry_id
            elif kind != "session":
                index.findings.without_id += 1
            position += length + 1
        self._last_id = last_id
        self._lines += len(lines)

    def _last_line(self, fs: FileSystem, fd: int, position: int, line: bytes) -> None:
        findings = self._index.findings
        if not line:
            # Also the header may be the line without an end.
            end = position and fs.read_at(fd, 1, position - 1)
            findings.lacks_newline = bool(position) and end != b"\n"
            return
        findings.lacks_newline = True
        bad_before = len(findings.bad_lines)
        self._batch(position, [line])
        if len(findings.bad_lines) > bad_before:
            findings.bad_lines.pop()
            findings.torn = True

    def _odd_line(self, position: int, line: bytes, number: int) -> None:
        """Take what the quick way refused: odd field types, NUL blocks, glued lines, garbage."""
        findings = self._index.findings
        if is_blank(line):
            return
        pieces = pieces_of(line)
        if not pieces:
            findings.zero_blocks += 1
            return
        whole = len(pieces) == 1 and pieces[0][0] == 0
        values = [(position + offset, len(piece), _object(piece)) for offset, piece in pieces]
        if not whole and not any(isinstance(v, dict) for _, _, v in values):
            values = [(position, len(line), _object(line))]
        bad = False
        for start, length, value in values:
            if value is _NOT_JSON:
                bad = True
            elif not isinstance(value, dict):
                # null, false, 0 and "" stand for nothing; other bare values are nobody's entry.
                bad = bad or bool(value)
            elif value.get("type") != "session":
                head = head_from_data(value)
                if head is None:
                    findings.without_id += 1
                    continue
                self._index.add(head, start, length)
                self._last_id = head.id
                findings.recovered += not whole
        if bad:
            findings.bad_lines.append(number)


_NOT_JSON = object()


def _object(line: bytes) -> JSON:
    try:
        return decode_line(line)
    except ValueError:
        return _NOT_JSON


def head_from_data(data: dict[str, JSON]) -> EntryHead | None:
    entry_id = data.get("id")
    if not isinstance(entry_id, str) or not entry_id:
        return None
    parent, kind, message = data.get("parentId"), data.get("type"), data.get("message")
    timestamp = data.get("timestamp")
    role = message.get("role") if isinstance(message, dict) and kind == "message" else ""
    return EntryHead(
        entry_id,
        parent if isinstance(parent, str) else None,
        kind if isinstance(kind, str) else "",
        timestamp if isinstance(timestamp, str) else "",
        role if isinstance(role, str) else "",
    )


def _check_parents(index: Index) -> None:
    """Count parents that are not there and entries that are their own ancestors."""
    rows, heads, findings = index.rows, index.heads, index.findings
    backward: list[str] = []
    for row, head in enumerate(heads):
        parent = head.parent_id
        if parent is None:
            continue
        parent_row = rows.get(parent)
        if parent_row is None:
            findings.missing_parents += 1
        elif parent_row >= row:
            backward.append(head.id)
    # A loop must somewhere name a parent that comes later (or itself).
    judged: dict[str, int] = {}
    for walk, entry_id in enumerate(backward, 1):
        current: str | None = entry_id
        while current is not None and current in rows and current not in judged:
            judged[current] = walk
            current = heads[rows[current]].parent_id
        if current is not None and judged.get(current) == walk:
            findings.own_ancestors += 1
