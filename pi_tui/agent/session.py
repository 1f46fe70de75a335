"""AgentSession: the one object a front end holds. It delegates and decides nothing.

Front ends send it commands and fold the events it emits; they never write session state. All
methods are called on the event loop; those that start work return at once and report by events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal, Protocol

from msgspec import Struct

from pi_tui.agent.accounting import ContextUsage, SessionStats, UsageTotals, counted
from pi_tui.agent.answer import Answerer
from pi_tui.agent.bus import EventBus, Listener
from pi_tui.agent.context import ContextBuilder, PromptSections
from pi_tui.agent.context_size import estimate_leaf_context
from pi_tui.agent.journal import Journal
from pi_tui.agent.loop import RunLoop, RunOutcome
from pi_tui.agent.queues import Delivery, DeliveryMode, Draft, MessageQueues
from pi_tui.agent.recovery import Recovery, RetryPolicy
from pi_tui.agent.shell_commands import ShellCommands
from pi_tui.agent.signals import AbortSignal
from pi_tui.agent.tool_batch import ToolRunner
from pi_tui.core.entries import Entry, MessageEntry
from pi_tui.core.errors import UsageError
from pi_tui.core.events import (
    Activity,
    ActivityChanged,
    AgentSettled,
    EntryAppended,
    Event,
    ModelChanged,
    Notice,
    QueueUpdate,
    SessionInfoChanged,
    SessionReplaced,
    ThinkingLevelChanged,
)
from pi_tui.core.messages import AssistantMessage, ImageContent, ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.projection import project
from pi_tui.core.protocols import (
    Clock,
    IdSource,
    ModelSource,
    OpenedSession,
    SessionStore,
    Shell,
    TokenEstimator,
    Tool,
)
from pi_tui.core.transcript import Block, blocks_of
from pi_tui.core.tree import SessionTree

ReplaceReason = Literal["startup", "reload", "new", "resume", "fork"]


class AgentSettings(Struct, frozen=True):
    """What a session needs of the settings."""

    model: Model
    thinking_level: ThinkingLevel = "off"
    steering_mode: DeliveryMode = "one-at-a-time"
    follow_up_mode: DeliveryMode = "one-at-a-time"
    retry: RetryPolicy = RetryPolicy()


class SessionFactory(Protocol):
    """Makes the storage of a new session in the present directory."""

    def create(self, parent: str | None = None) -> OpenedSession: ...


class AgentWorld(Struct, frozen=True):
    """Everything outside the agent that a session uses."""

    models: ModelSource
    tools: tuple[Tool, ...]
    shell: Shell
    sections: PromptSections
    clock: Clock
    ids: IdSource
    estimator: TokenEstimator
    sessions: SessionFactory
    cwd: str


class AgentSession:
    """One conversation at a time, and the agent that works on it."""

    def __init__(self, world: AgentWorld, opened: OpenedSession, settings: AgentSettings) -> None:
        self._world = world
        self._bus = EventBus()
        self._activity: Activity = "idle"
        self._model = settings.model
        self._thinking_level: ThinkingLevel = settings.thinking_level
        self._signal = AbortSignal()
        self._task: asyncio.Task[RunOutcome | None] | None = None
        self._journal = self._journal_of(opened)
        self._queues = MessageQueues(settings.steering_mode, settings.follow_up_mode)
        self._context = ContextBuilder(lambda: self._journal, world.sections, world.tools)
        self._shell = ShellCommands(
            world.shell,
            self._bus,
            journal=lambda: self._journal,
            cwd=lambda: self.cwd,
            may_store=lambda: self._activity == "idle",
        )
        runner = ToolRunner(
            world.tools, self._bus, cwd=lambda: self.cwd, environment=self._child_environment
        )
        self._loop = RunLoop(
            bus=self._bus,
            answerer=Answerer(world.models, self._bus),
            tools=runner,
            context=self._context,
            queues=self._queues,
            at_safe_point=self._shell.store_waiting,
        )
        self._recovery = Recovery(
            bus=self._bus,
            loop=self._loop,
            limits=self._context.limits,
            policy=settings.retry,
            set_activity=self._set_activity,
        )
        self._totals = UsageTotals()
        self._messages: dict[str, int] = {}
        self._uncounted: list[str] = []
        self._reset_totals()
        self._bus.subscribe(self._count)

    # ------------------------------------------------------------ what is

    @property
    def tree(self) -> SessionTree:
        return self._journal.tree

    @property
    def store(self) -> SessionStore:
        return self._journal.store

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
    def tools(self) -> tuple[Tool, ...]:
        return self._world.tools

    @property
    def activity(self) -> Activity:
        return self._activity

    @property
    def model(self) -> Model:
        return self._model

    @property
    def thinking_level(self) -> ThinkingLevel:
        """The level asked for; a model that does not reason runs with "off"."""
        return self._thinking_level if self._model.reasoning else "off"

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
        for entry_id in reversed(self.tree.path_ids()):
            if self.tree.head(entry_id).role == "assistant":
                entry = self.tree.entry(entry_id)
                if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                    return entry.message
        return None

    def transcript(self) -> list[Block]:
        """The blocks of the current path."""
        return blocks_of(self.tree.path())

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Get every event from now on, in order; the returned function ends that."""
        return self._bus.subscribe(listener)

    # ------------------------------------------------------------ prompts

    def submit(
        self,
        text: str,
        delivery: Delivery = "steer",
        images: Sequence[ImageContent] = (),
    ) -> Literal["started", "queued"]:
        """Start a run with the message, or queue it while the agent works."""
        draft = Draft(text, tuple(images))
        if self._busy:
            self._queues.add(draft, delivery)
            self._bus.emit(QueueUpdate(*self._queues.texts()))
            return "queued"
        self._start((draft,))
        return "started"

    async def prompt(self, text: str, images: Sequence[ImageContent] = ()) -> RunOutcome | None:
        """Run a message until the agent settles. Raises UsageError while another run is on."""
        if self._busy:
            raise UsageError("the agent is working; wait until it settles or use steer")
        self._start((Draft(text, tuple(images)),))
        assert self._task is not None
        return await asyncio.shield(self._task)

    def resume_queue(self) -> bool:
        """Start a run with the first queued message; False when busy or nothing waits."""
        if self._busy:
            return False
        drafts = self._queues.take_steering() or self._queues.take_follow_up()
        if not drafts:
            return False
        self._bus.emit(QueueUpdate(*self._queues.texts()))
        self._start(drafts)
        return True

    def abort(self) -> bool:
        """Stop what runs now: the user's command first, else the run or its retry."""
        if self._shell.cancel():
            return True
        if not self._busy or self._signal.is_set:
            return False
        self._signal.set()
        return True

    def take_back_queue(self) -> list[str]:
        """Empty the queues; the texts in order of delivery."""
        drafts = self._queues.take_all()
        if drafts:
            self._bus.emit(QueueUpdate((), ()))
        return [draft.text for draft in drafts]

    async def wait_idle(self) -> None:
        """Wait until neither the agent nor a user command runs."""
        while self._busy or self._shell.running:
            await self._shell.wait()
            if self._task is not None:
                await asyncio.wait((self._task,))

    def start_shell(self, command: str, *, excluded: bool) -> bool:
        """Run the user's command in the background; False when one is running already."""
        return self._shell.start(command, excluded=excluded)

    @property
    def _busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def _start(self, drafts: Sequence[Draft]) -> None:
        self._signal = AbortSignal()
        self._set_activity("running")
        self._task = asyncio.get_running_loop().create_task(self._work(drafts, self._signal))

    async def _work(self, drafts: Sequence[Draft], signal: AbortSignal) -> RunOutcome | None:
        outcome: RunOutcome | None = None
        try:
            self._shell.store_waiting()
            self._store_settings()
            self._context.store_system_message()
            while drafts:
                outcome = await self._recovery.drive(drafts, self._journal, self, signal)
                if outcome.aborted or outcome.error is not None or signal.is_set:
                    break
                # Typed after the last poll of the run: nobody has to press a key for these.
                drafts = self._queues.take_steering() or self._queues.take_follow_up()
                if drafts:
                    self._bus.emit(QueueUpdate(*self._queues.texts()))
        except Exception as error:
            self._bus.emit(Notice("error", f"internal error: {type(error).__name__}: {error}"))
            raise
        finally:
            self._set_activity("idle")
            self._shell.store_waiting()
            self._bus.emit(AgentSettled(outcome is None or outcome.aborted))
        return outcome

    def _store_settings(self) -> None:
        """Record model and thinking level where the path does not say the same."""
        projection = project(self.tree.context_path())
        if projection.model != (self._model.provider, self._model.id):
            self._journal.model_change(self._model.provider, self._model.id)
        if projection.thinking_level != self.thinking_level:
            self._journal.thinking_level_change(self.thinking_level)

    # ------------------------------------------------------------ settings of the session

    def set_model(self, model: Model) -> None:
        """Use another model from the next turn on."""
        if model == self._model:
            return
        self._model = model
        if len(self.tree) and not self._busy:
            self._journal.model_change(model.provider, model.id)
        self._bus.emit(ModelChanged(model.provider, model.id))
        self._bus.emit(ThinkingLevelChanged(self.thinking_level))

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Use another thinking level from the next turn on."""
        if level == self._thinking_level:
            return
        self._thinking_level = level
        if len(self.tree) and not self._busy:
            self._journal.thinking_level_change(self.thinking_level)
        self._bus.emit(ThinkingLevelChanged(self.thinking_level))

    def set_name(self, name: str) -> None:
        """Name the session; an empty name removes it."""
        self._journal.session_info(" ".join(name.split()))
        self._bus.emit(SessionInfoChanged(self.name))

    # ------------------------------------------------------------ numbers

    def stats(self) -> SessionStats:
        """Totals of what was counted so far; see `count_stored`."""
        last = self._totals.last_answer
        return SessionStats(
            usage=self._totals.usage,
            messages=dict(self._messages),
            entries=len(self.tree),
            cost_by_model=self._totals.cost_by_model(),
            last_input_tokens=last.input or 0,
            last_cache_read_tokens=last.cache_read or 0,
        )

    async def count_stored(self) -> None:
        """Add what the stored entries used, in a thread; new entries are counted as they come."""
        tree, store = self.tree, self.store
        ids, self._uncounted = self._uncounted, []
        for start in range(0, len(ids), 500):
            part = ids[start : start + 500]
            entries = await asyncio.to_thread(_load_all, store, part)
            if tree is not self.tree:
                return
            self._totals.add_all(entries)

    def context_usage(self) -> ContextUsage:
        """How full the model's window is with the current path."""
        estimate = estimate_leaf_context(self.tree, self._world.estimator)
        return ContextUsage(
            tokens=estimate.tokens,
            window=self._model.context_window,
            estimated=estimate.usage_entry_id is None,
        )

    def _reset_totals(self) -> None:
        self._totals, self._messages, self._uncounted = UsageTotals(), {}, []
        for entry_id in self.tree.ids():
            head = self.tree.head(entry_id)
            if head.role:
                self._messages[head.role] = self._messages.get(head.role, 0) + 1
            if counted(head.type, head.role):
                self._uncounted.append(entry_id)

    def _count(self, event: Event) -> None:
        if not isinstance(event, EntryAppended):
            return
        self._totals.add(event.entry)
        role = self.tree.head(event.entry.id).role
        if role:
            self._messages[role] = self._messages.get(role, 0) + 1

    # ------------------------------------------------------------ life

    async def new_session(self) -> None:
        """Leave this session and begin an empty one in the same directory."""
        await self._settle()
        self.adopt(self._world.sessions.create(), "new")

    def adopt(self, opened: OpenedSession, reason: ReplaceReason) -> None:
        """Hold another session from now on. The agent must be idle."""
        self._journal.store.close()
        self._journal = self._journal_of(opened)
        self._reset_totals()
        for notice in opened.notices:
            self._bus.emit(Notice("warning", notice))
        self._bus.emit(SessionReplaced(reason))
        self._bus.emit(SessionInfoChanged(self.name))

    async def close(self) -> None:
        """Stop all work, keep what was done, give up the session's lock."""
        await self._settle()
        left = self._shell.close()
        if left:
            self._bus.emit(Notice("info", f"ended in the background: {', '.join(left)}"))
        with suppress(OSError):
            await asyncio.to_thread(self.store.sync)
        self.store.close()

    async def _settle(self) -> None:
        self._shell.cancel()
        self._signal.set()
        await self.wait_idle()
        self.take_back_queue()

    def _journal_of(self, opened: OpenedSession) -> Journal:
        tree = SessionTree(opened.heads, opened.store)
        return Journal(opened.store, tree, self._world.clock, self._world.ids, self._bus)

    def _set_activity(self, activity: Activity) -> None:
        if activity != self._activity:
            self._activity = activity
            self._bus.emit(ActivityChanged(activity))

    def _child_environment(self) -> dict[str, str]:
        return {
            "PI_SESSION_ID": self.session_id,
            "PI_SESSION_FILE": self.store.path or "",
            "PI_PROVIDER": self._model.provider,
            "PI_MODEL": self._model.id,
            "PI_REASONING_LEVEL": self.thinking_level,
        }


def _load_all(store: SessionStore, ids: Sequence[str]) -> list[Entry]:
    return [store.load(entry_id) for entry_id in ids]
