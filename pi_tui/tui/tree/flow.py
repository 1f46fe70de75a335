"""Opening the navigator and going where it leads: the panels in their order, one Escape a step.

The tree stays open below the questions, so that each step back finds it as it was. While a summary
is made the tree is closed and the editor free; cancelling it opens the tree again at the same
entry. What belongs into the editor afterwards never replaces a draft.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Protocol

from pi_tui.agent.compactor import CompactRequest
from pi_tui.agent.navigator import NavigateRequest
from pi_tui.agent.session import AgentSession
from pi_tui.commands.compaction import tell_compaction
from pi_tui.commands.tree import show_comparison, tell_navigation
from pi_tui.commands.ui import CommandUI
from pi_tui.core.errors import PiTuiError, UsageError
from pi_tui.core.events import EntryAppended, Event, LeafMoved, SessionReplaced
from pi_tui.core.tree_rows import full_text
from pi_tui.core.tree_shape import TreeFilter
from pi_tui.core.tree_view import TreeView
from pi_tui.tui.panel_host import PanelHost
from pi_tui.tui.theme import ThemeSource
from pi_tui.tui.tree.instructions import InstructionsPanel
from pi_tui.tui.tree.panel import TreePanel
from pi_tui.tui.tree.row_painter import MarkedEntries
from pi_tui.tui.tree.summary_choice import SummaryChoice, SummaryChoicePanel, SummaryKind
from pi_tui.tui.tree.tree_state import TreeState


class TreeHost(PanelHost, Protocol):
    """What the navigator needs of the application besides."""

    @property
    def ui(self) -> CommandUI: ...
    @property
    def theme_source(self) -> ThemeSource: ...
    @property
    def tree_filter(self) -> TreeFilter: ...
    def run_command(self, text: str) -> None: ...
    async def edit_text(self, text: str) -> str | None: ...


class TreeNavigator:
    """The navigator of an application; one for its whole run."""

    def __init__(self, host: TreeHost, now_ms: Callable[[], int] | None = None) -> None:
        self._host = host
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._state: TreeState | None = None
        self._panel: TreePanel | None = None
        self._opening = False

    @property
    def is_open(self) -> bool:
        """True while the panel is there, also below a question."""
        return self._opening or self._panel is not None

    def open(self) -> bool:
        """Open the panel, in the background; always possible. A second one is not opened."""
        if not self.is_open:
            self._opening = True
            self._host.spawn(self._run())
        return True

    def undo(self) -> None:
        """Take back the last move, in the background."""
        self._host.spawn(self._undo())

    # ------------------------------------------------------------ the way through

    async def _run(self) -> None:
        try:
            await self._choose_and_go()
        finally:
            self._opening = False  # a fault on the way must not keep the next one from opening

    async def _choose_and_go(self) -> None:
        host = self._host
        selected: str | None = None
        while True:
            request = await self._show(selected)
            if request is None:
                return
            selected = request.target_id
            outcome = await host.session.navigate(request)
            tell_navigation(host.ui, outcome)
            cancelled = request.summarize and outcome.kind == "cancelled"
            if not cancelled or self.is_open:
                return

    async def _show(self, selected: str | None) -> NavigateRequest | None:
        host, session = self._host, self._host.session
        state = self._state_of(session)
        actions = SessionActions(host, state)
        view = TreeView(
            session.tree,
            state.view,
            default_filter=host.tree_filter,
            selected_id=selected,
            hidden=actions.hidden,
        )
        panel = TreePanel(
            view, state, actions, host.palette, host.keys, host.theme_source, session.estimator,
            now_ms=self._now_ms,
        )  # fmt: skip
        actions.panel = self._panel = panel
        self._opening = False

        def listen(event: Event) -> None:
            if isinstance(event, SessionReplaced):
                panel.finish(None)
            elif isinstance(event, EntryAppended | LeafMoved):
                panel.note_change()

        unsubscribe = session.subscribe(listen)
        try:
            return await host.open_panel(panel)
        finally:
            unsubscribe()
            self._panel = None

    def _state_of(self, session: AgentSession) -> TreeState:
        if self._state is None or self._state.tree is not session.tree:
            self._state = TreeState.of(session.tree)
        return self._state

    async def _undo(self) -> None:
        tell_navigation(self._host.ui, await self._host.session.undo_navigation())


class SessionActions:
    """What the panel's keys do to the session."""

    def __init__(self, host: TreeHost, state: TreeState) -> None:
        self._host = host
        self._session = host.session
        self._state = state
        self.panel: TreePanel | None = None

    @property
    def marks(self) -> MarkedEntries:
        session, state = self._session, self._state
        # Finding them goes along the whole path: only when something was added or one moved.
        made_of = len(session.tree), session.tree.leaf_id
        if state.marks_of != made_of:
            state.pinned, state.left_out = session.pins, session.branches.left_out
            state.marks_of = made_of
        return MarkedEntries(state.pinned, state.left_out, state.marked)

    @property
    def hidden(self) -> Collection[str]:
        return self._session.branches.hidden

    # ------------------------------------------------------------ going there

    def choose(self, entry_id: str) -> None:
        self._host.spawn(self._choose(entry_id))

    async def _choose(self, entry_id: str) -> None:
        panel, session = self.panel, self._session
        if panel is None or panel.result.done():
            return
        if entry_id == session.tree.leaf_id:
            panel.finish(None)
            self._host.ui.notify("info", "already at this point")
            return
        request = await self._ask(entry_id)
        if request is not None:
            panel.finish(request)

    async def _ask(self, entry_id: str) -> NavigateRequest | None:
        """Ask about a summary as long as it takes; None: back to the tree."""
        host, state = self._host, self._state
        tree = self._session.tree
        leaves_nothing = tree.common_ancestor(tree.leaf_id, entry_id) == tree.leaf_id
        if self._session.branch_skip_prompt or leaves_nothing:
            return NavigateRequest(entry_id)
        if state.answer is not None:
            return NavigateRequest(entry_id, summarize=state.answer == "summary")
        chosen: SummaryKind = "none"
        while True:
            question = SummaryChoicePanel(
                lambda: self._session.preview_navigation(entry_id),
                host.palette,
                host.keys,
                chosen=chosen,
                has_instructions=bool(state.instructions.strip()),
            )
            answer = await host.open_panel(question)
            if answer is None:
                return None
            if answer.kind != "instructions":
                return self._answered(entry_id, answer)
            chosen = "instructions"
            editor = InstructionsPanel(state.instructions, host.palette, host.keys, host.edit_text)
            text = await host.open_panel(editor)
            state.instructions = editor.text
            if text is not None:
                own = text.strip() or None
                return NavigateRequest(entry_id, summarize=True, custom_instructions=own)

    def _answered(self, entry_id: str, answer: SummaryChoice) -> NavigateRequest:
        if answer.remember:
            self._state.answer = "summary" if answer.kind == "summary" else "none"
        return NavigateRequest(entry_id, summarize=answer.kind == "summary")

    # ------------------------------------------------------------ entries

    def label(self, entry_id: str, text: str) -> str:
        label = self._session.set_label(entry_id, text or None)
        return "label removed" if label is None else f"label: {label}"

    def copy(self, entry_id: str) -> str:
        text = full_text(self._session.tree, entry_id)
        if not text.strip():
            raise UsageError("there is no text in it to copy")
        self._host.ui.copy(text)
        return f"copied: {len(text):,} characters"

    def pin(self, entry_id: str) -> str:
        pinned = entry_id not in self._session.pins
        self._session.pin(entry_id, pinned=pinned)
        return "pinned: compactions keep it verbatim" if pinned else "no longer pinned"

    def leave_out(self, entry_id: str) -> str:
        branches = self._session.branches
        if entry_id in branches.left_out:
            branches.restore(entry_id)
            return "back in the context"
        others = len(branches.leave_out(entry_id)) - 1
        along = f", with {others} of its tool results" if others > 0 else ""
        return f"left out of the context{along}; it stays in the session"

    def hide(self, start_id: str) -> str:
        branches = self._session.branches
        if start_id in branches.hidden:
            branches.unhide(start_id)
            return "the branch is shown again"
        branches.hide(start_id)
        return "the branch is hidden; nothing was deleted"

    def compare(self, a_id: str, b_id: str) -> str:
        self._host.spawn(self._compare(a_id, b_id))
        return ""

    async def _compare(self, a_id: str, b_id: str) -> None:
        ui = self._host.ui
        try:
            await show_comparison(self._session, ui, a_id, b_id)
        except PiTuiError as error:
            ui.notify("error", error.text)

    # ------------------------------------------------------------ what ends the navigator

    def fork(self, entry_id: str) -> str:
        if self._session.tree.head(entry_id).role != "user":
            raise UsageError("a fork begins before a message of yours; choose one of those")
        self._close()
        self._host.run_command(f"/fork {entry_id}")
        return ""

    def compact(self, entry_id: str) -> str:
        if entry_id not in self._session.tree.path_ids():
            raise UsageError("it is not on the path to where you are; go there first")
        self._close()
        self._host.spawn(self._compact(entry_id))
        return ""

    async def _compact(self, entry_id: str) -> None:
        ui = self._host.ui
        try:
            request = CompactRequest("manual", keep_from=entry_id)
            outcome = await self._session.compact(request)
        except PiTuiError as error:
            ui.notify("error", error.text)
            return
        tell_compaction(ui, outcome)

    def undo(self) -> str:
        self._close()
        self._host.spawn(self._undo())
        return ""

    async def _undo(self) -> None:
        tell_navigation(self._host.ui, await self._session.undo_navigation())

    def _close(self) -> None:
        if self.panel is not None:
            self.panel.finish(None)
