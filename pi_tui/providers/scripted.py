"""A provider that plays prepared answers: the double that tests of every room use.

Answers are plain values, played in order, one per request. Between two events the stream gives the
event loop a turn, so other tasks run exactly as they would with a real server, and a `Gate` holds a
stream at a chosen point until the test opens it. No clock, no network, no randomness.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.messages import JSON, StopReason, ToolCall, Usage
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import (
    ResponseStarted,
    Stopped,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReport,
)

SCRIPTED_MODEL = Model(provider="scripted", id="model", api="scripted", name="Scripted")
USAGE = Usage(input=10, output=5, total_tokens=15)
"""What an answer reports when nothing else is said."""


class Text(Struct, frozen=True):
    """A text block; given as several strings it arrives as several deltas."""

    pieces: tuple[str, ...]

    @classmethod
    def of(cls, *pieces: str) -> Text:
        return cls(pieces)


class Thinking(Struct, frozen=True):
    """A thinking block; without a signature none is sent."""

    text: str
    signature: str | None = None
    redacted: bool = False


class Call(Struct, frozen=True):
    """A tool call. `id` "" becomes `call_<number>`, unique within the provider."""

    name: str
    arguments: dict[str, JSON]
    id: str = ""
    thought_signature: str | UnsetType = UNSET


class Gate:
    """A point where a stream waits. `reached` is set when a stream stands there."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._open = asyncio.Event()

    def open(self) -> None:
        """Let the stream go on, now and whenever it comes here again."""
        self._open.set()

    async def wait(self) -> None:
        self.reached.set()
        await self._open.wait()


class Fail(Struct, frozen=True):
    """The request fails here, before or after other parts."""

    error: ProviderError


Part: TypeAlias = str | Text | Thinking | Call | Gate | Fail
"""A plain string is a text block in one piece."""


class Reply(Struct, frozen=True):
    """One answer. `stop_reason` None: "toolUse" when it holds a call, else "stop".

    `usage` None: no usage is reported. `ends` False: the stream ends without a stop, as when a
    server breaks off; then it raises what a real client would.
    """

    parts: tuple[Part, ...]
    stop_reason: StopReason | None = None
    usage: Usage | None = USAGE
    ends: bool = True
    response_id: str = ""
    response_model: str = ""


ReplySource: TypeAlias = (
    Reply | str | ProviderError | Callable[[ModelRequest], "Reply | str | ProviderError"]
)


def reply(
    *parts: Part,
    stop_reason: StopReason | None = None,
    usage: Usage | None = USAGE,
    ends: bool = True,
) -> Reply:
    """An answer of the given parts, in order."""
    return Reply(tuple(parts), stop_reason=stop_reason, usage=usage, ends=ends)


class ScriptedProvider:
    """Plays `replies` in order, one per request; a callable is asked with the request.

    `requests` holds every request in the order they came. When the replies are used up, `fallback`
    is played, or AssertionError raised when there is none. `active` counts streams that are open;
    `cancelled` those that were left before their end.
    """

    def __init__(
        self, replies: Iterable[ReplySource] = (), *, fallback: ReplySource | None = None
    ) -> None:
        self._replies: list[ReplySource] = list(replies)
        self._fallback = fallback
        self._calls = 0
        self.requests: list[ModelRequest] = []
        self.active = 0
        self.cancelled = 0

    def add(self, *replies: ReplySource) -> None:
        """Append answers to the script."""
        self._replies.extend(replies)

    @property
    def remaining(self) -> int:
        """Answers not played yet."""
        return len(self._replies)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Play the next answer. Raises the ProviderError it holds."""
        self.requests.append(request)
        answer = self._next(request)
        self.active += 1
        ended = False
        try:
            await asyncio.sleep(0)
            yield ResponseStarted(answer.response_id, answer.response_model)
            for index, part in enumerate(answer.parts):
                if isinstance(part, Gate):
                    await part.wait()
                    continue
                if isinstance(part, Fail):
                    ended = True
                    raise part.error
                for event in self._events(index, part):
                    await asyncio.sleep(0)
                    yield event
            for event in self._ending(answer):
                await asyncio.sleep(0)
                ended = ended or isinstance(event, Stopped)
                yield event
            if not answer.ends:
                ended = True
                raise ProviderError(
                    "The answer broke off before its end.",
                    kind=ErrorKind.NETWORK,
                    provider=request.model.provider,
                )
        finally:
            self.active -= 1
            self.cancelled += not ended

    def _next(self, request: ModelRequest) -> Reply:
        if self._replies:
            source = self._replies.pop(0)
        elif self._fallback is not None:
            source = self._fallback
        else:
            raise AssertionError(
                f"request {len(self.requests)} came, but the script has no answer left"
            )
        made = source(request) if callable(source) else source
        if isinstance(made, str):
            return reply(made)
        return reply(Fail(made)) if isinstance(made, ProviderError) else made

    def _events(self, index: int, part: str | Text | Thinking | Call) -> Sequence[StreamEvent]:
        if isinstance(part, str):
            return (TextDelta(index, part),)
        if isinstance(part, Text):
            return tuple(TextDelta(index, piece) for piece in part.pieces)
        if isinstance(part, Thinking):
            events: list[StreamEvent] = [ThinkingDelta(index, part.text)] if part.text else []
            if part.signature is not None:
                events.append(ThinkingSigned(index, part.signature, part.redacted))
            return events
        self._calls += 1
        call_id = part.id or f"call_{self._calls}"
        return (
            ToolCallStarted(index, call_id, part.name),
            ToolCallDelta(index, json.dumps(part.arguments)),
            ToolCallDone(
                index, ToolCall(call_id, part.name, part.arguments, part.thought_signature)
            ),
        )

    @staticmethod
    def _ending(answer: Reply) -> Sequence[StreamEvent]:
        events: list[StreamEvent] = []
        if answer.usage is not None:
            events.append(UsageReport(answer.usage))
        if answer.ends:
            called = any(isinstance(part, Call) for part in answer.parts)
            events.append(Stopped(answer.stop_reason or ("toolUse" if called else "stop")))
        return events
