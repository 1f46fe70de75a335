"""Search in a transcript: where a text occurs, and the way from one place to the next.

Hits are counted in the whole texts of the blocks, also of those that are closed, hidden or unread;
see `counting`. Where a hit stands on the screen is found when it is gone to, by drawing its
block. Marks are made for the rows in sight only. A query is looked for without regard to case
unless it has a capital; blanks stand for any white space, so a wrapped line is found, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

from msgspec import Struct

from pi_tui.tui.transcript.counting import STRETCHES_AT_ONCE, Count, Hits, Texts
from pi_tui.tui.transcript.drawn import Drawn
from pi_tui.tui.transcript.heights import OFFSET_BITS
from pi_tui.tui.transcript.items import Items
from pi_tui.tui.transcript.rows import Row
from pi_tui.tui.transcript.viewport import Place, Viewport


class Mark(Struct, frozen=True):
    """A part of a row, in characters. `current`: the hit that was gone to."""

    start: int
    end: int
    current: bool = False


class Finder:
    """The search of one transcript; it does nothing until `find`.

    `changed` is called when something comes into sight while a search is still going on.
    """

    def __init__(
        self, items: Items, viewport: Viewport, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._items = items
        self._viewport = viewport
        self._changed = changed
        self._texts = Texts(items)
        self._count: Count | None = None
        self._revision = -1
        self._search = 0
        self._layout = 0
        self._hits = Hits()
        self._at: int | None = None
        self._anchor: int | None = None
        self._drawn: Drawn | None = None
        self._place: tuple[Place, int] | None = None

    @property
    def active(self) -> bool:
        """True while hits are marked."""
        return self._count is not None

    @property
    def position(self) -> tuple[int, int]:
        """The number of the hit that was gone to, from 1, and how many there are.

        While a search goes on they are those of what was looked through when something was found.
        """
        return (0 if self._at is None else self._at + 1), self._hits.count

    async def find(self, query: str, height: int) -> bool:
        """Look for a text and go to the hit nearest to where the search began.

        It is gone to as soon as it is known; the return waits until all hits are counted. False
        when another search has begun meanwhile.
        """
        self._search += 1
        search = self._search
        if not query.strip():
            self._count, self._hits, self._at, self._place = None, Hits(), None, None
            return True
        count = Count(query) if self._count is None else self._count.narrowed(query)
        count.forget(self._texts.given())
        return await self._run(count, search, height, go=True)

    async def step(self, by: int, height: int) -> None:
        """Go to another hit; behind the last comes the first."""
        count = self._count
        if count is None:
            return
        if self._revision != self._items.revision:
            self._search += 1
            count.forget(self._texts.given())
            if not await self._run(count, self._search, height, go=False):
                return
        hits = self._hits.count
        if not hits:
            self._at = self._place = None
            return
        at = (0 if by > 0 else hits - 1) if self._at is None else (self._at + by) % hits
        self._go(at, height)
        self._anchor = self._hits.item_of(at)[0]

    def close(self) -> None:
        """End the search; the place stays."""
        self._search += 1
        self._count = self._at = self._anchor = self._drawn = self._place = None
        self._texts.forget()
        self._revision = -1
        self._hits = Hits()

    def forget_places(self) -> None:
        """The items are others now: the next step searches them anew."""
        self._layout += 1
        self._at = self._anchor = self._drawn = self._place = None
        self._texts.forget()
        self._revision = -1
        if self._count is not None:
            self._count = Count(self._count.query)

    def marks(self, places: Sequence[Place]) -> dict[Place, list[Mark]]:
        """What to mark in the rows in sight."""
        if self._count is None:
            return {}
        current = self._current_place()
        found: dict[Place, list[Mark]] = {}
        for group in _by_item(places):
            drawn = self._items.ensure(group[0].item)
            if drawn is None:
                continue
            for spans in _occurrences(self._count.pattern, [(p, drawn.row(p.row)) for p in group]):
                is_current = (spans[0][0], spans[0][1]) == current
                for place, start, end in spans:
                    found.setdefault(place, []).append(Mark(start, end, is_current))
        return found

    # ------------------------------------------------------------ inside

    def _first_in_sight(self, height: int) -> int:
        places = self._viewport.layout(height)
        return places[0].item if places else 0

    async def _run(self, count: Count, search: int, height: int, *, go: bool) -> bool:
        """Look through all that is missing in a count; `go`: to the nearest hit, once.

        Begins at the anchor and goes down to the end, then up. False when another search began.
        """
        layout, revision = self._layout, self._items.revision
        if self._anchor is None:
            self._anchor = self._first_in_sight(height)
        anchor = self._anchor
        middle, end = anchor >> OFFSET_BITS, len(self._items.stretches.all)
        numbers = count.missing([*range(middle, end), *range(middle - 1, -1, -1)])
        below = sum(number >= middle for number in numbers)
        for start in range(0, len(numbers) or 1, STRETCHES_AT_ONCE):
            part = numbers[start : start + STRETCHES_AT_ONCE]
            found = await self._texts.look_through(part, count, lambda: search != self._search)
            if found is None or search != self._search:
                return False
            if layout != self._layout:  # the numbers mean other stretches now
                return await self._run(Count(count.query), search, height, go=go)
            count.take(found)
            if go and start + len(part) < len(numbers):
                all_after = start + len(part) >= below
                go = not self._go_to_nearest(count, anchor, height, all_after=all_after)
        count.complete = True
        if go or self._count is not count:
            if not self._go_to_nearest(count, anchor, height, all_after=True):
                self._use(count)
                self._at = self._place = None
        else:
            self._use(count)
        self._revision = revision
        return True

    def _go_to_nearest(self, count: Count, anchor: int, height: int, *, all_after: bool) -> bool:
        hit = count.nearest(anchor, all_after=all_after)
        if hit is None:
            return False
        self._use(count)
        at = self._hits.number_of(*hit)
        assert at is not None
        self._go(at, height)
        self._changed()
        return True

    def _use(self, count: Count) -> None:
        """Make its hits those that are marked and numbered; the place stays."""
        now = None if self._at is None or count is not self._count else self._hits.item_of(self._at)
        self._count, self._hits = count, count.hits()
        self._at = None if now is None else self._hits.number_of(*now)

    def _go(self, at: int, height: int) -> None:
        self._at = at
        index, _ = self._hits.item_of(at)
        items = self._items
        if items.stretches.item(index) is None:  # the file was changed meanwhile
            return
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
        assert self._count is not None
        wanted = self._hits.count_in(index)
        shown = _all_occurrences(self._count.pattern, index, drawn) if drawn is not None else ()
        return drawn is not None and len(shown) >= wanted

    def _current_place(self) -> tuple[Place, int] | None:
        """The row and the column at which the current hit stands, as its block is drawn now."""
        if self._at is None or self._count is None:
            return None
        index, number = self._hits.item_of(self._at)
        drawn = self._items.ensure(index)
        if drawn is not self._drawn:
            self._drawn = drawn
            found = [] if drawn is None else _all_occurrences(self._count.pattern, index, drawn)
            self._place = None
            if found:
                place, column, _ = found[min(number, len(found) - 1)][0]
                self._place = (place, column)
        return self._place


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
