"""AgentSession: the one object a front end holds. It delegates and decides nothing.

Front ends send it commands and fold the events it emits; they never write session state. All
methods are called on the event loop; those that start work return at once and report by events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal

from pi_tui.agent.accounting import ContextUsage, SessionStats
from pi_tui.agent.assembly import AgentSettings, AgentWorld, SessionState, assemble
from pi_tui.agent.branch_tools import BranchTools
from pi_tui.agent.bus import EventBus, Listener
from pi_tui.agent.compaction_plan import CompactionOutcome, CompactionPreview, CompactRequest
from pi_tui.agent.compaction_record import CompactionRecord, in_order_of_time
from pi_tui.agent.context import ContextBuilder
from pi_tui.agent.hooks import HookRunner
from pi_tui.agent.journal import Journal
from pi_tui.agent.leaving import LeavingGate, rescue
from pi_tui.agent.loop import RunOutcome
from pi_tui.agent.navigator import NavigateRequest, NavigationOutcome, NavigationPreview
from pi_tui.agent.path_entries import newest_answer
from pi_tui.agent.pinning import branch_pins, pin_target
from pi_tui.agent.queues import Delivery, Draft, MessageQueues
from pi_tui.agent.session_switch import refuse_read_only
from pi_tui.agent.switching import HeldSession, ReplaceReason, Switching, open_journal
from pi_tui.core.entries import Entry
from pi_tui.core.errors import PiTuiError, StorageError, UsageError
from pi_tui.core.events import (
    Activity,
    ActivityChanged,
    BranchSummaryEnd,
    EntryAppended,
    Event,
    LeafMoved,
    ModelChanged,
    Notice,
    NoticeLevel,
    QueueUpdate,
    SessionInfoChanged,
    ThinkingLevelChanged,
)
from pi_tui.core.messages import JSON, AssistantMessage, ImageContent, ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.protocols import (
    ModelSource,
    OpenedSession,
    SessionStore,
    TokenEstimator,
    Tool,
)
from pi_tui.core.tree import SessionTree

__all__ = ["AgentSession", "ReplaceReason"]


class AgentSession:
    """One conversation at a time, and the agent that works on it."""

    def __init__(self, world: AgentWorld, opened: OpenedSession, settings: AgentSettings) -> None:
        self._world = world
        self._bus = EventBus(world.secrets)
        self._activity: Activity = "idle"
        journal = open_journal(opened, world, self._bus)
        self._held = HeldSession(journal, settings.model, settings.thinking_level)
        self._gate = LeavingGate(lambda: self._journal)
        self._queues = MessageQueues(settings.steering_mode, settings.follow_up_mode)
        self._context = ContextBuilder(lambda: self._journal, world.sections, world.tools)
        self._parts = assemble(
            world,
            SessionState(
                bus=self._bus,
                journal=lambda: self._journal,
                settings=settings,
                run=self,
                queues=self._queues,
                context=self._context,
                gate=self._gate,
                activity=lambda: self._activity,
                set_activity=self._set_activity,
                environment=self._child_environment,
            ),
        )
        self._shell = self._parts.shell
        self._compaction = self._parts.compaction
        self._worker = self._parts.worker
        self._navigator = self._parts.navigator
        self._summaries = settings.summaries
        self._switching = Switching(
            world=world,
            bus=self._bus,
            queues=self._queues,
            held=self._held,
            gate=self._gate,
            parts=self._parts,
        )
        self._bus.subscribe(self._count)

    # ------------------------------------------------------------ what is

    @property
    def _journal(self) -> Journal:
        return self._held.journal

    @property
    def tree(self) -> SessionTree:
        return self._journal.tree

    @property
    def store(self) -> SessionStore:
        return self._journal.store

    @property
    def read_only(self) -> bool:
        """True when nothing may be added, because another process works on the session."""
        return self.store.read_only

    @property
    def session_id(self) -> str:
        return self._journal.store.header.id

    @property
    def cwd(self) -> str:
        """Where tools and commands run."""
        return self._world.cwd

    @property
    def models(self) -> ModelSource:
        return self._world.models

    @property
    def estimator(self) -> TokenEstimator:
        """What tokens are estimated with."""
        return self._world.estimator

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._world.tools

    @property
    def activity(self) -> Activity:
        return self._activity

    @property
    def model(self) -> Model:
        return self._held.model

    @property
    def thinking_level(self) -> ThinkingLevel:
        """The level asked for; a model that does not reason runs with "off"."""
        return self._held.thinking_level

    @property
    def name(self) -> str | None:
        return self.tree.session_name

    @property
    def queued(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Texts that wait: steering, follow-ups."""
        return self._queues.texts()

    @property
    def last_answer(self) -> AssistantMessage | None:
        """The newest assistant message on the path."""
        return newest_answer(self.tree)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Get every event from now on, in order; the returned function ends that."""
        return self._bus.subscribe(listener)

    # ------------------------------------------------------------ prompts

    def submit(
        self,
        text: str,
        delivery: Delivery = "steer",
        images: Sequence[ImageContent] = (),
    ) -> Literal["started", "queued", "refused"]:
        """Start a run with the message, or queue it while the agent works.

        "refused": the session is for reading only or is being left, or no request of the model has
        room for the message; a notice says so.
        """
        draft = Draft(text, tuple(images))
        if self._tell_refusal(draft):
            return "refused"
        if self._worker.stopping:
            self._worker.send_after_stop(draft)
            return "queued"
        if self._is_working():
            self._queues.add(draft, delivery)
            self._bus.emit(QueueUpdate(*self._queues.texts()))
            return "queued"
        if not self._queues:
            self._worker.start((draft,))
            return "started"
        # Left over from a run that failed: what was written first is sent first.
        self._queues.add(draft, delivery)
        self._worker.start(self._worker.take_next())
        return "started"

    async def prompt(self, text: str, images: Sequence[ImageContent] = ()) -> RunOutcome | None:
        """Run a message until the agent settles.

        Raises UsageError while another run is on, when the session is for reading only or is being
        left, and when no request of the model has room for the message.
        """
        draft = Draft(text, tuple(images))
        self._refuse_work(draft)
        if self._is_working():
            raise UsageError("the agent is working; wait until it settles or use steer")
        return await asyncio.shield(self._worker.start((draft,)))

    def abort(self) -> bool:
        """Stop what runs now, one thing at a time.

        That is the user's command, else a move in the tree with its summary, else a compaction,
        else the run or its retry.
        """
        return self._shell.cancel() or self._navigator.cancel() or self._worker.stop()

    def take_back_queue(self) -> list[str]:
        """Empty the queues; the texts in order of delivery."""
        return [draft.text for draft in self.take_back_drafts()]

    def take_back_drafts(self) -> tuple[Draft, ...]:
        """Empty the queues; what waited, with its images, in order of delivery."""
        drafts = self._queues.take_all()
        if drafts:
            self._bus.emit(QueueUpdate((), ()))
        return drafts

    async def wait_idle(self) -> None:
        """Wait until neither the agent nor a user command runs."""
        await self._switching.wait_idle()

    def _is_working(self) -> bool:
        return self._switching.working

    def _refuse_work(self, draft: Draft | None = None) -> None:
        """Raise UsageError where nothing may be begun, or the draft can never be sent."""
        refuse_read_only(self.store)
        self._gate.refuse()
        if draft is not None:
            self._parts.room.refuse_too_large(draft, self._context.limits.within(self.model))

    def _tell_refusal(self, draft: Draft | None = None) -> bool:
        try:
            self._refuse_work(draft)
        except PiTuiError as error:  # also a session file that was damaged meanwhile
            self.tell("error", error.text)
            return True
        return False

    def start_shell(self, command: str, *, excluded: bool) -> bool:
        """Run the user's command in the background; False when that cannot be done now."""
        return not self._tell_refusal() and self._shell.start(command, excluded=excluded)

    # ------------------------------------------------------------ compaction

    async def compact(self, request: CompactRequest) -> CompactionOutcome:
        """Compact now, or at the next safe point of a run; see `agent.manual_compaction`."""
        return await self._parts.manual.compact(request)

    async def preview_compaction(
        self, request: CompactRequest
    ) -> CompactionPreview | CompactionOutcome:
        """What a compaction would do now; sends nothing."""
        return await self._compaction.preview(request)

    def undo_compaction(self) -> int:
        """Go back to before the newest compaction of this branch, by moving the leaf.

        Returns how many messages came after it. Raises UsageError.
        """
        return self._parts.manual.undo()

    def compactions(self) -> tuple[CompactionRecord, ...]:
        """How the compactions of the whole session went, in order of time; failed ones too.

        After `count_stored` nothing is read for it.
        """
        stored = self._held.numbers.compactions()
        return in_order_of_time((*stored, *self._compaction.unstored_records))

    def pin(self, entry_id: str | None = None, *, pinned: bool = True) -> str:
        """Keep an entry verbatim through compactions, or no longer; the newest message by default.

        Returns the id. Raises UsageError for an id that is not on the branch, and while nothing may
        be changed.
        """
        self._parts.refuse_changes()
        entry_id = pin_target(self.tree, entry_id, pinned=pinned)
        self._journal.pin(entry_id, pinned=pinned)
        return entry_id

    @property
    def pins(self) -> frozenset[str]:
        """The ids pinned on this branch."""
        return branch_pins(self.tree)

    # ------------------------------------------------------------ the tree

    async def navigate(self, request: NavigateRequest) -> NavigationOutcome:
        """Move the leaf, with a summary of the branch that is left where that is asked for.

        Raises nothing: the outcome says what happened and its `message` is for people. A running
        turn is stopped when the move is certain; messages submitted meanwhile follow it.
        """
        return await self._navigator.navigate(request)

    async def preview_navigation(self, target_id: str | None) -> NavigationPreview:
        """What a move would leave behind; sends nothing.

        Raises UsageError for unknown entries, StorageError for unreadable ones.
        """
        return await self._navigator.preview(target_id)

    async def undo_navigation(self) -> NavigationOutcome:
        """Take back the last move of the leaf; what was added since stays on its branch."""
        return await self._navigator.undo()

    @property
    def branch_skip_prompt(self) -> bool:
        """The setting `branchSummary.skipPrompt`: go without asking about a summary."""
        return self._summaries().branch_skip_prompt

    @property
    def branches(self) -> BranchTools:
        """Finding, hiding, comparing and leaving out entries of the tree."""
        return self._parts.branches

    def set_label(self, entry_id: str, label: str | None) -> str | None:
        """Name an entry, or take its name away. Raises UsageError."""
        return self._parts.branches.set_label(entry_id, label)

    async def tree_dump(self) -> JSON:
        """The whole tree as JSON data; see `agent.tree_dump`."""
        return await self._parts.branches.dump()

    @property
    def hooks(self) -> HookRunner:
        """Where handlers for compaction and tree events are registered."""
        return self._parts.hooks

    # ------------------------------------------------------------ settings of the session

    def set_model(self, model: Model) -> None:
        """Use another model from the next turn on."""
        if model == self.model:
            return
        self._held.model = model
        self._compaction.forget()
        if self._may_store_settings():
            self._journal.model_change(model.provider, model.id)
        self._bus.emit(ModelChanged(model.provider, model.id))
        self._bus.emit(ThinkingLevelChanged(self.thinking_level))

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Use another thinking level from the next turn on."""
        if level == self._held.asked_level:
            return
        self._held.asked_level = level
        if self._may_store_settings():
            self._journal.thinking_level_change(self.thinking_level)
        self._bus.emit(ThinkingLevelChanged(self.thinking_level))

    def set_name(self, name: str) -> None:
        """Name the session; an empty name removes it.

        Raises UsageError while nothing may be changed.
        """
        self._parts.refuse_changes()
        self._journal.session_info(" ".join(name.split()))
        self._bus.emit(SessionInfoChanged(self.name))

    # ------------------------------------------------------------ numbers

    def stats(self) -> SessionStats:
        """Totals of what was counted so far; see `count_stored`."""
        return self._held.numbers.stats(self._compaction.unstored_records)

    async def count_stored(self, *, gently: bool = False) -> None:
        """Add what the stored entries used, in a thread; new entries are counted as they come.

        `gently` leaves room for keys. Raises StorageError when entries cannot be read.
        """
        numbers = self._held.numbers
        try:
            await numbers.count_stored(gently=gently)
        except StorageError:
            if numbers is self._held.numbers:  # else its file was closed: another session is there
                raise

    def context_usage(self) -> ContextUsage:
        """How full the model's window is with the current path."""
        room = self._parts.room
        return ContextUsage(
            tokens=room.tokens(new_prompt=room.reply_tokens() is None),
            window=self._context.limits.within(self.model).context_window,
            estimated=room.reply_tokens() is None,
        )

    def coming_context(self, path: Sequence[Entry]) -> list[Entry]:
        """A path with the system prompt and tools the next prompt would be sent with."""
        return self._context.with_coming_system(path)

    # ------------------------------------------------------------ life

    def tell(self, level: NoticeLevel, text: str) -> None:
        """Tell every front end something, in one line."""
        self._bus.emit(Notice(level, text))

    async def new_session(self) -> None:
        """Leave this session and begin an empty one in the same directory.

        Raises UsageError while the session is being left already.
        """
        await self._switching.new()

    async def adopt(
        self,
        opened: OpenedSession,
        reason: ReplaceReason,
        *,
        model: Model | None = None,
        thinking_level: ThinkingLevel | None = None,
    ) -> None:
        """Stop what runs and hold another session; see `agent.switching`."""
        await self._switching.adopt(opened, reason, model=model, thinking_level=thinking_level)

    def leaving(self) -> AbstractAsyncContextManager[None]:
        """Stop what runs, and let nothing begin in this session until the block ends."""
        return self._switching.leaving()

    async def settle(self) -> None:
        """Stop what runs, wait for its end, take what is queued out and say what it was."""
        async with self._switching.leaving():
            pass

    def rescue(self, limit_s: float = 1.0) -> tuple[str, ...]:
        """At an end that waits for nobody: save what is not in the file; see `leaving.rescue`."""
        return tuple(
            rescue(self.store, self._world.rescue_directory, limit_s, self._bus.fault_words)
        )

    async def close(self) -> tuple[str, ...]:
        """Stop all work, keep what was done, give up the lock; returns lines to tell at the end."""
        return await self._switching.close()

    def _may_store_settings(self) -> bool:
        blocked = self._is_working() or self._gate.closed or self.read_only
        return bool(len(self.tree)) and not blocked

    def _count(self, event: Event) -> None:
        if isinstance(event, EntryAppended):
            self._held.numbers.add(event.entry)
        elif isinstance(event, BranchSummaryEnd):
            self._held.numbers.add_branch_summary(event)
        elif isinstance(event, LeafMoved):
            self._compaction.forget()  # what did not help on one branch may help on another

    def _set_activity(self, activity: Activity) -> None:
        if activity != self._activity:
            self._activity = activity
            self._bus.emit(ActivityChanged(activity))

    def _child_environment(self) -> dict[str, str]:
        return {
            "PI_SESSION_ID": self.session_id,
            "PI_SESSION_FILE": self.store.path or "",
            "PI_PROVIDER": self.model.provider,
            "PI_MODEL": self.model.id,
            "PI_REASONING_LEVEL": self.thinking_level,
        }
