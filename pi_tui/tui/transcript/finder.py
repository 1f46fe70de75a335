"""Search in a transcript: where a text occurs, and the way from one place to the next.

Hits are counted in the whole texts of the blocks, also of those that are closed or hidden; that is
done in a thread. Where a hit stands on the screen is found when it is gone to, by drawing its
block. Marks are made for the rows in sight only. A query is looked for without regard to case
unless it has a capital; blanks stand for any white space, so a wrapped line is found, too.
"""

from __future__ import annotations

import asyncio
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

from msgspec import Struct

from pi_tui.core.transcript import ShownBlock
from pi_tui.tui.transcript.block_text import block_text
from pi_tui.tui.transcript.drawn import Drawn
from pi_tui.tui.transcript.items import Items
from pi_tui.tui.transcript.rows import Row
from pi_tui.tui.transcript.viewport import Place, Viewport


class Mark(Struct, frozen=True):
    """A part of a row, in characters. `current`: the hit that was gone to."""

    start: int
    end: int
    current: bool = False


class _Hits(Struct, frozen=True):
    """Indexes of items with hits, rising, and how many hits there are up to and with each."""

    items: Sequence[int] = ()
    totals: Sequence[int] = ()

    @property
    def count(self) -> int:
        return self.totals[-1] if self.totals else 0


class Finder:
    """The search of one transcript; it does nothing until `find`."""

    def __init__(self, items: Items, viewport: Viewport) -> None:
        self._items = items
        self._viewport = viewport
        self._pattern: re.Pattern[str] | None = None
        self._texts: list[tuple[int, str]] | None = None
        self._revision = -1
        self._search = 0
        self._hits = _Hits()
        self._at: int | None = None
        self._anchor: int | None = None
        self._drawn: Drawn | None = None
        self._place: tuple[Place, int] | None = None

    @property
    def active(self) -> bool:
        """True while hits are marked."""
        return self._pattern is not None

    @property
    def position(self) -> tuple[int, int]:
        """The number of the hit that was gone to, from 1, and how many there are."""
        return (0 if self._at is None else self._at + 1), self._hits.count

    async def find(self, query: str, height: int) -> bool:
        """Look for a text and go to the hit nearest to where the search began.

        False when another search has begun meanwhile.
        """
        self._search += 1
        search = self._search
        if self._anchor is None:
            self._anchor = self._first_in_sight(height)
        if not query.strip():
            self._pattern, self._hits, self._at, self._place = None, _Hits(), None, None
            return True
        pattern = query_pattern(query)
        if not await self._count(pattern, search):
            return False
        self._pattern = pattern
        self._at = self._place = None
        if self._hits.count:
            after = bisect_right(self._hits.items, self._anchor - 1)
            near = min(after, len(self._hits.items) - 1)
            first = self._hits.totals[near - 1] if near else 0
            last = self._hits.totals[near] - 1
            self._go(last if after > near else first, height)
        return True

    async def step(self, by: int, height: int) -> None:
        """Go to another hit; behind the last comes the first."""
        if self._pattern is None:
            return
        if self._revision != self._items.revision:
            self._search += 1
            if not await self._count(self._pattern, self._search):
                return
        count = self._hits.count
        if not count:
            self._at = self._place = None
            return
        at = (0 if by > 0 else count - 1) if self._at is None else (self._at + by) % count
        self._go(at, height)
        self._anchor = self._item_of(at)[0]

    def close(self) -> None:
        """End the search; the place stays."""
        self._search += 1
        self._pattern = self._texts = self._at = self._anchor = self._drawn = self._place = None
        self._revision = -1
        self._hits = _Hits()

    def forget_places(self) -> None:
        """The items are others now: the next step searches them anew."""
        self._at = self._anchor = self._drawn = self._place = None
        self._revision = -1

    def marks(self, places: Sequence[Place]) -> dict[Place, list[Mark]]:
        """What to mark in the rows in sight."""
        if self._pattern is None:
            return {}
        current = self._current_place()
        found: dict[Place, list[Mark]] = {}
        for group in _by_item(places):
            drawn = self._items.ensure(group[0].item)
            if drawn is None:
                continue
            for spans in _occurrences(self._pattern, [(p, drawn.row(p.row)) for p in group]):
                is_current = (spans[0][0], spans[0][1]) == current
                for place, start, end in spans:
                    found.setdefault(place, []).append(Mark(start, end, is_current))
        return found

    # ------------------------------------------------------------ inside

    def _first_in_sight(self, height: int) -> int:
        places = self._viewport.layout(height)
        return places[0].item if places else 0

    async def _count(self, pattern: re.Pattern[str], search: int) -> bool:
        revision = self._items.revision
        known = self._texts if self._revision == revision else None
        blocks = [] if known is not None else self._blocks()

        def work() -> tuple[list[tuple[int, str]], _Hits | None]:
            texts = known
            if texts is None:
                texts = [(index, block_text(block)) for index, block in blocks]
            return texts, self._hits_in(texts, pattern, search)

        texts, hits = await asyncio.to_thread(work)
        if hits is None or search != self._search:
            return False
        self._texts, self._revision, self._hits = texts, revision, hits
        return True

    def _blocks(self) -> list[tuple[int, ShownBlock]]:
        found = ((index, self._items.block_at(index)) for index in range(len(self._items)))
        return [(index, block) for index, block in found if block is not None]

    def _hits_in(
        self, texts: Iterable[tuple[int, str]], pattern: re.Pattern[str], search: int
    ) -> _Hits | None:
        items: list[int] = []
        counts: list[int] = []
        for index, text in texts:
            if search != self._search:  # somebody typed on
                return None
            count = sum(1 for _ in pattern.finditer(text))
            if count:
                items.append(index)
                counts.append(count)
        return _Hits(items, list(accumulate(counts)))

    def _item_of(self, at: int) -> tuple[int, int]:
        """The item of a hit, and the number of the hit within it."""
        near = bisect_right(self._hits.totals, at)
        return self._hits.items[near], at - (self._hits.totals[near - 1] if near else 0)

    def _go(self, at: int, height: int) -> None:
        self._at = at
        index, _ = self._item_of(at)
        items = self._items
        if items.is_hidden(index) or not self._all_shown(index):
            items.open(index)
            items.settle()
        self._drawn = None
        place = self._current_place()
        if place is not None:
            self._viewport.show_row(place[0].item, place[0].row, height)
        elif (drawn := items.ensure(index)) is not None:  # in what Markdown does not show
            self._viewport.show_row(index, min(1, drawn.height - 1), height)

    def _all_shown(self, index: int) -> bool:
        """True when the block shows as many hits as its text has, so it need not be opened."""
        drawn = self._items.ensure(index)
        assert self._pattern is not None
        near = bisect_right(self._hits.items, index) - 1
        wanted = self._hits.totals[near] - (self._hits.totals[near - 1] if near else 0)
        return drawn is not None and len(_all_occurrences(self._pattern, index, drawn)) >= wanted

    def _current_place(self) -> tuple[Place, int] | None:
        """The row and the column at which the current hit stands, as its block is drawn now."""
        if self._at is None or self._pattern is None:
            return None
        index, number = self._item_of(self._at)
        if index >= len(self._items):
            return None
        drawn = self._items.ensure(index)
        if drawn is not self._drawn:
            self._drawn = drawn
            found = [] if drawn is None else _all_occurrences(self._pattern, index, drawn)
            self._place = None
            if found:
                place, column, _ = found[min(number, len(found) - 1)][0]
                self._place = (place, column)
        return self._place


def query_pattern(query: str) -> re.Pattern[str]:
    """What a query is looked for with; it has to have something but blanks."""
    words = [re.escape(word) for word in query.split()]
    sensitive = any(character.isupper() for character in query)
    return re.compile(r"\s+".join(words), 0 if sensitive else re.IGNORECASE)


Spans = list[tuple[Place, int, int]]


def _all_occurrences(pattern: re.Pattern[str], index: int, drawn: Drawn) -> list[Spans]:
    rows = [(Place(index, at), drawn.row(at)) for at in range(drawn.height)]
    return _occurrences(pattern, rows)


def _occurrences(pattern: re.Pattern[str], rows: Sequence[tuple[Place, Row]]) -> list[Spans]:
    """The hits in rows of one item that follow each other; each as parts of one or more rows."""
    pieces: list[str] = []
    starts: list[int] = []
    length = 0
    for number, (_, row) in enumerate(rows):
        join = row.join if number else ""
        text = row.text[row.lead :].rstrip()
        pieces += (join, text)
        starts.append(length + len(join))
        length += len(join) + len(text)
    found: list[Spans] = []
    for match in pattern.finditer("".join(pieces)):
        spans: Spans = []
        number = bisect_right(starts, match.start()) - 1
        while number < len(rows) and starts[number] < match.end():
            place, row = rows[number]
            first = max(match.start(), starts[number]) - starts[number]
            end = min(match.end() - starts[number], len(row.text) - row.lead)
            if first < end:
                spans.append((place, row.lead + first, row.lead + end))
            number += 1
        if spans:
            found.append(spans)
    return found


def _by_item(places: Sequence[Place]) -> list[list[Place]]:
    groups: list[list[Place]] = []
    for place in places:
        if groups and groups[-1][0].item == place.item:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups
