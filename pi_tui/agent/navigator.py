"""Moves the leaf of the session tree: the order, the races and the ways it can end.

A move is asked of the extensions first, then stops the running turn, whose calls get their answers
on the branch that is left, then makes the branch summary where one is wanted, and only when that
is durable the leaf moves, in one step. Until then nothing was written, so every failure and every
Escape leaves the file and the place as they were. What is submitted meanwhile waits in the queues
and is delivered after the move. Tokens are estimates.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.agent.branch_summary import (
    BranchSummariser,
    LeftBranch,
    MadeSummary,
    SummaryWish,
    left_branch,
    prepare_in_thread,
    summary_from_hook,
)
from pi_tui.agent.bus import EventBus
from pi_tui.agent.compaction_control import CompactionControl
from pi_tui.agent.hooks import HookRunner, SessionBeforeTree, TreePreparation, hook_summary
from pi_tui.agent.hooks import SessionTree as TreeMoved
from pi_tui.agent.journal import Journal
from pi_tui.agent.navigation_log import last_move, place_of
from pi_tui.agent.queues import MessageQueues
from pi_tui.agent.session_switch import READ_ONLY, READ_ONLY_HINT, is_read_only
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.agent.summariser import SummaryTally
from pi_tui.agent.worker import SafePoints, Worker
from pi_tui.core.entries import BranchSummaryEntry, LabelEntry
from pi_tui.core.errors import CompactionError, ModelError, PiTuiError, StorageError, UsageError
from pi_tui.core.events import Activity, BranchSummaryEnd, BranchSummaryStart, QueueUpdate
from pi_tui.core.messages import JSON
from pi_tui.core.navigation import Navigation, plan_navigation

OutcomeKind: TypeAlias = Literal["moved", "already-there", "cancelled", "failed"]


class NavigateRequest(Struct, frozen=True):
    """Where to go. `target_id` None: before the first entry.

    `custom_instructions` are the focus of the summary; with `replace_instructions` they stand
    alone. `label` names the summary entry, or the target when no summary was made.
    """

    target_id: str | None
    summarize: bool = False
    custom_instructions: str | None = None
    replace_instructions: bool = False
    label: str | None = None


class NavigationOutcome(Struct, frozen=True):
    """How a move ended. `message`: one line for people; whoever asked for the move shows it.

    `new_leaf_id` is the leaf now, whatever the kind. `editor_text` is the text of a user message
    that was chosen, None when the editor is to be left alone; a draft that is there always wins.
    `taken_back`: messages that waited for the turn that was stopped; they go back to the editor.
    """

    kind: OutcomeKind
    new_leaf_id: str | None
    old_leaf_id: str | None
    editor_text: str | None = None
    summary_entry_id: str | None = None
    message: str = ""
    taken_back: tuple[str, ...] = ()


class NavigationPreview(Struct, frozen=True):
    """What would be left behind by a move; nothing was sent or changed.

    `entries` lie after the common ancestor; `estimated_tokens` are those of all their messages
    that a summary would be made from, `left_out_messages` the oldest of these that do not fit.
    `summarizable` False: there is nothing to summarise, so nobody need be asked.
    """

    entries: int
    estimated_tokens: int
    summarizable: bool
    left_out_messages: int = 0
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    common_ancestor_id: str | None = None
    already_there: bool = False


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
        self._set_activity = set_activity
        self._move: _Move | None = None
        self._task: asyncio.Task[NavigationOutcome] | None = None
        self._unstored: list[tuple[Journal, str | None]] = []
        """Places left in sessions that are open for reading only; the others tell it themselves."""

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
        move = _Move(request, self._journal())
        return await self._start(move)

    async def undo(self) -> NavigationOutcome:
        """Take back the last move that was not taken back yet, also one of an earlier run."""
        journal = self._journal()
        if is_read_only(journal.store):
            old = next((leaf for of, leaf in reversed(self._unstored) if of is journal), _NOWHERE)
        else:
            found = last_move(journal.tree)
            old = _NOWHERE if found is None else found.old_leaf_id
        if old == _NOWHERE:
            return self._ended(None, "failed", NOTHING_TO_UNDO)
        return await self._start(_Move(NavigateRequest(old), journal, undoes=True))

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
        """Stop the move in progress, and deliver nothing after it."""
        while self.cancel():
            pass
        if self._move is not None:
            self._move.delivers = False

    async def wait(self) -> None:
        """Wait until no move is under way."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def preview(self, target_id: str | None) -> NavigationPreview:
        """What a move would leave behind. Raises UsageError for an entry that is not there."""
        tree = self._journal().tree
        target_id = self._place(self._journal(), target_id)
        branch = left_branch(tree, target_id)
        everything = self._summaries.prepare(branch, None)
        left_out = 0
        try:
            window = self._summaries.asker().model.context_window
        except ModelError:
            window = None  # the summary would fail and say why
        if window is not None:
            fitting = self._summaries.prepare(branch, window)
            left_out = len(everything.messages) - len(fitting.messages)
        return NavigationPreview(
            entries=len(branch.entries),
            estimated_tokens=everything.total_tokens,
            summarizable=bool(everything.messages) and target_id != tree.leaf_id,
            left_out_messages=left_out,
            read_files=everything.files.read_files,
            modified_files=everything.files.modified_files,
            common_ancestor_id=branch.ancestor_id,
            already_there=target_id == tree.leaf_id,
        )

    # ------------------------------------------------------------ before it begins

    async def _start(self, move: _Move) -> NavigationOutcome:
        try:
            self._refuse(move)
            move.target_id = self._place(move.journal, move.request.target_id)
        except PiTuiError as error:
            return self._ended(None, "failed", _words(error))
        if move.target_id == move.journal.tree.leaf_id:
            return self._ended(None, "already-there", ALREADY_THERE)
        self._move = move
        self._task = asyncio.get_running_loop().create_task(self._carry_out(move))
        return await asyncio.shield(self._task)

    def _refuse(self, move: _Move) -> None:
        self.refuse_meanwhile()
        if self._compaction.running:
            raise UsageError(COMPACTING)
        writes = move.request.summarize or move.request.label
        if writes and is_read_only(move.journal.store):
            raise UsageError(READ_ONLY, hint=READ_ONLY_HINT)

    @staticmethod
    def _place(journal: Journal, target_id: str | None) -> str | None:
        if target_id is not None and target_id not in journal.tree:
            raise UsageError(f"there is no entry {target_id!r}; /tree shows the ids")
        return None if target_id is None else place_of(journal.tree, target_id)

    # ------------------------------------------------------------ the move

    async def _carry_out(self, move: _Move) -> NavigationOutcome:
        outcome: NavigationOutcome | None = None
        try:
            outcome = await self._go(move)
        except Aborted:
            message = CANCELLED_BY_EXTENSION if move.refused else CANCELLED
            outcome = self._ended(move, "cancelled", message)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the conversation goes on
            outcome = self._ended(move, "failed", _words(error))
        finally:
            self._finish(move, moved=outcome is not None and outcome.kind == "moved")
        return outcome

    async def _go(self, move: _Move) -> NavigationOutcome:
        advice = await self._ask(move)
        await self._stop_run(move)
        if move.work.is_set:
            raise Aborted
        entry: BranchSummaryEntry | None = None
        if move.request.summarize:
            # From here on nothing else is appended: what is shown to be summarised is all of it.
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
        return self._ended(move, "moved", _moved_message(move, entry), goal.editor_text, entry)

    async def _ask(self, move: _Move) -> _Advice:
        request = move.request
        own = _Advice(
            SummaryWish(request.custom_instructions, request.replace_instructions), request.label
        )
        if not self._hooks.listens(SessionBeforeTree):
            return own
        branch = left_branch(move.journal.tree, move.target_id)
        preparation = TreePreparation(
            target_id=move.target_id,
            old_leaf_id=branch.leaf_id,
            common_ancestor_id=branch.ancestor_id,
            entries_to_summarize=branch.entries,
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

    async def _stop_run(self, move: _Move) -> None:
        """Stop a running turn, if there is one; its calls get their answers on its branch."""
        if not self._worker.busy:
            return
        move.stopped_turn = True
        drafts = self._queues.take_all()
        move.taken_back = tuple(draft.text for draft in drafts)
        if drafts:
            self._bus.emit(QueueUpdate((), ()))
        self._worker.stop_everything()
        while self._worker.busy:
            await self._worker.wait()

    def _go_without_summary(self, move: _Move, goal: Navigation) -> None:
        tree = move.journal.tree
        move.old_leaf_id = tree.leaf_id
        if goal.leaf_id == tree.leaf_id:
            return
        if is_read_only(move.journal.store):
            self._note_unstored(move)
        move.journal.move_leaf(goal.leaf_id, undoes=move.undoes)

    def _note_unstored(self, move: _Move) -> None:
        if not move.undoes:
            self._unstored.append((move.journal, move.old_leaf_id))
            return
        for index in reversed(range(len(self._unstored))):
            if self._unstored[index][0] is move.journal:
                del self._unstored[index]
                return

    def _label(self, move: _Move, label: str | None, entry: BranchSummaryEntry | None) -> None:
        target_id = move.target_id if entry is None else entry.id
        text = " ".join(label.split()) if label else ""
        if text and target_id is not None and not is_read_only(move.journal.store):
            fields = move.journal.next_fields()
            move.journal.append(LabelEntry(target_id=target_id, label=text, **fields))

    # ------------------------------------------------------------ with a summary

    async def _go_with_summary(self, move: _Move, advice: _Advice) -> BranchSummaryEntry | None:
        """Summarise what is left and store it, which moves the leaf; None: nothing to summarise."""
        branch = left_branch(move.journal.tree, move.target_id)
        if not branch.entries:
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
        prepared = await prepare_in_thread(self._summaries, branch, window, move.work)
        if not prepared.messages:
            return None
        self._bus.emit(
            BranchSummaryStart(
                move.target_id, branch.leaf_id, len(branch.entries), prepared.total_tokens
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
            self._tell_end(move, error_message=_words(error))
            raise
        self._tell_end(move, entry_id=entry.id)
        return entry

    def _store(self, move: _Move, branch: LeftBranch, summary: MadeSummary) -> BranchSummaryEntry:
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
                f"The summary could not be saved, so you are where you were. {_words(error)}"
            ) from error
        move.committed = True
        return entry

    def _tell_end(
        self,
        move: _Move,
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

    def _show_activity(self, move: _Move) -> None:
        move.shows_activity = True
        self._set_activity("summarising_branch")

    def _finish(self, move: _Move, *, moved: bool) -> None:
        self._move = None
        if self._worker.busy:
            return  # the move ended before the running turn was stopped
        if moved and move.delivers and self._queues:
            self._shell.store_waiting()
            self._worker.start(self._worker.take_next())
            return
        if move.shows_activity:
            self._set_activity("idle")
        self._shell.store_waiting()

    def _ended(
        self,
        move: _Move | None,
        kind: OutcomeKind,
        message: str,
        editor_text: str | None = None,
        entry: BranchSummaryEntry | None = None,
    ) -> NavigationOutcome:
        leaf_id = self._journal().tree.leaf_id if move is None else move.journal.tree.leaf_id
        stopped = move is not None and move.stopped_turn
        return NavigationOutcome(
            kind=kind,
            new_leaf_id=leaf_id,
            old_leaf_id=move.old_leaf_id if move is not None and kind == "moved" else leaf_id,
            editor_text=editor_text,
            summary_entry_id=None if entry is None else entry.id,
            message=f"{message}; {TURN_STOPPED}" if stopped else message,
            taken_back=() if move is None else move.taken_back,
        )


_NOWHERE = "nowhere"
"""No place at all; None is one. No id looks like this."""


class _Move:
    """One move under way. `undoes`: it leads back to exactly the place an earlier one left."""

    def __init__(self, request: NavigateRequest, journal: Journal, *, undoes: bool = False) -> None:
        self.request = request
        self.journal = journal
        self.undoes = undoes
        self.target_id = request.target_id
        """The entry to go to; for a marker of a place, that place."""
        self.work = AbortSignal()
        self.telling = AbortSignal()
        self.tally = SummaryTally()
        self.old_leaf_id = journal.tree.leaf_id
        self.taken_back: tuple[str, ...] = ()
        self.refused = False
        self.stopped_turn = False
        self.committed = False
        self.shows_activity = False
        self.delivers = True
        self._started_s = journal.clock.monotonic_s()

    def goal(self) -> Navigation:
        """Where the target leads."""
        marked = self.target_id != self.request.target_id
        if self.undoes or marked or self.target_id is None:
            return Navigation(self.target_id)
        return plan_navigation(self.journal.tree, self.target_id)

    def elapsed_ms(self) -> int:
        return round((self.journal.clock.monotonic_s() - self._started_s) * 1000)


class _Advice(Struct, frozen=True):
    """What the user asked for, as extensions changed it. `summary` is a hook's, unchecked."""

    wish: SummaryWish
    label: str | None
    summary: JSON = None

    @property
    def has_summary(self) -> bool:
        return self.summary is not None

    def changed_by(self, answers: tuple[Mapping[str, JSON], ...]) -> _Advice:
        """Take the answers in order; a later one wins."""
        instructions, replace = self.wish.instructions, self.wish.replace
        label, summary = self.label, self.summary
        for answer in answers:
            if isinstance(answer.get("custom_instructions"), str):
                instructions = answer["custom_instructions"]
            if isinstance(answer.get("replace_instructions"), bool):
                replace = answer["replace_instructions"]
            if isinstance(answer.get("label"), str):
                label = answer["label"]
            if answer.get("summary") is not None:
                summary = answer["summary"]
        return _Advice(SummaryWish(instructions, replace), label, summary)


def _moved_message(move: _Move, entry: BranchSummaryEntry | None) -> str:
    if move.undoes:
        return "back at the place before the last move"
    if entry is not None:
        return "moved; what was learnt on the branch that was left is summarised"
    if move.request.summarize:
        return "moved; there was nothing to summarise"
    return "moved to another point of the tree"


def _words(error: Exception) -> str:
    if isinstance(error, PiTuiError):
        return f"{error.message} {error.hint or ''}".rstrip()
    return f"internal error: {type(error).__name__}: {error}"
