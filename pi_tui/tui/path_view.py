"""Puts the branch that is looked at on the screen: its end at once, its beginning when it is read.

What stands above the first message, and the prompts that Up walks through, follow the branch too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from pi_tui.agent.session import AgentSession
from pi_tui.core.coverage import Coverage, coverage_of
from pi_tui.core.errors import StorageError
from pi_tui.core.transcript import Block, UserBlock, blocks_of
from pi_tui.core.tree import SessionTree
from pi_tui.tui.bridge import FRAME_S, Rebuild
from pi_tui.tui.editor.history import PromptHistory
from pi_tui.tui.editor.widget import PromptEditor
from pi_tui.tui.garbage import set_aside, take_back
from pi_tui.tui.history_loader import PathReader
from pi_tui.tui.live_transcript import LiveTranscript


class PathView:
    """One per app. `head`: the blocks above the first message."""

    def __init__(
        self,
        session: AgentSession,
        live: LiveTranscript,
        editor: PromptEditor,
        head: Sequence[Block],
        spawn: Callable[[Coroutine[Any, Any, object]], object],
    ) -> None:
        self._session = session
        self._live = live
        self._editor = editor
        self._head = list(head)
        self._spawn = spawn
        self._shown: Rebuild | None = None

    def show(self, rebuild: Rebuild) -> None:
        """Show a path instead of the one before it."""
        reader = PathReader(rebuild.tree, rebuild.path_ids)
        try:
            blocks = blocks_of(reader.end())
            coverage = path_coverage(rebuild.tree, rebuild.path_ids)
        except StorageError as error:
            self._live.notice("error", error.text)
            return
        if self._shown is not None and self._shown.tree is not rebuild.tree:
            take_back()
        self._shown = rebuild
        self._live.rebuild([*self._head, *blocks], coverage)
        self._editor.history = PromptHistory(_prompts(blocks))
        if not reader.complete_at_once:
            self._spawn(self._load_beginning(rebuild, reader))

    async def _load_beginning(self, rebuild: Rebuild, reader: PathReader) -> None:
        try:
            beginning = await reader.beginning()
        except StorageError as error:
            if rebuild is self._shown and rebuild.tree is self._session.tree:
                self._live.notice("error", error.text)  # else its session was left and closed
            return
        while self._live.streaming:
            await self._session.wait_idle()
            await asyncio.sleep(FRAME_S)  # for the events that are still to be folded
        if rebuild is self._shown:
            self._live.put_before(beginning, after=len(self._head))
            self._editor.history.extend_back(_prompts(beginning))
            set_aside()


def path_coverage(tree: SessionTree, path_ids: Sequence[str]) -> Coverage:
    """What of a path the model is still sent."""
    return coverage_of([tree.head(entry_id) for entry_id in path_ids], tree.entry)


def _prompts(blocks: Iterable[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, UserBlock) and block.text]
