"""The stored sessions as commands and pickers see them: list, search, open, copy, rename, delete.

An implementation of `core.session_library.SessionLibrary` over the files of one sessions directory.
Everything blocks; times are Unix milliseconds, sizes bytes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from pi_tui.core.entries import SessionHeader, SessionInfoEntry, iso_timestamp
from pi_tui.core.errors import NotASessionError, NoTrashError, StorageError
from pi_tui.core.leaf import stored_leaf
from pi_tui.core.protocols import OpenedSession, SessionStore
from pi_tui.core.session_library import SessionHit, SessionRow, never
from pi_tui.core.session_search import Match, Query, Span, match_any
from pi_tui.core.tree import Label, SessionTree
from pi_tui.storage.conversation_text import ConversationTexts
from pi_tui.storage.filesystem import REAL_FILE_SYSTEM, FileSystem
from pi_tui.storage.fork import fork_session
from pi_tui.storage.importing import import_copy
from pi_tui.storage.jsonl import look_at_session, open_session
from pi_tui.storage.listing import find_session, iter_sessions
from pi_tui.storage.lock import acquire
from pi_tui.storage.names import flat_name, new_entry_id, new_session_id
from pi_tui.storage.same_directory import SameDirectory
from pi_tui.storage.summary import SessionSummary, read_header
from pi_tui.storage.trash import Trash
from pi_tui.storage.trouble import reason_of

EXCERPT_CHARS = 120
_BEFORE_HIT_CHARS = 40


class _Stopped(Exception):
    """The search is not wanted any more."""


def _as_it_is(path: str) -> str:
    return path


class FileLibrary:
    """See the module. `expand` and `shown` turn a person's paths into absolute ones and back."""

    def __init__(
        self,
        directory: str | os.PathLike[str],
        cwd: str,
        *,
        cache_directory: str | os.PathLike[str] | None = None,
        trash: Trash | None = None,
        expand: Callable[[str], str] = os.path.abspath,
        shown: Callable[[str], str] = _as_it_is,
        fs: FileSystem = REAL_FILE_SYSTEM,
    ) -> None:
        self._directory = os.fspath(directory)
        self._cwd = cwd
        self._cache_directory = cache_directory
        self._trash = trash
        self._expand = expand
        self._shown = shown
        self._fs = fs
        self._texts = ConversationTexts(fs)

    @property
    def cwd(self) -> str:
        return self._cwd

    def exists(self, directory: str) -> bool:
        return Path(directory).is_dir()

    def is_here(self, directory: str) -> bool:
        return SameDirectory(self._cwd, self._fs)(directory)

    def expand(self, path: str) -> str:
        return self._expand(path)

    def shown(self, path: str) -> str:
        return self._shown(path)

    # ------------------------------------------------------------ list, search, find

    def rows(self, *, everywhere: bool) -> Iterator[SessionRow]:
        known: dict[str, bool] = {}
        is_here = SameDirectory(self._cwd, self._fs)
        for summary in iter_sessions(
            self._directory,
            None if everywhere else self._cwd,
            cache_directory=self._cache_directory,
            fs=self._fs,
        ):
            # Under another name of the present directory it is still a session of here.
            cwd = self._cwd if is_here(summary.cwd) else summary.cwd
            if cwd not in known:
                known[cwd] = bool(cwd) and self.exists(cwd)
            yield _row(summary, cwd, known[cwd])

    def search(
        self, query: Query, *, everywhere: bool, stopped: Callable[[], bool] = never
    ) -> Iterator[SessionHit]:
        for row in self.rows(everywhere=everywhere):
            if stopped():
                return
            try:
                hit = self._hit(row, query, stopped)
            except _Stopped:
                return
            except OSError:
                continue  # it was there when it was listed; the next list will tell
            if hit is not None:
                yield hit

    def _hit(self, row: SessionRow, query: Query, stopped: Callable[[], bool]) -> SessionHit | None:
        number, found = match_any(query, (row.title, row.id))
        if found is None:
            number, found = match_any(query, self._texts_of(row, stopped))
        if found is None:
            return None
        # The texts of a long session are not all held for the one that is shown.
        shown = next(islice(self._texts_of(row, stopped), number, None), "")
        excerpt, spans = excerpt_of(shown, found)
        return SessionHit(row, found.score, excerpt, spans)

    def _texts_of(self, row: SessionRow, stopped: Callable[[], bool]) -> Iterator[str]:
        """What a session is found by: title, id, and its words in parts, newest first."""
        yield row.title
        yield row.id
        for part in self._texts.parts(row.path, row.size_bytes, row.modified_ms):
            if stopped():
                raise _Stopped
            yield part

    def find(self, reference: str) -> str:
        looks_like_path = "/" in reference or reference.endswith(".jsonl")
        return find_session(
            self._directory, self._expand(reference) if looks_like_path else reference, fs=self._fs
        )

    # ------------------------------------------------------------ open, copy

    def directory_of(self, path: str) -> str:
        return look_at_session(path, fs=self._fs).cwd

    def open(self, path: str, *, read_only: bool = False, take_over: bool = False) -> OpenedSession:
        return open_session(path, read_only=read_only, take_over=take_over, fs=self._fs)

    def fork(
        self, source: SessionStore, path_ids: Sequence[str], labels: Iterable[Label]
    ) -> OpenedSession:
        header = self._header(source.path)
        return fork_session(source, path_ids, labels, self._directory, header, fs=self._fs)

    def _header(self, parent: str | None) -> SessionHeader:
        header = SessionHeader(
            id=new_session_id(), timestamp=iso_timestamp(_now_ms()), cwd=self._cwd
        )
        if parent is None:
            return header
        return SessionHeader(
            id=header.id, timestamp=header.timestamp, cwd=self._cwd, parent_session=parent
        )

    def import_file(self, path: str) -> OpenedSession:
        copy = import_copy(self._fs, self._expand(path), self._directory, self._cwd)
        return open_session(copy, fs=self._fs)

    # ------------------------------------------------------------ change

    def rename(self, path: str, name: str) -> None:
        opened = self.open(path)
        store = opened.store
        try:
            leaf_id = stored_leaf(opened.heads, store.load)
            tree = SessionTree(opened.heads, store, leaf_id)
            entry_id = new_entry_id()
            while entry_id in tree:
                entry_id = new_entry_id()
            entry = SessionInfoEntry(
                id=entry_id,
                parent_id=tree.leaf_id,
                timestamp=iso_timestamp(_now_ms()),
                name=flat_name(name),
            )
            store.append(entry, keep_on_failure=False)
        finally:
            store.close()

    def delete(self, path: str, *, for_good: bool = False) -> None:
        try:
            if read_header(self._fs, path) is None:
                raise NotASessionError("This is not a session; it was not deleted.", path=path)
            lock = acquire(path, fs=self._fs)
            try:
                self._remove(path, for_good)
            finally:
                lock.release()
        except OSError as error:
            raise StorageError(
                f"The session cannot be deleted: {reason_of(error)}. Nothing was changed.",
                path=path,
            ) from error

    def _remove(self, path: str, for_good: bool) -> None:
        if for_good:
            self._fs.unlink(path)
        elif self._trash is not None:
            self._trash.take(path)
        else:
            raise NoTrashError(
                "There is no trash on this system; nothing was deleted.",
                path=path,
                hint="It can be deleted for good.",
            )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _row(summary: SessionSummary, cwd: str, cwd_exists: bool) -> SessionRow:
    return SessionRow(
        path=summary.path,
        id=summary.id,
        cwd=cwd,
        cwd_exists=cwd_exists,
        name=summary.name,
        first_text=summary.first_text,
        message_count=summary.message_count,
        created_ms=summary.created_ms,
        modified_ms=summary.modified_ms,
        size_bytes=summary.size_bytes,
        parent=summary.parent,
        branch_count=summary.branch_count,
    )


def excerpt_of(text: str, found: Match) -> tuple[str, tuple[Span, ...]]:
    """One line around the first hit, and where the hits are in it."""
    first = found.spans[0][0] if found.spans else 0
    start = max(0, first - _BEFORE_HIT_CHARS)
    cut = text[start : start + EXCERPT_CHARS]
    spans = tuple(
        (max(0, low - start), min(len(cut), high - start))
        for low, high in found.spans
        if high > start and low < start + len(cut)
    )
    # One character for one: the spans stay right.
    return "".join(" " if char.isspace() else char for char in cut), spans
