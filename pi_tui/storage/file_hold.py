"""A lock on a session file itself, which every name of the file meets.

The lock beside the file goes by its path; a second hard link, or a folder that is mounted twice, is
another path to the same file. So its inode is locked as well, with flock(2) on a descriptor of its
own. Where that is impossible, the lock beside the file has to do.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress

from pi_tui.storage.filesystem import FileSystem

_TRIES = 25
_WAIT_S = 0.02
_NOT_FOR_WRITING = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class FileHold:
    """The lock on one file at a time. `take` may be called again when the path has a new file."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._fd: int | None = None
        self._inode = (-1, -1)

    def take(self, path: str) -> None:
        """Lock the file of that path; the one held before is given up.

        Raises BlockingIOError when another process holds it; then what was held is kept.
        """
        fd = self._open(path)
        if fd is None:
            return
        try:
            status = self._fs.fstat(fd)
            inode = (status.st_dev, status.st_ino)
            if self._fd is not None and inode == self._inode:
                self._close(fd)
                return
            self._lock(fd)
            advisory = self._can_be_read(path)
        except BlockingIOError:
            self._close(fd)
            raise
        except OSError:
            advisory = False  # no such locks here
        if not advisory:
            self._close(fd)
            return
        self.release()
        self._fd, self._inode = fd, inode

    def release(self) -> None:
        """Give the lock up. Never raises; doing it twice is harmless."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._close(fd)

    def _open(self, path: str) -> int | None:
        try:
            # Network file systems lock for writing only what is open for writing.
            return self._fs.open(path, os.O_RDWR)
        except OSError as error:
            if error.errno not in _NOT_FOR_WRITING:
                return None  # it does not exist yet, or cannot be opened at all
        try:
            return self._fs.open(path, os.O_RDONLY)
        except OSError:
            return None

    def _lock(self, fd: int) -> None:
        for tries_left in reversed(range(_TRIES)):
            try:
                self._fs.lock(fd)
                return
            except BlockingIOError:
                # A killed process holds its locks until the system has cleared it away.
                if not tries_left:
                    raise
            time.sleep(_WAIT_S)

    def _can_be_read(self, path: str) -> bool:
        """False where a lock keeps other descriptors from reading, as over SMB."""
        fd = self._fs.open(path, os.O_RDONLY)
        try:
            self._fs.read_at(fd, 1, 0)
        finally:
            self._close(fd)
        return True

    def _close(self, fd: int) -> None:
        with suppress(OSError):
            self._fs.close(fd)
