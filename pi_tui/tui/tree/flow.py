"""Opening the navigator and going where it leads: the panels in their order, one Escape a step.

The tree stays open below the questions, so that each step back finds it as it was. While a summary
is made the tree is closed and the editor free; cancelling it opens the tree again at the same
entry. What belongs into the editor afterwards never replaces a draft.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Protocol

from msgspec import structs

from pi_tui.agent.compactor import CompactRequest
from pi_tui.agent.navigator import NavigateRequest
from pi_tui.agent.session import AgentSession
from pi_tui.commands.compaction import tell_compaction
from pi_tui.commands.tree import show_comparison, tell_navigation
from pi_tui.commands.ui import CommandUI
from pi_tui.core.errors import PiTuiError, UsageError
from pi_tui.core.events import EntryAppended, Event, LeafMoved, SessionReplaced
from pi_tui.core.navigation import stands_at
from pi_tui.core.tree_rows import full_text
from pi_tui.core.tree_shape import TreeFilter
from pi_tui.core.tree_view import TreeView
from pi_tui.tui.theme import ThemeSource
from pi_tui.tui.tree.panel import TreePanel
from pi_tui.tui.tree.row_painter import MarkedEntries
from pi_tui.tui.tree.summary_question import AskingHost, SummaryQuestion
from pi_tui.tui.tree.tree_keys import TreeKeys
from pi_tui.tui.tree.tree_state import TreeState


class TreeHost(AskingHost, Protocol):
    """What the navigator needs of the application besides."""

    @property
    def ui(self) -> CommandUI: ...
    @property
    def theme_source(self) -> ThemeSource: ...
    @property
    def tree_filter(self) -> TreeFilter: ...
    def run_command(self, text: str) -> None: ...


class TreeNavigator:
    """The navigator of an application; one for its whole run."""

    def __init__(self, host: TreeHost, now_ms: Callable[[], int] | None = None) -> None:
        self._host = host
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._state: TreeState | None = None
        self._panel: TreePanel | None = None
        self._opening = False
        self._remembered = False

    @property
    def is_open(self) -> bool:
        """True while the panel is there, also below a question."""
        return self._opening or self._panel is not None

    def open(self, entry_id: str | None = None) -> bool:
        """Open the panel, in the background; always possible. A second one is not opened.

        With an entry selected, else the leaf.
        """
        if not self.is_open:
            self._opening = True
            self._host.spawn(self._run(entry_id))
        return True

    def undo(self) -> None:
        """Take back the last move, in the background."""
        self._host.spawn(self._undo())

    # ------------------------------------------------------------ the way through

    async def _run(self, entry_id: str | None) -> None:
        try:
            await self._choose_and_go(entry_id)
        finally:
            self._opening = False  # a fault on the way must not keep the next one from opening

    async def _choose_and_go(self, selected: str | None) -> None:
        host = self._host
        while True:
            request = await self._show(selected)
            if request is None:
                return
            selected = request.target_id
            outcome = await host.session.navigate(request)
            if self._remembered and outcome.kind == "moved":
                outcome = structs.replace(outcome, message=f"{outcome.message}; {self._unasked()}")
            tell_navigation(host.ui, outcome)
            cancelled = request.summarize and outcome.kind == "cancelled"
            if not cancelled or self.is_open:
                return

    def _unasked(self) -> str:
        """That nobody was asked about a summary, and how that is changed."""
        key = TreeKeys(self._host.keys).name("app.tree.askAgain")
        return f"not asked about summaries: {key or '?'} in /tree asks again"

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
        if selected is not None:
            view.reveal(selected)
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
            self._remembered = actions.question.remembered
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
        self.question = SummaryQuestion(host, state)
        self.asking = False

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
        if not self.asking:
            self.asking = True
            self._host.spawn(self._choose(entry_id))

    async def _choose(self, entry_id: str) -> None:
        panel, session = self.panel, self._session
        try:
            if panel is None or panel.result.done():
                return
            if stands_at(session.tree, entry_id):
                panel.finish(None)
                self._host.ui.notify("info", "already at this point")
                return
            request = await self.question.ask(entry_id, panel.take_early_keys)
            if request is not None:
                panel.finish(request)
        finally:
            self.asking = False
            if panel is not None and not panel.result.done():
                panel.replay_early_keys()

    def ask_again(self) -> str:
        """Take "don't ask again" back. Raises UsageError when nothing was to be remembered."""
        if self._state.answer is None:
            raise UsageError("you are asked about summaries as it is")
        self._state.answer = None
        return "you are asked about a summary again at the next move"

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

    def _refuse_off_path(self, entry_id: str) -> None:
        if entry_id not in self._session.tree.path_ids():
            raise UsageError("not on the path here; go there first")

    def pin(self, entry_id: str) -> str:
        self._refuse_off_path(entry_id)
        pinned = entry_id not in self._session.pins
        self._session.pin(entry_id, pinned=pinned)
        return "pinned: compactions keep it verbatim" if pinned else "no longer pinned"

    def leave_out(self, entry_id: str) -> str:
        self._refuse_off_path(entry_id)
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
        self._refuse_off_path(entry_id)
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

    def undo(self) -> None:
        self._host.spawn(self._undo())

    async def _undo(self) -> None:
        outcome = await self._session.undo_navigation()
        panel = self.panel
        stays = outcome.kind == "failed" and not outcome.taken_back
        if stays and panel is not None and not panel.result.done():
            panel.tell_now(outcome.message, "error")
            return
        self._close()
        tell_navigation(self._host.ui, outcome)

    def _close(self) -> None:
        if self.panel is not None:
            self.panel.finish(None)
