"""The store of one session file: append, read back, survive what disks do.

An entry is one line and goes out in one write; what cannot be written waits in memory, in order,
and is tried again before anything newer. Methods may be called from any thread. Offsets and sizes
are bytes.
"""

from __future__ import annotations

import os
import threading
from array import array
from pathlib import Path

from msgspec.structs import replace

from pi_tui.core.entries import (
    Entry,
    SessionHeader,
    SessionInfoEntry,
    entry_from_data,
    entry_to_data,
)
from pi_tui.core.errors import SessionLockedError, StorageError
from pi_tui.storage.filesystem import FileSystem, sync_folder
from pi_tui.storage.index import Index
from pi_tui.storage.line_file import DeletedFile, LineFile
from pi_tui.storage.lines import decode_line, encode_line
from pi_tui.storage.names import flat_name
from pi_tui.storage.nesting import pruned
from pi_tui.storage.trouble import ELSEWHERE, kept_text, not_saved, reason_of
from pi_tui.storage.whole_file import SourceUnreadable


def _line_of(entry: Entry) -> bytes:
    try:
        return encode_line(entry_to_data(entry))
    except RecursionError:
        return encode_line(entry_to_data(pruned(entry)))


class FileStore:
    """A SessionStore on a JSONL file, made by `open_session` and `create_session`.

    Besides the protocol: `pending` counts entries that are not on disk, `flush` tries them again,
    `relocate` takes everything to another folder.
    """

    def __init__(
        self,
        fs: FileSystem,
        header: SessionHeader,
        file: LineFile,
        *,
        index: Index | None = None,
        lines_in_memory: dict[str, bytes] | None = None,
        read_only: bool = False,
    ) -> None:
        self._fs = fs
        self._header = header
        self._file = file
        self._read_only = read_only
        self._closed = False
        self._folder_synced = file.exists
        self._rows: dict[str, int] = index.rows if index else {}
        self._starts: array[int] = index.starts if index else array("Q")
        self._lengths: array[int] = index.lengths if index else array("Q")
        self._in_memory = lines_in_memory or {}
        self._pending: dict[str, bytes] = {}
        self._mutex = threading.RLock()

    @property
    def header(self) -> SessionHeader:
        return self._header

    @property
    def path(self) -> str | None:
        """The absolute path, also before the first append brings the file into being."""
        return self._file.path

    @property
    def read_only(self) -> bool:
        """True when the session was opened for reading only."""
        return self._read_only

    @property
    def exists(self) -> bool:
        """True when there is a file: it was there before, or something was written."""
        return self._file.exists

    @property
    def pending(self) -> int:
        """Entries that are in memory only, because writing them failed."""
        return len(self._pending)

    # ------------------------------------------------------------ append

    def append(self, entry: Entry, *, keep_on_failure: bool = True) -> None:
        """Write one entry, after those that still wait.

        Raises StorageError when anything is not on disk afterwards. The entry then waits in memory
        (`pending`) and need not be appended again; without `keep_on_failure` it is forgotten.
        """
        with self._mutex:
            self._check_open()
            self._pending[entry.id] = _line_of(entry)
            self._write_pending(forget=None if keep_on_failure else entry.id)

    def flush(self) -> None:
        """Try again to write what waits. Raises StorageError when something still waits."""
        with self._mutex:
            if self._pending:
                self._check_open()
                self._write_pending()

    def repair(self) -> None:
        """Close an unfinished last line and get ready to write. Raises StorageError."""
        with self._mutex:
            self._check_open()
            self._write_pending()

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("The session is closed; nothing was written.", path=self._file.path)
        if self._read_only:
            raise StorageError(
                "The session is open for reading only; nothing was written.",
                path=self._file.path,
                hint="Fork it to go on in a new session.",
            )

    def _write_pending(self, forget: str | None = None) -> None:
        """Write what waits; after a failure `forget` does not wait any longer."""
        try:
            file = self._ready_file()
            while self._pending:
                entry_id, line = next(iter(self._pending.items()))
                self._note(entry_id, file.write(line), len(line) - 1)
                del self._pending[entry_id]
            if file.unfinished:
                file.write(b"")
        except BaseException as error:
            if forget is not None:
                self._pending.pop(forget, None)
            self._file.discard_if_empty()
            if isinstance(error, OSError):
                raise not_saved(self._file.path, error, len(self._pending)) from error
            if isinstance(error, StorageError):
                raise self._still_pending(error) from error
            raise

    def _ready_file(self) -> LineFile:
        """The file to write to; one that was deleted is written anew, with what waits."""
        try:
            self._file.prepare()
        except DeletedFile:
            lines = list(self._pending.values())
            try:
                new = self._file.copied_to(self._file.path, lines, with_content=True)
            except SourceUnreadable as unreadable:
                raise unreadable.error from unreadable
            self._go_on_in(new, lines)
        return self._file

    def _still_pending(self, error: StorageError) -> StorageError:
        message = f"Not saved: {error.message} {kept_text(len(self._pending))}"
        reason = error.message.rstrip(".")
        if isinstance(error, SessionLockedError):
            return SessionLockedError(
                message, path=self._file.path, owner=error.owner, hint=ELSEWHERE, reason=reason
            )
        return StorageError(message, path=self._file.path, hint=error.hint, reason=reason)

    def _note(self, entry_id: str, start: int, length: int) -> None:
        self._rows[entry_id] = len(self._starts)
        self._starts.append(start)
        self._lengths.append(length)

    # ------------------------------------------------------------ read

    def load(self, entry_id: str) -> Entry:
        """Read one entry; a name comes on one line. Raises StorageError when the file lost it."""
        try:
            data = decode_line(self.raw_line(entry_id))
        except ValueError as error:
            raise self._changed() from error
        if not isinstance(data, dict) or data.get("id") != entry_id:
            raise self._changed()
        entry = entry_from_data(data)
        if isinstance(entry, SessionInfoEntry):
            return replace(entry, name=flat_name(entry.name))
        return entry

    def raw_line(self, entry_id: str) -> bytes:
        """The bytes stored for an entry, without the line end. Raises StorageError."""
        with self._mutex:
            line = self._pending.get(entry_id) or self._in_memory.get(entry_id)
            if line is not None:
                return line.rstrip(b"\n")
            if self._closed:
                raise StorageError("The session is closed.", path=self._file.path)
            row = self._rows.get(entry_id)
            if row is None:
                raise StorageError("The session has no such entry.", path=self._file.path)
            length = self._lengths[row]
            try:
                line = self._file.read(self._starts[row], length)
            except OSError as error:
                raise StorageError(
                    f"An entry cannot be read from the session file: {reason_of(error)}.",
                    path=self._file.path,
                ) from error
        if len(line) < length:
            raise self._changed()
        return line

    def _changed(self) -> StorageError:
        return StorageError(
            "The session file was changed by another program; an entry is not where it was.",
            path=self._file.path,
            hint="Open the session again.",
        )

    # ------------------------------------------------------------ sync, move, close

    def sync(self) -> None:
        """Put everything on the device. Raises StorageError. May take long: call it in a thread."""
        with self._mutex:
            if self._read_only:
                return
            fd = self._file.second_descriptor()
            folder = None if self._folder_synced else str(Path(self._file.path).parent)
        if fd is None:
            return
        try:
            self._fs.fsync(fd)
            if folder is not None:
                sync_folder(self._fs, folder)
                self._folder_synced = True
        except OSError as error:
            raise StorageError(
                f"The system could not put the session on the device: {reason_of(error)}.",
                path=self._file.path,
                hint=ELSEWHERE,
            ) from error
        finally:
            os.close(fd)

    def relocate(self, directory: str) -> list[str]:
        """Write the whole session, waiting entries included, into another folder and go on there.

        The old file stays as it is. A deleted file may be written anew at its own place. Returns
        notices about what could not be taken along. Raises StorageError; then all is as before.
        """
        with self._mutex:
            self._check_open()
            target = str(Path(directory).absolute() / Path(self._file.path).name)
            try:
                return self._move(target)
            except FileExistsError as error:
                raise StorageError(
                    "There is a file of that name in this folder already; nothing was changed.",
                    path=target,
                    hint="Choose another folder.",
                ) from error
            except OSError as error:
                raise StorageError(
                    f"The session cannot be saved there: {reason_of(error)}. Nothing was changed.",
                    path=target,
                    hint="Choose another folder.",
                ) from error

    def _move(self, target: str) -> list[str]:
        old, lines, notices = self._file, list(self._pending.values()), []
        try:
            new = old.copied_to(target, lines, with_content=True)
        except SourceUnreadable as unreadable:
            notices.append(
                f"The old file could not be read ({reason_of(unreadable.error)}); only entries "
                "that were still in memory were taken along. The old file was left as it is."
            )
            new = old.copied_to(target, lines, with_content=False)
            self._rows, self._starts, self._lengths = {}, array("Q"), array("Q")
        self._go_on_in(new, lines)
        return notices

    def _go_on_in(self, new: LineFile, lines: list[bytes]) -> None:
        """Hold a file that ends with the lines that waited."""
        old = self._file
        start = new.size_bytes - sum(map(len, lines))
        for entry_id, line in self._pending.items():
            self._note(entry_id, start, len(line) - 1)
            start += len(line)
        self._pending.clear()
        self._file = new
        self._folder_synced = True
        old.close()

    def close(self) -> None:
        """Write what waits, give up the lock and the file.

        Raises StorageError when entries could not be written; they are lost with the program.
        Closing twice is harmless.
        """
        with self._mutex:
            if self._closed:
                return
            try:
                self.flush()
            finally:
                self._closed = True
                self._file.close()
