"""Moves the leaf of the session tree: the order, the races and the ways it can end.

A move is asked of the extensions first, then stops the running turn, whose calls get their answers
on the branch that is left, then makes the branch summary where one is wanted, and only when that
is durable the leaf moves, in one step. Until then nothing was written, so every failure and every
Escape leaves the file and the place as they were. What is submitted meanwhile waits in the queues
and is delivered after the move. Tokens are estimates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec import structs

from pi_tui.agent.branch_summary import (
    BranchSummariser,
    LeftBranch,
    MadeSummary,
    SummaryWish,
    left_branch,
    summary_from_hook,
)
from pi_tui.agent.bus import EventBus
from pi_tui.agent.compaction_control import CompactionControl
from pi_tui.agent.hooks import HookRunner, SessionBeforeTree, TreePreparation, hook_summary
from pi_tui.agent.hooks import SessionTree as TreeMoved
from pi_tui.agent.journal import Journal
from pi_tui.agent.leaving import LeavingGate
from pi_tui.agent.navigation import (
    Advice,
    Move,
    NavigateRequest,
    NavigationOutcome,
    NavigationPreview,
    OutcomeKind,
    moved_message,
)
from pi_tui.agent.navigation_log import LeafMove, last_move, place_of
from pi_tui.agent.queues import MessageQueues
from pi_tui.agent.session_switch import READ_ONLY, READ_ONLY_HINT
from pi_tui.agent.signals import Aborted
from pi_tui.agent.worker import SafePoints, Worker
from pi_tui.core.entries import BranchSummaryEntry, LabelEntry
from pi_tui.core.errors import CompactionError, PiTuiError, StorageError, UsageError
from pi_tui.core.events import Activity, BranchSummaryEnd, BranchSummaryStart, QueueUpdate
from pi_tui.core.navigation import Navigation, stands_at

__all__ = [
    "NavigateRequest",
    "NavigationOutcome",
    "NavigationPreview",
    "Navigator",
    "OutcomeKind",
]

ALREADY_MOVING = "a move in the tree is not finished yet; Escape cancels it"
COMPACTING = "a compaction is running; wait for it, or stop it with Escape, then go there"
ALREADY_THERE = "already at this point"
NOTHING_TO_UNDO = "there is no move in the tree to undo"
CANCELLED = "the move was cancelled; you are where you were"
CANCELLED_BY_EXTENSION = "an extension cancelled the move; you are where you were"
TURN_STOPPED = "the running turn was stopped"


class Navigator:
    """Moves the leaf of one session, one move at a time."""

    def __init__(
        self,
        *,
        bus: EventBus,
        hooks: HookRunner,
        queues: MessageQueues,
        worker: Worker,
        compaction: CompactionControl,
        shell: SafePoints,
        summaries: BranchSummariser,
        journal: Callable[[], Journal],
        gate: LeavingGate,
        set_activity: Callable[[Activity], None],
    ) -> None:
        self._bus = bus
        self._hooks = hooks
        self._queues = queues
        self._worker = worker
        self._compaction = compaction
        self._shell = shell
        self._summaries = summaries
        self._journal = journal
        self._gate = gate
        self._set_activity = set_activity
        self._move: Move | None = None
        self._task: asyncio.Task[NavigationOutcome] | None = None
        self._unstored: list[LeafMove] = []
        self._unstored_in: Journal | None = None

    @property
    def busy(self) -> bool:
        """True from the moment a move is asked for until the leaf has moved or will not."""
        return self._move is not None

    def refuse_meanwhile(self) -> None:
        """Raise UsageError while a move is under way."""
        if self.busy:
            raise UsageError(ALREADY_MOVING)

    async def navigate(self, request: NavigateRequest) -> NavigationOutcome:
        """Go to an entry; raises nothing for what goes wrong. A second move at a time is refused.

        Cancelling the caller does not cancel the move; `cancel` does.
        """
        move = Move(request, self._journal())
        return await self._start(move)

    async def undo(self) -> NavigationOutcome:
        """Take back the last move that was not taken back yet, also one of an earlier run."""
        journal = self._journal()
        if journal.store.read_only:
            unstored = self._unstored_moves(journal)
            found = unstored[-1] if unstored else None
        else:
            found = last_move(journal.tree)
        if found is None:
            return self._ended(None, "failed", NOTHING_TO_UNDO)
        request = NavigateRequest(found.old_leaf_id)
        return await self._start(Move(request, journal, undoes=True))

    def cancel(self) -> bool:
        """Stop the move in progress; False when there is none or it is ending already.

        Once the leaf has moved only the waiting for extensions that are told of it is stopped.
        """
        move = self._move
        if move is None:
            return False
        signal = move.telling if move.committed or move.work.is_set else move.work
        if signal.is_set:
            return False
        signal.set()
        return True

    def stop(self) -> None:
        """Stop the move in progress, and deliver nothing after it.

        Messages it took out of the queues are in them again when it has ended.
        """
        while self.cancel():
            pass
        if self._move is not None:
            self._move.delivers = False

    async def wait(self) -> None:
        """Wait until no move is under way."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def preview(self, target_id: str | None) -> NavigationPreview:
        """What a move would leave behind; read and counted in a thread.

        Raises UsageError for an entry that is not there, StorageError for one that is unreadable.
        """
        journal = self._journal()
        target_id = self._place(journal, target_id)
        already_there = stands_at(journal.tree, target_id)
        branch = left_branch(journal.tree, target_id)
        measure = await self._summaries.measure(branch, journal.store)
        everything = measure.everything
        return NavigationPreview(
            entries=measure.seen_entries,
            estimated_tokens=everything.total_tokens,
            summarizable=bool(everything.messages) and not already_there,
            left_out_messages=measure.left_out_messages,
            read_files=everything.files.read_files,
            modified_files=everything.files.modified_files,
            common_ancestor_id=branch.ancestor_id,
            already_there=already_there,
        )

    # ------------------------------------------------------------ before it begins

    async def _start(self, move: Move) -> NavigationOutcome:
        try:
            self._refuse(move)
            move.target_id = self._place(move.journal, move.request.target_id)
        except PiTuiError as error:
            return self._ended(None, "failed", self._words(error))
        if move.leads_nowhere:
            return self._stay(move)
        self._move = move
        self._task = asyncio.get_running_loop().create_task(self._carry_out(move))
        return await asyncio.shield(self._task)

    def _stay(self, move: Move) -> NavigationOutcome:
        """Do what was asked for besides going there."""
        try:
            self._label(move, move.request.label, None)
        except PiTuiError as error:
            return self._ended(None, "failed", self._words(error))
        return self._ended(None, "already-there", ALREADY_THERE)

    def _refuse(self, move: Move) -> None:
        self._gate.refuse()
        self.refuse_meanwhile()
        if self._compaction.running:
            raise UsageError(COMPACTING)
        writes = move.request.summarize or move.request.label
        if writes and move.journal.store.read_only:
            raise UsageError(READ_ONLY, hint=READ_ONLY_HINT)

    @staticmethod
    def _place(journal: Journal, target_id: str | None) -> str | None:
        if target_id is not None and target_id not in journal.tree:
            raise UsageError(f"there is no entry {target_id!r}; /tree shows the ids")
        return None if target_id is None else place_of(journal.tree, target_id)

    # ------------------------------------------------------------ the move

    async def _carry_out(self, move: Move) -> NavigationOutcome:
        outcome: NavigationOutcome | None = None
        try:
            outcome = await self._go(move)
        except Aborted:
            message = CANCELLED_BY_EXTENSION if move.refused else CANCELLED
            outcome = self._ended(move, "cancelled", message)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the conversation goes on
            outcome = self._ended(move, "failed", self._words(error))
        finally:
            arrived = outcome is not None and outcome.kind in ("moved", "already-there")
            self._finish(move, arrived=arrived)
        if not move.delivers:
            outcome = structs.replace(outcome, taken_back=())  # they are in the queues again
        return outcome

    async def _go(self, move: Move) -> NavigationOutcome:
        advice = await self._ask(move)
        await self._stop_run(move)
        if move.work.is_set:
            raise Aborted
        entry: BranchSummaryEntry | None = None
        if move.request.summarize:
            # No run and no command appends from here on, and what people do to entries is refused
            # until the move has ended: what is shown to be summarised is all of it.
            self._show_activity(move)
            entry = await self._go_with_summary(move, advice)
        goal = move.goal()
        if entry is None:
            self._go_without_summary(move, goal)
        move.committed = True
        self._label(move, advice.label, entry)
        told = TreeMoved(
            new_leaf_id=move.journal.tree.leaf_id,
            old_leaf_id=move.old_leaf_id,
            summary_entry=entry,
            from_extension=entry is not None and entry.from_hook,
        )
        with suppress(Aborted):
            await move.telling.guard(self._hooks.tell(told))
        moved = entry is not None or move.old_leaf_id != goal.leaf_id
        message = moved_message(move, entry, moved=moved)
        return self._ended(move, "moved" if moved else "already-there", message, goal, entry)

    async def _ask(self, move: Move) -> Advice:
        request = move.request
        own = Advice(
            SummaryWish(request.custom_instructions, request.replace_instructions), request.label
        )
        if not self._hooks.listens(SessionBeforeTree):
            return own
        branch = left_branch(move.journal.tree, move.target_id)
        entries = await move.work.guard(self._summaries.entries_of(branch, move.journal.store))
        preparation = TreePreparation(
            target_id=move.target_id,
            old_leaf_id=branch.leaf_id,
            common_ancestor_id=branch.ancestor_id,
            entries_to_summarize=entries,
            user_wants_summary=request.summarize,
            custom_instructions=request.custom_instructions,
            replace_instructions=request.replace_instructions,
            label=request.label,
        )
        asked = self._hooks.ask(SessionBeforeTree(preparation, move.work))
        answers = await move.work.guard(asked)
        if any(answer.get("cancel") is True for answer in answers):
            move.refused = True
            raise Aborted
        return own.changed_by(answers)

    async def _stop_run(self, move: Move) -> None:
        """Stop a running turn, if there is one; its calls get their answers on its branch."""
        if not self._worker.busy:
            return
        move.stopped_turn = True
        move.taken_back = self._queues.take_all()
        if move.taken_back:
            self._bus.emit(QueueUpdate((), ()))
        self._worker.stop_everything()
        while self._worker.busy:
            await self._worker.wait()

    def _go_without_summary(self, move: Move, goal: Navigation) -> None:
        tree = move.journal.tree
        move.old_leaf_id = tree.leaf_id
        if goal.leaf_id == tree.leaf_id:
            return
        if move.journal.store.read_only:
            self._note_unstored(move, LeafMove(tree.leaf_id, goal.leaf_id))
        move.journal.move_leaf(goal.leaf_id, undoes=move.undoes)

    def _note_unstored(self, move: Move, leaf_move: LeafMove) -> None:
        unstored = self._unstored_moves(move.journal)
        if move.undoes:
            unstored.pop()
        else:
            unstored.append(leaf_move)

    def _unstored_moves(self, journal: Journal) -> list[LeafMove]:
        """The moves in a session that is open for reading only; others are in the session."""
        if self._unstored_in is not journal:
            self._unstored_in, self._unstored = journal, []
        return self._unstored

    def _label(self, move: Move, label: str | None, entry: BranchSummaryEntry | None) -> None:
        target_id = move.target_id if entry is None else entry.id
        text = " ".join(label.split()) if label else ""
        if text and target_id is not None and not move.journal.store.read_only:
            fields = move.journal.next_fields()
            move.journal.append(LabelEntry(target_id=target_id, label=text, **fields))

    # ------------------------------------------------------------ with a summary

    async def _go_with_summary(self, move: Move, advice: Advice) -> BranchSummaryEntry | None:
        """Summarise what is left and store it, which moves the leaf; None: nothing to summarise."""
        branch = left_branch(move.journal.tree, move.target_id)
        if not branch.entry_ids:
            return None
        if advice.has_summary:
            made = hook_summary(advice.summary)
            if made is None:
                raise CompactionError(
                    "An extension's branch summary was refused: it is not an object."
                )
            return self._store(move, branch, summary_from_hook(made))
        asker = self._summaries.asker()
        window = asker.model.context_window
        prepared = await move.work.guard(
            self._summaries.prepare(branch, move.journal.store, window)
        )
        if not prepared.messages:
            return None
        self._bus.emit(
            BranchSummaryStart(
                move.target_id, branch.leaf_id, len(branch.entry_ids), prepared.total_tokens
            )
        )
        try:
            summary = await self._summaries.summarise(
                prepared, advice.wish, asker, move.work, move.tally
            )
            entry = self._store(move, branch, summary)
        except (Aborted, asyncio.CancelledError):
            self._tell_end(move, aborted=True)
            raise
        except Exception as error:
            self._tell_end(move, error_message=self._words(error))
            raise
        self._tell_end(move, entry_id=entry.id)
        return entry

    def _store(self, move: Move, branch: LeftBranch, summary: MadeSummary) -> BranchSummaryEntry:
        """Make the summary durable at the new place: from then on the move has happened."""
        journal = move.journal
        goal = move.goal()
        if branch.leaf_id is None or branch.leaf_id not in journal.tree.path_ids():
            raise CompactionError(
                "The conversation moved to another branch meanwhile, so the summary was not stored."
            )
        move.old_leaf_id = branch.leaf_id
        entry = BranchSummaryEntry(
            from_id=branch.leaf_id,
            summary=summary.text,
            usage=summary.usage,
            details=summary.details,
            from_hook=summary.from_hook,
            **{**journal.next_fields(), "parent_id": goal.leaf_id},
        )
        try:
            journal.append_elsewhere(entry)
        except StorageError as error:
            raise CompactionError(
                f"The summary could not be saved, so you are where you were. {self._words(error)}"
            ) from error
        move.committed = True
        return entry

    def _tell_end(
        self,
        move: Move,
        *,
        entry_id: str | None = None,
        aborted: bool = False,
        error_message: str | None = None,
    ) -> None:
        self._bus.emit(
            BranchSummaryEnd(
                entry_id,
                aborted=aborted,
                error_message=error_message,
                usage=move.tally.usage,
                duration_ms=move.elapsed_ms(),
                parts=move.tally.parts,
                retries=move.tally.retries,
            )
        )

    # ------------------------------------------------------------ how it ended

    def _show_activity(self, move: Move) -> None:
        move.shows_activity = True
        self._set_activity("summarising_branch")

    def _finish(self, move: Move, *, arrived: bool) -> None:
        self._move = None
        if not move.delivers and move.taken_back:
            self._queues.hold(move.taken_back)
            self._bus.emit(QueueUpdate(*self._queues.texts()))
        if self._worker.busy:
            return  # the move ended before the running turn was stopped
        if arrived and move.delivers and self._queues:
            self._shell.store_waiting()
            self._worker.start(self._worker.take_next())
            return
        if move.shows_activity:
            self._set_activity("idle")
        self._shell.store_waiting()

    def _ended(
        self,
        move: Move | None,
        kind: OutcomeKind,
        message: str,
        goal: Navigation | None = None,
        entry: BranchSummaryEntry | None = None,
    ) -> NavigationOutcome:
        leaf_id = self._journal().tree.leaf_id if move is None else move.journal.tree.leaf_id
        stopped = move is not None and move.stopped_turn
        return NavigationOutcome(
            kind=kind,
            new_leaf_id=leaf_id,
            old_leaf_id=move.old_leaf_id if move is not None and kind == "moved" else leaf_id,
            editor_text=None if goal is None else goal.editor_text,
            editor_images=() if goal is None else goal.editor_images,
            summary_entry_id=None if entry is None else entry.id,
            message=f"{message}; {TURN_STOPPED}" if stopped else message,
            taken_back=() if move is None else move.taken_back,
        )

    def _words(self, error: Exception) -> str:
        return error.text if isinstance(error, PiTuiError) else self._bus.fault_words(error)
