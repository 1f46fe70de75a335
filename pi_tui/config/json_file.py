"""JSON files people write by hand: reading with plain errors, replacing without ever losing one.

Sizes are bytes. Every failure is a `SettingsError` that names the file and, where it is known, line
and column. Knows nothing of what stands in the files.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import msgspec

from pi_tui.core.errors import SettingsError
from pi_tui.core.json_text import decode_json, encode_json
from pi_tui.core.messages import JSON

MAX_JSON_FILE_BYTES = 4 * 1024 * 1024
"""Far above any real file; keeps a file that was put there by mistake from filling the memory."""


def read_text(path: Path, *, max_bytes: int = MAX_JSON_FILE_BYTES) -> str | None:
    """Read a file as UTF-8 without its byte order mark; None when there is no such file.

    Raises SettingsError when it exists and cannot be used.
    """
    try:
        # A named pipe at the path would hang the start until somebody writes to it.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise SettingsError(f"{path} is not an ordinary file", file=str(path))
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(max_bytes + 1)
        finally:
            os.close(handle)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {reason_of(error)}", file=str(path)) from error
    if len(data) > max_bytes:
        raise SettingsError(f"{path} is larger than {max_bytes} bytes", file=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{path} is not UTF-8 text (byte {error.start})",
            file=str(path),
            hint="Save it again with the encoding UTF-8.",
        ) from error


def parse_json(text: str, file: str) -> JSON:
    """Decode a text. Raises SettingsError with line and column of the first fault."""
    text = text.removeprefix("\ufeff")
    try:
        return decode_json(text)
    except ValueError as error:
        place, what = _fault(text)
        raise SettingsError(
            f"{file} is not valid JSON: {place}{what or str(error)}",
            file=file,
            hint="Nothing of the file is used until this is corrected.",
        ) from error


def _fault(text: str) -> tuple[str, str]:
    """Where and what is wrong, in the words of the slower decoder that counts lines."""
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        return f"line {error.lineno}, column {error.colno}: ", what
    except RecursionError:
        return "", "nested too deeply"
    return "", ""


def read_json(path: Path) -> JSON:
    """Read and decode a file; None when it is missing or empty. Raises SettingsError."""
    text = read_text(path)
    if text is None or not text.strip():
        return None
    return parse_json(text, str(path))


def read_json_object(path: Path) -> dict[str, JSON]:
    """Read a file that must hold an object; empty when it is missing. Raises SettingsError."""
    value = read_json(path)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SettingsError(f"{path} must hold a JSON object, not {kind_of(value)}", file=str(path))
    return value


def kind_of(value: JSON) -> str:
    """The kind of a decoded value, with its article, as a sentence needs it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


def write_json(path: Path, value: JSON) -> None:
    """Replace a file as a whole, readable by its owner only; directories are made on the way.

    A link is followed, so that a file kept elsewhere stays there. Raises SettingsError; then the
    old file is untouched.
    """
    data = msgspec.json.format(encode_json(value), indent=2) + b"\n"
    try:
        real = path.resolve()
        ensure_private_directory(real.parent)
        _replace(real, data)
    except (OSError, RuntimeError) as error:
        why = reason_of(error) if isinstance(error, OSError) else str(error)
        raise SettingsError(
            f"{path} cannot be written: {why}",
            file=str(path),
            hint="The file is as it was before.",
        ) from error


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o600)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def ensure_private_directory(path: Path) -> None:
    """Make a directory and its parents; the new ones can be entered by their owner only."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)


def reason_of(error: OSError) -> str:
    """The system's own words for a failure, without the path and number Python adds."""
    return (error.strerror or str(error)).lower()
