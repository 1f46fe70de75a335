"""The list under the editor: what may follow what was typed, and which row is chosen.

Pure. Where the rows come from is the business of `Completer`s, which the app hands in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class CompletionItem(Struct, frozen=True):
    """One row. `insert` replaces the typed part; `label`, `hint` and `detail` are foreign text."""

    insert: str
    label: str
    hint: str = ""
    detail: str = ""


class Completion(Struct, frozen=True):
    """Rows for the part of the text from `start` to the cursor.

    `submits`: Enter on a row sends the text as well. `certain`: the typed part stands for the first
    row; else Enter takes only a row that the person has moved to. `common` is what Tab can put in
    the typed part's place at once, because all rows begin with it.
    """

    start: int
    items: tuple[CompletionItem, ...]
    submits: bool = False
    certain: bool = True
    common: str = ""


class Completer(Protocol):
    def complete(self, text: str, cursor: int) -> Completion | None:
        """Rows for what stands before the cursor; None when nothing here can be completed.

        Called after every key: it must be quick and must not wait for anything.
        """
        ...

    def complete_on_tab(self, text: str, cursor: int) -> Completion | None:
        """The same when the person asks with Tab."""
        ...


class CompletionList:
    """The open list, or none."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.completion: Completion | None = None
        self.chosen = 0
        self.top = 0
        self._dismissed: tuple[int, str] | None = None
        self._moved = False

    @property
    def is_open(self) -> bool:
        return self.completion is not None

    @property
    def items(self) -> Sequence[CompletionItem]:
        return self.completion.items if self.completion is not None else ()

    @property
    def certain(self) -> bool:
        """True when Enter takes the chosen row: it was moved to, or is what the word stands for."""
        return self.completion is not None and (self._moved or self.completion.certain)

    def cursor_at(self, cursor: int) -> None:
        """A word the list was closed for is gone when the cursor is back at its beginning."""
        if self._dismissed is not None and cursor <= self._dismissed[0]:
            self._dismissed = None

    def update(self, completion: Completion | None, typed: str) -> None:
        """Show new rows. A choice the person made stays on its row; else the first is chosen."""
        if completion is None:
            self.close()
            return
        if not completion.items:
            self.completion = None
            return
        if self._dismissed is not None:
            start, word = self._dismissed
            if completion.start == start and (typed.startswith(word) or word.startswith(typed)):
                return  # closed by the person: stays closed for this word
            self._dismissed = None
        before = self.items[self.chosen].insert if self.items and self._moved else None
        self.completion = completion
        found = (n for n, item in enumerate(completion.items) if item.insert == before)
        kept = next(found, None)
        self._moved = kept is not None
        self.chosen = kept or 0
        self._scroll()

    def move(self, rows: int, *, wrap: bool = True) -> None:
        """Choose another row; the first step into a list without a choice takes its first row."""
        count = len(self.items)
        if count:
            at = self.chosen + rows - (0 if self.certain or rows < 0 else 1)
            self._moved = True
            self.chosen = at % count if wrap else min(max(0, at), count - 1)
            self._scroll()

    def close(self) -> None:
        """Close without a choice."""
        self.completion = None
        self._dismissed = None
        self._moved = False
        self.chosen = self.top = 0

    def dismiss(self, typed: str) -> None:
        """Close because the person said so."""
        start = None if self.completion is None else self.completion.start
        self.close()
        if start is not None:
            self._dismissed = (start, typed)

    def _scroll(self) -> None:
        self.top = min(self.top, self.chosen)
        self.top = max(self.top, self.chosen - self.rows + 1)
        self.top = max(0, min(self.top, len(self.items) - self.rows))
