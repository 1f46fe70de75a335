"""The few system calls storage needs, behind one object, so that tests can let the n-th one fail.

Paths are absolute strings, sizes and offsets are bytes. Every method raises OSError as the system
does. Nothing here knows what a session is.
"""

from __future__ import annotations

import fcntl
import os
import stat


class FileSystem:
    """The real one. A test derives from it and counts."""

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        # A named pipe that took the place of a file must not hold up the program.
        return os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, mode)

    def close(self, fd: int) -> None:
        os.close(fd)

    def read_at(self, fd: int, length_bytes: int, offset: int) -> bytes:
        return os.pread(fd, length_bytes, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write once; may write less than asked for."""
        return os.write(fd, data)

    def truncate(self, fd: int, size_bytes: int) -> None:
        os.ftruncate(fd, size_bytes)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def stat(self, path: str) -> os.stat_result:
        return os.stat(path)  # noqa: PTH116  (one seam, plain strings)

    def fstat(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def rename(self, source: str, target: str) -> None:
        """Put `source` in the place of `target`, at once."""
        os.replace(source, target)  # noqa: PTH105

    def link(self, source: str, target: str) -> None:
        """Give a file a second name; FileExistsError when the name is taken."""
        os.link(source, target)

    def unlink(self, path: str) -> None:
        os.unlink(path)  # noqa: PTH108

    def mkdir(self, path: str, mode: int) -> None:
        os.mkdir(path, mode)  # noqa: PTH102

    def chmod(self, fd: int, mode: int) -> None:
        os.fchmod(fd, mode)

    def lock(self, fd: int) -> None:
        """Take the advisory lock of an open file; BlockingIOError when another holds it."""
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


REAL_FILE_SYSTEM = FileSystem()


def write_all(fs: FileSystem, fd: int, data: bytes) -> None:
    """Write everything, going on after short writes. Raises OSError; a part may be written then."""
    view = memoryview(data)
    while view:
        written = fs.write(fd, view)
        if written <= 0:
            raise OSError(5, "nothing was written")
        view = view[written:]


def make_private_folders(fs: FileSystem, folder: str) -> None:
    """Create a folder and whatever is missing above it, for the owner alone."""
    missing: list[str] = []
    current = folder
    while True:
        try:
            fs.stat(current)
            break
        except FileNotFoundError:
            missing.append(current)
            parent = os.path.dirname(current)  # noqa: PTH120
            if parent == current:
                break
            current = parent
    for path in reversed(missing):
        try:
            fs.mkdir(path, 0o700)
        except FileExistsError:
            continue  # somebody else was faster, which is as good


def sync_folder(fs: FileSystem, folder: str) -> None:
    """Put the names of a folder on the device; a file system that cannot is left alone."""
    fd = fs.open(folder, os.O_RDONLY)
    try:
        fs.fsync(fd)
    except OSError as error:
        if error.errno not in _FOLDERS_HAVE_NO_SYNC:
            raise
    finally:
        fs.close(fd)


_FOLDERS_HAVE_NO_SYNC = frozenset({22, 95})  # EINVAL, EOPNOTSUPP: some network file systems


def is_regular(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)
