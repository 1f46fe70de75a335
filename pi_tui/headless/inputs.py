"""What a run without a screen starts from: messages, piped text, `@file` arguments.

Turns them into prompts. Sizes are bytes. What cannot go along whole, or is no text, is refused,
because nobody would notice that it is missing or garbled.
"""

from __future__ import annotations

import base64
import os
import select
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from pi_tui.core.errors import UsageError
from pi_tui.core.messages import ImageContent

MAX_PIPED_BYTES = 4 * 1024 * 1024
MAX_TEXT_FILE_BYTES = 4 * 1024 * 1024
"""About a million tokens: no model takes more in one message."""

MAX_IMAGE_FILE_BYTES = 20 * 1024 * 1024
WAITING_AFTER_S = 3.0
_MOST_REPLACED = 0.3
"""What part of a text may be bytes that are no UTF-8: another encoding has some, garbage most."""


class Prompt(Struct, frozen=True):
    """One message of the user."""

    text: str
    images: tuple[ImageContent, ...] = ()


class PipedText(Struct, frozen=True):
    """Text from standard input, its size there, and what is to be told about it."""

    text: str
    size_bytes: int
    notices: tuple[str, ...] = ()


class FileArguments(Struct, frozen=True):
    """The files as one text of blocks, the images among them, and what is to be told."""

    text: str = ""
    images: tuple[ImageContent, ...] = ()
    notices: tuple[str, ...] = ()


# ---------------------------------------------------------------- standard input


def read_piped(
    stream: BinaryIO,
    *,
    max_bytes: int = MAX_PIPED_BYTES,
    on_waiting: Callable[[], None] = lambda: None,
    waiting_after_s: float = WAITING_AFTER_S,
) -> PipedText | None:
    """Read standard input to its end; None when nothing but blanks came.

    Raises UsageError when there is more than the bound, or no text. `on_waiting` is called once
    when nothing arrives for a while, so that a run that waits for a pipe nobody closes does not
    look dead.
    """
    try:
        handle = stream.fileno()
    except (OSError, ValueError):
        handle = -1
    if handle >= 0 and not select.select([handle], [], [], waiting_after_s)[0]:
        on_waiting()
    data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise UsageError(
            f"standard input has more than {max_bytes} bytes, which no message may have",
            hint="Write it to a file and name its path in the message, and the agent reads what it "
            "needs.",
        )
    decoded = _decode(data)
    if decoded is None:
        raise UsageError(
            "standard input is not UTF-8 text",
            hint="An image goes along as @file; of any other file, name the path in the message.",
        )
    text, replaced = decoded
    if not text.strip():
        return None
    told = ("standard input is not UTF-8 text; odd bytes were replaced",) if replaced else ()
    return PipedText(text, len(data), told)


def _decode(data: bytes) -> tuple[str, bool] | None:
    """The text, and whether bytes had to be replaced; None for what is no text."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), False
    if b"\0" in data:
        return None
    try:
        return data.decode("utf-8-sig"), False
    except UnicodeDecodeError:
        text = data.decode("utf-8-sig", "replace")
        return (text, True) if text.count("\ufffd") <= _allowed(text) else None


def _allowed(text: str) -> float:
    return max(8, len(text) * _MOST_REPLACED)


# ---------------------------------------------------------------- files


def read_file_arguments(names: Sequence[str], expand: Callable[[str], Path]) -> FileArguments:
    """Read the files named by `@name`, in order. `expand` makes a path of what was typed.

    Raises UsageError for one that is missing, too large, or neither text nor a known image.
    """
    blocks, images, notices = [], [], []
    for name in names:
        data = _read(name, expand(name))
        shown = _attribute(name)
        mime_type = image_type(data)
        if mime_type is not None:
            images.append(ImageContent(base64.b64encode(data).decode("ascii"), mime_type))
            blocks.append(f'<file name="{shown}" type="{mime_type}"></file>')
            continue
        if len(data) > MAX_TEXT_FILE_BYTES:
            raise UsageError(
                f"@{name} has {len(data)} bytes; a file in a message may have"
                f" {MAX_TEXT_FILE_BYTES}",
                hint="Name the path in the message instead, and the agent reads what it needs.",
            )
        decoded = _decode(data)
        if decoded is None:
            raise UsageError(
                f"@{name} is neither text nor a PNG, JPEG, GIF or WebP image",
                hint="Name the path in the message instead.",
            )
        text, replaced = decoded
        if replaced:
            notices.append(f"@{name} is not UTF-8 text; odd bytes were replaced")
        end = "" if text.endswith("\n") or not text else "\n"
        blocks.append(f'<file name="{shown}">\n{text}{end}</file>')
    return FileArguments("\n".join(blocks), tuple(images), tuple(notices))


def _read(name: str, path: Path) -> bytes:
    """All bytes of a file, at most one more than an image may have."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(handle)
            if stat.S_ISDIR(status.st_mode):
                raise UsageError(
                    f"@{name} is a directory",
                    hint="Name it in the message instead, and the agent looks into it.",
                )
            # A pipe is fine, `@<(command)` is one; waiting for its writer is what was asked for.
            os.set_blocking(handle, True)
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(MAX_IMAGE_FILE_BYTES + 1)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise UsageError(f"@{name}: there is no such file") from None
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"@{name} cannot be read: {why}") from error
    if len(data) > MAX_IMAGE_FILE_BYTES:
        raise UsageError(
            f"@{name} has more than {MAX_IMAGE_FILE_BYTES} bytes",
            hint="Name the path in the message instead, and the agent reads what it needs.",
        )
    return data


def image_type(data: bytes) -> str | None:
    """The MIME type by the first bytes of a file, for the images every provider takes."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    return None


def _attribute(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return "".join(c if c.isprintable() else "\ufffd" for c in escaped)


# ---------------------------------------------------------------- together


def compose_prompts(
    messages: Sequence[str], piped: PipedText | None = None, files: FileArguments | None = None
) -> tuple[Prompt, ...]:
    """The prompts to send one after the other: files and piped text go with the first message.

    Raises UsageError when there is nothing to send.
    """
    said = [message for message in messages if message.strip()]
    files = files or FileArguments()
    parts = [files.text] if files.text else []
    if piped is not None and (said or files.text):
        end = "" if piped.text.endswith("\n") else "\n"
        parts.append(f'<stdin bytes="{piped.size_bytes}">\n{piped.text}{end}</stdin>')
    elif piped is not None:
        parts.append(piped.text)
    if said:
        parts.append(said[0])
    if not parts:
        raise UsageError(
            "there is nothing to send",
            hint='Give a message, as in pi-tui -p "what does main.py do?", or pipe text in.',
        )
    return (Prompt("\n\n".join(parts), files.images), *(Prompt(text) for text in said[1:]))
