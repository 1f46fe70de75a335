"""Finds out whether the branch that is left is to be summarised: by asking, or without.

Nobody is asked when there is nothing to summarise, when a setting says so, or when an answer was to
be remembered. Each step back leads to the step before. Times are seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from pi_tui.agent.navigator import NavigateRequest, NavigationPreview
from pi_tui.core.errors import PiTuiError
from pi_tui.tui.panel_host import PanelHost
from pi_tui.tui.tree.instructions import InstructionsPanel
from pi_tui.tui.tree.summary_choice import SummaryChoicePanel, SummaryKind
from pi_tui.tui.tree.tree_state import TreeState

COUNT_FIRST_S = 0.1
"""So long the question waits for what would be left: mostly that is counted by then."""

Key = tuple[str, str | None]


class AskingHost(PanelHost, Protocol):
    """What the questions need of the application."""

    async def edit_text(self, text: str) -> str | None: ...


class SummaryQuestion:
    """Asks about one session. `remembered`: the last answer was one that is kept."""

    def __init__(self, host: AskingHost, state: TreeState) -> None:
        self._host = host
        self._state = state
        self.remembered = False

    async def ask(
        self, entry_id: str, early_keys: Callable[[], Iterable[Key]]
    ) -> NavigateRequest | None:
        """What to do about going to an entry; None: back to the tree.

        `early_keys`: what was pressed before the question was there; it is meant for it.
        """
        session, state = self._host.session, self._state
        tree = session.tree
        self.remembered = False
        leaves_nothing = tree.common_ancestor(tree.leaf_id, entry_id) == tree.leaf_id
        if session.branch_skip_prompt or leaves_nothing:
            return NavigateRequest(entry_id)
        if state.answer is not None:
            self.remembered = True
            return self._request(entry_id, state.answer)
        counting = asyncio.get_running_loop().create_task(session.preview_navigation(entry_id))
        try:
            if await _is_empty(counting):
                return NavigateRequest(entry_id)
            return await self._ask(entry_id, lambda: asyncio.shield(counting), early_keys)
        finally:
            counting.cancel()

    async def _ask(
        self,
        entry_id: str,
        counted: Callable[[], Awaitable[NavigationPreview]],
        early_keys: Callable[[], Iterable[Key]],
    ) -> NavigateRequest | None:
        host, state = self._host, self._state
        chosen: SummaryKind = "none"
        remember = False
        while True:
            question = SummaryChoicePanel(
                counted, host.palette, host.keys, chosen=chosen, remember=remember,
                has_instructions=bool(state.instructions.strip()),
            )  # fmt: skip
            for name, character in early_keys():
                question.key(name, character)
            answer = await host.open_panel(question)
            if answer is None:
                return None
            chosen, remember = answer.kind, answer.remember
            if chosen == "instructions" and not await self._instruct():
                continue
            if remember:
                self.remembered = True
                state.answer = chosen
            return self._request(entry_id, chosen)

    async def _instruct(self) -> bool:
        """Have instructions typed; False: back to the choices. What was typed is kept."""
        host, state = self._host, self._state
        editor = InstructionsPanel(state.instructions, host.palette, host.keys, host.edit_text)
        text = await host.open_panel(editor)
        state.instructions = editor.text
        return text is not None

    def _request(self, entry_id: str, kind: SummaryKind) -> NavigateRequest:
        own = self._state.instructions.strip() if kind == "instructions" else ""
        return NavigateRequest(entry_id, summarize=kind != "none", custom_instructions=own or None)


async def _is_empty(counting: asyncio.Task[NavigationPreview]) -> bool:
    """True when it is known within a moment that there is nothing to summarise."""
    done, _ = await asyncio.wait((counting,), timeout=COUNT_FIRST_S)
    try:
        return bool(done) and not counting.result().summarizable
    except PiTuiError:
        return False  # the question says why it could not be counted
