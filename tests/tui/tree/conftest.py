"""A session without an agent, an app that hosts the navigator, and ways to build trees."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from textual import events
from textual.app import App, ComposeResult
from textual.widget import Widget

from pi_tui.agent.branch_comparison import compare_branches
from pi_tui.agent.compactor import CompactionOutcome
from pi_tui.agent.navigator import NavigateRequest, NavigationOutcome, NavigationPreview
from pi_tui.core.context_edits import plan_context_edit
from pi_tui.core.entries import CustomEntry, Entry, LabelEntry, MessageEntry, iso_timestamp
from pi_tui.core.errors import UsageError
from pi_tui.core.events import EntryAppended, LeafMoved
from pi_tui.core.messages import (
    AssistantMessage,
    Cost,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_tui.core.navigation import plan_navigation
from pi_tui.core.tokens import CharsEstimator
from pi_tui.core.tree import tree_of
from pi_tui.resources.themes import load_theme
from pi_tui.tui.dialogs.text_panel import TextPanel
from pi_tui.tui.keys import KeyMap, normalise_key
from pi_tui.tui.palette import Palette
from pi_tui.tui.theme import textual_theme
from pi_tui.tui.tree.flow import TreeNavigator

START_MS = 1_750_000_000_000
NOW_MS = START_MS + 3 * 3_600_000


class TreeBuilder:
    """Makes entries one after the other; `at` names the parent, by default the last entry."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._last: str | None = None

    def _add(self, entry_id: str, message: Any, at: str | None) -> str:
        parent = at if at is not None else self._last
        when = iso_timestamp(START_MS + 1000 * len(self.entries))
        self.entries.append(
            MessageEntry(id=entry_id, parent_id=parent, timestamp=when, message=message)
        )
        self._last = entry_id
        return entry_id

    def user(self, entry_id: str, text: str, at: str | None = None) -> str:
        return self._add(entry_id, UserMessage(text, 0), at)

    def answer(
        self, entry_id: str, text: str = "", *calls: ToolCall, at: str | None = None, **extra: Any
    ) -> str:
        content = ([TextContent(text)] if text else []) + list(calls)
        usage = Usage(1200, 300, 0, 0, 1500, cost=Cost(total=0.0123))
        fields: dict[str, Any] = {
            "content": tuple(content),
            "api": "scripted",
            "provider": "acme",
            "model": "big-1",
            "usage": usage,
            "stop_reason": "toolUse" if calls else "stop",
            "timestamp": 0,
        }
        return self._add(entry_id, AssistantMessage(**(fields | extra)), at)

    def result(
        self, entry_id: str, call_id: str, tool: str, text: str, at: str | None = None, **extra: Any
    ) -> str:
        message = ToolResultMessage(call_id, tool, (TextContent(text),), False, 0, **extra)
        return self._add(entry_id, message, at)

    def label(self, entry_id: str, target: str, text: str) -> str:
        when = iso_timestamp(START_MS + 1000 * len(self.entries))
        self.entries.append(
            LabelEntry(
                id=entry_id, parent_id=self._last, timestamp=when, target_id=target, label=text
            )
        )
        self._last = entry_id
        return entry_id


def small_tree() -> list[Entry]:
    """Two branches after the second question; the leaf is on the second one."""
    make = TreeBuilder()
    make.user("u1", "first question")
    make.answer("a1", "", ToolCall("c1", "read", {"path": "src/parser.py"}))
    make.result("t1", "c1", "read", "def parse(text):\n    return SECRETWORD\n")
    make.answer("a2", "the parser is fine")
    make.user("u2", "fix the lexer", at="a2")
    make.answer("a3", "fixed the lexer")
    make.user("u3", "try another way", at="a2")
    make.answer("a4", "", ToolCall("c2", "bash", {"command": "make test"}))
    make.result("t2", "c2", "bash", "all tests passed")
    make.answer("a5", "done another way")
    return make.entries


class BranchesDouble:
    """As `BranchTools`, over sets."""

    def __init__(self, session: TreeSessionDouble) -> None:
        self._session = session
        self.hidden: set[str] = set()
        self.left_out: set[str] = set()

    def hide(self, entry_id: str) -> None:
        self.hidden.add(entry_id)

    def unhide(self, entry_id: str) -> None:
        self.hidden.discard(entry_id)

    def leave_out(self, entry_id: str) -> tuple[str, ...]:
        if not hasattr(plan_context_edit(self._session.tree, entry_id, None), "target_id"):
            raise UsageError(f"{entry_id} cannot be left out")
        self.left_out.add(entry_id)
        return (entry_id,)

    def restore(self, entry_id: str) -> tuple[str, ...]:
        self.left_out.discard(entry_id)
        return (entry_id,)

    async def compare(self, a_id: str, b_id: str) -> Any:
        return compare_branches(self._session.tree, a_id, b_id, CharsEstimator())


class TreeSessionDouble:
    """Records what is asked. `outcomes`: kinds with which the next moves end."""

    def __init__(self, entries: Sequence[Entry], leaf_id: str | None = None) -> None:
        self.tree = tree_of(entries) if leaf_id is None else tree_of(entries, leaf_id)
        self.estimator = CharsEstimator()
        self.pins: frozenset[str] = frozenset()
        self.branches = BranchesDouble(self)
        self.branch_skip_prompt = False
        self.requests: list[NavigateRequest] = []
        self.outcomes: list[str] = []
        self.compactions: list[Any] = []
        self.undone = 0
        self.previews = 0
        self._listeners: list[Callable[[Any], None]] = []

    def subscribe(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def emit(self, event: Any) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def append(self, entry: Entry) -> None:
        self.tree.append(entry)
        self.emit(EntryAppended(entry))

    async def navigate(self, request: NavigateRequest) -> NavigationOutcome:
        self.requests.append(request)
        kind: Any = self.outcomes.pop(0) if self.outcomes else "moved"
        old = self.tree.leaf_id
        text = None
        if kind == "moved":
            plan = plan_navigation(self.tree, request.target_id or "")
            text = plan.editor_text
            self.tree.move_leaf(plan.leaf_id)
            self.emit(LeafMoved(plan.leaf_id, old))
        return NavigationOutcome(kind, self.tree.leaf_id, old, text, message=f"it {kind}")

    async def preview_navigation(self, target_id: str) -> NavigationPreview:
        self.previews += 1
        return NavigationPreview(4, 12_345, True)

    async def undo_navigation(self) -> NavigationOutcome:
        self.undone += 1
        return NavigationOutcome("moved", None, None, message="back")

    async def compact(self, request: Any) -> CompactionOutcome:
        self.compactions.append(request)
        return CompactionOutcome("done")

    def set_label(self, entry_id: str, label: str | None) -> str | None:
        self._append_of(LabelEntry, target_id=entry_id, label=label)
        return label

    def pin(self, entry_id: str, *, pinned: bool) -> str:
        self.pins = self.pins | {entry_id} if pinned else self.pins - {entry_id}
        self._append_of(CustomEntry, custom_type="pi-tui.pin", data={"targetId": entry_id})
        return entry_id

    def _append_of(self, kind: Any, **fields: Any) -> None:
        entry_id = f"x{len(self.tree)}"
        when = iso_timestamp(NOW_MS)
        self.append(kind(id=entry_id, parent_id=self.tree.leaf_id, timestamp=when, **fields))


class UiDouble:
    """What a command may ask of the front end, recorded."""

    def __init__(self, app: TreeApp) -> None:
        self._app = app
        self.notices: list[tuple[str, str]] = []
        self.copied: list[str] = []
        self.editor_texts: list[str] = []

    def notify(self, level: str, text: str) -> None:
        self.notices.append((level, text))

    def copy(self, text: str) -> None:
        self.copied.append(text)

    def set_editor_text(self, text: str) -> None:
        self.editor_texts.append(text)

    def show(self, title: str, text: str) -> None:
        app = self._app
        app.spawn(app.open_panel(TextPanel(title, text, app.palette, app.keys)))


class TreeApp(App[None], inherit_bindings=False):
    """The smallest app that can host the navigator; keys go to the panel as in the real one."""

    CSS = "#above { height: 1fr; } #footer { height: 2; }"

    def __init__(self, session: Any, theme_name: str, keybindings: dict[str, Any]) -> None:
        super().__init__()
        theme = load_theme(theme_name)
        self.session = session
        self.theme_source = theme
        self.palette = Palette(theme)
        self.keys = KeyMap(keybindings)
        self.tree_filter: Any = "default"
        self.ui = UiDouble(self)
        self.commands: list[str] = []
        self.edited: list[str] = []
        self.panels: list[Any] = []
        self.tasks: list[Any] = []
        self.register_theme(textual_theme(theme))
        self.theme = theme.name
        self.navigator = TreeNavigator(self, now_ms=lambda: NOW_MS)

    def compose(self) -> ComposeResult:
        yield Widget(id="above")
        yield Widget(id="footer")

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and self.panels:
            name = normalise_key(event.key)
            self.panels[-1].key(name, event.character if event.is_printable else None)
        elif isinstance(event, events.Paste) and self.panels:
            self.panels[-1].paste(event.text)
        else:
            await super().on_event(event)

    def on_resize(self, event: events.Resize) -> None:
        for panel in self.panels:
            panel.set_available_rows(event.size.height)

    def spawn(self, work: Any) -> Any:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.append(task)
        return task

    def run_command(self, text: str) -> None:
        self.commands.append(text)

    async def edit_text(self, text: str) -> str | None:
        self.edited.append(text)
        return text + " edited"

    async def open_panel(self, panel: Any) -> Any:
        self.panels.append(panel)
        for other in self.panels[:-1]:
            other.display = False
        await self.mount(panel, before="#footer")
        panel.set_available_rows(self.size.height)
        try:
            return await panel.result
        finally:
            self.panels.remove(panel)
            panel.remove()
            if self.panels:
                self.panels[-1].display = True


class Desk:
    """A running app with the navigator open, and eyes and hands for it."""

    def __init__(self, app: TreeApp, pilot: Any) -> None:
        self.app = app
        self.pilot = pilot
        self.session = app.session
        self.ui = app.ui

    @property
    def panel(self) -> Any:
        return self.app.panels[-1] if self.app.panels else None

    @property
    def view(self) -> Any:
        return self.app.panels[0].view

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Type characters as fast as a terminal may deliver them."""
        for char in text:
            self.panel.key(normalise_key("space" if char == " " else char), char)
        await self.pilot.pause()

    async def searched(self) -> None:
        """Wait until the search has gone through everything."""
        await self.app.panels[0].search.wait()
        await self.pilot.pause()

    async def previewed(self) -> None:
        """Bring the preview up to date."""
        panel = self.app.panels[0]
        panel.delays.do_now("preview")
        await self.pilot.pause()
        panel.preview.flush()

    def lines(self) -> list[str]:
        rows = self.app.screen._compositor.render_strips()
        return ["".join(s.text for s in row).rstrip() for row in rows[: self.app.size.height]]

    @property
    def screen(self) -> str:
        return "\n".join(self.lines())

    def strips(self) -> Any:
        return self.app.screen._compositor.render_strips()

    def row_of(self, text: str) -> int:
        return next(y for y, line in enumerate(self.lines()) if text in line)


Opener = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def open_tree() -> Opener:
    """`open_tree(entries, width=100, height=40)`: an app with the navigator open, as a Desk."""

    @asynccontextmanager
    async def opened(
        entries: Sequence[Entry] | None = None,
        *,
        session: Any = None,
        width: int = 100,
        height: int = 40,
        theme: str = "dark",
        keybindings: dict[str, Any] | None = None,
        leaf_id: str | None = None,
        prepare: Callable[[TreeApp], None] = lambda app: None,
    ):
        session = session or TreeSessionDouble(
            small_tree() if entries is None else entries, leaf_id
        )
        app = TreeApp(session, theme, keybindings or {})
        prepare(app)
        async with app.run_test(size=(width, height)) as pilot:
            app.navigator.open()
            await pilot.pause()
            yield Desk(app, pilot)

    return opened


@pytest.fixture(scope="session")
def trees() -> SimpleNamespace:
    return SimpleNamespace(Builder=TreeBuilder, small=small_tree, Session=TreeSessionDouble)
