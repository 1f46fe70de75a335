"""Builds the parts of a session and ties them together; decides nothing.

`AgentWorld` is what the wiring gives, `SessionState` what the session itself lets its parts see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

from msgspec import Struct

from pi_tui.agent.answer import Answerer
from pi_tui.agent.branch_summary import BranchSummariser
from pi_tui.agent.branch_tools import BranchTools
from pi_tui.agent.bus import EventBus
from pi_tui.agent.compaction_control import CompactionControl, CompactionWorld
from pi_tui.agent.compactor import Compactor
from pi_tui.agent.context import ContextBuilder, PromptSections
from pi_tui.agent.context_room import ContextRoom
from pi_tui.agent.hooks import HookRunner
from pi_tui.agent.journal import Journal
from pi_tui.agent.leaving import LeavingGate
from pi_tui.agent.loop import RunLoop, RunSettings
from pi_tui.agent.manual_compaction import ManualCompaction
from pi_tui.agent.navigator import Navigator
from pi_tui.agent.queues import DeliveryMode, MessageQueues
from pi_tui.agent.recovery import Recovery
from pi_tui.agent.retry_policy import RetryPolicy
from pi_tui.agent.session_switch import refuse_read_only
from pi_tui.agent.shell_commands import ShellCommands
from pi_tui.agent.summariser import Source, Summariser, SummaryAsker
from pi_tui.agent.tool_batch import ToolRunner
from pi_tui.agent.worker import Worker
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.events import Activity
from pi_tui.core.messages import ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.protocols import (
    Clock,
    IdSource,
    ModelSource,
    OpenedSession,
    Shell,
    TokenEstimator,
    Tool,
)


def default_compaction(model: Model) -> CompactionSettings:
    """The built-in numbers, for every model."""
    return CompactionSettings()


class SummaryPreferences(Struct, frozen=True):
    """`model`: the `provider/model` that writes summaries, else that of the session does.

    The `branch_…` values are those of `branchSummary`; `branch_skip_prompt` is for front ends.
    """

    model: str | None = None
    branch_reserve_tokens: int = 16_384
    branch_skip_prompt: bool = False


class AgentSettings(Struct, frozen=True):
    """What a session needs of the settings.

    `compaction` resolves the numbers of a model and raises SettingsError for wrong values. It and
    `summaries` are asked anew every time, so that a changed setting holds at once.
    """

    model: Model
    thinking_level: ThinkingLevel = "off"
    steering_mode: DeliveryMode = "one-at-a-time"
    follow_up_mode: DeliveryMode = "one-at-a-time"
    retry: RetryPolicy = RetryPolicy()
    compaction: Callable[[Model], CompactionSettings] = default_compaction
    summaries: Callable[[], SummaryPreferences] = SummaryPreferences


class SessionFactory(Protocol):
    """Makes the storage of a new session in the present directory."""

    def create(self, parent: str | None = None) -> OpenedSession: ...


class AgentWorld(Struct, frozen=True):
    """Everything outside the agent that a session uses.

    `rescue_directory`: where a session is written that its own place does not take; "" for nowhere.
    `secrets`: values that must not be told with an internal error; asked for anew each time.
    """

    models: ModelSource
    tools: tuple[Tool, ...]
    shell: Shell
    sections: PromptSections
    clock: Clock
    ids: IdSource
    estimator: TokenEstimator
    sessions: SessionFactory
    cwd: str
    rescue_directory: str = ""
    secrets: Iterable[str] = ()
    on_close: Callable[[], Awaitable[None]] | None = None


class SessionState(Struct, frozen=True):
    """What the parts see of the session; each function is asked anew every time."""

    bus: EventBus
    journal: Callable[[], Journal]
    settings: AgentSettings
    run: RunSettings
    queues: MessageQueues
    context: ContextBuilder
    gate: LeavingGate
    activity: Callable[[], Activity]
    set_activity: Callable[[Activity], None]
    environment: Callable[[], dict[str, str]]


class SessionParts(Struct, frozen=True):
    """The parts a session delegates to.

    `refuse_changes` raises UsageError where no entry may be appended by a command: the session is
    for reading only or is being left, or a move in the tree is under way.
    """

    hooks: HookRunner
    shell: ShellCommands
    compaction: CompactionControl
    room: ContextRoom
    manual: ManualCompaction
    worker: Worker
    navigator: Navigator
    branches: BranchTools
    refuse_changes: Callable[[], None]


def assemble(world: AgentWorld, state: SessionState) -> SessionParts:
    """Build the parts of one session."""
    hooks = HookRunner(state.bus)
    shell = ShellCommands(
        world.shell,
        state.bus,
        journal=state.journal,
        cwd=lambda: world.cwd,
        may_store=lambda: state.activity() == "idle",
    )
    summariser = Summariser(
        world.models,
        state.bus,
        world.clock,
        policy=lambda: state.settings.retry,
        output_limits=lambda: state.context.limits.max_output_tokens,
    )
    room = ContextRoom(state.journal, state.context, world.estimator)
    compaction = _compaction(world, state, hooks, summariser, room)
    worker = _worker(world, state, shell, compaction)
    navigator = Navigator(
        bus=state.bus,
        hooks=hooks,
        queues=state.queues,
        worker=worker,
        compaction=compaction,
        shell=shell,
        summaries=_branch_summaries(world, state, summariser),
        journal=state.journal,
        gate=state.gate,
        set_activity=state.set_activity,
    )

    def refuse_changes() -> None:
        refuse_read_only(state.journal().store)
        state.gate.refuse()
        navigator.refuse_meanwhile()

    branches = BranchTools(state.journal, world.estimator, refuse_changes)
    manual = ManualCompaction(
        compaction=compaction,
        worker=worker,
        journal=state.journal,
        refuse_changes=refuse_changes,
    )
    return SessionParts(
        hooks, shell, compaction, room, manual, worker, navigator, branches, refuse_changes
    )


def _asker(world: AgentWorld, state: SessionState, source: Source, session_id: str) -> SummaryAsker:
    """Who makes summaries now: the session's model, or that of the setting."""
    model, level = state.run.model, state.run.thinking_level
    wanted = state.settings.summaries().model
    if wanted is not None:
        choice = world.models.resolve(wanted)
        model, level = choice.model, choice.thinking_level or level
    model = state.context.limits.within(model)
    return SummaryAsker(model, level, session_id, source, policy=state.settings.retry)


def _branch_summaries(
    world: AgentWorld, state: SessionState, summariser: Summariser
) -> BranchSummariser:
    return BranchSummariser(
        bus=state.bus,
        summariser=summariser,
        estimator=world.estimator,
        clock=world.clock,
        # Another routing id than the session's: these requests share no prefix with it.
        asker=lambda: _asker(world, state, "branchSummary", world.ids.session_id()),
        reserve_tokens=lambda: state.settings.summaries().branch_reserve_tokens,
    )


def _compaction(
    world: AgentWorld,
    state: SessionState,
    hooks: HookRunner,
    summariser: Summariser,
    room: ContextRoom,
) -> CompactionControl:
    compactor = Compactor(
        bus=state.bus, hooks=hooks, summariser=summariser, estimator=world.estimator
    )
    seen = CompactionWorld(
        journal=state.journal,
        model=lambda: state.context.limits.within(state.run.model),
        settings=state.settings.compaction,
        asker=lambda: _asker(world, state, "compaction", state.run.session_id),
        set_activity=state.set_activity,
    )
    return CompactionControl(compactor, seen, room, state.bus)


def _worker(
    world: AgentWorld, state: SessionState, shell: ShellCommands, compaction: CompactionControl
) -> Worker:
    tools = ToolRunner(world.tools, state.bus, cwd=lambda: world.cwd, environment=state.environment)
    loop = RunLoop(
        bus=state.bus,
        answerer=Answerer(world.models, state.bus),
        tools=tools,
        context=state.context,
        queues=state.queues,
        at_safe_point=shell.store_waiting,
        before_next_turn=compaction.check,
        refuse_hopeless=compaction.refuse_hopeless,
    )
    recovery = Recovery(
        bus=state.bus,
        loop=loop,
        limits=lambda: state.context.limits,
        compaction=compaction,
        policy=lambda: state.settings.retry,
        set_activity=state.set_activity,
    )
    return Worker(
        bus=state.bus,
        queues=state.queues,
        recovery=recovery,
        compaction=compaction,
        context=state.context,
        shell=shell,
        settings=state.run,
        journal=state.journal,
        set_activity=state.set_activity,
    )
