"""A file of lines that grows at its end and that nobody else may write.

Holds the descriptor, the lock and the size the file was left with. Before each write the file must
still be the one that was opened and have that size, so lines of two writers never mix; a failed
write is cut off again. What a line means is not known here, but for the first one, which a new
file gets together with its second. Offsets and sizes are bytes. Not safe for several threads.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pi_tui.core.errors import StorageError
from pi_tui.storage.filesystem import FileSystem, make_private_folders, write_all
from pi_tui.storage.lock import SessionLock, acquire
from pi_tui.storage.trouble import ELSEWHERE
from pi_tui.storage.whole_file import read_parts, write_file


class DeletedFile(Exception):
    """The file was deleted under us; what it held can still be read, and be written anew."""


TAIL_BYTES = 512
"""How much of the end of the file is remembered, to know it again when its inode changed."""


class LineFile:
    """See the module. `first_line` is written when the file does not have it yet."""

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        first_line: bytes,
        *,
        fd: int | None = None,
        lock: SessionLock | None = None,
        size_bytes: int = 0,
        can_write: bool = True,
        needs_newline: bool = False,
    ) -> None:
        self._fs = fs
        self.path = path
        self.first_line = first_line
        self._fd = fd
        self._lock = lock
        self.size_bytes = size_bytes
        self._can_write = fd is not None and can_write
        self._has_first_line = size_bytes > 0
        self._needs_newline = needs_newline
        self._made_here = fd is None
        self._torn_bytes = 0  # of a failed write, where cutting it off failed too
        self._tail = b""
        if fd is not None:
            self._tail = fs.read_at(fd, TAIL_BYTES, max(0, size_bytes - TAIL_BYTES))

    @property
    def exists(self) -> bool:
        return self._fd is not None

    @property
    def closes_lines(self) -> bool:
        """True when an unfinished last line is or will be closed with a line end."""
        return self._can_write

    @property
    def unfinished(self) -> bool:
        """True when the last line has no end, or the first one is missing."""
        return self._needs_newline or (self.exists and not self._has_first_line)

    # ------------------------------------------------------------ write

    def prepare(self) -> None:
        """Get ready to write, making the file if there is none.

        Raises OSError; StorageError when the file is not ours any more, SessionLockedError,
        DeletedFile.
        """
        if self._fd is None:
            self._create()
        else:
            if self._lock is None:
                self._named()  # where the folder is gone as well, no lock could be made in it
                self._lock = acquire(self.path, fs=self._fs)
            if not self._can_write:
                self._reopen()
                self._can_write = True
        self._verify()

    def write(self, line: bytes) -> int:
        """Append one line, end included, in one write; returns its offset.

        Call `prepare` first. Raises OSError; then nothing of the line is in the file, or it is
        taken away by the next `prepare`.
        """
        opening = b"\n" if self._needs_newline else b""
        if not self._has_first_line:
            opening += self.first_line
        if self._fd is None:
            raise OSError(errno.EBADF, "the file is not open")
        payload = opening + line
        if not payload:
            return self.size_bytes
        try:
            write_all(self._fs, self._fd, payload)
        except BaseException:
            self._cut_off(len(payload))
            raise
        start = self.size_bytes + len(opening)
        self.size_bytes += len(payload)
        self._tail = (self._tail + payload)[-TAIL_BYTES:]
        self._needs_newline = False
        self._has_first_line = True
        return start

    def _create(self) -> None:
        fs = self._fs
        make_private_folders(fs, str(Path(self.path).parent))
        lock = acquire(self.path, fs=fs)
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
            self._fd = fs.open(self.path, flags, 0o600)
            lock.hold(self.path)
        except BaseException as error:
            lock.release()
            if isinstance(error, FileExistsError):
                raise StorageError(
                    "there is a file with the name of this session already; it was not touched.",
                    path=self.path,
                    hint=ELSEWHERE,
                ) from error
            raise
        self._lock, self._can_write, self._made_here = lock, True, True

    def discard_if_empty(self) -> None:
        """Take back a file that was made here but could not be written to."""
        if self._fd is None or not self._made_here or self.size_bytes or self._torn_bytes:
            return
        try:
            self._fs.unlink(self.path)
        except OSError:
            return  # it stays, empty and ours, and is tried again
        self.close()

    def _cut_off(self, attempted_bytes: int) -> None:
        if self._fd is None:
            return
        self._torn_bytes = attempted_bytes
        try:
            self._fs.truncate(self._fd, self.size_bytes)
            self._torn_bytes = 0
        except OSError:
            return  # `_verify` tries again, and closes the part with a line end if it must

    # ------------------------------------------------------------ is it still our file?

    def _verify(self) -> None:
        fs = self._fs
        if self._fd is None:
            raise OSError(errno.EBADF, "the file is not open")
        named = self._named()
        try:
            held = fs.fstat(self._fd)
            same = (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            same = False  # the network folder was disconnected and is back
        if not same:
            self._reopen()
            held = fs.fstat(self._fd)
        if held.st_size == self.size_bytes:
            self._torn_bytes = 0
        elif self.size_bytes < held.st_size <= self.size_bytes + self._torn_bytes:
            self._cut_off_later(held.st_size)
        else:
            raise StorageError(
                "another program has changed the session file since it was opened.",
                path=self.path,
                hint=f"{ELSEWHERE} Open this one again to see what changed.",
            )

    def _named(self) -> os.stat_result:
        """What is at the path now. Raises OSError, DeletedFile, StorageError when it was moved."""
        try:
            return self._fs.stat(self.path)
        except FileNotFoundError:
            if self._fd is not None and self._fs.fstat(self._fd).st_nlink == 0:
                raise DeletedFile from None
            # It has another name now, which nobody tells; a second file would split the session.
            raise StorageError(
                "the session file was moved away.",
                path=self.path,
                hint=f"Move it back. {ELSEWHERE}",
            ) from None

    def _cut_off_later(self, present_bytes: int) -> None:
        if self._fd is None:
            return
        try:
            self._fs.truncate(self._fd, self.size_bytes)
        except OSError:
            # A file that can only grow: leave the fragment as a bad line of its own.
            self.size_bytes = present_bytes
            self._needs_newline = True
        self._torn_bytes = 0

    def _reopen(self) -> None:
        """Take the file that has the name now, if it is the same to the last byte we know."""
        fs = self._fs
        fd = fs.open(self.path, os.O_RDWR | os.O_APPEND)
        tail = fs.read_at(fd, TAIL_BYTES, max(0, self.size_bytes - TAIL_BYTES))
        if fs.fstat(fd).st_size != self.size_bytes or not self._tail.endswith(tail):
            fs.close(fd)
            raise StorageError(
                "the session file is not the one that was opened any more.",
                path=self.path,
                hint=ELSEWHERE,
            )
        if self._fd is not None:
            fs.close(self._fd)
        self._fd = fd
        if self._lock is not None:
            self._lock.hold(self.path)

    # ------------------------------------------------------------ read, copy, end

    def read(self, start: int, length_bytes: int) -> bytes:
        """Read a part; shorter when the file is. Raises OSError."""
        if self._fd is None:
            raise OSError(errno.EBADF, "the file is not open")
        parts: list[bytes] = []
        while length_bytes:
            part = self._fs.read_at(self._fd, length_bytes, start)
            if not part:
                break
            parts.append(part)
            start += len(part)
            length_bytes -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def copied_to(self, path: str, lines: Iterable[bytes], *, with_content: bool) -> LineFile:
        """Write the content and more lines to a new file, and open that.

        Raises OSError, FileExistsError when the name is taken, SourceUnreadable, and
        SessionLockedError; then nothing is there.
        """
        fs = self._fs
        make_private_folders(fs, str(Path(path).parent))
        path = os.path.realpath(path)
        lock = None if self._keeps_lock(path) else acquire(path, fs=fs)
        try:
            write_file(fs, path, self._content(lines, with_content))
            fd = fs.open(path, os.O_RDWR | os.O_APPEND)
        except BaseException:
            if lock is not None:
                lock.release()
            raise
        if lock is None:
            lock, self._lock = self._lock, None
        if lock is not None:
            lock.hold(path)
        size_bytes = fs.fstat(fd).st_size
        return LineFile(fs, path, self.first_line, fd=fd, lock=lock, size_bytes=size_bytes)

    def _keeps_lock(self, path: str) -> bool:
        """True where a deleted file is written anew and the lock of its name is still held."""
        if self._lock is None or path != os.path.realpath(self.path):
            return False
        if self._lock.in_place:
            return True
        self._lock.release()  # its file went with the folder: it keeps nobody out
        self._lock = None
        return False

    def _content(self, lines: Iterable[bytes], with_content: bool) -> Iterator[bytes]:
        if self._fd is not None and with_content and self._has_first_line:
            yield from read_parts(self._fs, self._fd, self.size_bytes)
            if self._needs_newline:
                yield b"\n"
        else:
            yield self.first_line
        yield from lines

    def second_descriptor(self) -> int | None:
        """A descriptor of the same file for another thread, which must close it."""
        return None if self._fd is None else os.dup(self._fd)

    def close(self) -> None:
        """Give up lock and file; a later `prepare` makes a new file if this one was taken back."""
        lock, self._lock = self._lock, None
        fd, self._fd = self._fd, None
        self._can_write = False
        if lock is not None:
            lock.release()
        if fd is not None:
            self._fs.close(fd)
