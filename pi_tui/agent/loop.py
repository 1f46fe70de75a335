"""The run loop: provider and tools in turn until the agent has nothing left to do.

One run = the given messages, then turns. A turn is one model request and the tool calls it makes.
After each batch the context is compacted where that is due, then steering messages are taken in;
when the agent would stop, follow-ups. Every message is in the journal before the next step
begins, so a run can be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from msgspec import Struct

from pi_tui.agent.answer import Answer, Answerer
from pi_tui.agent.bus import EventBus
from pi_tui.agent.context import ContextBuilder
from pi_tui.agent.journal import Journal
from pi_tui.agent.queues import Draft, MessageQueues
from pi_tui.agent.signals import AbortSignal
from pi_tui.agent.tool_batch import ToolRunner
from pi_tui.core.errors import ProviderError
from pi_tui.core.events import AgentEnd, AgentStart, Notice, QueueUpdate, TurnEnd, TurnStart
from pi_tui.core.messages import AssistantMessage, Message, ThinkingLevel, ToolResultMessage
from pi_tui.core.models import Model


class RunSettings(Protocol):
    """What a run reads at the start of each turn; a switch of model affects the next turn."""

    @property
    def model(self) -> Model: ...

    @property
    def thinking_level(self) -> ThinkingLevel: ...

    @property
    def session_id(self) -> str: ...


class RunOutcome(Struct, frozen=True):
    """How a run ended. `answered`: at least one answer was good; `last_…` are of the last answer.

    `model` is the one that was asked last; the session may have switched to another meanwhile.
    `not_sent`: the error is not the provider's, the last request was surely too long to be sent.
    `agent_end` was not emitted yet: whoever decides about a retry emits it (see `end_run`).
    """

    messages: tuple[Message, ...]
    aborted: bool
    answered: bool
    error: ProviderError | None
    last_entry_id: str | None
    last_answer: AssistantMessage
    model: Model
    not_sent: bool = False


class RunLoop:
    """Runs one agent over one journal at a time."""

    def __init__(
        self,
        *,
        bus: EventBus,
        answerer: Answerer,
        tools: ToolRunner,
        context: ContextBuilder,
        queues: MessageQueues,
        at_safe_point: Callable[[], None],
        before_next_turn: Callable[[tuple[Draft, ...]], Awaitable[None]],
        refuse_hopeless: Callable[[], Awaitable[str]],
    ) -> None:
        self._bus = bus
        self._answerer = answerer
        self._tools = tools
        self._context = context
        self._queues = queues
        self._at_safe_point = at_safe_point
        self._before_next_turn = before_next_turn
        self._refuse_hopeless = refuse_hopeless

    async def run(
        self,
        drafts: Sequence[Draft],
        journal: Journal,
        settings: RunSettings,
        signal: AbortSignal,
    ) -> RunOutcome:
        """Run until settled, aborted or failed. Without drafts the last request is made again."""
        self._bus.emit(AgentStart())
        messages: list[Message] = []
        answered = False
        while True:
            self._bus.emit(TurnStart())
            for draft in drafts:
                message = draft.message(journal.clock.now_ms())
                journal.message(message)
                messages.append(message)
            model = settings.model
            answer = await self._ask(model, journal, settings, signal)
            messages.append(answer.message)
            results: tuple[ToolResultMessage, ...] = ()
            aborted = answer.message.stop_reason == "aborted"
            if answer.message.stop_reason not in ("error", "aborted"):
                answered = True
                if answer.message.tool_calls:
                    batch = await self._tools.run(answer.message, journal, signal)
                    results, aborted = batch.results, batch.aborted
                    messages.extend(results)
            self._bus.emit(TurnEnd(answer.message, results))
            self._at_safe_point()
            if answer.error is None and not aborted:
                coming = self._queues.peek(more_turns=bool(results))
                if results or coming:
                    await self._before_next_turn(coming)
                    aborted = signal.is_set
                drafts = () if aborted else self._next_drafts(more_turns=bool(results))
                if drafts or (results and not aborted):
                    continue
            return RunOutcome(
                messages=tuple(messages),
                aborted=aborted,
                answered=answered,
                error=answer.error,
                last_entry_id=answer.entry_id,
                last_answer=answer.message,
                model=model,
                not_sent=answer.not_sent,
            )

    async def _ask(
        self, model: Model, journal: Journal, settings: RunSettings, signal: AbortSignal
    ) -> Answer:
        refusal = await self._refuse_hopeless()
        if signal.is_set:
            return self._answerer.stopped(model, journal)
        if refusal:
            return self._answerer.refused(model, journal, refusal)
        prepared = self._context.prepare(model, settings.thinking_level, settings.session_id)
        if prepared.news:
            self._bus.emit(Notice("warning", prepared.news))
        return await self._answerer.answer(prepared.request, journal, signal)

    def _next_drafts(self, *, more_turns: bool) -> tuple[Draft, ...]:
        drafts = self._queues.take_steering()
        if not drafts and not more_turns:
            drafts = self._queues.take_follow_up()
        if drafts:
            self._bus.emit(QueueUpdate(*self._queues.texts()))
        return drafts

    def end_run(self, outcome: RunOutcome, *, will_retry: bool) -> None:
        """Announce the end of a run once it is known whether another one follows by itself."""
        self._bus.emit(AgentEnd(outcome.messages, will_retry))
