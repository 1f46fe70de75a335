"""The list of the navigator: which rows are in sight, from which level on, and where one is hit.

The selection stands in the middle unless the list was wheeled. Indentation is counted from the
shallowest row in sight, so that a branch deep in the tree has as much room for its texts as one
near the root. Sizes are cells.
"""

from __future__ import annotations

from textual.strip import Strip

from pi_tui.core.tree_view import TreeView
from pi_tui.tui.tree.row_painter import RowPainter
from pi_tui.tui.tree.row_room import most_steps


class ListPane:
    """The rows of one view in a rectangle."""

    def __init__(self, view: TreeView, painter: RowPainter) -> None:
        self._view = view
        self._painter = painter
        self._wheeled_top: int | None = None
        self.rows = 1
        self.width = 1

    def fit(self, width: int, rows: int) -> None:
        """Take this size."""
        self.width, self.rows = width, max(1, rows)

    @property
    def top(self) -> int:
        """The number of the row at the top."""
        top = self._wheeled_top
        if top is None:
            top = self._view.selected_row - self.rows // 2
        return max(0, min(top, len(self._view) - self.rows))

    @property
    def pan(self) -> int:
        """The first level in sight.

        The connectors of the shallowest row are, unless the selected one is too deep for that.
        """
        view, top = self._view, self.top
        levels = view.levels(top, self.rows)
        if not levels:
            return 0
        pan = min(levels) - 1
        if top <= view.selected_row < top + self.rows:
            pan = max(pan, levels[view.selected_row - top] - most_steps(self.width))
        return max(0, pan)

    def follow(self) -> None:
        """Bring the selection back into sight."""
        self._wheeled_top = None

    def hold(self, top: int) -> None:
        """Keep this row at the top while the selection stays where it is."""
        self._wheeled_top = top

    def wheel(self, rows: int) -> None:
        """Scroll without moving the selection."""
        view = self._view
        self._wheeled_top = self.top + rows
        self._wheeled_top = self.top
        selected = view.selected_row
        ahead = abs(self.top - selected) + 2 * self.rows
        if view.settle(ahead, ahead):
            self._wheeled_top += view.selected_row - selected

    def row_at(self, x: int, y: int) -> int | None:
        """The number of the row at a place in the list."""
        number = self.top + y
        inside = 0 <= x < self.width and 0 <= y < self.rows
        return number if inside and number < len(self._view) else None

    def is_on_fold(self, x: int, number: int) -> bool:
        """True when a column is on the mark with which a row is folded."""
        selected = number == self._view.selected_row
        row = self._view.row(number)
        return self._painter.is_on_fold(x, row, self.width, self.pan, selected=selected)

    def line(self, y: int) -> Strip | None:
        """Draw the row at line y; None below the last one."""
        number = self.top + y
        if number >= len(self._view):
            return None
        selected = number == self._view.selected_row
        return self._painter.draw(self._view, number, self.width, self.pan, selected=selected)
