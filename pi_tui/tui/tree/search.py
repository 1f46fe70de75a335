"""Searches the texts of a session's entries while the person goes on typing.

Texts are read on the event loop, a few milliseconds at a time, because the tree belongs to it; they
are matched in a thread, which rests often enough that keys never wait for it. Hits are handed over
as they are found, nearest to the selection first. Times are seconds of the performance counter.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from pi_tui.core.errors import UsageError
from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_rows import EntryTexts, search_texts
from pi_tui.tui.tree.entry_query import EntryQuery

READING_S = 0.003
BATCH_CHARS = 400_000
WORK_S = 0.002
REST_S = 0.0005
KEPT_CHARS = 48_000_000
"""How many characters of entries are kept between two searches."""


class SearchTexts:
    """The texts of entries, kept from one keystroke to the next within bounds."""

    def __init__(self, tree: SessionTree) -> None:
        self._tree = tree
        self._kept: dict[str, EntryTexts] = {}
        self._chars = 0

    def of(self, entry_id: str) -> EntryTexts:
        texts = self._kept.get(entry_id)
        if texts is None:
            texts = search_texts(self._tree, entry_id)
            size = _chars(texts) + 100
            if self._chars + size <= KEPT_CHARS:
                self._kept[entry_id] = texts
                self._chars += size
        return texts

    def forget(self, entry_id: str) -> None:
        """Read an entry again: its label is another one."""
        self._kept.pop(entry_id, None)


class TreeSearch:
    """One search at a time; starting another ends the one before."""

    def __init__(
        self,
        texts: SearchTexts,
        found: Callable[[Sequence[str]], None],
        ended: Callable[[str | None], None],
    ) -> None:
        """`found` is called with ids of hits, `ended` with a problem in words, or None."""
        self._texts = texts
        self._found = found
        self._ended = ended
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self, query: EntryQuery, entry_ids: Iterable[str]) -> None:
        """Look through these entries, in this order."""
        self.stop()
        self._task = asyncio.get_running_loop().create_task(self._run(query, iter(entry_ids)))

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def wait(self) -> None:
        """Wait until the present search has ended."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def _run(self, query: EntryQuery, entry_ids: Iterator[str]) -> None:
        problem: str | None = None
        try:
            while batch := self._batch(entry_ids):
                hits = await asyncio.to_thread(hits_in, query, batch)
                if hits:
                    self._found(hits)
        except UsageError as error:
            problem = error.text
        self._task = None  # who is told that it has ended sees that
        self._ended(problem)

    def _batch(self, entry_ids: Iterator[str]) -> list[tuple[str, EntryTexts]]:
        batch: list[tuple[str, EntryTexts]] = []
        chars = 0
        until_s = time.perf_counter() + READING_S
        for entry_id in entry_ids:
            texts = self._texts.of(entry_id)
            batch.append((entry_id, texts))
            chars += _chars(texts)
            if chars > BATCH_CHARS or time.perf_counter() > until_s:
                break
        return batch


def hits_in(query: EntryQuery, batch: Sequence[tuple[str, EntryTexts]]) -> list[str]:
    """The ids of the entries that fit a query; rests now and then for the other threads."""
    hits: list[str] = []
    rest_s = time.perf_counter() + WORK_S
    for entry_id, texts in batch:
        if query.fits(texts):
            hits.append(entry_id)
        if time.perf_counter() > rest_s:
            time.sleep(REST_S)
            rest_s = time.perf_counter() + WORK_S
    return hits


def _chars(texts: EntryTexts) -> int:
    return sum(map(len, texts.names)) + sum(map(len, texts.bodies))


def outward(ids: Sequence[str], middle: int) -> Iterator[str]:
    """The ids from a place on in both directions, nearest first."""
    before, after = middle - 1, middle
    while before >= 0 or after < len(ids):
        if after < len(ids):
            yield ids[after]
            after += 1
        if before >= 0:
            yield ids[before]
            before -= 1
