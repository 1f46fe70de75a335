"""A whole agent on doubles: scripted model, hand-driven clock, counted ids, entries in memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest
from clock_and_ids import FakeClock, SequentialIds

from pi_tui.agent.assembly import (
    AgentSettings,
    AgentWorld,
    SummaryPreferences,
    default_compaction,
)
from pi_tui.agent.queues import DeliveryMode
from pi_tui.agent.retry_policy import RetryPolicy
from pi_tui.agent.session import AgentSession
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.compaction.prompts import SUMMARISER_SYSTEM
from pi_tui.core.entries import (
    CompactionEntry,
    Entry,
    MessageEntry,
    SessionHeader,
    entry_to_data,
    head_of,
    iso_timestamp,
)
from pi_tui.core.errors import StorageError, ToolError
from pi_tui.core.events import Event
from pi_tui.core.messages import JSON, Message, ToolDeclaration, UserMessage, text_content
from pi_tui.core.models import Model, ModelChoice
from pi_tui.core.protocols import (
    ModelRequest,
    OpenedSession,
    Provider,
    ShellOutcome,
    Tool,
    ToolContext,
    ToolOutput,
)
from pi_tui.core.streaming import MessageBuilder, TextDelta
from pi_tui.core.tokens import CharsEstimator
from pi_tui.providers.scripted import SCRIPTED_MODEL, ScriptedProvider


class ListStore:
    """Entries in a list; `refuse` makes appends fail like a full disk."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.pending: list[Entry] = []
        self.refuse = False
        self.closed = False
        self.header = SessionHeader(id="s1", timestamp="2026-01-02T03:04:05.000Z", cwd="/work")
        self.path: str | None = None

    def append(self, entry: Entry, *, keep_on_failure: bool = True) -> None:
        if self.refuse:
            if keep_on_failure:
                self.pending.append(entry)
            raise StorageError("the disk is full", path="x", hint="free some space.")
        self.entries.extend(self.pending)
        self.pending.clear()
        self.entries.append(entry)

    read_only = False

    def flush(self) -> None:
        if self.pending and self.refuse:
            raise StorageError("the disk is full", path="x")
        self.entries.extend(self.pending)
        self.pending.clear()

    def relocate(self, directory: str) -> Sequence[str]:
        self.entries.extend(self.pending)
        self.pending.clear()
        self.path = f"{directory}/moved.jsonl"
        return ()

    def raw_line(self, entry_id: str) -> bytes:
        return json.dumps(entry_to_data(self.load(entry_id))).encode()

    def load(self, entry_id: str) -> Entry:
        for entry in (*self.entries, *self.pending):
            if entry.id == entry_id:
                return entry
        raise StorageError("no such entry", path="x")

    def sync(self) -> None:
        return

    def close(self) -> None:
        self.closed = True


class OneProvider:
    """A model source with one provider for every model."""

    def __init__(self, provider: Provider, models: Sequence[Model]) -> None:
        self.provider = provider
        self.models = tuple(models)

    def find(self, full_name: str) -> Model | None:
        return next((m for m in self.models if m.full_name == full_name), None)

    def available(self) -> Sequence[Model]:
        return self.models

    def resolve(self, reference: str) -> ModelChoice:
        found = self.find(reference)
        assert found is not None
        return ModelChoice(found)

    def provider_for(self, model: Model) -> Provider:
        return self.provider


class GatedTool:
    """Ends when its gate opens; records its calls. `path` makes it a writer."""

    def __init__(self, name: str = "work", *, writes: bool = False) -> None:
        self.declaration = ToolDeclaration(name, "does work", {"type": "object", "properties": {}})
        self.prompt_line = "works"
        self.gates: dict[str, asyncio.Event] = {}
        self.log: list[str] = []
        self.writes = writes

    def check(self, arguments: dict[str, JSON]) -> None:
        if "bad" in arguments:
            raise ToolError("bad: not allowed")

    def written_path(self, arguments: dict[str, JSON], cwd: str) -> str | None:
        return str(arguments.get("path")) if self.writes else None

    def gate(self, name: str) -> asyncio.Event:
        return self.gates.setdefault(name, asyncio.Event())

    async def run(self, arguments: dict[str, JSON], context: ToolContext) -> ToolOutput:
        name = str(arguments.get("n", ""))
        self.log.append(f"start {name}")
        try:
            if "wait" in arguments:
                await self.gate(name).wait()
            if "raise" in arguments:
                raise RuntimeError("boom")
        except asyncio.CancelledError:
            self.log.append(f"cancelled {name}")
            raise
        self.log.append(f"end {name}")
        return ToolOutput(text_content(f"result {name}"))


class FakeShell:
    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.commands: list[str] = []

    async def run(self, command: str, cwd: str, on_output: Callable[[str], None]) -> ShellOutcome:
        self.commands.append(command)
        on_output("so far")
        await self.gate.wait()
        return ShellOutcome(output="done", exit_code=0)

    def close(self) -> Sequence[str]:
        return ()


@dataclass
class Rig:
    """The parts of one test."""

    provider: ScriptedProvider = field(default_factory=ScriptedProvider)
    tools: tuple[Tool, ...] = ()
    clock: FakeClock = field(default_factory=FakeClock)
    shell: FakeShell = field(default_factory=FakeShell)
    store: ListStore = field(default_factory=ListStore)
    model: Model = SCRIPTED_MODEL
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    steering_mode: DeliveryMode = "one-at-a-time"
    compaction: Callable[[Model], CompactionSettings] = default_compaction
    summary_model: str | None = None
    branch_reserve_tokens: int = 16_384
    other_models: tuple[Model, ...] = ()
    system: str = "You are a test."
    secrets: tuple[str, ...] = ()
    events: list[Event] = field(default_factory=list)

    def create(self, parent: str | None = None) -> OpenedSession:
        return OpenedSession(ListStore(), ())

    def session(self, opened: OpenedSession | None = None) -> AgentSession:
        world = AgentWorld(
            models=OneProvider(self.provider, (self.model, *self.other_models)),
            tools=self.tools,
            shell=self.shell,
            sections=lambda tools: {"preamble": self.system, "tools": str(len(tools))},
            clock=self.clock,
            ids=SequentialIds(),
            estimator=CharsEstimator(),
            sessions=self,
            cwd="/work",
            secrets=self.secrets,
        )
        settings = AgentSettings(
            model=self.model,
            retry=self.retry,
            steering_mode=self.steering_mode,
            compaction=self.compaction,
            summaries=lambda: SummaryPreferences(self.summary_model, self.branch_reserve_tokens),
        )
        if opened is None:
            heads = tuple(head_of(entry) for entry in self.store.entries)
            opened = OpenedSession(self.store, heads)
        session = AgentSession(world, opened, settings)
        session.subscribe(self.events.append)
        return session

    def store_talk(self, turns: int, chars: int = 400) -> None:
        """Put finished exchanges into the store, as if they had been made earlier.

        Without reported usage, so that contexts are estimated: about `turns * chars / 2` tokens.
        """
        for number in range(turns):
            at = self.clock.ms + number
            words = f"turn {number} ".ljust(chars, "x")
            self.store_message(UserMessage(f"question of {words}", at))
            answer = MessageBuilder(api="scripted", provider="scripted", model="m", timestamp=at)
            answer.add(TextDelta(0, f"answer of {words}"))
            self.store_message(answer.message("stop"))

    def store_message(self, message: Message, entry_id: str = "") -> str:
        """Put one message into the store, after the last entry; returns its id."""
        entries = self.store.entries
        entry = MessageEntry(
            id=entry_id or f"t{len(entries):07d}",
            parent_id=entries[-1].id if entries else None,
            timestamp=iso_timestamp(self.clock.ms),
            message=message,
        )
        entries.append(entry)
        return entry.id

    @property
    def summary_requests(self) -> list[ModelRequest]:
        """The requests for summaries that were made."""
        return [r for r in self.provider.requests if r.system == SUMMARISER_SYSTEM]

    @property
    def ordinary_requests(self) -> list[ModelRequest]:
        """All other requests."""
        return [r for r in self.provider.requests if r.system != SUMMARISER_SYSTEM]

    @property
    def compactions(self) -> list[CompactionEntry]:
        """The compactions in the store."""
        return [e for e in self.store.entries if isinstance(e, CompactionEntry)]

    def of(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def gated_tool() -> type[GatedTool]:
    return GatedTool


async def until(condition: Callable[[], bool]) -> None:
    """Let other tasks run until something holds; fails instead of hanging."""
    for _ in range(10_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came true")


@pytest.fixture(name="until")
def until_fixture() -> Callable[[Callable[[], bool]], object]:
    return until
