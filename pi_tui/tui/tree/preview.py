"""The pane that shows the selected entry as the transcript would, or the whole path to it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Region
from textual.strip import Strip

from pi_tui.core.transcript import Block
from pi_tui.tui.theme import ThemeSource
from pi_tui.tui.transcript import KeyHints, Transcript


class PreviewPane(Transcript):
    """A transcript at a place its parent gives it. Long outputs are open."""

    DEFAULT_CSS = "PreviewPane { position: absolute; display: none; }"

    def __init__(self, theme: ThemeSource, key_hints: KeyHints) -> None:
        super().__init__(theme, key_hints=key_hints)
        self.toggle_tools()

    def place(self, region: Region | None) -> None:
        """Take a part of the parent, or none."""
        if region is None or region.width < 4 or region.height < 1:
            self.display = False
            return
        styles = self.styles
        styles.offset = (region.x, region.y)
        styles.width, styles.height = region.width, region.height
        self.display = True

    def show(self, blocks: Sequence[Block], *, from_end: bool = False) -> None:
        """Show these blocks from their beginning, or from their end."""
        self.set_blocks(blocks)
        if not from_end:
            self.scroll_top()

    def render_line(self, y: int) -> Strip:
        # It changes with each arrow key: fewer pieces are fewer bytes for the terminal.
        return super().render_line(y).simplify()
