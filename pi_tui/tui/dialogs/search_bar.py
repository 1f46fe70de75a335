"""The line in which a search of the transcript is typed, with the number of the hit in sight."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette

MAX_QUERY_CHARS = 500

Spawn = Callable[[Coroutine[Any, Any, object]], object]


class Searched(Protocol):
    """What is searched: the transcript."""

    @property
    def found(self) -> tuple[int, int]: ...
    async def find(self, query: str) -> bool: ...
    async def find_next(self, step: int) -> None: ...
    def end_find(self) -> None: ...
    def page_up(self) -> None: ...
    def page_down(self) -> None: ...


class SearchBar(Panel[bool]):
    """Takes a query, goes from hit to hit; what was found stays in sight when it closes."""

    def __init__(
        self,
        searched: Searched,
        spawn: Spawn,
        palette: Palette,
        keys: KeyMap,
    ) -> None:
        super().__init__("Search the transcript", palette, keys)
        self._searched = searched
        self._spawn = spawn
        self._query = ""
        self._searching = False

    @property
    def hint(self) -> str:
        label = self.keys.label
        return (
            f"{label('tui.altScreen.searchClose')} closes · "
            f"{label('tui.altScreen.searchNext')} next · "
            f"{label('tui.altScreen.searchPrevious')} previous"
        )

    def wanted_rows(self) -> int:
        return 1

    # ------------------------------------------------------------ keys

    def key(self, name: str, character: str | None) -> None:
        keys = self.keys
        if keys.means(name, "tui.altScreen.searchClose") or keys.means(name, "tui.select.cancel"):
            self._searched.end_find()
            self.finish(None)
        elif keys.means(name, "tui.altScreen.searchNext"):
            self._go(1)
        elif keys.means(name, "tui.altScreen.searchPrevious"):
            self._go(-1)
        elif keys.means(name, "tui.altScreen.pageUp"):
            self._searched.page_up()
        elif keys.means(name, "tui.altScreen.pageDown"):
            self._searched.page_down()
        elif keys.means(name, "tui.editor.deleteCharBackward"):
            self._set(self._query[:-1])
        elif keys.means(name, "tui.editor.deleteWordBackward"):
            self._set(self._query[: self._query.rstrip().rfind(" ") + 1])
        elif keys.means(name, "tui.editor.deleteToLineStart"):
            self._set("")
        elif character is not None and character.isprintable():
            self._set(self._query + character)

    def paste(self, text: str) -> None:
        self._set(self._query + sanitise_line(text).strip())

    def _set(self, query: str) -> None:
        query = query[:MAX_QUERY_CHARS]
        if query != self._query:
            self._query = query
            self._spawn(self._find(query))

    def _go(self, step: int) -> None:
        if not self._searching:  # else the nearest hit comes anyway
            self._spawn(self._step(step))

    async def _find(self, query: str) -> None:
        self._searching = True
        self.refresh()
        if await self._searched.find(query):
            self._searching = False
            self.refresh()

    async def _step(self, step: int) -> None:
        await self._searched.find_next(step)
        self.refresh()

    # ------------------------------------------------------------ drawing

    def body_line(self, y: int, width: int) -> Strip:
        ink = self.palette.ink
        right = f" {self._count_text()} "
        room = max(1, width - 5 - cell_len(right))
        query = self._query
        while cell_len(query) > room:  # its end is what is typed at
            query = query[1:]
        left = Strip(
            [
                Segment("  > ", ink("muted")),
                Segment(query, ink("text")),
                Segment(" ", Style(reverse=True)),
            ]
        )
        count = Segment(right, ink("warning" if right.strip() == "not found" else "dim"))
        return Strip.join(
            [left.adjust_cell_length(max(0, width - cell_len(right))), Strip([count])]
        )

    def _count_text(self) -> str:
        if not self._query.strip():
            return ""
        if self._searching:
            return "…"
        at, count = self._searched.found
        return f"{at}/{count}" if count else "not found"
