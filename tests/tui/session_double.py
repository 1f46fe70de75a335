"""A session without an agent: it records what a front end asks and emits what a test tells it.

Loaded by path from the tests of the front end and from the script that pseudo-terminal tests run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import msgspec
from msgspec import Struct

from pi_tui.agent.accounting import ContextUsage, SessionStats
from pi_tui.agent.queues import Draft
from pi_tui.core.entries import Entry, MessageEntry, SessionHeader, entry_to_data
from pi_tui.core.events import (
    Activity,
    ActivityChanged,
    AgentSettled,
    BashExecutionEnd,
    BashExecutionStart,
    EntryAppended,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ModelChanged,
    QueueUpdate,
    SessionInfoChanged,
    ThinkingLevelChanged,
)
from pi_tui.core.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    ThinkingLevel,
    Usage,
    UserMessage,
)
from pi_tui.core.models import Model
from pi_tui.core.streaming import MessageBuilder, TextDelta
from pi_tui.core.tokens import CharsEstimator
from pi_tui.core.tree import tree_of

MODEL = Model("fake", "fake-model", "scripted", context_window=100_000, reasoning=True)
OTHER_MODEL = Model("other", "other-model", "scripted", context_window=200_000)


class StoreDouble(Struct):
    """`load` gives what the session's tree has, `line` how that would be stored."""

    header: SessionHeader
    load: Callable[[str], Entry]
    line: Callable[[str], bytes] | None = None
    path: str | None = "/nowhere/session.jsonl"
    pending: int = 0
    read_only: bool = False

    def raw_line(self, entry_id: str) -> bytes:
        if self.line is not None:
            return self.line(entry_id)
        return msgspec.json.encode(entry_to_data(self.load(entry_id)))


class ChoiceDouble(Struct):
    model: Model
    thinking_level: ThinkingLevel | None = None


class ModelsDouble:
    def __init__(self, models: tuple[Model, ...]) -> None:
        self.models = models

    def available(self) -> tuple[Model, ...]:
        return self.models

    def resolve(self, name: str) -> ChoiceDouble:
        return ChoiceDouble(next(model for model in self.models if model.full_name == name))

    def provider_for(self, model: Model) -> object:
        return model


class SessionDouble:
    """`answers` True: every prompt is answered at once with its own text."""

    def __init__(
        self,
        entries: Iterable[Entry] = (),
        *,
        answers: bool = False,
        models: tuple[Model, ...] = (MODEL,),
        cwd: str = "/nowhere/project",
    ) -> None:
        self.tree = tree_of(entries)
        self.store = StoreDouble(
            SessionHeader("0199-session", "", cwd), lambda entry_id: self.tree.entry(entry_id)
        )
        self.session_id = "0199-session"
        self.cwd = cwd
        self.activity: Activity = "idle"
        self.model = models[0]
        self.thinking_level: ThinkingLevel = "off"
        self.name: str | None = None
        self.models = ModelsDouble(models)
        self.steering: list[str] = []
        self.follow_up: list[str] = []
        self.submitted: list[tuple[str, str]] = []
        self.shells: list[tuple[str, bool]] = []
        self.aborts = 0
        self.closed = False
        self.usage = Usage()
        self.estimator = CharsEstimator()
        self.branches = SimpleNamespace(hidden=frozenset(), left_out=frozenset())
        self.pins: frozenset[str] = frozenset()
        self._answers = answers
        self._listeners: list[Callable[[Event], None]] = []

    # ------------------------------------------------------------ for tests

    def emit(self, *events: Event) -> None:
        for event in events:
            if isinstance(event, ActivityChanged):
                self.activity = event.activity
            for listener in tuple(self._listeners):
                listener(event)

    def append(self, message: Message) -> None:
        """Store a message and tell the front end."""
        entry = MessageEntry(
            id=f"{len(self.tree) + 1:08x}",
            parent_id=self.tree.leaf_id,
            timestamp="2026-01-01T00:00:00.000Z",
            message=message,
        )
        self.tree.append(entry)
        self.emit(EntryAppended(entry), MessageEnd(message))

    def answer(self, text: str, chunks: int = 4) -> None:
        """Stream and store an answer."""
        builder = MessageBuilder(api="a", provider="fake", model="fake-model", timestamp=0)
        self.emit(MessageStart(builder.message("pending")))
        size = max(1, len(text) // chunks)
        for at in range(0, len(text), size):
            delta = TextDelta(0, text[at : at + size])
            builder.add(delta)
            self.emit(MessageUpdate(delta))
        self.append(builder.message("stop"))

    # ------------------------------------------------------------ what the front end uses

    @property
    def queued(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(self.steering), tuple(self.follow_up)

    @property
    def last_answer(self) -> AssistantMessage | None:
        for entry in reversed(self.tree.path()):
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                return entry.message
        return None

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def submit(self, text: str, delivery: str = "steer", images: object = ()) -> str:
        self.submitted.append((text, delivery))
        if self.activity != "idle":
            (self.steering if delivery == "steer" else self.follow_up).append(text)
            self.emit(QueueUpdate(*self.queued))
            return "queued"
        if self._answers:
            asyncio.get_running_loop().call_soon(self._reply, text)
        return "started"

    def _reply(self, text: str) -> None:
        self.emit(ActivityChanged("running"))
        self.append(UserMessage(text, 0))
        self.answer(f"you said: {text}")
        self.emit(ActivityChanged("idle"), AgentSettled(False))

    def abort(self) -> bool:
        if self.activity == "idle":
            return False
        self.aborts += 1
        return True

    def take_back_drafts(self) -> tuple[Draft, ...]:
        return tuple(Draft(text) for text in self.take_back_queue())

    def take_back_queue(self) -> list[str]:
        texts = [*self.steering, *self.follow_up]
        self.steering.clear()
        self.follow_up.clear()
        if texts:
            self.emit(QueueUpdate((), ()))
        return texts

    async def wait_idle(self) -> None:
        return

    def start_shell(self, command: str, *, excluded: bool) -> bool:
        self.shells.append((command, excluded))
        self.emit(BashExecutionStart("s", command, excluded))
        self.append(BashExecutionMessage(command, f"output of {command}", 0, False, False, 0))
        self.emit(BashExecutionEnd("s"))
        return True

    def set_model(self, model: Model) -> None:
        self.model = model
        self.emit(ModelChanged(model.provider, model.id))

    def set_thinking_level(self, level: ThinkingLevel) -> None:
        self.thinking_level = level
        self.emit(ThinkingLevelChanged(level))

    def set_name(self, name: str) -> None:
        self.name = name
        self.emit(SessionInfoChanged(name))

    async def count_stored(self, *, gently: bool = False) -> None:
        return

    def stats(self) -> SessionStats:
        return SessionStats(self.usage, {}, len(self.tree), {}, 0, 0)

    def context_usage(self) -> ContextUsage:
        return ContextUsage(12_345, self.model.context_window, False)

    async def close(self) -> tuple[str, ...]:
        self.closed = True
        return ("ended in the background: sleep",)

    def rescue(self, limit_s: float = 1.0) -> tuple[str, ...]:
        return ("what was not written is in: elsewhere",)
