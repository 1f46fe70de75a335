"""Remembers summaries of session files between runs, as long as a file keeps size and time.

The cache is a convenience: where it cannot be read or written, everything works without it.
"""

from __future__ import annotations

import os
from contextlib import suppress

import msgspec
from msgspec import Struct

from pi_tui.storage.filesystem import FileSystem, make_private_folders
from pi_tui.storage.summary import SessionSummary
from pi_tui.storage.whole_file import write_file

_VERSION = 4
_NAME = "session-summaries.msgpack"


class _Kept(Struct, frozen=True, array_like=True, gc=False):
    size_bytes: int
    modified_ns: int
    summary: SessionSummary


class _Content(Struct, array_like=True):
    version: int
    kept: dict[str, _Kept]


class SummaryCache:
    """Summaries by path. Without a directory it holds nothing beyond its own life."""

    def __init__(self, fs: FileSystem, directory: str | os.PathLike[str] | None) -> None:
        self._fs = fs
        self._path = None if directory is None else os.path.join(directory, _NAME)  # noqa: PTH118
        self._kept = self._read()
        self._changed = False

    def _read(self) -> dict[str, _Kept]:
        if self._path is None:
            return {}
        try:
            fd = self._fs.open(self._path, os.O_RDONLY)
            try:
                data = self._fs.read_at(fd, self._fs.fstat(fd).st_size, 0)
            finally:
                self._fs.close(fd)
            content = msgspec.msgpack.decode(data, type=_Content)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return {}
        return content.kept if content.version == _VERSION else {}

    def get(self, path: str, size_bytes: int, modified_ns: int) -> SessionSummary | None:
        """The summary of a file, unless the file was changed since."""
        kept = self._kept.get(path)
        if kept is None or (kept.size_bytes, kept.modified_ns) != (size_bytes, modified_ns):
            return None
        return kept.summary

    def put(self, path: str, size_bytes: int, modified_ns: int, summary: SessionSummary) -> None:
        """Remember a summary."""
        self._kept[path] = _Kept(size_bytes, modified_ns, summary)
        self._changed = True

    def save(self) -> None:
        """Write what was learnt; files that are gone are forgotten."""
        if self._path is None or not self._changed:
            return
        self._changed = False
        alive = {path: kept for path, kept in self._kept.items() if os.path.exists(path)}  # noqa: PTH110
        # Names that are no valid text cannot be kept, nor can anything on a full disk.
        with suppress(OSError, UnicodeEncodeError):
            data = msgspec.msgpack.encode(_Content(_VERSION, alive))
            make_private_folders(self._fs, os.path.dirname(self._path))  # noqa: PTH120
            write_file(self._fs, self._path, [data], replace=True)
