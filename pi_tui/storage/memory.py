"""A session that is never written: the store behind `--no-session`."""

from __future__ import annotations

from pi_tui.core.entries import Entry, SessionHeader, entry_to_data
from pi_tui.core.errors import StorageError
from pi_tui.storage.lines import encode_line


class MemoryStore:
    """A SessionStore that keeps entries as they are and forgets them at the end."""

    def __init__(self, header: SessionHeader) -> None:
        self._header = header
        self._entries: dict[str, Entry] = {}

    @property
    def header(self) -> SessionHeader:
        return self._header

    @property
    def path(self) -> str | None:
        return None

    @property
    def read_only(self) -> bool:
        return False

    @property
    def exists(self) -> bool:
        """Always false: nothing of it is on disk."""
        return False

    @property
    def pending(self) -> int:
        """Always 0: nothing waits to be written."""
        return 0

    def append(self, entry: Entry, *, keep_on_failure: bool = True) -> None:
        self._entries[entry.id] = entry

    def load(self, entry_id: str) -> Entry:
        try:
            return self._entries[entry_id]
        except KeyError:
            raise StorageError("The session has no such entry.") from None

    def raw_line(self, entry_id: str) -> bytes:
        """The line an entry would be stored as, without a line end."""
        return encode_line(entry_to_data(self.load(entry_id))).rstrip(b"\n")

    def flush(self) -> None:
        """Nothing waits."""

    def relocate(self, directory: str) -> list[str]:
        """Refused: the user asked for a session that is not kept."""
        raise StorageError("This session is not kept in a file, so it cannot be moved.")

    def sync(self) -> None:
        """Nothing is on a device."""

    def close(self) -> None:
        """Nothing is held."""
