"""The lines of the window as they are drawn: rows of blocks with every mark on top of them.

Marks are the focus, hits of a search, what is selected, and a label on the last line: the keys of
the block that has the focus, or the way back to the end.
"""

from __future__ import annotations

from msgspec import Struct
from rich.style import Style
from textual.geometry import Size
from textual.selection import Selection
from textual.strip import Strip

from pi_tui.tui.transcript.finder import Finder
from pi_tui.tui.transcript.focus import BlockFocus
from pi_tui.tui.transcript.items import Items
from pi_tui.tui.transcript.key_hints import KeyHints
from pi_tui.tui.transcript.overlay import focus_label, with_focus_mark, with_hits, with_label
from pi_tui.tui.transcript.selection import highlighted, line_number
from pi_tui.tui.transcript.viewport import Place, Viewport


class Look(Struct, frozen=True):
    """What the widget is styled with. `chosen`: what is selected, None when nothing can be."""

    base: Style
    chosen: Style | None = None


class Frame:
    """One window full of lines. `focus_note` stands where the keys of the marked block are named.

    `unseen` counts the blocks that were added at the end while it was out of sight.
    """

    def __init__(
        self,
        items: Items,
        viewport: Viewport,
        focus: BlockFocus,
        finder: Finder,
        key_hints: KeyHints,
    ) -> None:
        self._items = items
        self._viewport = viewport
        self._focus = focus
        self._finder = finder
        self._key_hints = key_hints
        self.focus_note = ""
        self.unseen = 0
        self.places: list[Place] = []
        self.lines: list[Strip] = []
        self.size = Size(0, 0)

    def compose(self, size: Size, look: Look, selection: Selection | None) -> None:
        """Make the lines for where the viewport is."""
        self.size = size
        self.places = self._viewport.layout(size.height)
        if self._viewport.following:
            self.unseen = 0
        marks = self._finder.marks(self.places)
        styles = self._items.artist.styles
        focused = self._focus.index
        lines: list[Strip] = []
        for place in self.places:
            drawn = self._items.ensure(place.item)
            if drawn is None:
                continue
            strip = drawn.strip(place.row).apply_style(look.base)
            if place.item == focused and place.row > 0:
                strip = with_focus_mark(strip, place.row, look.base, styles)
            if place in marks:
                strip = with_hits(strip, marks[place], styles)
            if selection is not None and look.chosen is not None:
                strip = highlighted(strip, selection, place, look.chosen)
            lines.append(strip.apply_offsets(0, line_number(place)))
        blank = Strip.blank(size.width, look.base)
        lines += [blank] * (size.height - len(lines))
        label = self._label(size)
        if label:
            ink = look.base + styles.jump_hint
            lines[-1] = with_label(lines[-1], label, size.width, ink)
        self.lines = lines

    def _label(self, size: Size) -> str:
        """What stands on the last line, over the text; "" for nothing."""
        if size.height <= 1:
            return ""
        if self._focus.index is not None:
            note = f" {self.focus_note} " if self.focus_note else ""
            has_origin = bool(self._focus.origin)
            return note or focus_label(self._key_hints, size.width, has_origin=has_origin)
        if self._viewport.following:
            return ""
        new = f"{self.unseen} new · " if self.unseen else ""
        hints = self._key_hints
        label = f" {hints.more or f'↓ {new}jump to latest ({hints.latest})'} "
        return label if len(label) <= size.width else " ↓ "
