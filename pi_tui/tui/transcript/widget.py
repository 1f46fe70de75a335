"""The transcript widget: blocks in, lines out, on Textual's Line API.

Changes only mark what is to be done; a flush, at most sixty times a second, brings the window up to
date and repaints the lines that differ. Lines are composed there and merely looked up when Textual
paints. The widget holds no conversation state: it shows the blocks it is given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, overload

from textual import events
from textual.await_remove import AwaitRemove
from textual.geometry import Offset, Region, Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from pi_tui.core.transcript import ShownBlock
from pi_tui.tui.theme import PLAIN, ThemeSource
from pi_tui.tui.transcript.artist import Artist
from pi_tui.tui.transcript.block_text import copied_block
from pi_tui.tui.transcript.finder import Finder
from pi_tui.tui.transcript.focus import BlockFocus
from pi_tui.tui.transcript.frame import Frame, Look
from pi_tui.tui.transcript.items import Items
from pi_tui.tui.transcript.key_hints import KeyHints
from pi_tui.tui.transcript.selection import (
    copied_text,
    selection_at,
)
from pi_tui.tui.transcript.unread import Unread
from pi_tui.tui.transcript.viewport import Place, Viewport

if TYPE_CHECKING:
    from textual._animator import EasingFunction
    from textual._types import AnimationLevel, CallbackType

FLUSH_PERIOD_S = 1 / 60
WHEEL_ROWS = 3


class Transcript(ScrollView, can_focus=False):
    """Shows blocks, lazily drawn. Sticks to the end until somebody scrolls up."""

    DEFAULT_CSS = """
    Transcript {
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
    }
    """

    def __init__(
        self,
        theme: ThemeSource = PLAIN,
        *,
        show_thinking: bool = True,
        key_hints: KeyHints | None = None,
        clock: Callable[[], float] = time.monotonic,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self._key_hints = key_hints or KeyHints()
        self._clock = clock
        self._items = Items(Artist(theme, self._key_hints), show_thinking=show_thinking)
        self._viewport = Viewport(self._items)
        self._focus = BlockFocus(self._items, self._viewport)
        self._finder = Finder(self._items, self._viewport, self._changed)
        self._frame = Frame(self._items, self._viewport, self._focus, self._finder, self._key_hints)
        self._syncing = False
        self._scheduled = False
        self._flushed_s = float("-inf")
        self._elapsed_timer: Timer | None = None
        self._pressed_at: Offset | None = None

    # ------------------------------------------------------------ blocks

    def set_blocks(
        self, blocks: Sequence[ShownBlock | Unread], *, keep_position: bool = False
    ) -> None:
        """Show these blocks instead, at their end or, when they hold it, at the present place."""
        viewport = self._viewport
        anchor = viewport.anchor() if keep_position and not viewport.following else None
        self._items.set_blocks(blocks)
        self._finder.forget_places()
        viewport.return_to(anchor)
        self._focus.find_again()
        self._frame.unseen = 0
        self.screen_selection_cleared()
        self._changed()

    def append(self, block: ShownBlock) -> None:
        """Add a block at the end."""
        self._items.append(block)
        self._frame.unseen += 1
        self._changed()

    def replace(self, key: str, block: ShownBlock) -> None:
        """Put a block in the place of another; its key may be a new one. Unknown keys append."""
        self._items.replace(key, block)
        self._changed()

    def append_text(self, key: str, delta: str) -> None:
        """Add text to a block that streams; nothing happens when there is no such block."""
        self._items.append_text(key, delta)
        self._changed()

    def finish(self, key: str) -> None:
        """Say that a streaming block is complete."""
        self._items.finish(key)
        self._changed()

    @overload
    def remove(self) -> AwaitRemove: ...
    @overload
    def remove(self, key: str) -> None: ...
    def remove(self, key: str | None = None) -> AwaitRemove | None:
        """Take a block away, if it is there. Without a key, take the widget away, as any."""
        if key is None:
            return super().remove()
        self._items.remove(key)
        self._changed()
        return None

    def block(self, key: str) -> ShownBlock | None:
        """The block with that key as it is now."""
        return self._items.block(key)

    def clear(self) -> None:
        self.set_blocks(())

    @property
    def drawn_count(self) -> int:
        """How often a block was drawn so far."""
        return self._items.drawn_count

    # ------------------------------------------------------------ looks

    def set_theme(self, theme: ThemeSource) -> None:
        """Draw everything in another theme."""
        self._items.artist = Artist(theme, self._key_hints)
        self._redraw()

    @property
    def tools_expanded(self) -> bool:
        return self._items.tools_expanded

    @property
    def thinking_shown(self) -> bool:
        return self._items.thinking_shown

    def toggle_tools(self) -> None:
        """Open or close all tool outputs, commands and summaries."""
        self._items.set_all(tools=not self._items.tools_expanded)
        self._changed()

    def toggle_thinking(self) -> None:
        """Show or hide all thinking."""
        self._items.set_all(thinking=not self._items.thinking_shown)
        self._changed()

    def toggle_block(self, key: str) -> bool:
        """Open or close one block; False when there is none or it has nothing to open."""
        index = self._items.find(key)
        return index is not None and self._toggle_item(index)

    def _toggle_item(self, index: int) -> bool:
        if not self._items.toggle(index):
            return False
        viewport = self._viewport
        viewport.following = False
        if viewport.top.item == index and viewport.top.row > 0:
            viewport.move_to_item(index)  # its end may be gone: go to its start
        self._changed()
        return True

    # ------------------------------------------------------------ focus

    @property
    def has_focused_block(self) -> bool:
        """True while a block is marked that `toggle_focused` and `focused_text` are about."""
        return self._focus.index is not None

    def focus_block(self, step: int) -> bool:
        """Mark the next block that can be opened, above (-1) or below (1); False: there is none."""
        self._items.settle()
        self._frame.focus_note = ""
        moved = self._focus.move(step, self.size.height)
        if moved:
            self._changed()
        return moved

    def leave_focus(self) -> bool:
        """Mark no block any more; False when none was."""
        had = self.has_focused_block
        self._frame.focus_note = ""
        self._focus.leave()
        self._changed()
        return had

    def toggle_focused(self) -> bool:
        """Open or close the marked block; False when there is none."""
        index = self._focus.index
        self._frame.focus_note = ""
        return index is not None and self._toggle_item(index)

    def focused_text(self) -> str:
        """The whole text of the marked block, safe to copy; of a divider, of all behind it."""
        return copied_block(self._focus.blocks())

    @property
    def focused_origin(self) -> str:
        """The entry at the end of the branch the marked summary is about; "" without one."""
        return self._focus.origin

    def note_at_focus(self, text: str) -> None:
        """Say something where the keys of the marked block are named, until the next key."""
        self._frame.focus_note = text
        self._changed()

    # ------------------------------------------------------------ search

    @property
    def found(self) -> tuple[int, int]:
        """The number of the hit in sight, from 1, and how many hits there are."""
        return self._finder.position

    async def find(self, query: str) -> bool:
        """Search all blocks and go to the nearest hit; False when a later search overtook it."""
        self._items.settle()
        current = await self._finder.find(query, self.size.height)
        self._changed()
        return current

    async def find_next(self, step: int) -> None:
        """Go to the hit after (1) or before (-1) the present one."""
        self._items.settle()
        await self._finder.step(step, self.size.height)
        self._changed()

    def end_find(self) -> None:
        """Mark no hits any more; the place stays."""
        self._finder.close()
        self._changed()

    # ------------------------------------------------------------ scrolling

    @property
    def following(self) -> bool:
        """True while new text at the end is brought into sight."""
        return self._viewport.following

    def scroll_rows(self, rows: int) -> None:
        """Scroll down by rows, up when negative."""
        self._items.settle()
        self._viewport.move(rows, self.size.height)
        self._changed()

    def page_up(self) -> None:
        self.scroll_rows(-max(1, self.size.height - 2))

    def page_down(self) -> None:
        self.scroll_rows(max(1, self.size.height - 2))

    def scroll_top(self) -> None:
        """Go to the first line."""
        if not self._items.stretches.is_empty:
            self._viewport.following = False
            self._viewport.top = Place(0, 0)
            self._changed()

    def scroll_bottom(self) -> None:
        """Go to the end and stay there."""
        self._viewport.following = True
        self._changed()

    def previous_user_message(self) -> bool:
        """Go to the nearest user message above; False when there is none."""
        return self._to_user_message(-1)

    def next_user_message(self) -> bool:
        """Go to the nearest user message below; False when there is none."""
        return self._to_user_message(1)

    def _to_user_message(self, step: int) -> bool:
        index = self._viewport.user_message(step)
        if index is None:
            return False
        self._viewport.move_to_item(index)
        self._changed()
        return True

    def scroll_to(
        self,
        x: float | None = None,
        y: float | None = None,
        *,
        animate: bool = True,
        speed: float | None = None,
        duration: float | None = None,
        easing: EasingFunction | str | None = None,
        force: bool = False,
        on_complete: CallbackType | None = None,
        level: AnimationLevel = "basic",
        immediate: bool = False,
        release_anchor: bool = True,
    ) -> None:
        """Scroll at once: heights may change under an animation."""
        super().scroll_to(None, y, animate=False, force=force, on_complete=on_complete)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        if self.show_vertical_scrollbar:
            self.vertical_scrollbar.position = new_value
        if self._syncing or round(old_value) == round(new_value):
            return
        self._viewport.move_to_position(round(new_value), self.size.height)
        self._changed()

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        # A new size makes Textual limit the scroll offset by the heights it was told last. Nobody
        # scrolled: what is followed goes on being followed, the next frame finds the place.
        syncing, self._syncing = self._syncing, True
        try:
            return super()._size_updated(size, virtual_size, container_size, layout)
        finally:
            self._syncing = syncing

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        event.prevent_default()  # or the handler of the base class scrolls as well
        self.scroll_rows(WHEEL_ROWS)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        event.prevent_default()  # or the handler of the base class scrolls as well
        self.scroll_rows(-WHEEL_ROWS)

    # ------------------------------------------------------------ bringing the window up to date

    def _changed(self) -> None:
        if self._scheduled or not self.is_attached:
            return
        self._scheduled = True
        wait_s = self._flushed_s + FLUSH_PERIOD_S - time.monotonic()
        if wait_s > 0:
            self.set_timer(wait_s, self.flush)
        else:
            self.call_later(self.flush)

    def _redraw(self) -> None:
        self._viewport.note_redraw()
        self._items.redraw()
        self._changed()

    def flush(self) -> None:
        """Bring the window up to date now and repaint what differs."""
        self._scheduled = False
        self._flushed_s = time.monotonic()
        size = self.size
        if not self.is_attached or not size:
            return
        old, old_size = self._frame.lines, self._frame.size
        self._bring_up_to_date(size)
        if old_size != size:
            self.refresh()
            return
        differing = [y for y, strip in enumerate(self._frame.lines) if strip != old[y]]
        if differing:
            self.refresh(*(Region(0, y, size.width, 1) for y in differing))
        self._watch_running()

    def render_line(self, y: int) -> Strip:
        if self._frame.size != self.size:
            self._bring_up_to_date(self.size)
        lines = self._frame.lines
        return lines[y] if y < len(lines) else Strip.blank(self.size.width)

    def _bring_up_to_date(self, size: Size) -> None:
        items, viewport = self._items, self._viewport
        if items.width != size.width:
            viewport.note_redraw()
            items.set_width(size.width)
            self.screen_selection_cleared()
        items.settle()
        selection = self.text_selection
        chosen = self.screen.get_component_rich_style("screen--selection") if selection else None
        self._frame.compose(size, Look(self.rich_style, chosen), selection)
        self._sync_scrollbar(size)

    def _sync_scrollbar(self, size: Size) -> None:
        """Tell the scrollbar; no layout is needed, as it takes the same room always."""
        virtual = Size(size.width, max(1, self._items.heights.total))
        self._syncing = True
        try:
            if virtual != self.virtual_size:
                self.set_reactive(Widget.virtual_size, virtual)
                self._scroll_update(virtual)
            position = self.max_scroll_y if self._viewport.following else self._viewport.position
            if round(self.scroll_y) != position:
                self.set_reactive(Widget.scroll_target_y, float(position))
                self.scroll_y = float(position)
        finally:
            self._syncing = False

    def _watch_running(self) -> None:
        if not self._items.running:
            if self._elapsed_timer is not None:
                self._elapsed_timer.pause()
            return
        self._items.start_clock(self._clock())
        if self._elapsed_timer is None:
            self._elapsed_timer = self.set_interval(1.0, self._tick)
        else:
            self._elapsed_timer.resume()

    def _tick(self) -> None:
        if self._items.tick(self._clock()):
            self.flush()

    def on_mount(self) -> None:
        self._changed()

    def _on_resize(self, event: events.Resize) -> None:
        self.flush()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._changed()

    # ------------------------------------------------------------ mouse and selection

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._pressed_at = event.screen_offset

    async def _on_click(self, event: events.Click) -> None:
        # Textual's own handler would select everything on a double click.
        event.prevent_default()
        if event.screen_offset != self._pressed_at or event.button != 1:
            return  # the end of a selection
        place = self._frame.places[event.y] if 0 <= event.y < len(self._frame.places) else None
        if event.chain == 1 and not self._viewport.following and event.y == self.size.height - 1:
            self.scroll_bottom()
        elif event.chain == 1 and place is not None and place.row > 0:
            self._toggle_item(place.item)
        elif place is not None:
            self._select_in_row(place, event.x, whole=event.chain > 2)

    def _select_in_row(self, place: Place, x: int, *, whole: bool) -> None:
        drawn = self._items.ensure(place.item)
        selection = None if drawn is None else selection_at(drawn, place, x, whole=whole)
        if selection is not None:
            self.screen.selections = {self: selection}

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        text = copied_text(self._items, selection)
        return (text, "\n") if text else None

    def selection_updated(self, selection: Selection | None) -> None:
        self._changed()

    def screen_selection_cleared(self) -> None:
        """Drop a selection whose lines are no longer the same."""
        if self.is_attached and self.text_selection is not None:
            self.screen.clear_selection()
