"""Where a new session file goes: the folder of a working directory and the name of the file.

Different directories may map to the same folder (`a/b-c` and `a-b/c`); only the header says to
which directory a session belongs. What people call a session has nothing to do with its file.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from pi_tui.core.entries import SessionHeader

SUFFIX = ".jsonl"
_NAME_MAX_BYTES = 255


def folder_name(cwd: str) -> str:
    """The folder for sessions of a working directory: separators become hyphens."""
    name = re.sub(r"[/\\:]", "-", re.sub(r"^[/\\]", "", cwd))
    name = name.replace("\0", "-")
    encoded = os.fsencode(name)
    if len(encoded) > _NAME_MAX_BYTES - 4:
        name = encoded[-(_NAME_MAX_BYTES - 4) :].decode("utf-8", "ignore")
    return f"--{name}--"


def file_name(header: SessionHeader) -> str:
    """The name of a session file: its time, made harmless, and its id."""
    moment = re.sub(r"[^0-9A-Za-z-]", "-", header.timestamp)[:40]
    plain_id = re.sub(r"[^0-9A-Za-z_-]", "-", header.id)[:100]
    return f"{moment}_{plain_id}{SUFFIX}"


def id_in_name(path: str) -> str:
    """The id a file name promises; "" when the name is none of ours."""
    stem = Path(path).name.removesuffix(SUFFIX)
    moment, separator, session_id = stem.partition("_")
    return session_id if separator and moment else ""


def flat_name(name: str) -> str:
    """What somebody called a session, on one line: other programs write anything."""
    return " ".join(name.split())


def new_session_path(directory: str, header: SessionHeader) -> str:
    """The absolute path of the file for a new session below the sessions directory."""
    folder = Path(directory).absolute() / folder_name(header.cwd)
    return str(folder / file_name(header))


def new_session_id() -> str:
    """A UUID of version 7: sorts by time of making."""
    value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    digits = f"{value:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def new_entry_id() -> str:
    """Eight hexadecimal digits; the caller sees to it that they are not taken."""
    return os.urandom(4).hex()
