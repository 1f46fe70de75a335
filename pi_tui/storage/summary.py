"""What a list of sessions shows of one file, read without decoding its messages.

Names are on one line. Texts are cut and otherwise as they stand in the file: foreign, to be
sanitised before they are shown. Times are Unix milliseconds, sizes bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import msgspec
from msgspec import UNSET, Struct

from pi_tui.core.entries import SessionHeader, timestamp_ms
from pi_tui.core.messages import JSON, content_from_data, text_of
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.index import blocks, find_header
from pi_tui.storage.lines import decode_line, pieces_of
from pi_tui.storage.names import flat_name

TEXT_MAX_CHARS = 400


class SessionSummary(Struct, frozen=True):
    """One session in a list.

    `cwd` is the directory recorded in the header ("" when there is none), `parent` the session it
    was forked from, `name` what the user called it, `first_text` the first user message.
    """

    path: str
    id: str
    cwd: str
    name: str | None
    first_text: str
    message_count: int
    created_ms: int | None
    modified_ms: int
    size_bytes: int
    parent: str | None = None
    branch_count: int = 1


class _Message(Struct, gc=False):
    role: str = ""


class _Line(Struct, gc=False, rename="camel"):
    type: str = ""
    parent_id: str | None = None
    name: str = ""
    message: _Message | None = None


def read_header(fs: FileSystem, path: str) -> SessionHeader | None:
    """The header of a file, or None when it is no session. Raises OSError."""
    fd = fs.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        header = find_header(fs, fd)
    finally:
        fs.close(fd)
    return header.value if header is not None else None


def summarise(
    fs: FileSystem, path: str, size_bytes: int, modified_ms: int
) -> SessionSummary | None:
    """Read the summary of a file; None when it is no session. Raises OSError."""
    fd = fs.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        header = find_header(fs, fd)
        if header is None:
            return None
        found_texts = _scan(fs, fd, header.end)
    finally:
        fs.close(fd)
    found = header.value
    return SessionSummary(
        path=path,
        id=found.id,
        cwd=found.cwd,
        name=found_texts.name,
        first_text=found_texts.first_text,
        message_count=found_texts.message_count,
        branch_count=found_texts.branch_count,
        created_ms=timestamp_ms(found.timestamp),
        modified_ms=modified_ms,
        size_bytes=size_bytes,
        parent=None if found.parent_session is UNSET else found.parent_session,
    )


class _Contents(Struct, frozen=True):
    name: str | None
    first_text: str
    message_count: int
    branch_count: int


BRANCHING_TYPES = frozenset({"message", "custom_message", "compaction", "branch_summary"})
"""Entries that make a branch; labels and markers at an earlier place do not."""


def _scan(fs: FileSystem, fd: int, offset: int) -> _Contents:
    """What stands after the header. A branch more for each second child of an entry."""
    name: str | None = None
    first_text = ""
    message_count = 0
    branch_count = 1
    parents: set[str | None] = set()
    for fields, line in _entries(fs, fd, offset):
        if fields.type in BRANCHING_TYPES:
            if fields.parent_id in parents:
                branch_count += 1
            parents.add(fields.parent_id)
        if fields.type == "message":
            message_count += 1
            if not first_text and fields.message is not None and fields.message.role == "user":
                first_text = _text(line)
        elif fields.type == "session_info":
            name = flat_name(fields.name)[:TEXT_MAX_CHARS] or None
    return _Contents(name, first_text, message_count, branch_count)


def _entries(fs: FileSystem, fd: int, offset: int) -> Iterator[tuple[_Line, bytes]]:
    """What a list needs of each entry, and its bytes."""
    decode = msgspec.json.Decoder(_Line).decode
    for _, lines, _ in blocks(fs, fd, offset):
        for line in lines:
            try:
                yield decode(line), line
            except (msgspec.MsgspecError, RecursionError):
                for _, piece in pieces_of(line):
                    yield _odd_fields(_object(piece)), piece


def _odd_fields(data: dict[str, JSON]) -> _Line:
    """Of an entry the quick way refuses, usually for a field of another type than ours."""
    kind, name, message = data.get("type"), data.get("name"), data.get("message")
    role = message.get("role") if isinstance(message, dict) else None
    parent = data.get("parentId")
    return _Line(
        parent_id=parent if isinstance(parent, str) else None,
        type=kind if isinstance(kind, str) else "",
        name=name if isinstance(name, str) else "",
        message=_Message(role) if isinstance(role, str) else None,
    )


def _text(line: bytes) -> str:
    message = _object(line.strip(b"\0 \t\r")).get("message")
    content = message.get("content") if isinstance(message, dict) else None
    text = text_of(content_from_data(content)).strip()
    return (_own_words(text) or text)[:TEXT_MAX_CHARS]


_ATTACHED = re.compile(r"\s*<(file|stdin)\b[^>\n]*>.*?</\1>\s*", re.DOTALL)


def _own_words(text: str) -> str:
    """What a message says after the files and the piped text that stand in front of it."""
    at = 0
    while (attached := _ATTACHED.match(text, at)) is not None:
        at = attached.end()
    return text[at:]


def _object(line: bytes) -> dict[str, JSON]:
    try:
        data = decode_line(line)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
