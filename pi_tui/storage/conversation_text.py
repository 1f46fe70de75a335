"""The words of a stored conversation, for searching: what people and models wrote, and summaries.

Tool output and thinking are left out: they would drown what somebody remembers. Long sessions are
read up to a bound, so that a search through many of them ends soon. Sizes are bytes.
"""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from pi_tui.core.messages import JSON, content_from_data, text_of
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.index import blocks
from pi_tui.storage.lines import decode_line

SEARCHED_BYTES = 8 << 20
SEARCHED_CHARS = 400_000


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


_ROLES = frozenset({"user", "assistant", "custom", "bashExecution"})
_WORDS = (b'"user"', b'"assistant"', b'"custom', b'"summary"')


def conversation_text(fs: FileSystem, path: str) -> str:
    """The texts of a session in file order, one after the other. Raises OSError."""
    decode = msgspec.json.Decoder(_Line).decode
    texts: list[str] = []
    room_chars = SEARCHED_CHARS
    fd = fs.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for _, lines, _ in blocks(fs, fd, 0, limit_bytes=SEARCHED_BYTES):
            for line in lines:
                if not any(word in line for word in _WORDS):
                    continue
                try:
                    text = _text_of(decode(line))
                except (msgspec.MsgspecError, RecursionError):
                    text = _odd_text(line)
                if text:
                    texts.append(text[:room_chars])
                    room_chars -= len(text)
                if room_chars <= 0:
                    return "\n".join(texts)
    finally:
        fs.close(fd)
    return "\n".join(texts)


def _text_of(line: _Line) -> str:
    if line.message is not None and line.type == "message":
        return _content_text(line.message.content) if line.message.role in _ROLES else ""
    if line.type in ("compaction", "branch_summary"):
        return line.summary
    return _content_text(line.content) if line.type == "custom_message" else ""


def _content_text(content: str | list[_Block]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if block.type == "text" and block.text)


def _odd_text(line: bytes) -> str:
    """A line the quick way refuses, usually for a field of another type than ours."""
    try:
        data = decode_line(line.strip(b"\0 \t\r"))
    except ValueError:
        return ""
    message: JSON = data.get("message") if isinstance(data, dict) else None
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        return ""
    return text_of(content_from_data(message.get("content")))
