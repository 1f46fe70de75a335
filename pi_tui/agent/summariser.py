"""Asks a model for summaries: in parts that fit, with retries, refusing useless answers.

One summariser serves compactions and branch summaries. It writes nothing: a summary that is
returned is complete, and every failure is a CompactionError whose words name a way out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.agent.bus import EventBus
from pi_tui.agent.retry_policy import RetryPolicy, WaitAndRetry, plan_wait
from pi_tui.agent.signals import AbortSignal
from pi_tui.core.compaction.parts import (
    bounded_text,
    conversation_parts,
    halves,
    high_tokens,
    summary_room,
)
from pi_tui.core.compaction.prompts import (
    SUMMARISER_SYSTEM,
    SummaryKind,
    instructions,
    replaced_instructions,
    request_text,
)
from pi_tui.core.errors import CompactionError, ErrorKind, ModelError, ProviderError
from pi_tui.core.events import (
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
)
from pi_tui.core.messages import AssistantMessage, Message, ThinkingLevel, Usage, UserMessage
from pi_tui.core.models import Model, price
from pi_tui.core.protocols import Clock, ModelRequest, ModelSource
from pi_tui.core.streaming import MessageBuilder, TextDelta, ThinkingDelta

Source: TypeAlias = Literal["compaction", "branchSummary"]
Progress: TypeAlias = Callable[[int, int, int], None]
"""Told of (part from 1, parts, tokens received for it so far)."""

WAY_OUT = (
    "Nothing was changed. Try again, use a larger model or the setting compaction.model, or go "
    "back to an earlier point with /tree."
)


class SummaryJob(Struct, frozen=True):
    """One summary to make. `focus`: the user's instructions; `replace`: they stand alone."""

    kind: SummaryKind
    messages: tuple[Message, ...]
    previous_summary: str | None = None
    focus: str | None = None
    replace: bool = False


class SummaryAsker(Struct, frozen=True):
    """Who is asked, captured at the start: a switch of model affects only later summaries."""

    model: Model
    thinking_level: ThinkingLevel
    session_id: str
    source: Source


class Summary(Struct, frozen=True):
    """A finished summary; `usage` is the sum over all requests, priced."""

    text: str
    usage: Usage
    parts: int
    retries: int


class _Tally:
    """Counts over all requests of one summary."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.retries = 0


class Summariser:
    """Makes summaries for one session."""

    def __init__(
        self, models: ModelSource, bus: EventBus, clock: Clock, policy: Callable[[], RetryPolicy]
    ) -> None:
        self._models = models
        self._bus = bus
        self._clock = clock
        self._policy = policy

    async def summarise(
        self, job: SummaryJob, asker: SummaryAsker, signal: AbortSignal, progress: Progress
    ) -> Summary:
        """Make one summary. Raises CompactionError, or Aborted when the signal is set."""
        room = summary_room(asker.model)
        if room.too_small:
            raise CompactionError(
                f"The window of {asker.model.full_name} ({asker.model.context_window:,} tokens) is "
                f"too small to summarise in. {WAY_OUT}"
            )
        previous = bounded_text(job.previous_summary or "", room.input_tokens // 3) or None
        focus = bounded_text(job.focus or "", room.input_tokens // 8) or None
        # The summary grows from part to part, so its largest size is set aside from the start.
        carried = max(high_tokens(previous or ""), min(room.output_tokens, room.input_tokens // 3))
        budget = room.input_tokens - carried - high_tokens(focus or "")
        waiting = await asyncio.to_thread(conversation_parts, job.messages, budget)
        tally = _Tally()
        done = 0
        while waiting:
            progress(done + 1, done + len(waiting), 0)
            prompt = _prompt(job, focus, has_previous=previous is not None)
            text = request_text(waiting[0], prompt, previous_summary=previous)
            try:
                message = await self._ask(
                    text,
                    room.output_tokens,
                    asker,
                    signal,
                    tally,
                    lambda tokens: progress(done + 1, done + len(waiting), tokens),  # noqa: B023
                )
            except ProviderError as error:
                split = halves(waiting[0]) if error.kind == ErrorKind.OVERFLOW else None
                if split is None:
                    raise CompactionError(
                        f"The summary could not be made: {error.message} {WAY_OUT}"
                    ) from error
                waiting[:1] = split
                continue
            previous = _checked_text(message, asker.model)
            done += 1
            waiting.pop(0)
        if previous is None:
            raise CompactionError(f"There was nothing to summarise. {WAY_OUT}")
        return Summary(previous, tally.usage, done, tally.retries)

    async def _ask(
        self,
        text: str,
        output_tokens: int,
        asker: SummaryAsker,
        signal: AbortSignal,
        tally: _Tally,
        received: Callable[[int], None],
    ) -> AssistantMessage:
        request = ModelRequest(
            model=asker.model,
            system=SUMMARISER_SYSTEM,
            messages=(UserMessage(text, self._clock.now_ms()),),
            thinking_level=asker.thinking_level if asker.model.reasoning else "off",
            max_tokens=min(output_tokens, asker.model.max_tokens),
            session_id=asker.session_id,
            cache=False,
        )
        attempts = 0
        while True:
            builder = self._builder(asker.model)
            try:
                await signal.guard(self._consume(request, builder, received))
                tally.usage = tally.usage.plus(price(asker.model, builder.usage or Usage()))
                if attempts:
                    self._bus.emit(SummarizationRetryFinished(asker.source, True))
                return builder.message(builder.stop_reason or "stop")
            except ModelError as error:
                raise CompactionError(f"{error.message} {error.hint or ''} {WAY_OUT}") from error
            except ProviderError as error:
                # Tokens of a failed attempt were billed as well.
                tally.usage = tally.usage.plus(price(asker.model, builder.usage or Usage()))
                step = plan_wait(error, attempts, self._policy())
                if step is None:
                    if attempts:
                        self._bus.emit(SummarizationRetryFinished(asker.source, False))
                    raise
                attempts += 1
                tally.retries += 1
                await self._wait(step, attempts, error, asker.source, signal)

    async def _consume(
        self, request: ModelRequest, builder: MessageBuilder, received: Callable[[int], None]
    ) -> None:
        stream = self._models.provider_for(request.model).stream(request)
        chars = 0
        try:
            async for event in stream:
                builder.add(event)
                if isinstance(event, TextDelta | ThinkingDelta):
                    chars += len(event.text)
                    received(chars // 4)
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def _wait(
        self,
        step: WaitAndRetry,
        attempt: int,
        error: ProviderError,
        source: Source,
        signal: AbortSignal,
    ) -> None:
        self._bus.emit(
            SummarizationRetryScheduled(
                source, attempt, self._policy().max_retries, step.delay_ms, error.message
            )
        )
        await signal.guard(self._clock.sleep(step.delay_ms / 1000))
        self._bus.emit(SummarizationRetryAttemptStart(source, attempt))

    def _builder(self, model: Model) -> MessageBuilder:
        return MessageBuilder(
            api=model.api, provider=model.provider, model=model.id, timestamp=self._clock.now_ms()
        )


def _prompt(job: SummaryJob, focus: str | None, *, has_previous: bool) -> str:
    if job.replace and focus:
        return replaced_instructions(focus)
    return instructions(job.kind, has_previous=has_previous, focus=focus)


def _checked_text(message: AssistantMessage, model: Model) -> str:
    """The text of a usable answer. Raises CompactionError for every other one."""
    text = message.text.strip()
    why = ""
    if message.tool_calls:
        why = "the model called a tool instead of writing a summary"
    elif message.stop_reason == "length":
        why = "the summary was cut at the output limit of the model"
    elif not text:
        why = "the model answered without any text"
    if why:
        raise CompactionError(f"The summary of {model.full_name} is not usable: {why}. {WAY_OUT}")
    return text
