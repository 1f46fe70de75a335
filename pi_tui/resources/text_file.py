"""Reading a text file of unknown origin: bounded, never waiting, with a mark where it was cut.

Sizes are bytes of the file. Only ordinary files are read: a named pipe or a device in a foreign
project must not hold up the start.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from msgspec import Struct


class BoundedText(Struct, frozen=True):
    """A text and how much of the file it is. `problem` says what is odd about it, or ""."""

    text: str
    size_bytes: int
    truncated: bool
    problem: str = ""


def read_start(path: Path, max_bytes: int) -> tuple[bytes, int]:
    """The first `max_bytes` of an ordinary file, and how large it is.

    Raises OSError when it cannot be read or is no ordinary file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not an ordinary file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    finally:
        os.close(handle)
    return data[:max_bytes], max(status.st_size, len(data))


def read_bounded(path: Path, max_bytes: int) -> BoundedText:
    """Read at most `max_bytes` from the start of a file, as UTF-8 without byte order mark.

    A cut text ends in a line that says so. Raises OSError when it cannot be read or is no ordinary
    file.
    """
    data, size_bytes = read_start(path, max_bytes)
    truncated = size_bytes > max_bytes
    try:
        text = data.decode("utf-8-sig")
        problem = ""
    except UnicodeDecodeError as error:
        text = data.decode("utf-8-sig", "replace")
        # A cut may fall into a character; that is no fault of the file.
        whole = error.start >= len(data) - 3 and truncated
        problem = "" if whole else "is not UTF-8 text; odd bytes were replaced"
        text = text.rstrip("\ufffd") if whole else text
    text = text.replace("\r\n", "\n")
    if truncated:
        text = (
            f"{text.rstrip()}\n\n"
            f"[cut here: the first {len(data)} of {size_bytes} bytes; read the file for the rest]"
        )
    return BoundedText(text, size_bytes, truncated, problem)
