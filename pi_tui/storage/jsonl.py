"""Opens and creates session files in format v3: the door of this room.

Opening checks, locks, brings old versions up to date, closes an unfinished last line and tells in
plain sentences what was odd. It blocks; large files are opened in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from pi_tui.core.entries import FORMAT_VERSION, SessionHeader, header_to_data
from pi_tui.core.errors import NotASessionError, SessionNotFoundError, StorageError
from pi_tui.core.protocols import OpenedSession
from pi_tui.storage.filesystem import REAL_FILE_SYSTEM, FileSystem, is_regular
from pi_tui.storage.index import Header, Index, find_header, read_index
from pi_tui.storage.line_file import LineFile
from pi_tui.storage.lines import encode_line
from pi_tui.storage.lock import SessionLock, acquire
from pi_tui.storage.names import new_entry_id, new_session_path
from pi_tui.storage.notices import notices_of
from pi_tui.storage.session_file import FileStore
from pi_tui.storage.trouble import cannot_read, reason_of
from pi_tui.storage.upgrade import index_of_lines, old_lines, rewrite


def create_session(
    directory: str | os.PathLike[str],
    header: SessionHeader,
    *,
    fs: FileSystem = REAL_FILE_SYSTEM,
) -> FileStore:
    """Make a store for a new session below the sessions directory.

    Nothing is on disk before the first append; it writes header and entry in one go.
    """
    path = new_session_path(os.fspath(directory), header)
    return FileStore(fs, header, LineFile(fs, path, encode_line(header_to_data(header))))


def look_at_session(
    path: str | os.PathLike[str], *, fs: FileSystem = REAL_FILE_SYSTEM
) -> SessionHeader:
    """The header of a session file; nothing is locked and nothing is changed.

    Raises SessionNotFoundError, NotASessionError, StorageError.
    """
    real = os.path.realpath(path)
    try:
        return _Opening(fs, real, None, new_entry_id).look()
    except OSError as error:
        raise cannot_read(real, error) from error


def open_session(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    take_over: bool = False,
    new_header: Callable[[], SessionHeader] | None = None,
    new_id: Callable[[], str] = new_entry_id,
    fs: FileSystem = REAL_FILE_SYSTEM,
) -> OpenedSession:
    """Open a session file.

    `take_over` takes a lock whose owner cannot be looked up; ask the user first. An empty file is
    refused, unless `new_header` gives the header it is to get; `new_id` gives ids for entries of
    version 1, which have none.
    Where the file cannot be written, it is opened all the same: a notice says so, and entries wait
    in memory. Raises SessionNotFoundError, NotASessionError (the file is untouched),
    SessionLockedError (read-only is always possible), StorageError.
    """
    real = os.path.realpath(path)
    opening = _Opening(fs, real, new_header, new_id)
    try:
        opening.look()
        return opening.read() if read_only else opening.take(take_over)
    except OSError as error:
        raise cannot_read(real, error) from error


class _Opening:
    """One attempt to open one file."""

    def __init__(
        self,
        fs: FileSystem,
        path: str,
        new_header: Callable[[], SessionHeader] | None,
        new_id: Callable[[], str],
    ) -> None:
        self._fs = fs
        self._path = path
        self._header_for_empty = new_header
        self._new_id = new_id

    def look(self) -> SessionHeader:
        """The header. Refuses what is no session, before anything is made or locked."""
        try:
            status = self._fs.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            raise SessionNotFoundError(
                "There is no session file of this name.", path=self._path
            ) from None
        if not is_regular(status):
            raise self._not_a_session("it is not an ordinary file")
        if not status.st_size:
            return self._require_header()()
        fd = self._fs.open(self._path, os.O_RDONLY)
        try:
            return self._header(fd).value
        finally:
            self._fs.close(fd)

    def _not_a_session(self, reason: str) -> NotASessionError:
        return NotASessionError(
            f"This is not a session: {reason}. It was not touched.", path=self._path
        )

    def _require_header(self) -> Callable[[], SessionHeader]:
        """What makes the header of an empty file; refuses the file where the caller has none."""
        if self._header_for_empty is None:
            raise self._not_a_session("the file is empty")
        return self._header_for_empty

    def _header(self, fd: int) -> Header:
        header = find_header(self._fs, fd)
        if header is None:
            raise self._not_a_session("the file does not begin with a session header")
        return header

    # ------------------------------------------------------------ for reading only

    def read(self) -> OpenedSession:
        fd = self._fs.open(self._path, os.O_RDONLY)
        try:
            if not self._fs.fstat(fd).st_size:
                return self._opened(self._require_header()(), fd, Index(), read_only=True)
            header = self._header(fd)
            if header.value.version < FORMAT_VERSION:
                lines, skipped = old_lines(self._fs, fd, header, self._new_id)
                index, kept = index_of_lines(lines)
                said = _old_version_notices(header, skipped)
                return self._opened(header.value, fd, index, read_only=True, lines=kept, said=said)
            index = read_index(self._fs, fd, header)
            return self._opened(header.value, fd, index, read_only=True)
        except BaseException:
            self._fs.close(fd)
            raise

    # ------------------------------------------------------------ for writing

    def take(self, take_over: bool) -> OpenedSession:
        lock: SessionLock | None = None
        trouble: OSError | None = None
        try:
            lock = acquire(self._path, take_over=take_over, fs=self._fs)
        except OSError as error:
            trouble = error
        try:
            return self._take_locked(lock, trouble)
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    def _take_locked(self, lock: SessionLock | None, trouble: OSError | None) -> OpenedSession:
        fd, trouble = self._open_file(trouble)
        said: list[str] = []
        try:
            if not self._fs.fstat(fd).st_size:
                header, index = self._require_header()(), Index()
            else:
                found = self._header(fd)
                if found.value.version < FORMAT_VERSION:
                    said = self._upgrade(fd, found, trouble)
                    if lock is not None:
                        lock.hold(self._path)
                    fresh, trouble = self._open_file(None)
                    self._fs.close(fd)
                    fd = fresh
                    found = self._header(fd)
                header, index = found.value, read_index(self._fs, fd, found)
            return self._opened(header, fd, index, lock=lock, trouble=trouble, said=said)
        except BaseException:
            self._fs.close(fd)
            raise

    def _open_file(self, trouble: OSError | None) -> tuple[int, OSError | None]:
        if trouble is None:
            try:
                return self._fs.open(self._path, os.O_RDWR | os.O_APPEND), None
            except OSError as error:
                trouble = error
        return self._fs.open(self._path, os.O_RDONLY), trouble

    def _upgrade(self, fd: int, header: Header, trouble: OSError | None) -> list[str]:
        try:
            if trouble is not None:
                raise trouble
            lines, skipped = old_lines(self._fs, fd, header, self._new_id)
            kept = rewrite(self._fs, self._path, lines, header.value.version)
        except OSError as error:
            raise StorageError(
                f"The session has format version {header.value.version} and could not be written "
                f"in version {FORMAT_VERSION}: {reason_of(error)}. It was left as it is.",
                path=self._path,
                hint="Open it read-only, or copy it to another place and open it there.",
            ) from error
        return [
            *_old_version_notices(header, skipped),
            f"It was written in version {FORMAT_VERSION}; the old file is kept as "
            f"{Path(kept).name}.",
        ]

    def _opened(
        self,
        header: SessionHeader,
        fd: int,
        index: Index,
        *,
        lock: SessionLock | None = None,
        trouble: OSError | None = None,
        read_only: bool = False,
        lines: dict[str, bytes] | None = None,
        said: list[str] | None = None,
    ) -> OpenedSession:
        file = LineFile(
            self._fs,
            self._path,
            encode_line(header_to_data(header)),
            fd=fd,
            lock=lock,
            size_bytes=index.size_bytes,
            can_write=not read_only and trouble is None,
            needs_newline=index.findings.lacks_newline and not read_only,
        )
        store = FileStore(
            self._fs, header, file, index=index, lines_in_memory=lines, read_only=read_only
        )
        if not read_only and trouble is None and file.unfinished:
            try:
                store.repair()
            except StorageError as error:
                cause = error.__cause__
                if not isinstance(cause, OSError):
                    raise
                trouble = cause
        notices = [*(said or ()), *notices_of(index.findings, writable=file.closes_lines)]
        if header.version > FORMAT_VERSION:
            notices.append(
                f"The session was written by a newer program (format version {header.version}); "
                "parts this one does not know are kept but not used."
            )
        if trouble is not None:
            notices.append(
                f"The session file cannot be written: {reason_of(trouble)}. What you add is kept "
                "in memory and written as soon as that works, or saved to another place."
            )
        return OpenedSession(store, tuple(index.heads), tuple(notices))


def _old_version_notices(header: Header, skipped: int) -> list[str]:
    said = [f"The session had format version {header.value.version}."]
    if skipped:
        lines = "1 line" if skipped == 1 else f"{skipped} lines"
        said.append(f"{lines} could not be read and stayed behind in the old file.")
    return said
