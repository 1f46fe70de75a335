"""One model answer: stream it, tell the front ends, store it however it ended.

Whatever happens to the stream, an assistant message is stored: complete, cut by Escape ("aborted")
or failed ("error" with words for people). Calls and signatures that did not arrive whole are left
out by the builder, so what is stored can always be sent again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec import Struct

from pi_tui.agent.bus import EventBus
from pi_tui.agent.journal import Journal
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.core.errors import ErrorKind, ModelError, ProviderError
from pi_tui.core.events import MessageStart, MessageUpdate
from pi_tui.core.messages import AssistantMessage, StopReason, Usage
from pi_tui.core.models import price
from pi_tui.core.protocols import ModelRequest, ModelSource, Provider
from pi_tui.core.streaming import MessageBuilder


class Answer(Struct, frozen=True):
    """A stored answer. `error` is set when the request failed."""

    message: AssistantMessage
    entry_id: str
    error: ProviderError | None = None


class Answerer:
    """Asks the model and stores what it says."""

    def __init__(self, models: ModelSource, bus: EventBus) -> None:
        self._models = models
        self._bus = bus

    async def answer(self, request: ModelRequest, journal: Journal, signal: AbortSignal) -> Answer:
        """Stream one answer into the journal."""
        model = request.model
        started_s = journal.clock.monotonic_s()
        builder = MessageBuilder(
            api=model.api,
            provider=model.provider,
            model=model.id,
            timestamp=journal.clock.now_ms(),
        )
        self._bus.emit(MessageStart(builder.message("pending")))
        error: ProviderError | None = None
        reason: StopReason
        try:
            provider = self._models.provider_for(model)
            await signal.guard(self._consume(provider, request, builder))
            reason = builder.stop_reason or "stop"
        except Aborted:
            reason = "aborted"
        except ProviderError as failure:
            reason, error = "error", failure
        except ModelError as failure:
            reason = "error"
            error = ProviderError(
                failure.message, kind=ErrorKind.AUTH, provider=model.provider, hint=failure.hint
            )
        if reason == "stop" and any(builder.message("stop").tool_calls):
            reason = "toolUse"  # some servers end with "stop" although calls are there
        message = builder.message(
            reason,
            error_message=_words(error) if error else None,
            thinking_level=request.thinking_level,
            duration_ms=round((journal.clock.monotonic_s() - started_s) * 1000),
            usage=price(model, builder.usage or Usage()),
        )
        return Answer(message, journal.message(message, announced=True), error)

    async def _consume(
        self, provider: Provider, request: ModelRequest, builder: MessageBuilder
    ) -> None:
        stream = provider.stream(request)
        try:
            async for event in stream:
                builder.add(event)
                self._bus.emit(MessageUpdate(event))
        finally:
            # An iterator that was left early must not wait for garbage collection to hang up.
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()


def _words(error: ProviderError) -> str:
    """What the answer says of its failure; what to do about a full window the recovery says."""
    return error.message if error.kind == ErrorKind.OVERFLOW else error.text
