"""Writes whole files, so that one is there complete or not at all.

A new file is on the device before it gets its name, and no file is replaced unless the caller says
so. Offsets and sizes are bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pi_tui.storage.filesystem import FileSystem, sync_folder, write_all

_COPY_BYTES = 1 << 20
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})


class SourceUnreadable(Exception):
    """The file to copy from failed, not the one to write; the OSError is the cause."""

    def __init__(self, error: OSError) -> None:
        super().__init__(str(error))
        self.error = error


def write_file(
    fs: FileSystem, path: str, parts: Iterable[bytes], *, mode: int = 0o600, replace: bool = False
) -> None:
    """Write a file from its parts. Raises OSError; then nothing of it is there.

    FileExistsError when the name is taken and `replace` is not set.
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    fd = fs.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        try:
            fs.chmod(fd, mode)
            for part in parts:
                write_all(fs, fd, part)
            fs.fsync(fd)
        finally:
            fs.close(fd)
        if replace:
            fs.rename(temporary, path)
        else:
            _name_new(fs, temporary, path)
    except BaseException:
        _remove(fs, temporary)
        raise
    try:
        sync_folder(fs, str(Path(path).parent))
    except OSError:
        return  # the file is there under its name; failing now would say that it is not


def _name_new(fs: FileSystem, temporary: str, path: str) -> None:
    try:
        fs.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        fs.close(fs.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))  # take the name
        fs.rename(temporary, path)
    else:
        _remove(fs, temporary)


def keep_copy(fs: FileSystem, path: str, suffix: str) -> str:
    """Keep the present content of a file under a second name; returns it. Raises OSError."""
    for number in range(1, 1000):
        kept = path + (suffix if number == 1 else f"{suffix}{number}")
        try:
            fs.link(path, kept)
        except FileExistsError:
            continue
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            try:
                _copy(fs, path, kept)
            except FileExistsError:
                continue
        return kept
    raise FileExistsError(errno.EEXIST, "there are too many old copies of the file")


def _copy(fs: FileSystem, path: str, target: str) -> None:
    fd = fs.open(path, os.O_RDONLY)
    try:
        status = fs.fstat(fd)
        write_file(fs, target, read_parts(fs, fd, status.st_size), mode=status.st_mode & 0o777)
    finally:
        fs.close(fd)


def _remove(fs: FileSystem, path: str) -> None:
    try:
        fs.unlink(path)
    except OSError:
        return  # a leftover .tmp file is no session and does no harm


def read_parts(fs: FileSystem, fd: int, size_bytes: int) -> Iterator[bytes]:
    """Yield the first `size_bytes` of an open file. Raises SourceUnreadable, also when short."""
    offset = 0
    while offset < size_bytes:
        try:
            part = fs.read_at(fd, min(_COPY_BYTES, size_bytes - offset), offset)
        except OSError as error:
            raise SourceUnreadable(error) from error
        if not part:
            raise SourceUnreadable(OSError(errno.EIO, "the file is shorter than it was"))
        yield part
        offset += len(part)
