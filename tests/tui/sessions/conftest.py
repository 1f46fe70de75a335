"""A library without files, and the picker over it in the real application."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from msgspec import structs
from textual import events

from pi_tui.commands.builtin import builtin_registry
from pi_tui.core.session_library import SessionHit, SessionRow, never
from pi_tui.core.session_search import Query, match_any
from pi_tui.tui.app import PiTuiApp
from pi_tui.tui.keys import normalise_key
from pi_tui.tui.options import TuiOptions
from pi_tui.tui.sessions.flow import pick_session
from pi_tui.tui.sessions.panel import SessionPanel
from pi_tui.tui.sessions.session_view import PickerChoices

HERE = "/home/you/project"
MINUTE_MS = 60_000
NOW_MS = 1_000_000 * MINUTE_MS


@pytest.fixture(scope="session")
def double() -> ModuleType:
    """The module with the session double."""
    path = Path(__file__).parents[1] / "session_double.py"
    spec = importlib.util.spec_from_file_location("tui_sessions_double", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def make_row(number: int, **fields: Any) -> SessionRow:
    """Session `number`, changed that many minutes ago."""
    row = SessionRow(
        path=f"/sessions/{number}.jsonl",
        id=f"id-{number}",
        cwd=HERE,
        cwd_exists=True,
        name=None,
        first_text=f"text {number}",
        message_count=number,
        created_ms=None,
        modified_ms=NOW_MS - number * MINUTE_MS,
        size_bytes=1500 * number,
    )
    return structs.replace(row, **fields)


class LibraryDouble:
    """Lists `stored`; `bodies` are the texts of conversations by path.

    `gate` holds the list back until it is set, `search_gate` the part of a search that reads
    files. `failures` are raised by `rename`, `delete` and `delete for good`.
    """

    cwd = HERE

    def __init__(self, stored: Iterable[SessionRow]) -> None:
        self.stored = list(stored)
        self.bodies: dict[str, str] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.search_gate = threading.Event()
        self.search_gate.set()
        self.failures: dict[str, Exception] = {}
        self.done: list[tuple[str, ...]] = []
        self.given = 0

    def rows(self, *, everywhere: bool) -> Iterator[SessionRow]:
        for row in tuple(self.stored):
            self.gate.wait(10)
            self.given += 1
            if everywhere or row.cwd == HERE:
                yield row

    def search(
        self, query: Query, *, everywhere: bool, stopped: Callable[[], bool] = never
    ) -> Iterator[SessionHit]:
        self.search_gate.wait(10)
        for row in tuple(self.stored):
            if stopped():
                return
            texts = (row.title, row.id, self.bodies.get(row.path, ""))
            number, found = match_any(query, texts)
            if found is not None and (everywhere or row.cwd == HERE):
                yield SessionHit(row, found.score, texts[number], found.spans)

    def rename(self, path: str, name: str) -> None:
        self._do("rename", path, name)
        self.stored = [structs.replace(r, name=name) if r.path == path else r for r in self.stored]

    def delete(self, path: str, *, for_good: bool = False) -> None:
        self._do("delete for good" if for_good else "delete", path)
        self.stored = [row for row in self.stored if row.path != path]

    def _do(self, deed: str, *what: str) -> None:
        if deed in self.failures:
            raise self.failures[deed]
        self.done.append((deed, *what))

    def shown(self, path: str) -> str:
        return path.replace("/home/you", "~")


class Picking:
    """A picker on screen, driven by keys."""

    def __init__(
        self, app: PiTuiApp, pilot: Any, library: LibraryDouble, picked: asyncio.Task[str | None]
    ) -> None:
        self.app = app
        self.pilot = pilot
        self.library = library
        self.picked = picked

    @property
    def panel(self) -> SessionPanel:
        panel = self.app._panels[0]
        assert isinstance(panel, SessionPanel)
        return panel

    @property
    def titles(self) -> list[str]:
        return [shown.row.title for shown in self._shown()]

    def _shown(self) -> list[Any]:
        return [self.panel.view[number] for number in range(len(self.panel.view))]

    @property
    def lines(self) -> list[str]:
        rows = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in row).rstrip() for row in rows]

    @property
    def screen(self) -> str:
        return "\n".join(self.lines)

    def line(self, text: str) -> str:
        """The line of the screen that holds a text."""
        return next(line for line in self.lines if text in line)

    async def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(1_000):
            if holds():
                return
            await asyncio.sleep(0.005)
        raise AssertionError(f"it never came to that; on screen:\n{self.screen}")

    async def settled(self) -> None:
        """Wait until all is read and searched."""

        def quiet() -> bool:
            panel = self.panel
            waits = "search" in panel._waits and panel.view.stale
            return not (panel.feed.reading or panel.feed.searching or waits)

        await self.until(quiet)
        await self.pilot.pause()

    async def press(self, *names: str) -> None:
        for name in names:
            self.app._key(normalise_key(name), name if len(name) == 1 else None)
        await self.pilot.pause()

    async def burst(self, *names: str) -> None:
        """Keys that arrive in one read."""
        for name in names:
            character = name if len(name) == 1 else None
            self.app.post_message(events.Key(name, character))
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        for character in text:
            self.app._key(normalise_key(character), character)
        await self.pilot.pause()

    async def search(self, text: str) -> None:
        await self.type(text)
        await self.until(lambda: not self.panel.view.stale)
        await self.settled()


@pytest.fixture
def row() -> Callable[..., SessionRow]:
    return make_row


@pytest.fixture
def library() -> Callable[..., LibraryDouble]:
    return LibraryDouble


@pytest.fixture
def picking(double: ModuleType) -> Callable[..., AbstractAsyncContextManager[Picking]]:
    """Opens a picker: `async with picking(library, query=…, size=…, choices=…) as p`."""

    @asynccontextmanager
    async def open_picker(
        library: LibraryDouble,
        query: str = "",
        *,
        size: tuple[int, int] = (100, 30),
        choices: PickerChoices | None = None,
        open_path: str = "/sessions/open.jsonl",
    ) -> Any:
        session = double.SessionDouble(cwd=HERE)
        session.store.path = open_path
        app = PiTuiApp(session, builtin_registry(), TuiOptions())
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            chosen = PickerChoices() if choices is None else choices
            picked = app.spawn(pick_session(app, library, query, chosen, now_ms=lambda: NOW_MS))
            await pilot.pause()
            yield Picking(app, pilot, library, picked)
            library.gate.set()
            library.search_gate.set()

    return open_picker
