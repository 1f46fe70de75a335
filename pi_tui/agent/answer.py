"""One model answer: stream it, tell the front ends, store it however it ended.

Whatever happens to the stream, an assistant message is stored: complete, cut by Escape ("aborted")
or failed ("error" with words for people). Calls and signatures that did not arrive whole are left
out by the builder, so what is stored can always be sent again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

from msgspec import Struct

from pi_tui.agent.bus import EventBus
from pi_tui.agent.journal import Journal
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.core.errors import ErrorKind, ModelError, ProviderError
from pi_tui.core.events import MessageStart, MessageUpdate
from pi_tui.core.messages import AssistantMessage, StopReason, Usage
from pi_tui.core.models import Model, price
from pi_tui.core.protocols import ModelRequest, ModelSource, Provider
from pi_tui.core.streaming import AnswerEvents, MessageBuilder, StreamEvent, UsageReport


class Answer(Struct, frozen=True):
    """A stored answer. `error` is set when the request failed; `not_sent`: nobody was asked."""

    message: AssistantMessage
    entry_id: str
    error: ProviderError | None = None
    not_sent: bool = False


class Answerer:
    """Asks the model and stores what it says."""

    def __init__(self, models: ModelSource, bus: EventBus) -> None:
        self._models = models
        self._bus = bus

    async def answer(self, request: ModelRequest, journal: Journal, signal: AbortSignal) -> Answer:
        """Stream one answer into the journal."""
        model = request.model
        started_s = journal.clock.monotonic_s()
        builder, events = _empty(model, journal), AnswerEvents()
        self._bus.emit(MessageStart(builder.message("pending")))
        reason, error = await self._stream(request, builder, events, signal)
        if reason == "stop" and any(builder.message("stop").tool_calls):
            reason = "toolUse"  # some servers end with "stop" although calls are there
        words = _words(error) if error else None
        usage = price(model, builder.usage or Usage())
        self._tell(events.end(reason, words or ""), usage)
        message = builder.message(
            reason,
            error_message=words,
            thinking_level=request.thinking_level,
            duration_ms=round((journal.clock.monotonic_s() - started_s) * 1000),
            usage=usage,
        )
        return Answer(message, journal.message(message, announced=True), error)

    async def _stream(
        self,
        request: ModelRequest,
        builder: MessageBuilder,
        events: AnswerEvents,
        signal: AbortSignal,
    ) -> tuple[StopReason, ProviderError | None]:
        """Take in the whole stream; how it ended, and why when it failed."""
        model = request.model
        try:
            provider = self._models.provider_for(model)
            await signal.guard(self._consume(provider, request, builder, events))
            return builder.stop_reason or "stop", None
        except Aborted:
            return "aborted", None
        except ProviderError as failure:
            return "error", failure
        except ModelError as failure:
            words, kind, hint = failure.message, ErrorKind.AUTH, failure.hint
        except Exception as fault:  # noqa: BLE001 - what arrived is kept, and the fault is told
            words, kind = self._bus.fault_words(fault), ErrorKind.UNKNOWN
            hint = "That is a mistake in the program; the conversation is safe."
        return "error", ProviderError(words, kind=kind, provider=model.provider, hint=hint)

    def refused(self, model: Model, journal: Journal, why: str) -> Answer:
        """Store that a request was not sent because it could not fit the window."""
        error = ProviderError(why, kind=ErrorKind.OVERFLOW, provider=model.provider)
        return self._not_sent(model, journal, "error", error)

    def stopped(self, model: Model, journal: Journal) -> Answer:
        """Store that the user stopped the run before the request was sent."""
        return self._not_sent(model, journal, "aborted", None)

    def _not_sent(
        self, model: Model, journal: Journal, reason: StopReason, error: ProviderError | None
    ) -> Answer:
        builder = _empty(model, journal)
        self._bus.emit(MessageStart(builder.message("pending")))
        words = _words(error) if error else None
        self._tell(AnswerEvents().end(reason, words or ""), Usage())
        message = builder.message(reason, error_message=words, usage=Usage())
        return Answer(message, journal.message(message, announced=True), error, not_sent=True)

    async def _consume(
        self,
        provider: Provider,
        request: ModelRequest,
        builder: MessageBuilder,
        events: AnswerEvents,
    ) -> None:
        stream = provider.stream(request)
        usage: Usage | None = None
        try:
            async for event in stream:
                builder.add(event)
                if isinstance(event, UsageReport):
                    usage = price(request.model, event.usage)
                self._tell(events.hear(event), usage)
        finally:
            # An iterator that was left early must not wait for garbage collection to hang up.
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    def _tell(self, events: Iterable[StreamEvent], usage: Usage | None) -> None:
        for event in events:
            self._bus.emit(MessageUpdate(event, usage))


def _empty(model: Model, journal: Journal) -> MessageBuilder:
    return MessageBuilder(
        api=model.api, provider=model.provider, model=model.id, timestamp=journal.clock.now_ms()
    )


def _words(error: ProviderError) -> str:
    """What the answer says of its failure; what to do about a full window the recovery says."""
    return error.message if error.kind == ErrorKind.OVERFLOW else error.text
