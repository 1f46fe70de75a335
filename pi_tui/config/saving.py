"""Changing one setting of the user's file and leaving everything else in it as it is.

Keeps keys this program does not know and the order of keys; comments do not exist in JSON. A file
that cannot be parsed is refused, never replaced.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import UNSET, UnsetType

from pi_tui.config.json_file import (
    ensure_private_directory,
    kind_of,
    read_json_object,
    reason_of,
    write_json,
)
from pi_tui.config.settings import KeyPath, dotted
from pi_tui.core.errors import SettingsError
from pi_tui.core.messages import JSON


def save_setting(path: Path, dotted_key: str, value: JSON | UnsetType) -> None:
    """Set one value, e.g. `compaction.enabled` or `modelThinkingLevels["acme/m-1.5"]`.

    UNSET takes the setting away. The file is replaced as a whole, readable by its owner only.
    Raises SettingsError; then the file is as it was.
    """
    keys = parse_dotted(dotted_key)
    with _one_writer(path):
        data = read_json_object(path)
        place = data
        for depth, key in enumerate(keys[:-1], start=1):
            below = place.setdefault(key, {})
            if not isinstance(below, dict):
                raise SettingsError(
                    f"{path}: {dotted(keys[:depth])} is {kind_of(below)}, not an object,"
                    f" so {dotted_key} cannot be saved",
                    file=str(path),
                    key=dotted(keys[:depth]),
                )
            place = below
        if value is UNSET:
            place.pop(keys[-1], None)
        else:
            place[keys[-1]] = value
        write_json(path, data)


@contextmanager
def _one_writer(path: Path) -> Iterator[None]:
    """Let only one process at a time read, change and replace a file."""
    import fcntl

    lock = path.with_name(f".{path.name}.lock")
    try:
        ensure_private_directory(lock.parent)
        handle = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written: {reason_of(error)}", file=str(path)
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def parse_dotted(text: str) -> KeyPath:
    """The keys of a dotted name, the reverse of `dotted`. Raises ValueError when it is none."""
    keys: list[str] = []
    rest = text
    while rest:
        if rest.startswith("["):
            end = _end_of_quoted(rest)
            keys.append(msgspec.json.decode(rest[1:end], type=str))
            rest = rest[end + 1 :]
        else:
            rest = rest.removeprefix(".") if keys else rest
            size = next((i for i, c in enumerate(rest) if c in ".["), len(rest))
            if size == 0:
                raise ValueError(f"not the name of a setting: {text!r}")
            keys.append(rest[:size])
            rest = rest[size:]
    if not keys:
        raise ValueError("the name of a setting is empty")
    return tuple(keys)


def _end_of_quoted(text: str) -> int:
    """Where the `]` of a leading `["…"]` stands."""
    escaped = False
    for index, char in enumerate(text[2:], start=2):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"' and text[index + 1 : index + 2] == "]":
            return index + 1
    raise ValueError(f"not the name of a setting: {text!r}")
