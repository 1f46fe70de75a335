"""Puts the branch that is looked at on the screen: its end at once, the rest when it is read.

What stands above the first message, and the prompts that Up walks through, follow the branch too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

from pi_tui.agent.session import AgentSession
from pi_tui.core.coverage import Coverage, coverage_of
from pi_tui.core.errors import StorageError
from pi_tui.core.protocols import EntrySource
from pi_tui.core.transcript import Block, UserBlock, blocks_of
from pi_tui.core.tree import SessionTree
from pi_tui.tui.bridge import Rebuild
from pi_tui.tui.editor.buffer import EditorBuffer
from pi_tui.tui.editor.history import PromptHistory
from pi_tui.tui.editor.widget import PromptEditor
from pi_tui.tui.garbage import take_back
from pi_tui.tui.history_loader import PathReader
from pi_tui.tui.live_transcript import LiveTranscript

PROMPTS_AT_ONCE = 20
"""So many earlier prompts are read when Up has come to the oldest that is known."""


class PathView:
    """One per app. `head`: the blocks above the first message."""

    def __init__(
        self,
        session: AgentSession,
        live: LiveTranscript,
        editor: PromptEditor,
        head: Sequence[Block],
    ) -> None:
        self._session = session
        self._live = live
        self._editor = editor
        self._head = list(head)
        self._shown: Rebuild | None = None

    def show(self, rebuild: Rebuild) -> None:
        """Show a path instead of the one before it."""
        tree, store = rebuild.tree, self._session.store
        reader = PathReader(tree, rebuild.path_ids)
        try:
            blocks = blocks_of(reader.end())
            coverage = path_coverage(tree, rebuild.path_ids)
        except StorageError as error:
            self._live.notice("error", error.text)
            return
        if self._shown is not None and self._shown.tree is not tree:
            take_back()
        self._shown = rebuild
        self._live.rebuild(
            blocks,
            coverage,
            head=self._head,
            earlier=lambda coverage: reader.earlier(coverage, store),
        )
        self._editor.history = PathPrompts(
            _prompts(blocks),
            (at for at in reversed(reader.earlier_ids()) if tree.head(at).role == "user"),
            store,
            lambda text: self._live.notice("error", text, "prompts"),
        )


class PathPrompts(PromptHistory):
    """The prompts of a path; those of its end are given, earlier ones read when Up reaches them.

    `earlier_ids`: user messages, newest first. `problem` is told why some cannot be read.
    """

    def __init__(
        self,
        entries: Iterable[str],
        earlier_ids: Iterator[str],
        source: EntrySource,
        problem: Callable[[str], None],
    ) -> None:
        super().__init__(entries)
        self._earlier_ids = earlier_ids
        self._source = source
        self._problem = problem

    def previous(self, buffer: EditorBuffer) -> bool:
        while not super().previous(buffer):
            ids = list(islice(self._earlier_ids, PROMPTS_AT_ONCE))
            if not ids:
                return False
            self._read(reversed(ids))
        return True

    def _read(self, ids: Iterable[str]) -> None:
        try:
            self.extend_back(_prompts(blocks_of(map(self._source.load, ids))))
        except StorageError as error:
            self._earlier_ids = iter(())
            self._problem(f"earlier prompts cannot be read: {error.text}")


def path_coverage(tree: SessionTree, path_ids: Sequence[str]) -> Coverage:
    """What of a path the model is still sent."""
    return coverage_of([tree.head(entry_id) for entry_id in path_ids], tree.entry)


def _prompts(blocks: Iterable[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, UserBlock) and block.text]
