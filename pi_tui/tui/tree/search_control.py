"""The search of the navigator: from what is typed to hits among the rows.

Typing is answered after a short pause; hits come in while the search goes on, and the rows are laid
out again for a small share of the time only. Times are seconds of the performance counter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from pi_tui.core.errors import UsageError
from pi_tui.core.session_search import Query, parse_query
from pi_tui.core.tree_view import TreeView
from pi_tui.tui.tree.delays import Delays
from pi_tui.tui.tree.entry_query import EntryQuery
from pi_tui.tui.tree.line_input import LineInput
from pi_tui.tui.tree.row_painter import RowPainter
from pi_tui.tui.tree.search import SearchTexts, TreeSearch, outward

DEBOUNCE_S = 0.05
RELAYOUT_SHARE = 6
"""Between two layouts passes at least this many times what one takes."""


class SearchControl:
    """The search line and what it does to the view. `show` draws everything again."""

    def __init__(
        self,
        view: TreeView,
        painter: RowPainter,
        texts: SearchTexts,
        delays: Delays,
        show: Callable[[], None],
    ) -> None:
        self.line = LineInput()
        self.problem = ""
        self._view = view
        self._painter = painter
        self._delays = delays
        self._show = show
        self._query = EntryQuery(Query())
        self._search = TreeSearch(texts, self._found, self._ended)
        self._laid_out_s = float("-inf")
        self.layout_cost_s = 0.0

    @property
    def active(self) -> bool:
        """True when something is typed or searched for."""
        return bool(self._query) or bool(self.line.text)

    @property
    def has_query(self) -> bool:
        return bool(self._query)

    @property
    def running(self) -> bool:
        return self._search.running

    async def wait(self) -> None:
        """Wait until the present search has gone through everything."""
        self.flush()
        await self._search.wait()

    def edited(self) -> None:
        """The line was changed: search after a pause."""
        self._delays.start("search", DEBOUNCE_S, self.run)

    def flush(self) -> None:
        """Do now what waits for a pause in typing."""
        self._delays.do_now("search")

    def clear(self) -> None:
        """Leave the search; the selection stays on its entry."""
        self._delays.stop("search")
        self.line.clear()
        self._set_query(EntryQuery(Query()))

    def stop(self) -> None:
        self._search.stop()

    def run(self) -> None:
        """Search for what the line says now."""
        self._delays.stop("search")
        try:
            query = EntryQuery(parse_query(self.line.text))
        except UsageError as error:
            self._search.stop()
            self.problem = error.text
        else:
            self._set_query(query)
        self._show()

    def _set_query(self, query: EntryQuery) -> None:
        view = self._view
        self.problem = ""
        self._query = query
        self._painter.set_query(query)
        self._search.stop()
        if not query:
            if view.searching:
                view.end_search()
            return
        at = view.shape.find(view.selected_id) or 0
        view.begin_search()
        ids = outward(view.shape.ids, at)
        self._search.start(query, (one for one in ids if view.is_shown_kind(one)))

    def next_hit(self, step: int) -> None:
        """Select the next hit. Raises UsageError when there is none."""
        self.flush()
        if not self._view.next_hit(step):
            raise UsageError("there are no hits" if self._query else "nothing was searched for")

    def _found(self, hits: Sequence[str]) -> None:
        self._view.add_hits(hits)
        self.lay_out_soon()

    def _ended(self, problem: str | None) -> None:
        if problem is not None:
            self.problem = problem
        self._lay_out()

    def lay_out_soon(self) -> None:
        """Lay the rows out again, at once or when enough time has passed."""
        wait_s = self._laid_out_s + RELAYOUT_SHARE * self.layout_cost_s - time.perf_counter()
        if wait_s <= 0:
            self._lay_out()
        elif "layout" not in self._delays:
            self._delays.start("layout", wait_s, self._lay_out)

    def _lay_out(self) -> None:
        self._delays.stop("layout")
        start_s = time.perf_counter()
        self._view.relayout()
        self._laid_out_s = time.perf_counter()
        self.layout_cost_s = self._laid_out_s - start_s
        self._show()
