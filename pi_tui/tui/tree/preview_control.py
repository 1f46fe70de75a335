"""What the preview of the navigator shows: the selected entry, a moment later, or a whole path.

Times are seconds.
"""

from __future__ import annotations

from pi_tui.core.tree_view import TreeView
from pi_tui.tui.tree.delays import Delays
from pi_tui.tui.tree.path_preview import PathPreview
from pi_tui.tui.tree.preview import PreviewPane
from pi_tui.tui.tree.preview_blocks import preview_blocks

DELAY_S = 0.03


class PreviewControl:
    """Keeps the pane in step with the selection of a view."""

    def __init__(self, view: TreeView, pane: PreviewPane, delays: Delays) -> None:
        self._view = view
        self._pane = pane
        self._delays = delays
        self._path = PathPreview(view.tree, pane)
        self._shown: str | None = None

    @property
    def shows_path(self) -> bool:
        return self._path.active

    def follow(self) -> None:
        """Show the selected entry soon, if it is another one."""
        if self._view.selected_id != self._shown:
            self._delays.start("preview", DELAY_S, self._show_selected)

    def forget(self) -> None:
        """What is shown may have changed."""
        self._shown = None

    def toggle_path(self) -> None:
        """Show the whole path to the selected entry, or the entry again."""
        if self._path.active:
            self._path.stop()
            self._shown = None
        elif self._view.selected_id is not None:
            self._path.start(self._view.selected_id)

    def stop(self) -> None:
        self._path.stop()

    def _show_selected(self) -> None:
        selected = self._view.selected_id
        if self._path.active or not self._pane.display:
            return
        if selected != self._shown:
            self._pane.show([] if selected is None else preview_blocks(self._view.tree, selected))
        self._shown = selected
