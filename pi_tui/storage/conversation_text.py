"""The words of stored conversations, for searching: what people and models wrote, and summaries.

Tool output, images and thinking are left out: they would drown what somebody remembers. The rest
of a file is searched whole, the newest first, in parts of a size the search takes whole. Texts of
files that did not change are remembered up to a bound. Sizes of files are bytes.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from sys import getsizeof

import msgspec
from msgspec import Struct

from pi_tui.core.messages import JSON, content_from_data, text_of
from pi_tui.core.session_search import MAX_PATTERN_CHARS
from pi_tui.storage.backwards import blocks_backwards
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.lines import objects_of

PART_CHARS = MAX_PATTERN_CHARS
OVERLAP_CHARS = 1_000
"""How much two parts of one long message share, so that a phrase is whole in one of them."""
REMEMBERED_BYTES = 32 << 20
"""Of all sessions together, in memory. What is beyond is read again by each search."""


class _Block(Struct, gc=False):
    type: str = ""
    text: str = ""


class _Message(Struct, gc=False):
    role: str = ""
    content: str | list[_Block] = ""


class _Line(Struct, gc=False):
    type: str = ""
    message: _Message | None = None
    summary: str = ""
    content: str | list[_Block] = ""
    name: str = ""
    label: str | None = None


_ROLES = frozenset({"user", "assistant", "custom", "bashExecution"})
_HEAD = re.compile(
    rb'\{\s*"type"\s*:\s*"(?P<type>\w++)"'
    rb'(?:\s*,\s*"\w++"\s*:\s*(?:"[^"\\]*+"|null|[0-9]++))*?'
    rb'(?:\s*,\s*"message"\s*:\s*\{\s*"role"\s*:\s*"(?P<role>\w++)")'
)
"""The beginning of a message as it is nearly always written: the big ones need not be decoded."""


class ConversationTexts:
    """The texts of all sessions of a library. May be used by several threads."""

    def __init__(self, fs: FileSystem, remembered_bytes: int = REMEMBERED_BYTES) -> None:
        self._fs = fs
        self._kept: dict[str, tuple[tuple[int, int], tuple[str, ...]]] = {}
        self._room_bytes = remembered_bytes
        self._mutex = threading.Lock()

    def parts(self, path: str, size_bytes: int, modified_ms: int) -> Iterator[str]:
        """The words of a session in parts, the newest first. Raises OSError.

        Size and time are those of the list: a session that is written to is read anew.
        """
        stamp = size_bytes, modified_ms
        with self._mutex:
            kept = self._kept.get(path)
            if kept is not None and kept[0] != stamp:
                self._forget(path)
        if kept is not None and kept[0] == stamp:
            yield from kept[1]
            return
        read: list[str] | None = []
        read_bytes = 0
        for part in conversation_parts(self._fs, path, size_bytes):
            read_bytes += getsizeof(part)
            if read is not None and read_bytes <= self._room_bytes:
                read.append(part)
            else:
                read = None
            yield part
        if read is not None:
            self._keep(path, stamp, tuple(read))

    def _keep(self, path: str, stamp: tuple[int, int], parts: tuple[str, ...]) -> None:
        size_bytes = sum(map(getsizeof, parts))
        with self._mutex:
            self._forget(path)
            # The first ones stay: searches go through all, so making room would help none.
            if size_bytes <= self._room_bytes:
                self._room_bytes -= size_bytes
                self._kept[path] = stamp, parts

    def _forget(self, path: str) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            self._room_bytes += sum(map(getsizeof, kept[1]))


def conversation_parts(fs: FileSystem, path: str, size_bytes: int) -> Iterator[str]:
    """The words of a session in parts, the newest first. Raises OSError."""
    texts: list[str] = []
    chars = 0
    fd = fs.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for lines in blocks_backwards(fs, fd, size_bytes):
            for line in lines:
                for text in _cut(_text(line)):
                    if chars + len(text) >= PART_CHARS and texts:
                        yield "\n".join(texts)
                        texts, chars = [], 0
                    texts.append(text)
                    chars += len(text) + 1
    finally:
        fs.close(fd)
    if texts:
        yield "\n".join(texts)


def _cut(text: str) -> Iterator[str]:
    """A text in pieces, none larger than a part."""
    if len(text) <= PART_CHARS:
        if text:
            yield text
        return
    for start in range(0, len(text) - OVERLAP_CHARS, PART_CHARS - OVERLAP_CHARS):
        yield text[start : start + PART_CHARS]


_decode = msgspec.json.Decoder(_Line).decode


def _text(line: bytes) -> str:
    head = _HEAD.match(line)
    if head is not None and head["type"] == b"message" and head["role"].decode() not in _ROLES:
        return ""
    try:
        return _text_of(_decode(line))
    except (msgspec.MsgspecError, RecursionError):
        return "\n".join(filter(None, map(_odd_text, objects_of(line))))


def _text_of(line: _Line) -> str:
    kind = line.type
    if kind == "message":
        message = line.message
        if message is None or message.role not in _ROLES:
            return ""
        return _content_text(message.content)
    if kind in ("compaction", "branch_summary"):
        return line.summary
    if kind == "session_info":
        return line.name
    if kind == "label":
        return line.label or ""
    return _content_text(line.content) if kind == "custom_message" else ""


def _content_text(content: str | list[_Block]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if block.type == "text" and block.text)


def _odd_text(data: dict[str, JSON]) -> str:
    """Of an entry the quick way refuses, usually for a field of another type than ours."""
    message = data.get("message")
    if isinstance(message, dict):
        if message.get("role") not in _ROLES:
            return ""
        return text_of(content_from_data(message.get("content")))
    kind = data.get("type")
    if kind == "custom_message":
        return text_of(content_from_data(data.get("content")))
    field = {
        "compaction": "summary",
        "branch_summary": "summary",
        "session_info": "name",
        "label": "label",
    }.get(kind if isinstance(kind, str) else "", "")
    value = data.get(field)
    return value if isinstance(value, str) else ""
