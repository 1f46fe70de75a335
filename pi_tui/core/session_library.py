"""What commands and pickers may ask about stored sessions and exports, as protocols and values.

Rooms at the edge implement them; nothing here touches a disk. Paths are absolute strings, times
Unix milliseconds, sizes bytes. Names and texts are foreign: sanitise them where they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from pi_tui.core.entries import EntryHead
from pi_tui.core.leaf import stored_leaf
from pi_tui.core.protocols import OpenedSession, SessionStore
from pi_tui.core.session_search import Query, Span
from pi_tui.core.tree import Label, SessionTree

ExportFormat: TypeAlias = Literal["html", "markdown", "jsonl"]


class SessionRow(Struct, frozen=True):
    """One session of a list.

    `cwd` is the directory it belongs to ("" when it names none), `cwd_exists` whether that is still
    there; `parent` is the path or id of the session it was forked from.
    """

    path: str
    id: str
    cwd: str
    cwd_exists: bool
    name: str | None
    first_text: str
    message_count: int
    created_ms: int | None
    modified_ms: int
    size_bytes: int
    parent: str | None = None
    branch_count: int = 1

    @property
    def title(self) -> str:
        """The name, else how the conversation begins, on one line."""
        return self.name or " ".join(self.first_text.split()) or "(no messages)"


class SessionHit(Struct, frozen=True):
    """A session that fits a query. `spans` are places in `excerpt`, which is one line."""

    row: SessionRow
    score: float
    excerpt: str
    spans: tuple[Span, ...] = ()


def never() -> bool:
    """The `stopped` of a search that goes on to its end."""
    return False


class SessionLibrary(Protocol):
    """The stored sessions. Everything blocks: call it in a thread. All raise StorageError."""

    @property
    def cwd(self) -> str:
        """The present directory."""
        ...

    def rows(self, *, everywhere: bool) -> Iterator[SessionRow]:
        """Sessions of the present directory, or of all, changed last first; read as iterated."""
        ...

    def search(
        self, query: Query, *, everywhere: bool, stopped: Callable[[], bool] = never
    ) -> Iterator[SessionHit]:
        """The sessions that fit, in the order of `rows`.

        Searched are names, labels, summaries and what people and models wrote, in the whole file;
        letters of a fuzzy term that do not stand together only in some places of long ones.
        `stopped` is asked while sessions are read: True ends the search. Raises UsageError when a
        pattern is too costly.
        """
        ...

    def find(self, reference: str) -> str:
        """The path of the session a path, an id or the beginning of one stands for."""
        ...

    def directory_of(self, path: str) -> str:
        """The directory a session belongs to, "" for none; the file is only looked at."""
        ...

    def open(self, path: str, *, read_only: bool = False, take_over: bool = False) -> OpenedSession:
        """Open a session. Raises SessionLockedError while another process has it."""
        ...

    def fork(
        self, source: SessionStore, path_ids: Sequence[str], labels: Iterable[Label]
    ) -> OpenedSession:
        """Write a path, root to leaf, as a new session of the present directory and open it."""
        ...

    def import_file(self, path: str) -> OpenedSession:
        """Copy a session file into the library, as a session of the present directory."""
        ...

    def rename(self, path: str, name: str) -> None:
        """Name a session that is not open."""
        ...

    def delete(self, path: str, *, for_good: bool = False) -> None:
        """Move a session to the system's trash. Raises NoTrashError where there is none.

        `for_good` deletes it without a trash.
        """
        ...

    def exists(self, directory: str) -> bool:
        """True when a directory is there."""
        ...

    def is_here(self, directory: str) -> bool:
        """True when it is the present directory, under whatever name."""
        ...

    def expand(self, path: str) -> str:
        """An absolute path from what a person wrote."""
        ...

    def shown(self, path: str) -> str:
        """A path as the person knows it."""
        ...


def threaded(rows: Iterable[SessionRow]) -> list[tuple[int, SessionRow]]:
    """Rows with their depth: forks below the session they come from, others in their order."""
    listed = list(rows)
    by_name = {row.path: row for row in listed} | {row.id: row for row in listed}
    below: dict[str, list[SessionRow]] = {}
    tops: list[SessionRow] = []
    for row in listed:
        parent = by_name.get(row.parent) if row.parent else None
        if parent is None or parent is row:
            tops.append(row)
        else:
            below.setdefault(parent.path, []).append(row)
    placed: dict[str, tuple[int, SessionRow]] = {}
    # Whatever forms a ring of parents hangs below no top; it is listed like one.
    for top in (*tops, *listed):
        waiting = [(0, top)]
        while waiting:
            depth, row = waiting.pop()
            if row.path in placed:
                continue
            placed[row.path] = depth, row
            waiting.extend((depth + 1, fork) for fork in reversed(below.get(row.path, [])))
    return list(placed.values())


# ---------------------------------------------------------------- exports


class SessionSnapshot(Struct, frozen=True):
    """A session as it is at one moment, for another thread: the store is safe there.

    `heads` in file order; `leaf_id` None is the place before the first entry.
    """

    store: SessionStore
    heads: tuple[EntryHead, ...]
    leaf_id: str | None

    def tree(self) -> SessionTree:
        """A tree of its own over the same entries."""
        return SessionTree(self.heads, self.store, self.leaf_id)


def snapshot_of(tree: SessionTree, store: SessionStore) -> SessionSnapshot:
    """The present state of a session that is in use."""
    return SessionSnapshot(store, tuple(tree.head(i) for i in tree.ids()), tree.leaf_id)


def snapshot_of_opened(opened: OpenedSession) -> SessionSnapshot:
    """The state of a session that was just opened."""
    leaf_id = stored_leaf(opened.heads, opened.store.load)
    tree = SessionTree(opened.heads, opened.store, leaf_id)
    return SessionSnapshot(opened.store, opened.heads, tree.leaf_id)


class ExportReport(Struct, frozen=True):
    """What was written. Counts are of things a reader of the file may miss."""

    path: str
    format: ExportFormat
    size_bytes: int
    masked_keys: int = 0
    commands_left_out: int = 0


class Exporter(Protocol):
    """Writes a conversation to a file for its owner alone. Blocks: call it in a thread."""

    def export(
        self, session: SessionSnapshot, path: str, *, replace: bool = False, masked: bool = True
    ) -> ExportReport:
        """Write the format the name of the file ends with: .jsonl, .md, .html.

        Raises UsageError for another ending, and when the file is there and `replace` is not set;
        StorageError when it cannot be written.
        """
        ...
