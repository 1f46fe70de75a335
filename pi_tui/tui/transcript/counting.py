"""How often a search finds something in which block, counted in a thread and stretch by stretch.

The texts of blocks that were given are kept for the next query; what is unread is looked through
where it stands, and only what may have a hit is decoded. It stays unread.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from msgspec import Struct

from pi_tui.core.transcript import ShownBlock
from pi_tui.tui.transcript.block_text import block_text
from pi_tui.tui.transcript.heights import OFFSET_BITS
from pi_tui.tui.transcript.items import Items
from pi_tui.tui.transcript.unread import Clue, Unread, clue_of

STRETCHES_AT_ONCE = 16
"""So many are looked through before the event loop has a turn: some milliseconds."""

Found = list[tuple[int, int]]
"""Indexes of items with hits, rising, and how many hits each has."""


class Hits(Struct, frozen=True):
    """Indexes of items with hits, rising, and how many hits there are up to and with each."""

    items: Sequence[int] = ()
    totals: Sequence[int] = ()

    @property
    def count(self) -> int:
        return self.totals[-1] if self.totals else 0

    def item_of(self, at: int) -> tuple[int, int]:
        """The item of a hit, and the number of the hit within it."""
        near = bisect_right(self.totals, at)
        return self.items[near], at - (self.totals[near - 1] if near else 0)

    def number_of(self, index: int, within: int) -> int | None:
        """The number of a hit; None when the item has none."""
        near = bisect_right(self.items, index) - 1
        if near < 0 or self.items[near] != index:
            return None
        return (self.totals[near - 1] if near else 0) + within

    def count_in(self, index: int) -> int:
        """How many hits an item has."""
        near = bisect_right(self.items, index) - 1
        if near < 0 or self.items[near] != index:
            return 0
        return self.totals[near] - (self.totals[near - 1] if near else 0)


def query_pattern(query: str) -> re.Pattern[str]:
    """What a query is looked for with; it has to have something but blanks."""
    words = [re.escape(word) for word in query.split()]
    return re.compile(r"\s+".join(words), re.IGNORECASE if _ignores_case(query) else 0)


def _ignores_case(query: str) -> bool:
    return not any(character.isupper() for character in query)


class Count:
    """The hits of one query, in as many stretches as were looked through."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.pattern = query_pattern(query)
        self.clue = clue_of(query, ignore_case=_ignores_case(query))
        self.complete = False
        self._found: dict[int, Found] = {}

    def narrowed(self, query: str) -> Count:
        """The count for another query; had a shorter one no hit in a stretch, it has none."""
        count = Count(query)
        if self.complete and query.startswith(self.query):
            count._found = {number: [] for number, found in self._found.items() if not found}
        return count

    def forget(self, numbers: Iterable[int]) -> None:
        """What these stretches say is different now."""
        for number in numbers:
            self._found.pop(number, None)
        self.complete = False

    def missing(self, numbers: Iterable[int]) -> list[int]:
        """Those stretches that were not looked through yet."""
        return [number for number in numbers if number not in self._found]

    def take(self, found: dict[int, Found]) -> None:
        self._found.update(found)

    def nearest(self, anchor: int, *, all_after: bool) -> tuple[int, int] | None:
        """The first hit at or behind an index, else the last before it; as item and number in it.

        `all_after`: everything behind the index was looked through.
        """
        found = [hit for hits in self._found.values() for hit in hits]
        after = [index for index, _ in found if index >= anchor]
        if after:
            return min(after), 0
        if not found or not all_after:
            return None
        index, hits = max(found)
        return index, hits - 1

    def hits(self) -> Hits:
        """All that was found so far."""
        found = [hit for number in sorted(self._found) for hit in self._found[number]]
        return Hits([index for index, _ in found], list(accumulate(hits for _, hits in found)))


class Texts:
    """Looks through stretches of a transcript; keeps the texts of those that were given."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._revision = -1
        self._texts: dict[int, list[tuple[int, str]]] = {}

    def forget(self) -> None:
        self._texts.clear()

    def given(self) -> list[int]:
        """The stretches whose blocks may change."""
        return [n for n, stretch in enumerate(self._items.stretches.all) if stretch.unread is None]

    async def look_through(
        self, numbers: Sequence[int], count: Count, stopped: Callable[[], bool]
    ) -> dict[int, Found] | None:
        """Count the hits in some stretches; None when it was stopped."""
        if self._revision != self._items.revision:
            self._texts.clear()
            self._revision = self._items.revision
        revision = self._revision
        sources = [(number, self._source(number)) for number in numbers]

        def work() -> tuple[dict[int, Found], dict[int, list[tuple[int, str]]]] | None:
            found: dict[int, Found] = {}
            kept: dict[int, list[tuple[int, str]]] = {}
            for number, source in sources:
                if stopped():
                    return None
                texts = _texts(number, source, count.clue)
                if not isinstance(source, Unread):
                    kept[number] = texts
                found[number] = _count_in(texts, count.pattern)
            return found, kept

        done = await asyncio.to_thread(work)
        if done is None:
            return None
        if revision == self._revision:
            self._texts.update(done[1])
        return done[0]

    def _source(self, number: int) -> _Source:
        unread = self._items.stretches.all[number].unread
        if unread is not None:
            return unread
        known = self._texts.get(number)
        if known is not None:
            return known
        indexes = self._items.stretches.indexes_of(number)
        found = ((index, self._items.block_at(index)) for index in indexes)
        return [(index, block) for index, block in found if block is not None]


_Source = Unread | list[tuple[int, str]] | list[tuple[int, ShownBlock]]


def _texts(number: int, source: _Source, clue: Clue) -> list[tuple[int, str]]:
    if isinstance(source, Unread):
        start = number << OFFSET_BITS
        blocks = source.read_if(clue) or ()
        return [(start + at, block_text(block)) for at, block in enumerate(blocks)]
    return [
        (index, known if isinstance(known, str) else block_text(known)) for index, known in source
    ]


def _count_in(texts: Iterable[tuple[int, str]], pattern: re.Pattern[str]) -> Found:
    counted = ((index, sum(1 for _ in pattern.finditer(text))) for index, text in texts)
    return [(index, hits) for index, hits in counted if hits]
