"""The items of a transcript in stretches: those that were given, and those that are read on demand.

An index is made of the number of a stretch and the place within it (see `heights`), so it stays the
same whatever is read or forgotten elsewhere. Indexes rise down the transcript. A stretch that was
read is forgotten again when many others were read after it; given ones stay. What stands in a
stretch that is read again may have changed on the disk: an index that was right may be none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from pi_tui.core.transcript import CoveredBlock, ShownBlock, UserBlock
from pi_tui.tui.transcript.drawn import Drawn
from pi_tui.tui.transcript.heights import OFFSET_BITS, OFFSET_MASK
from pi_tui.tui.transcript.markdown_column import MarkdownColumn
from pi_tui.tui.transcript.unread import Unread

KEPT_STRETCHES = 48
"""So many of those that were read stay; more than a window can show."""


class Item:
    """One block. `pieces` are texts that arrived and are not in the block yet."""

    __slots__ = (
        "block", "column", "drawn", "exact", "fold", "generation", "pieces", "shown_whole",
        "started_s",
    )  # fmt: skip

    def __init__(self, block: ShownBlock | None) -> None:
        self.block = block
        self.pieces: list[str] = []
        self.drawn: Drawn | None = None
        self.column: MarkdownColumn | None = None
        self.generation = 0
        self.exact = False
        self.shown_whole: bool | None = None
        self.started_s: float | None = None
        self.fold: int | None = None
        """The index of the `CoveredBlock` it is behind."""


class Stretch:
    """Items that follow each other; None while they are not read. `users`: where user messages are.

    `rows`: how high it was when it was forgotten, or a guess.
    """

    __slots__ = ("fold", "items", "rows", "unread", "users")

    def __init__(self, unread: Unread | None = None) -> None:
        self.unread = unread
        self.items: list[Item] | None = [] if unread is None else None
        self.rows = 0 if unread is None else unread.rows
        self.fold: int | None = None
        self.users: list[int] = []

    @property
    def may_have_users(self) -> bool:
        """False when there is surely no user message."""
        if self.items is None and self.unread is not None:
            return self.unread.has_user_messages
        return bool(self.users)

    def fill(self, blocks: Sequence[ShownBlock]) -> list[Item]:
        """Hold items for these blocks."""
        items = self.items = [Item(block) for block in blocks]
        self.users = [at for at, block in enumerate(blocks) if isinstance(block, UserBlock)]
        for item in items:
            item.fold = self.fold
        return items


class Stretches:
    """All stretches. The last one is always a given one.

    `on_read` is called with the number of a stretch once its items are there, `on_forget` before
    they go.
    """

    def __init__(self, on_read: Callable[[int], None], on_forget: Callable[[int], None]) -> None:
        self._on_read = on_read
        self._on_forget = on_forget
        self.all: list[Stretch] = [Stretch()]
        self.by_key: dict[str, int] = {}
        """Indexes of the blocks that are there."""
        self.folds: dict[int, int] = {}
        """Where what is behind a `CoveredBlock` ends, by its index."""
        self.reads = 0
        """How often a stretch was read so far."""
        self._read: OrderedDict[int, None] = OrderedDict()
        self._latest = -1

    def set_blocks(self, blocks: Sequence[ShownBlock | Unread]) -> None:
        """Hold these instead."""
        self.all.clear()
        self.by_key.clear()
        self.folds.clear()
        self._read.clear()
        self._latest = -1
        given: list[ShownBlock] = []
        indexes: list[int] = []

        def close(*, last: bool = False) -> None:
            if given or last:
                self.all.append(Stretch())
                self.all[-1].fill(given)
                given.clear()

        for block in blocks:
            if isinstance(block, Unread):
                close()
                indexes.append(len(self.all) << OFFSET_BITS)
                self.all.append(Stretch(block))
            else:
                index = len(self.all) << OFFSET_BITS | len(given)
                indexes.append(index)
                self.by_key[block.key] = index
                given.append(block)
        close(last=True)
        indexes.append(len(self.all) - 1 << OFFSET_BITS | len(self.all[-1].items or ()))
        self._find_folds(blocks, indexes)

    def _find_folds(self, blocks: Sequence[ShownBlock | Unread], indexes: Sequence[int]) -> None:
        for at, block in enumerate(blocks):
            if not isinstance(block, CoveredBlock):
                continue
            end = min(len(blocks), at + 1 + block.blocks)
            self.folds[indexes[at]] = indexes[end]
            for index in indexes[at + 1 : end]:
                stretch = self.all[index >> OFFSET_BITS]
                if stretch.items is None:
                    stretch.fold = indexes[at]
                else:
                    stretch.items[index & OFFSET_MASK].fold = indexes[at]

    def append(self, block: ShownBlock) -> int:
        """Hold one more at the end; returns its index."""
        stretch = self.all[-1]
        assert stretch.items is not None
        index = len(self.all) - 1 << OFFSET_BITS | len(stretch.items)
        if isinstance(block, UserBlock):
            stretch.users.append(len(stretch.items))
        stretch.items.append(Item(block))
        self.by_key[block.key] = index
        return index

    # ------------------------------------------------------------ one item

    def item(self, index: int) -> Item | None:
        """The item of an index; None when there is none."""
        number, offset = index >> OFFSET_BITS, index & OFFSET_MASK
        if not 0 <= number < len(self.all):
            return None
        items = self.all[number].items
        if items is None or number != self._latest:
            items = self.items_of(number)
        return items[offset] if offset < len(items) else None

    def find(self, key: str) -> int | None:
        """The index of a block, which is read for it."""
        index = self.by_key.get(key)
        if index is None:
            for number, stretch in enumerate(self.all):
                if stretch.items is None and stretch.unread and stretch.unread.holds(key):
                    self.items_of(number)
                    return self.by_key.get(key)
        return index

    def items_of(self, number: int) -> list[Item]:
        """The items of a stretch, which is read when it is not there."""
        stretch = self.all[number]
        items = stretch.items
        self._latest = number
        if stretch.unread is None:
            assert items is not None
            return items
        if items is None:
            blocks = stretch.unread.read()
            items = stretch.fill(blocks)
            start = number << OFFSET_BITS
            self.by_key.update((block.key, start + at) for at, block in enumerate(blocks))
            self._read[number] = None
            self.reads += 1
            self._on_read(number)
            while len(self._read) > KEPT_STRETCHES:
                self._forget(self._read.popitem(last=False)[0])
        else:
            self._read.move_to_end(number)
        return items

    def _forget(self, number: int) -> None:
        stretch = self.all[number]
        self._on_forget(number)
        for item in stretch.items or ():
            if item.block is not None:
                self.by_key.pop(item.block.key, None)
        stretch.items = None

    def indexes_of(self, number: int) -> range:
        """The indexes of a stretch, as far as it is there."""
        start = number << OFFSET_BITS
        return range(start, start + len(self.all[number].items or ()))

    # ------------------------------------------------------------ folds

    def is_hidden(self, index: int) -> bool:
        """True for what is behind a closed `CoveredBlock`."""
        return self.is_closed(self.fold_of(index))

    def is_closed(self, fold: int | None) -> bool:
        """True for the index of a `CoveredBlock` that hides what is behind it."""
        return fold is not None and (item := self.item(fold)) is not None and not item.shown_whole

    def fold_of(self, index: int) -> int | None:
        """The index of the `CoveredBlock` before an item that is behind one."""
        number = index >> OFFSET_BITS
        if number >= len(self.all):
            return None
        if self.all[number].unread is not None:
            return self.all[number].fold
        item = self.item(index)
        return None if item is None else item.fold

    def inside(self, fold: int) -> Iterator[int]:
        """The indexes behind a `CoveredBlock`, read one by one; none for another item."""
        end = self.folds.get(fold, 0)
        at = self.at_or_after(fold + 1) if end else 0
        while at < end:
            yield at
            at = self.at_or_after(at + 1)

    def numbers_of_fold(self, fold: int) -> range:
        """The stretches a fold has a part in."""
        last = min(self.folds[fold] >> OFFSET_BITS, len(self.all) - 1)
        return range(fold >> OFFSET_BITS, last + 1)

    # ------------------------------------------------------------ the way

    @property
    def first(self) -> int:
        """The first index; `end` when there is no item."""
        return self.at_or_after(0)

    @property
    def end(self) -> int:
        """Greater than every index."""
        return len(self.all) << OFFSET_BITS

    @property
    def is_empty(self) -> bool:
        """True when there is no item, read or not."""
        return len(self.all) == 1 and not self.all[0].items

    def at_or_after(self, index: int) -> int:
        """This index if there is an item, else the next one; `end` when there is none."""
        number, offset = index >> OFFSET_BITS, index & OFFSET_MASK
        while number < len(self.all):
            if offset < len(self.items_of(number)):
                return number << OFFSET_BITS | offset
            number, offset = number + 1, 0
        return self.end

    def after(self, index: int) -> int:
        """The next index that is not hidden; `end` after the last."""
        hidden_to = self.folds.get(index)
        if hidden_to is None or not self.is_closed(index):
            hidden_to = index + 1
        return self.at_or_after(hidden_to)

    def before(self, index: int) -> int:
        """The index before that is not hidden; -1 at the start."""
        number, offset = index >> OFFSET_BITS, index & OFFSET_MASK
        while not offset:
            number -= 1
            if number < 0:
                return -1
            fold = self.all[number].fold
            if fold is not None and self.is_closed(fold):
                return fold
            offset = len(self.items_of(number))
        before = number << OFFSET_BITS | offset - 1
        fold = self.fold_of(before)
        return fold if fold is not None and self.is_closed(fold) else before

    def nearest(self, index: int) -> int:
        """This index, or another one near it when there is no such item (any more); -1: none."""
        after = self.at_or_after(index)
        return after if after < self.end else self.before(self.end)

    def edge_with_outputs(self, index: int, step: int) -> int:
        """Where to go on from an index: just outside the next stretch that may have outputs.

        `end` or -1 when there is none. Only what was never read can be passed over.
        """
        number = (index >> OFFSET_BITS) + step
        while 0 <= number < len(self.all):
            stretch = self.all[number]
            unread = stretch.unread if stretch.items is None else None
            if not self.is_closed(stretch.fold) and (unread is None or unread.has_outputs):
                break
            number += step
        return (number << OFFSET_BITS) - 1 if step > 0 else (number + 1) << OFFSET_BITS

    def user_message(self, index: int, step: int) -> int | None:
        """The nearest user message in the open before (-1) or after (1) an index."""
        number, offset = index >> OFFSET_BITS, index & OFFSET_MASK
        while 0 <= number < len(self.all):
            stretch = self.all[number]
            if not self.is_closed(stretch.fold) and stretch.may_have_users:
                items = self.items_of(number)
                for at in stretch.users if step > 0 else reversed(stretch.users):
                    wanted = at > offset if step > 0 else at < offset
                    found = number << OFFSET_BITS | at
                    if wanted and items[at].block is not None and not self.is_hidden(found):
                        return found
            number += step
            offset = -1 if step > 0 else OFFSET_MASK
        return None
