"""The blocks of a transcript with their heights, drawn when needed and forgotten when not.

An item that was never drawn has an estimated height. Indexes never change: a removed item stays as
an empty place. Drawing happens in `ensure`, so the number of drawn items follows what is looked at,
and so does what is read of the parts that were given unread (see `stretches`).
The items behind a `CoveredBlock` are a fold: while that is closed they are hidden, with height 0.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from msgspec.structs import replace as with_changes

from pi_tui.core.transcript import (
    AssistantBlock,
    CoveredBlock,
    CoveredEndBlock,
    ShownBlock,
    ThinkingBlock,
    ToolBlock,
)
from pi_tui.tui.transcript.artist import Artist
from pi_tui.tui.transcript.drawn import Drawn
from pi_tui.tui.transcript.heights import OFFSET_BITS, Heights, StretchHeights
from pi_tui.tui.transcript.kinds import estimated_rows, is_collapsible, is_running
from pi_tui.tui.transcript.stretches import Item, Stretch, Stretches
from pi_tui.tui.transcript.unread import Unread

KEPT_ROWS = 20_000
"""How many rows stay drawn; what was looked at least recently is forgotten first."""
KEPT_ITEMS_AT_LEAST = 64


class Items:
    """All items of a transcript at one width."""

    def __init__(self, artist: Artist, *, show_thinking: bool) -> None:
        self.artist = artist
        self.width = 80
        self.tools_expanded = False
        self.thinking_shown = show_thinking
        self.heights = StretchHeights([Heights()])
        self.drawn_count = 0
        self.running: set[int] = set()
        self.stretches = Stretches(self._was_read, self._will_be_forgotten)
        self._opened: dict[str, tuple[bool, type[ShownBlock]]] = {}
        self._generation = 1
        self._dirty: set[int] = set()
        self._kept: OrderedDict[int, int] = OrderedDict()
        self._kept_rows = 0
        self._now_s = 0.0
        self.revision = 0
        """Grows with each change of what the blocks say."""

    def __getitem__(self, index: int) -> Item:
        item = self.stretches.item(index)
        if item is None:
            raise IndexError(index)
        return item

    # ------------------------------------------------------------ changes

    def set_blocks(self, blocks: Sequence[ShownBlock | Unread]) -> None:
        """Hold these instead; what people opened or closed stays so."""
        started: dict[str, float] = {}
        for stretch in self.stretches.all:
            self._remember(stretch)
            for item in stretch.items or ():
                if item.block is not None and item.started_s is not None:
                    started[item.block.key] = item.started_s
        stretches = self.stretches
        stretches.set_blocks(blocks)
        for key, started_s in started.items():
            if key in stretches.by_key:
                self[stretches.by_key[key]].started_s = started_s
        for stretch in stretches.all:
            self._recall(stretch)
        self.revision += 1
        self.heights = StretchHeights(map(self._guess, stretches.all))
        self.running = {
            index
            for key, index in stretches.by_key.items()
            if (block := self[index].block) is not None and is_running(block)
        }
        self._dirty.clear()
        self._kept.clear()
        self._kept_rows = 0

    def _remember(self, stretch: Stretch) -> None:
        """Note what people opened or closed."""
        for item in stretch.items or ():
            if item.block is not None and item.shown_whole is not None:
                self._opened[item.block.key] = (item.shown_whole, type(item.block))

    def _recall(self, stretch: Stretch) -> None:
        for item in stretch.items or () if self._opened else ():
            if item.block is not None and item.block.key in self._opened:
                item.shown_whole = self._opened.pop(item.block.key)[0]

    def _guess(self, stretch: Stretch) -> Heights | int:
        if stretch.items is None:
            return 0 if self.stretches.is_closed(stretch.fold) else stretch.rows
        return Heights(
            0 if item.block is None or self.stretches.is_closed(item.fold)
            else estimated_rows(item.block, self.width)
            for item in stretch.items
        )  # fmt: skip

    def _was_read(self, number: int) -> None:
        stretch = self.stretches.all[number]
        self._recall(stretch)
        self.heights.set_stretch(number, self._guess(stretch))

    def _will_be_forgotten(self, number: int) -> None:
        stretch = self.stretches.all[number]
        self._remember(stretch)
        for index in self.stretches.indexes_of(number):
            self._kept_rows -= self._kept.pop(index, 0)
            self._dirty.discard(index)
        known = self.heights.stretch(number)
        rows = known if isinstance(known, int) else known.total
        if not self.stretches.is_closed(stretch.fold):
            stretch.rows = rows
        self.heights.set_stretch(number, rows)

    def append(self, block: ShownBlock) -> int:
        """Add a block at the end. One with a key that is there already takes its place."""
        by_key = self.stretches.by_key
        if block.key in by_key:
            self.replace(block.key, block)
            return by_key[block.key]
        self.revision += 1
        index = self.stretches.append(block)
        self.heights.append(estimated_rows(block, self.width))
        self._note_running(index, block)
        return index

    def replace(self, key: str, block: ShownBlock) -> None:
        """Put a block, maybe with another key, in the place of one. Unknown keys append."""
        index = self.stretches.by_key.get(key)
        if index is None:
            self.append(block)
            return
        self.revision += 1
        item = self[index]
        text_so_far = self._text(item)
        old, item.block = item.block, block
        if block.key != key:
            del self.stretches.by_key[key]
            self.stretches.by_key[block.key] = index
        self._note_running(index, block)
        if (
            item.column is not None
            and isinstance(block, AssistantBlock | ThinkingBlock)
            and type(block) is type(old)
            and block.text.startswith(text_so_far)
            and not (isinstance(block, ThinkingBlock) and block.redacted)
        ):
            item.column.feed(block.text[len(text_so_far) :])
            if not block.streaming:
                item.column.finish()
                item.column = None
        elif block != old:
            item.column = None
            item.generation = 0
        self._dirty.add(index)

    def append_text(self, key: str, delta: str) -> None:
        """Add text to a block that streams: an answer, thinking, or arguments of a call."""
        index = self.stretches.by_key.get(key)
        if index is None or not delta:
            return
        self.revision += 1
        item = self[index]
        item.pieces.append(delta)
        if item.column is not None:
            item.column.feed(delta)
        else:
            item.generation = 0
        self._dirty.add(index)

    def finish(self, key: str) -> None:
        """Say that no more text comes for a block."""
        block = self.block(key)
        if isinstance(block, AssistantBlock | ThinkingBlock) and block.streaming:
            self.replace(key, with_changes(block, streaming=False))

    def remove(self, key: str) -> None:
        index = self.stretches.by_key.pop(key, None)
        if index is None:
            return
        self.revision += 1
        item = self[index]
        item.block = item.column = None
        item.pieces = []
        item.generation = 0
        self.running.discard(index)
        self._dirty.add(index)

    def block(self, key: str) -> ShownBlock | None:
        """The block as it is now, with all text that arrived."""
        index = self.stretches.by_key.get(key)
        return None if index is None else self.block_at(index)

    def index_of(self, key: str) -> int | None:
        """The index of a block that is there; see `find`."""
        return self.stretches.by_key.get(key)

    def find(self, key: str) -> int | None:
        """The index of a block, which is read if need be."""
        return self.stretches.find(key)

    def block_at(self, index: int) -> ShownBlock | None:
        item = self.stretches.item(index)
        if item is None:
            return None
        block = item.block
        if item.pieces and block is not None:
            added = "".join(item.pieces)
            if isinstance(block, AssistantBlock | ThinkingBlock):
                block = with_changes(block, text=block.text + added)
            elif isinstance(block, ToolBlock):
                block = with_changes(block, partial_arguments=block.partial_arguments + added)
            item.block = block
            item.pieces = []
        return block

    # ------------------------------------------------------------ folds

    def is_hidden(self, index: int) -> bool:
        """True for what is behind a closed `CoveredBlock`."""
        return self.stretches.is_hidden(index)

    def _fold_toggled(self, index: int) -> None:
        """Give the items behind it their heights, or none."""
        for number in self.stretches.numbers_of_fold(index):
            stretch, known = self.stretches.all[number], self.heights.stretch(number)
            if stretch.items is None or isinstance(known, int):
                if stretch.fold == index:
                    self.heights.set_stretch(number, self._guess(stretch))
                continue
            heights: list[int] = []
            for offset, item in enumerate(stretch.items):
                if item.fold != index:
                    heights.append(known[offset])
                    continue
                item.exact = False
                item.generation = 0
                if item.drawn is not None:
                    item.drawn = item.column = None
                    self._keep(number << OFFSET_BITS | offset, 0)
                hidden = item.block is None or not self.shows_whole(index)
                heights.append(0 if hidden else self._estimate(number << OFFSET_BITS | offset))
            self.heights.set_stretch(number, Heights(heights))

    def _estimate(self, index: int) -> int:
        block = self.block_at(index)
        return 0 if block is None else estimated_rows(block, self.width)

    def place_at(self, position: int) -> tuple[int, int]:
        """The item at a position of the column of heights, which is read, and the row within it."""
        stretches = self.stretches
        if self.heights.total <= 0:
            return stretches.first, 0
        index, row = self.heights.find(position)
        number = index >> OFFSET_BITS
        guess = self.heights.stretch(number)
        if not isinstance(guess, int):
            return index, row
        stretches.items_of(number)
        known = self.heights.stretch(number)
        if isinstance(known, int) or not known.total:
            return stretches.nearest(index), 0
        offset, row = known.find(row * known.total // guess)
        return index | offset, row

    # ------------------------------------------------------------ looks

    def redraw(self) -> None:
        """Forget how everything looks; heights stay as estimates."""
        self._generation += 1
        for index in self._kept:
            self[index].column = None

    def set_width(self, width: int) -> None:
        self.width = width
        self.redraw()

    def toggle(self, index: int) -> bool:
        """Open or close one block; False when it is of no such kind."""
        block = self[index].block
        if block is None or not is_collapsible(block):
            return False
        self[index].shown_whole = not self.shows_whole(index)
        self._forget(index)
        if isinstance(block, CoveredBlock):
            self._fold_toggled(index)
        return True

    def open(self, index: int) -> None:
        """Show the whole of one block, and what hides it."""
        fold = self.stretches.fold_of(index)
        for at in (index,) if fold is None else (fold, index):
            if not self.shows_whole(at):
                self.toggle(at)

    def set_all(self, *, thinking: bool | None = None, tools: bool | None = None) -> None:
        """Open or close all thinking or all the rest; single blocks follow."""
        if thinking is not None:
            self.thinking_shown = thinking
        if tools is not None:
            self.tools_expanded = tools

        def concerned(kind: type[ShownBlock]) -> bool:
            wanted = thinking if kind is ThinkingBlock else tools
            return wanted is not None and kind is not CoveredBlock

        self._opened = {
            key: known for key, known in self._opened.items() if not concerned(known[1])
        }
        for number, stretch in enumerate(self.stretches.all):
            for offset, item in enumerate(stretch.items or ()):
                block = item.block
                if block is not None and is_collapsible(block) and concerned(type(block)):
                    item.shown_whole = None
                    self._forget(number << OFFSET_BITS | offset)

    def tick(self, now_s: float) -> bool:
        """Let running commands show a new elapsed time; False when none runs."""
        self._now_s = now_s
        for index in self.running:
            self[index].generation = 0
            self._dirty.add(index)
        return bool(self.running)

    def start_clock(self, now_s: float) -> None:
        """Note when commands that just began did so."""
        self._now_s = now_s
        for index in self.running:
            if self[index].started_s is None:
                self[index].started_s = now_s

    def settle(self) -> None:
        """Bring heights in line with what changed."""
        for index in tuple(self._dirty):
            item = self[index]
            if item.block is None or self.is_hidden(index):
                self._keep(index, 0)
                item.drawn = None
                self.heights.set(index, 0)
            elif item.drawn is not None:
                self.ensure(index)
            else:
                item.exact = False
                block = self.block_at(index) or item.block
                self.heights.set(index, estimated_rows(block, self.width))
        self._dirty.clear()

    def ensure(self, index: int) -> Drawn | None:
        """The item as drawn, with its height made exact; None for an empty or hidden place."""
        if self.is_hidden(index):
            return None
        item = self.stretches.item(index)
        if item is None or item.block is None:
            return None
        drawn = item.drawn
        if drawn is None or item.generation != self._generation:
            drawn = item.drawn = self._draw(index, item)
            item.generation = self._generation
            self.drawn_count += 1
        elif item.column is not None:
            item.column.update()
        height = drawn.height
        item.exact = True
        self.heights.set(index, height)
        self._keep(index, height)
        return drawn

    def _draw(self, index: int, item: Item) -> Drawn:
        block = self.block_at(index)
        assert block is not None
        item.column = None
        if (
            isinstance(block, AssistantBlock | ThinkingBlock)
            and block.streaming
            and (isinstance(block, AssistantBlock) or self.shows_whole(index))
        ):
            item.column = self.artist.streaming_column(block, self.width)
            return self.artist.draw_streaming(item.column, self.width)
        elapsed_ms = None
        if item.started_s is not None and index in self.running:
            elapsed_ms = 1000 * int(self._now_s - item.started_s)
        whole = self.shows_whole(index)
        drawn = self.artist.draw(block, self.width, expanded=whole, elapsed_ms=elapsed_ms)
        if item.fold is not None and not isinstance(block, CoveredEndBlock):
            drawn.dim(self.artist.styles.dim)
        return drawn

    def shows_whole(self, index: int) -> bool:
        """True for an item that is open, or would be if it could be opened."""
        item = self[index]
        if item.shown_whole is not None:
            return item.shown_whole
        if isinstance(item.block, CoveredBlock):
            return False
        return self.thinking_shown if isinstance(item.block, ThinkingBlock) else self.tools_expanded

    def _forget(self, index: int) -> None:
        item = self[index]
        item.generation = 0
        item.exact = False
        item.column = None
        if item.drawn is not None:
            self._dirty.add(index)

    def _text(self, item: Item) -> str:
        block = item.block
        if isinstance(block, AssistantBlock | ThinkingBlock):
            text = block.text + "".join(item.pieces)
        else:
            text = ""
        item.pieces = []
        return text

    def _note_running(self, index: int, block: ShownBlock) -> None:
        if is_running(block):
            self.running.add(index)
        else:
            self.running.discard(index)

    def _keep(self, index: int, height: int) -> None:
        self._kept_rows += height - self._kept.pop(index, 0)
        self._kept[index] = height
        while self._kept_rows > KEPT_ROWS and len(self._kept) > KEPT_ITEMS_AT_LEAST:
            oldest, rows = self._kept.popitem(last=False)
            self._kept_rows -= rows
            self[oldest].drawn = self[oldest].column = None
