"""Reads and searches the stored sessions for the picker while the person goes on typing.

Both happen in threads, one list and one search at a time; starting another ends the one before. A
search looks at what is known already before it reads any file, so names are found at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from pi_tui.core.errors import PiTuiError
from pi_tui.core.session_library import SessionHit, SessionLibrary, SessionRow
from pi_tui.core.session_search import Query, match_any
from pi_tui.tui.side_reader import SideReader, Stopped


class FeedListener(Protocol):
    """Who shows what is read. A problem is a sentence for people, or None."""

    def rows_read(self, rows: Sequence[SessionRow]) -> None: ...
    def reading_ended(self, problem: str | None) -> None: ...
    def hits_found(self, hits: Sequence[SessionHit]) -> None: ...
    def search_ended(self, problem: str | None) -> None: ...


class SessionFeed:
    """What is read for one picker."""

    def __init__(self, library: SessionLibrary, listener: FeedListener) -> None:
        self._library = library
        self._listener = listener
        self._reading: SideReader[SessionRow] | None = None
        self._search: SideReader[SessionHit] | None = None

    @property
    def reading(self) -> bool:
        return self._reading is not None and self._reading.running

    @property
    def searching(self) -> bool:
        return self._search is not None and self._search.running

    def read(self, *, everywhere: bool) -> None:
        """Read the sessions of the present directory, or of all."""
        self._stop_reading()
        listener, library = self._listener, self._library
        self._reading = SideReader(
            lambda stopped: library.rows(everywhere=everywhere),
            listener.rows_read,
            lambda failure: _end(failure, listener.reading_ended),
        )

    def search(self, query: Query, known: Sequence[SessionRow], *, everywhere: bool) -> None:
        """Find the sessions that fit; `known` are rows that were read already."""
        self.stop_search()
        listener, library = self._listener, self._library

        def source(stopped: Stopped) -> Iterator[SessionHit]:
            yield from title_hits(query, known)
            yield from library.search(query, everywhere=everywhere, stopped=stopped)

        self._search = SideReader(
            source,
            listener.hits_found,
            lambda failure: _end(failure, listener.search_ended),
        )

    def stop_search(self) -> None:
        if self._search is not None:
            self._search.stop()
            self._search = None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.stop()
            self._reading = None

    def stop(self) -> None:
        """End everything."""
        self._stop_reading()
        self.stop_search()


def title_hits(query: Query, rows: Sequence[SessionRow]) -> Iterator[SessionHit]:
    """The rows whose title or id fits."""
    for row in rows:
        number, found = match_any(query, (row.title, row.id))
        if found is not None:
            yield SessionHit(row, found.score, (row.title, row.id)[number], found.spans)


def words_of(error: PiTuiError) -> str:
    return error.text


def _end(failure: Exception | None, ended: Callable[[str | None], None]) -> None:
    if failure is None or isinstance(failure, PiTuiError):
        ended(None if failure is None else words_of(failure))
        return
    ended("This list is not complete, because of an error in this program.")
    raise failure  # a fault: the application tells about it
