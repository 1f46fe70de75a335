"""Asks a model for summaries: in parts that fit, with retries, refusing useless answers.

One summariser serves compactions and branch summaries. It writes nothing: a summary that is
returned is complete, and every failure is a CompactionError whose hint names a way out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.agent.bus import EventBus
from pi_tui.agent.retry_policy import RetryPolicy, WaitAndRetry, plan_wait, too_long_a_wait
from pi_tui.agent.signals import AbortSignal
from pi_tui.core.compaction.parts import (
    SummaryRoom,
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
from pi_tui.core.numbers import counted_tokens
from pi_tui.core.protocols import Clock, ModelRequest, ModelSource
from pi_tui.core.streaming import MessageBuilder, TextDelta, ThinkingDelta

Source: TypeAlias = Literal["compaction", "branchSummary"]
Progress: TypeAlias = Callable[[int, int, int], None]
"""Told of (part from 1, parts, tokens received for it so far)."""

WAY_OUT = (
    "Nothing was changed. Try again, use a larger model or the setting compaction.model, go back "
    "to an earlier point with /tree, or go on in a new session with /new."
)

TOO_LARGE_KINDS = frozenset({ErrorKind.OVERFLOW, ErrorKind.PAYLOAD_TOO_LARGE})
"""Refusals that a shorter request answers."""


_TOLD_TOKENS = 16
"""Progress is told at the first token and then once for so many."""


class SummaryJob(Struct, frozen=True):
    """One summary to make. `focus`: the user's instructions; `replace`: they stand alone."""

    kind: SummaryKind
    messages: tuple[Message, ...]
    previous_summary: str | None = None
    focus: str | None = None
    replace: bool = False


class SummaryAsker(Struct, frozen=True):
    """Who is asked, captured at the start: a switch of model affects only later summaries.

    `policy` None: the summariser's own, as it is when the summary begins.
    """

    model: Model
    thinking_level: ThinkingLevel
    session_id: str
    source: Source
    policy: RetryPolicy | None = None


class Summary(Struct, frozen=True):
    """A finished summary; `usage` is the sum over all requests, priced."""

    text: str
    usage: Usage
    parts: int
    retries: int


class SummaryTally:
    """Counts over all requests of one piece of work, also when it fails in the end."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.parts = 0
        self.retries = 0


class Summariser:
    """Makes summaries for one session.

    `output_limits` gives the limits servers named, by full model name, in the session that is held
    now; they are read and added to.
    """

    def __init__(
        self,
        models: ModelSource,
        bus: EventBus,
        clock: Clock,
        policy: Callable[[], RetryPolicy],
        output_limits: Callable[[], dict[str, int]] | None = None,
    ) -> None:
        self._models = models
        self._bus = bus
        self._clock = clock
        self._policy = policy
        own: dict[str, int] = {}
        self._output_limits = output_limits or (lambda: own)

    async def summarise(
        self,
        job: SummaryJob,
        asker: SummaryAsker,
        signal: AbortSignal,
        progress: Progress,
        tally: SummaryTally | None = None,
    ) -> Summary:
        """Make one summary. Raises CompactionError, or Aborted when the signal is set.

        `tally` is added to as the work goes on.
        """
        tally = tally or SummaryTally()
        asking = _Asking(self, asker, signal, tally)
        plan = _plan(job, asking.room)
        waiting = await signal.guard(
            asyncio.to_thread(conversation_parts, job.messages, plan.part_tokens)
        )
        text, sent = plan.previous, plan.previous
        done = 0
        smallest_refused: int | None = None
        while waiting:
            if smallest_refused is not None and high_tokens(waiting[0]) >= smallest_refused:
                # What is as long as a part that was refused need not be tried.
                split = halves(waiting[0])
                if split is not None:
                    waiting[:1] = split
                    continue
            of = done + len(waiting)
            progress(done + 1, of, 0)
            prompt = _prompt(job, plan.focus, has_previous=sent is not None)
            request = request_text(waiting[0], prompt, previous_summary=sent)
            try:
                text = await asking.ask(request, _received(progress, done + 1, of))
            except ProviderError as error:
                split = halves(waiting[0]) if error.kind in TOO_LARGE_KINDS else None
                if split is None:
                    raise asking.failure(error) from error
                smallest_refused = high_tokens(waiting[0])
                waiting[:1] = split
                continue
            sent = bounded_text(text, plan.carried_tokens)
            waiting.pop(0)
            done += 1
            tally.parts += 1
        if text is None:
            raise CompactionError("There was nothing to summarise.", hint=WAY_OUT)
        return Summary(text, tally.usage, done, tally.retries)

    # ------------------------------------------------------------ used by _Asking

    def policy(self) -> RetryPolicy:
        """The retry policy in force."""
        return self._policy()

    def output_limit(self, model: Model) -> int:
        """The output limit of a model, as far as it is known."""
        return min(model.max_tokens, self._output_limits().get(model.full_name, model.max_tokens))

    def learn_output_limit(self, model: Model, limit_tokens: int) -> None:
        """Remember a limit the server named."""
        self._output_limits()[model.full_name] = limit_tokens

    async def stream(
        self, request: ModelRequest, builder: MessageBuilder, received: Callable[[int], None]
    ) -> None:
        """Read one answer into the builder. Raises ProviderError and ModelError."""
        stream = self._models.provider_for(request.model).stream(request)
        chars = told = 0
        try:
            async for event in stream:
                builder.add(event)
                if isinstance(event, TextDelta | ThinkingDelta):
                    chars += len(event.text)
                    if chars // 4 >= told + (_TOLD_TOKENS if told else 1):
                        told = chars // 4
                        received(told)
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        if builder.stop_reason is None:
            raise ProviderError(
                "The answer broke off before its end.",
                kind=ErrorKind.NETWORK,
                provider=request.model.provider,
            )

    async def wait(
        self, step: WaitAndRetry, attempt: int, of: int, error: ProviderError, source: Source
    ) -> None:
        """Wait before the next attempt, visibly."""
        self._bus.emit(
            SummarizationRetryScheduled(source, attempt, of, step.delay_ms, error.message)
        )
        await self._clock.sleep(step.delay_ms / 1000)
        self._bus.emit(SummarizationRetryAttemptStart(source, attempt))

    def retries_finished(self, source: Source, *, success: bool) -> None:
        """Tell that a request that was retried has ended."""
        self._bus.emit(SummarizationRetryFinished(source, success))

    def now_ms(self) -> int:
        return self._clock.now_ms()


class _Plan(Struct, frozen=True):
    """How the window is shared out. `carried_tokens`: for the summary so far."""

    part_tokens: int
    carried_tokens: int
    previous: str | None
    focus: str | None


def _plan(job: SummaryJob, room: SummaryRoom) -> _Plan:
    previous = bounded_text(job.previous_summary or "", room.input_tokens // 3) or None
    focus = bounded_text(job.focus or "", room.input_tokens // 8) or None
    # The summary grows from part to part, so its largest size is set aside from the start.
    carried = max(high_tokens(previous or ""), min(room.output_tokens, room.input_tokens // 3))
    return _Plan(
        part_tokens=room.input_tokens - carried - high_tokens(focus or ""),
        carried_tokens=carried,
        previous=previous,
        focus=focus,
    )


class _Asking:
    """One model, asked until it gives a usable answer or the policy is at its end."""

    def __init__(
        self, owner: Summariser, asker: SummaryAsker, signal: AbortSignal, tally: SummaryTally
    ) -> None:
        self._owner = owner
        self._asker = asker
        self._signal = signal
        self._tally = tally
        self._policy = asker.policy or owner.policy()
        self._why_ended = ""
        self.room = summary_room(asker.model, owner.output_limit(asker.model))
        if self.room.too_small:
            raise CompactionError(
                f"The window of {asker.model.full_name} "
                f"({counted_tokens(asker.model.context_window)}) is too small to summarise in.",
                hint=WAY_OUT,
            )

    async def ask(self, text: str, received: Callable[[int], None]) -> str:
        """The text of one usable answer. Raises ProviderError, CompactionError and Aborted."""
        attempts = 0
        success = False
        try:
            while True:
                builder = self._builder()
                request = self._request(text)
                try:
                    await self._signal.guard(self._owner.stream(request, builder, received))
                    success = True
                    return _checked_text(builder.message(builder.stop_reason or "stop"), request)
                except ModelError as error:
                    raise CompactionError(error.text, hint=WAY_OUT) from error
                except ProviderError as error:
                    failure = error
                finally:
                    # Tokens of a failed attempt were billed as well.
                    used = price(self._asker.model, builder.usage or Usage())
                    self._tally.usage = self._tally.usage.plus(used)
                if self._learned_limit(failure, request):
                    continue
                step = plan_wait(failure, attempts, self._policy)
                if step is None:
                    self._why_ended = too_long_a_wait(failure, attempts, self._policy)
                    raise failure
                attempts += 1
                self._tally.retries += 1
                of, source = self._policy.max_retries, self._asker.source
                await self._signal.guard(self._owner.wait(step, attempts, of, failure, source))
        finally:
            if attempts:
                self._owner.retries_finished(self._asker.source, success=success)

    def failure(self, error: ProviderError) -> CompactionError:
        """What to tell of the error that `ask` raised last.

        Where trying again is the next step anyway, that is said once, by the way out.
        """
        why = f" {self._why_ended[0].upper()}{self._why_ended[1:]}" if self._why_ended else ""
        said = error.message if error.retryable or error.kind in TOO_LARGE_KINDS else error.text
        return CompactionError(f"The summary could not be made: {said}{why}", hint=WAY_OUT)

    def _request(self, text: str) -> ModelRequest:
        asker, model = self._asker, self._asker.model
        return ModelRequest(
            model=model,
            system=SUMMARISER_SYSTEM,
            messages=(UserMessage(text, self._owner.now_ms()),),
            thinking_level=asker.thinking_level if model.reasoning else "off",
            max_tokens=min(self.room.output_tokens, self._owner.output_limit(model)),
            session_id=asker.session_id,
            cache=False,
        )

    def _learned_limit(self, error: ProviderError, request: ModelRequest) -> bool:
        """True when the server named a lower output limit, which is then kept to."""
        named = error.limit_tokens if error.kind == ErrorKind.BAD_REQUEST else None
        if not named or request.max_tokens is None or named >= request.max_tokens:
            return False
        self._owner.learn_output_limit(self._asker.model, named)
        return True

    def _builder(self) -> MessageBuilder:
        model = self._asker.model
        return MessageBuilder(
            api=model.api, provider=model.provider, model=model.id, timestamp=self._owner.now_ms()
        )


def _received(progress: Progress, part: int, parts: int) -> Callable[[int], None]:
    return lambda tokens: progress(part, parts, tokens)


def _prompt(job: SummaryJob, focus: str | None, *, has_previous: bool) -> str:
    if job.replace and focus:
        return replaced_instructions(focus)
    return instructions(job.kind, has_previous=has_previous, focus=focus)


def _checked_text(message: AssistantMessage, request: ModelRequest) -> str:
    """The text of a usable answer. Raises CompactionError for every other one."""
    text = message.text.strip()
    why = ""
    if message.tool_calls:
        why = "the model called a tool instead of writing a summary"
    elif message.stop_reason == "length":
        why = f"it was cut at the output limit of {counted_tokens(request.max_tokens or 0)}"
    elif message.stop_reason != "stop":
        why = f"the answer ended with {message.stop_reason!r}"
    elif not text:
        why = "the model answered without any text"
    if why:
        raise CompactionError(
            f"The summary of {request.model.full_name} is not usable: {why}.", hint=WAY_OUT
        )
    return text
