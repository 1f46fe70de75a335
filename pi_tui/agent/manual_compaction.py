"""Compactions a person asks for, and taking the newest one back: now, or at the next safe point."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pi_tui.agent.compaction_control import CompactionControl
from pi_tui.agent.compaction_plan import CompactionOutcome, CompactRequest
from pi_tui.agent.journal import Journal
from pi_tui.agent.worker import Worker
from pi_tui.core.errors import UsageError

STILL_WORKING = "the agent is working; wait until it settles, or stop it with Escape"
OTHER_SESSION = "another session was opened meanwhile; nothing was compacted"


class ManualCompaction:
    """Serves `/compact` for one session object.

    `refuse_changes` raises UsageError while no entry may be appended by a command.
    """

    def __init__(
        self,
        *,
        compaction: CompactionControl,
        worker: Worker,
        journal: Callable[[], Journal],
        refuse_changes: Callable[[], None],
    ) -> None:
        self._compaction = compaction
        self._worker = worker
        self._journal = journal
        self._refuse_changes = refuse_changes

    async def compact(self, request: CompactRequest) -> CompactionOutcome:
        """Compact now, or at the next safe point of a running turn.

        With nothing to compact a running turn is left alone. Raises CompactionError while another
        compaction runs or waits, or for an entry nothing can be kept from; UsageError where nothing
        may be changed. What else goes wrong is told by CompactionEnd and in the outcome.
        """
        self._refuse_changes()
        self._compaction.refuse_second()
        if self._worker.busy:
            journal = self._journal()
            preview = await self._compaction.preview(request)
            if journal is not self._journal():
                raise UsageError(OTHER_SESSION)
            self._refuse_changes()
            if isinstance(preview, CompactionOutcome):
                return preview
        if self._worker.busy:  # the run may have ended while the preview was made
            return await self._compaction.at_safe_point(request)
        return await asyncio.shield(self._worker.start_compaction(request))

    def undo(self) -> int:
        """Go back to the state before the newest compaction of this branch, by moving the leaf.

        Returns how many messages came after it; they stay on the branch that is left. Raises
        UsageError while the agent works or when there is none.
        """
        self._refuse_changes()
        if self._worker.busy:
            raise UsageError(STILL_WORKING)
        journal = self._journal()
        tree = journal.tree
        later = 0
        for entry_id in reversed(tree.path_ids()):
            head = tree.head(entry_id)
            if head.type == "compaction":
                journal.move_leaf(tree.parent(entry_id))
                return later
            later += head.role not in ("", "system")
        raise UsageError("there is no compaction on this branch")
