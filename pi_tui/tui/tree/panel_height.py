"""How many rows of the terminal the navigator takes: half, what was chosen, or all. Pure."""

from __future__ import annotations

from pi_tui.tui.tree.tree_state import TreeState

SMALL_ROWS = 28
"""Below this height of the terminal the panel takes all of it."""
LEAST_ROWS = 8
OTHER_ROWS = 3
"""The footer, and what the transcript keeps."""


class PanelHeight:
    """The height that was chosen, kept in the state. `available` is that of the terminal."""

    def __init__(self, state: TreeState) -> None:
        self._state = state

    def wanted(self, available: int) -> int:
        """As many rows as are asked for, possible or not."""
        if self._state.whole or available < SMALL_ROWS:
            return available
        return self._state.rows or available // 2

    def rows(self, available: int) -> int:
        """As many rows as it gets."""
        return max(3, min(self.wanted(available), available - OTHER_ROWS))

    def grow(self, rows: int, available: int) -> None:
        """Ask for more rows, fewer when negative."""
        most = available - OTHER_ROWS
        now = min(self.wanted(available), most)
        self._state.whole = False
        self._state.rows = max(LEAST_ROWS, min(most, now + rows))

    def toggle_whole(self) -> None:
        """Ask for the whole terminal, or as much as before."""
        self._state.whole = not self._state.whole
