"""Which sessions the picker shows, in which order, and which one is selected. Pure.

Rows and hits come in parts, while a list is read or searched. A row the person moved to stays
selected wherever it moves; otherwise the first one is selected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.session_library import SessionHit, SessionRow, threaded

Sort: TypeAlias = Literal["threaded", "recent", "relevance"]
SORTS: tuple[Sort, ...] = ("threaded", "recent", "relevance")


class PickerChoices(Struct):
    """What the person chose about the list; kept from one opening to the next."""

    everywhere: bool = False
    sort: Sort = "threaded"
    named_only: bool = False
    paths: bool = False


class ShownSession(Struct, frozen=True):
    """A row of the list. `depth` counts the forks it hangs below; `hit` is set in a search."""

    row: SessionRow
    depth: int = 0
    hit: SessionHit | None = None


class SessionView:
    """The rows of both scopes, what fits the search, and the list made of them."""

    def __init__(self, choices: PickerChoices) -> None:
        self.choices = choices
        self._rows: dict[bool, dict[str, SessionRow]] = {False: {}, True: {}}
        self._not_seen: set[str] = set()
        self._hits: dict[str, SessionHit] | None = None
        self._stale = False
        self._shown: list[ShownSession] = []
        self._at = 0
        self._held: str | None = None

    # ------------------------------------------------------------ what is shown

    def __len__(self) -> int:
        return len(self._shown)

    def __getitem__(self, number: int) -> ShownSession:
        return self._shown[number]

    @property
    def at(self) -> int:
        """The number of the selected row; 0 in an empty list."""
        return self._at

    @property
    def selected(self) -> SessionRow | None:
        return self._shown[self._at].row if self._shown else None

    @property
    def rows(self) -> Sequence[SessionRow]:
        """All known rows of the scope, changed last first."""
        return tuple(self._rows[self.choices.everywhere].values())

    @property
    def searching(self) -> bool:
        """True while only what fits a search is shown."""
        return self._hits is not None

    @property
    def stale(self) -> bool:
        """True while the list does not show yet what was searched for."""
        return self._stale

    # ------------------------------------------------------------ the list

    def begin_reading(self) -> None:
        """The rows of the scope are read again; those that do not come any more will go."""
        self._not_seen = set(self._rows[self.choices.everywhere])

    def add_rows(self, rows: Iterable[SessionRow]) -> None:
        known = self._rows[self.choices.everywhere]
        for row in rows:
            known[row.path] = row
            self._not_seen.discard(row.path)
        self._rebuild()

    def end_reading(self) -> None:
        known = self._rows[self.choices.everywhere]
        for path in self._not_seen:
            known.pop(path, None)
        self._not_seen = set()
        self._rows[self.choices.everywhere] = {
            row.path: row for row in sorted(known.values(), key=lambda row: -row.modified_ms)
        }
        self._rebuild()

    def replace_row(self, row: SessionRow) -> None:
        """Show a session as it is now."""
        for known in self._rows.values():
            if row.path in known:
                known[row.path] = row
        self._rebuild()

    def remove(self, path: str) -> None:
        """Take a session out; the one after it is selected."""
        for known in self._rows.values():
            known.pop(path, None)
        if self._hits is not None:
            self._hits.pop(path, None)
        was = self.selected
        if was is not None and was.path == path:
            after = self._at + (1 if self._at + 1 < len(self._shown) else -1)
            self._held = self._shown[after].row.path if after >= 0 else None
        self._rebuild()

    # ------------------------------------------------------------ search

    def clear_search(self) -> None:
        """Show everything again."""
        self._hits = None
        self._stale = False
        self._rebuild()

    def begin_search(self) -> None:
        """Another search begins; what is shown stays until its first hits, or `drop_stale`."""
        self._stale = True
        self._held = None

    def add_hits(self, hits: Iterable[SessionHit]) -> None:
        self.drop_stale()
        if self._hits is not None:
            self._hits.update((hit.row.path, hit) for hit in hits)
        self._rebuild()

    def drop_stale(self) -> None:
        """Show nothing but what the present search has found so far."""
        if self._stale:
            self._stale = False
            self._hits = {}
            self._rebuild()

    # ------------------------------------------------------------ choices of the person

    def toggle_scope(self) -> None:
        self.choices.everywhere = not self.choices.everywhere
        self._rebuild()

    def next_sort(self) -> None:
        at = SORTS.index(self.choices.sort)
        self.choices.sort = SORTS[(at + 1) % len(SORTS)]
        self._rebuild()

    def toggle_named(self) -> None:
        self.choices.named_only = not self.choices.named_only
        self._rebuild()

    def move(self, rows: int, *, wrap: bool = False) -> None:
        """Select another row."""
        count = len(self._shown)
        if count:
            at = self._at + rows
            self.select(at % count if wrap else min(max(0, at), count - 1))

    def select(self, number: int) -> None:
        self._at = number
        self._held = self._shown[number].row.path

    # ------------------------------------------------------------ making the list

    def _rebuild(self) -> None:
        hits = self._hits
        rows = [
            row
            for row in self.rows
            if (row.name or not self.choices.named_only) and (hits is None or row.path in hits)
        ]
        found = hits or {}
        sort = self.choices.sort
        if sort == "threaded":
            placed = threaded(rows)
            if hits is not None:
                placed = best_threads_first(placed, found)
        else:
            if sort == "relevance" and hits is not None:
                rows.sort(key=lambda row: -found[row.path].score)
            placed = [(0, row) for row in rows]
        self._shown = [ShownSession(row, depth, found.get(row.path)) for depth, row in placed]
        self._keep_selection()

    def _keep_selection(self) -> None:
        if self._held is None:
            self._at = 0
            return
        same = (n for n, shown in enumerate(self._shown) if shown.row.path == self._held)
        at = next(same, None)
        self._at = min(self._at, max(0, len(self._shown) - 1)) if at is None else at


def best_threads_first(
    placed: Sequence[tuple[int, SessionRow]], hits: Mapping[str, SessionHit]
) -> list[tuple[int, SessionRow]]:
    """Threads in the order of the best hit in each; a thread stays together."""
    threads: list[list[tuple[int, SessionRow]]] = []
    for depth, row in placed:
        if depth == 0:
            threads.append([])
        threads[-1].append((depth, row))
    threads.sort(key=lambda thread: -max(hits[row.path].score for _, row in thread))
    return [place for thread in threads for place in thread]
