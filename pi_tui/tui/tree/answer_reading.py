"""Has the answers of a tree looked at while nobody waits, because quiet ones are left out.

Times are seconds of the performance counter.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pi_tui.core.tree_view import TreeView
from pi_tui.tui.tree.delays import Delays

AT_ONCE_S = 0.02
SLICE_S = 0.004
PAUSE_S = 0.001
STEP = 50


class AnswerReading:
    """Reads for one view. `lay_out_soon` is called once, when all is read and rows vanish."""

    def __init__(self, view: TreeView, delays: Delays, lay_out_soon: Callable[[], None]) -> None:
        self._view = view
        self._delays = delays
        self._lay_out_soon = lay_out_soon
        self._found = False

    def begin(self) -> None:
        """Look at the nearest answers now, at the others later. Rows are not laid out."""
        self._read(AT_ONCE_S)
        self.go_on()

    def go_on(self) -> None:
        """Look at what is left, in the background."""
        if self._view.unread_count:
            self._delays.start("read", PAUSE_S, self._read_on)

    def _read(self, budget_s: float) -> bool:
        """Look at answers for a while; True when one of them turned out to be quiet."""
        until_s = time.perf_counter() + budget_s
        found = False
        while self._view.unread_count and time.perf_counter() < until_s:
            found = self._view.settle_some(STEP) or found
        return found

    def _read_on(self) -> None:
        self._found = self._read(SLICE_S) or self._found
        self.go_on()
        if self._found and not self._view.unread_count:
            # Once, at the end: no row in sight is quiet, and laying out a large tree is felt.
            self._found = False
            self._lay_out_soon()
