"""The blocks of a transcript with their heights, drawn when needed and forgotten when not.

An item that was never drawn has an estimated height. Indexes never change: a removed item stays as
an empty place. Drawing happens in `ensure`, so the number of drawn items follows what is looked at.
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
    NoticeBlock,
    ShellBlock,
    ShownBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.tui.transcript.artist import Artist
from pi_tui.tui.transcript.drawn import Drawn
from pi_tui.tui.transcript.heights import Heights
from pi_tui.tui.transcript.markdown_column import MarkdownColumn

KEPT_ROWS = 20_000
"""How many rows stay drawn; what was looked at least recently is forgotten first."""
KEPT_ITEMS_AT_LEAST = 64


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


class Items:
    """All items of a transcript at one width."""

    def __init__(self, artist: Artist, *, show_thinking: bool) -> None:
        self.artist = artist
        self.width = 80
        self.tools_expanded = False
        self.thinking_shown = show_thinking
        self.heights = Heights()
        self.drawn_count = 0
        self.running: set[int] = set()
        self._items: list[Item] = []
        self._index: dict[str, int] = {}
        self._users: list[int] = []
        self._generation = 1
        self._dirty: set[int] = set()
        self._kept: OrderedDict[int, int] = OrderedDict()
        self._kept_rows = 0
        self._now_s = 0.0
        self._folds: dict[int, int] = {}
        self.revision = 0
        """Grows with each change of what the blocks say."""

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Item:
        return self._items[index]

    @property
    def users(self) -> Sequence[int]:
        """Indexes of user messages, rising; some may have been removed."""
        return self._users

    # ------------------------------------------------------------ changes

    def set_blocks(self, blocks: Sequence[ShownBlock]) -> None:
        """Hold these blocks instead; what people opened or closed stays so."""
        kept = {
            item.block.key: item
            for item in self._items
            if item.block is not None
            and (item.shown_whole is not None or item.started_s is not None)
        }
        self._items = [Item(block) for block in blocks]
        self._index = {block.key: index for index, block in enumerate(blocks)}
        self._users = [i for i, block in enumerate(blocks) if isinstance(block, UserBlock)]
        for key, old in kept.items():
            if key in self._index:
                item = self._items[self._index[key]]
                item.shown_whole, item.started_s = old.shown_whole, old.started_s
        self._find_folds(blocks)
        self.revision += 1
        width = self.width
        self.heights = Heights(
            0 if self.is_hidden(index) else estimated_rows(block, width)
            for index, block in enumerate(blocks)
        )
        self.running = {i for i, block in enumerate(blocks) if is_running(block)}
        self._dirty.clear()
        self._kept.clear()
        self._kept_rows = 0

    def _find_folds(self, blocks: Sequence[ShownBlock]) -> None:
        self._folds.clear()
        for index, block in enumerate(blocks):
            if isinstance(block, CoveredBlock):
                end = min(len(blocks), index + 1 + block.blocks)
                self._folds[index] = end
                for at in range(index + 1, end):
                    self._items[at].fold = index

    def append(self, block: ShownBlock) -> int:
        """Add a block at the end. One with a key that is there already takes its place."""
        if block.key in self._index:
            self.replace(block.key, block)
            return self._index[block.key]
        self.revision += 1
        index = len(self._items)
        self._items.append(Item(block))
        self._index[block.key] = index
        self.heights.append(estimated_rows(block, self.width))
        if isinstance(block, UserBlock):
            self._users.append(index)
        self._note_running(index, block)
        return index

    def replace(self, key: str, block: ShownBlock) -> None:
        """Put a block, maybe with another key, in the place of one. Unknown keys append."""
        index = self._index.get(key)
        if index is None:
            self.append(block)
            return
        self.revision += 1
        item = self._items[index]
        text_so_far = self._text(item)
        old, item.block = item.block, block
        if block.key != key:
            del self._index[key]
            self._index[block.key] = index
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
        index = self._index.get(key)
        if index is None or not delta:
            return
        self.revision += 1
        item = self._items[index]
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
        index = self._index.pop(key, None)
        if index is None:
            return
        self.revision += 1
        item = self._items[index]
        item.block = item.column = None
        item.pieces = []
        item.generation = 0
        self.running.discard(index)
        self._dirty.add(index)

    def block(self, key: str) -> ShownBlock | None:
        """The block as it is now, with all text that arrived."""
        index = self._index.get(key)
        return None if index is None else self.block_at(index)

    def index_of(self, key: str) -> int | None:
        return self._index.get(key)

    def block_at(self, index: int) -> ShownBlock | None:
        item = self._items[index]
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
        fold = self._items[index].fold
        return fold is not None and not self.shows_whole(fold)

    def fold_of(self, index: int) -> int | None:
        """The index of the `CoveredBlock` before an item that is behind one."""
        return self._items[index].fold

    def fold_range(self, index: int) -> range:
        """The indexes behind a `CoveredBlock`; none for another item."""
        return range(index + 1, self._folds.get(index, index + 1))

    def after(self, index: int) -> int:
        """The next index that is not hidden; the number of items at the end."""
        if index in self._folds and not self.shows_whole(index):
            return self._folds[index]
        return index + 1

    def before(self, index: int) -> int:
        """The index before that is not hidden; -1 at the start."""
        before = index - 1
        if before >= 0 and self.is_hidden(before):
            fold = self._items[before].fold
            assert fold is not None
            return fold
        return before

    def _fold_toggled(self, index: int) -> None:
        """Give the items behind it their heights, or none."""
        inside = self.fold_range(index)
        for at in inside:
            item = self._items[at]
            item.exact = False
            item.generation = 0
            if item.drawn is not None:
                item.drawn = item.column = None
                self._keep(at, 0)
        self.heights = Heights(
            self.heights[at]
            if at not in inside
            else (0 if self.is_hidden(at) else self._estimate(at))
            for at in range(len(self._items))
        )

    def _estimate(self, index: int) -> int:
        block = self.block_at(index)
        return 0 if block is None else estimated_rows(block, self.width)

    # ------------------------------------------------------------ looks

    def redraw(self) -> None:
        """Forget how everything looks; heights stay as estimates."""
        self._generation += 1
        for index in self._kept:
            self._items[index].column = None

    def set_width(self, width: int) -> None:
        self.width = width
        self.redraw()

    def toggle(self, index: int) -> bool:
        """Open or close one block; False when it is of no such kind."""
        block = self._items[index].block
        if block is None or not is_collapsible(block):
            return False
        self._items[index].shown_whole = not self.shows_whole(index)
        self._forget(index)
        if isinstance(block, CoveredBlock):
            self._fold_toggled(index)
        return True

    def open(self, index: int) -> None:
        """Show the whole of one block, and what hides it."""
        fold = self._items[index].fold
        for at in (index,) if fold is None else (fold, index):
            if not self.shows_whole(at):
                self.toggle(at)

    def set_all(self, *, thinking: bool | None = None, tools: bool | None = None) -> None:
        """Open or close all thinking or all the rest; single blocks follow."""
        if thinking is not None:
            self.thinking_shown = thinking
        if tools is not None:
            self.tools_expanded = tools
        for index, item in enumerate(self._items):
            block = item.block
            if block is None or not is_collapsible(block) or isinstance(block, CoveredBlock):
                continue
            if (tools if not isinstance(block, ThinkingBlock) else thinking) is not None:
                item.shown_whole = None
                self._forget(index)

    def tick(self, now_s: float) -> bool:
        """Let running commands show a new elapsed time; False when none runs."""
        self._now_s = now_s
        for index in self.running:
            self._items[index].generation = 0
            self._dirty.add(index)
        return bool(self.running)

    def start_clock(self, now_s: float) -> None:
        """Note when commands that just began did so."""
        self._now_s = now_s
        for index in self.running:
            if self._items[index].started_s is None:
                self._items[index].started_s = now_s

    def settle(self) -> None:
        """Bring heights in line with what changed."""
        for index in self._dirty:
            item = self._items[index]
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
        item = self._items[index]
        if item.block is None or self.is_hidden(index):
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
        item = self._items[index]
        if item.shown_whole is not None:
            return item.shown_whole
        if isinstance(item.block, CoveredBlock):
            return False
        return self.thinking_shown if isinstance(item.block, ThinkingBlock) else self.tools_expanded

    def _forget(self, index: int) -> None:
        item = self._items[index]
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
            self._items[oldest].drawn = self._items[oldest].column = None


def is_collapsible(block: ShownBlock) -> bool:
    if isinstance(block, ThinkingBlock):
        return not block.redacted
    return isinstance(block, ToolBlock | ShellBlock | SummaryBlock | CoveredBlock)


def is_running(block: ShownBlock) -> bool:
    if isinstance(block, ToolBlock):
        return block.state == "running"
    return isinstance(block, ShellBlock) and block.running


def estimated_rows(block: ShownBlock, width: int) -> int:
    """A guess at the height of a block, cheap enough for ten thousand of them."""
    if isinstance(block, AssistantBlock | ThinkingBlock | UserBlock):
        margin = 4 if isinstance(block, UserBlock) else 2
        return margin + len(block.text) // width + block.text.count("\n", 0, 4_000)
    if isinstance(block, ToolBlock):
        return 3 if block.name == "read" else 7
    if isinstance(block, NoticeBlock):
        return 2 + len(block.text) // width
    return 3 if isinstance(block, SummaryBlock | CoveredBlock | CoveredEndBlock) else 8
