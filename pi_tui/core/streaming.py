"""What a provider says while it answers, what front ends hear of it, and the finished message.

A provider says when an answer starts, its deltas, a signature once it is whole, a finished call as
`ToolCallDone`, counts, and ends with `Stopped`; anything else it raises as `ProviderError`. Its
content indexes tell blocks apart, and deltas of different blocks may interleave. `AnswerEvents`
makes of this what front ends hear: each block with a start and an end, one end of the whole, and
indexes that count the blocks from 0 in the order in which they began, which is their place in the
message that `MessageBuilder` makes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct

from pi_tui.core.messages import (
    AssistantMessage,
    Content,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
)


class ResponseStarted(Struct, frozen=True):
    """The server accepted the request. Ids are "" where the wire format has none."""

    response_id: str = ""
    response_model: str = ""


class TextStarted(Struct, frozen=True):
    """For front ends: a block of text begins."""

    index: int


class TextDelta(Struct, frozen=True):
    index: int
    text: str


class TextEnded(Struct, frozen=True):
    """For front ends."""

    index: int


class ThinkingStarted(Struct, frozen=True):
    """For front ends: a block of thinking begins; it may have no text, only a signature."""

    index: int


class ThinkingDelta(Struct, frozen=True):
    index: int
    text: str


class ThinkingSigned(Struct, frozen=True):
    """The complete signature of a thinking block; `redacted`: it carries the encrypted block."""

    index: int
    signature: str
    redacted: bool = False


class ThinkingEnded(ThinkingSigned, frozen=True):
    """For front ends: the block ended; its signature is "" when none had arrived by then."""


class ToolCallStarted(Struct, frozen=True):
    index: int
    id: str
    name: str


class ToolCallDelta(Struct, frozen=True):
    """A piece of the arguments' JSON, for display only."""

    index: int
    text: str


class ToolCallDone(Struct, frozen=True):
    """The finished call; its arguments are one JSON object."""

    index: int
    call: ToolCall


class ToolCallCut(Struct, frozen=True):
    """For front ends: the answer ended before the call was whole; it is not in the message."""

    index: int
    id: str
    name: str


class UsageReport(Struct, frozen=True):
    """The newest counts; a later report replaces an earlier one. Cost is filled in by the loop."""

    usage: Usage


class Stopped(Struct, frozen=True):
    """The answer came to its end. `index` is for front ends: the last block, 0 without any."""

    reason: StopReason
    index: int = 0


class Failed(Struct, frozen=True):
    """For front ends: the answer was stopped or failed; `index` is its last block, or 0."""

    reason: Literal["aborted", "error"]
    index: int = 0
    error_message: str = ""


StreamEvent: TypeAlias = (
    ResponseStarted
    | TextStarted
    | TextDelta
    | TextEnded
    | ThinkingStarted
    | ThinkingDelta
    | ThinkingSigned
    | ThinkingEnded
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallDone
    | ToolCallCut
    | UsageReport
    | Stopped
    | Failed
)


class AnswerEvents:
    """Makes what front ends hear of one answer: one start, whole blocks in order, one end.

    A block of text or thinking ends when its signature came or another block begins, for not every
    wire format says it; a call ends when it is whole. What a server adds to a block after that is
    handed on with the block's index. Counts, signatures that come late and blocks of nothing are no
    events of their own.
    """

    def __init__(self) -> None:
        self._started = False
        self._places: dict[int, int] = {}
        self._open: tuple[int, Literal["text", "thinking"]] | None = None
        self._calls: dict[int, ToolCallStarted] = {}

    def hear(self, event: StreamEvent) -> Iterator[StreamEvent]:
        """Take in one event of the provider; yields the events for front ends."""
        if isinstance(event, ResponseStarted):
            yield from self._start(event)
        elif isinstance(event, TextDelta | ThinkingDelta):
            if event.text:
                kind: Literal["text", "thinking"] = (
                    "text" if isinstance(event, TextDelta) else "thinking"
                )
                yield from self._begin(event.index, kind)
                yield type(event)(self._places[event.index], event.text)
        elif isinstance(event, ThinkingSigned):
            yield from self._begin(event.index, "thinking")
            if self._open == (event.index, "thinking"):
                yield from self._end_open(event)
        elif isinstance(event, ToolCallStarted):
            yield from self._begin_call(event)
        elif isinstance(event, ToolCallDelta):
            if event.index in self._calls and event.text:
                yield ToolCallDelta(self._places[event.index], event.text)
        elif isinstance(event, ToolCallDone):
            yield from self._begin_call(
                ToolCallStarted(event.index, event.call.id, event.call.name)
            )
            if self._calls.pop(event.index, None) is not None:
                yield ToolCallDone(self._places[event.index], event.call)

    def end(self, reason: StopReason, error_message: str = "") -> Iterator[StreamEvent]:
        """Yield the ends of what is still open, and the end of the answer."""
        yield from self._start(ResponseStarted())
        yield from self._end_open()
        for index, call in sorted(self._calls.items()):
            yield ToolCallCut(self._places[index], call.id, call.name)
        self._calls.clear()
        last = max(0, len(self._places) - 1)
        if reason in ("aborted", "error"):
            yield Failed("aborted" if reason == "aborted" else "error", last, error_message)
        else:
            yield Stopped(reason, last)

    def _start(self, event: ResponseStarted) -> Iterator[StreamEvent]:
        if not self._started:
            self._started = True
            yield event

    def _begin(self, index: int, kind: Literal["text", "thinking"]) -> Iterator[StreamEvent]:
        if index in self._places:
            return
        yield from self._start(ResponseStarted())
        yield from self._end_open()
        place = self._places[index] = len(self._places)
        self._open = (index, kind)
        yield TextStarted(place) if kind == "text" else ThinkingStarted(place)

    def _end_open(self, signed: ThinkingSigned | None = None) -> Iterator[StreamEvent]:
        if self._open is None:
            return
        index, kind = self._open
        self._open = None
        place = self._places[index]
        if kind == "text":
            yield TextEnded(place)
        elif signed is None:
            yield ThinkingEnded(place, "")
        else:
            yield ThinkingEnded(place, signed.signature, signed.redacted)

    def _begin_call(self, event: ToolCallStarted) -> Iterator[StreamEvent]:
        if event.index in self._places:
            return
        yield from self._start(ResponseStarted())
        yield from self._end_open()
        place = self._places[event.index] = len(self._places)
        self._calls[event.index] = event
        yield ToolCallStarted(place, event.id, event.name)


class _Block:
    """One block while it grows; pieces are joined only when somebody looks."""

    __slots__ = ("call", "kind", "name", "pieces", "redacted", "signature", "tool_id")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.signature: str | None = None
        self.redacted = False
        self.tool_id = ""
        self.name = ""
        self.call: ToolCall | None = None

    def content(self) -> Content | None:
        text = "".join(self.pieces)
        if self.kind == "text":
            return TextContent(text) if text else None
        if self.kind == "thinking":
            if not text and self.signature is None:
                return None
            return ThinkingContent(
                text,
                UNSET if self.signature is None else self.signature,
                True if self.redacted else UNSET,
            )
        return self.call


class MessageBuilder:
    """Collects stream events of one answer.

    `message()` may be asked at any time: unfinished tool calls and signatures are left out, so a
    partial answer can always be stored and sent again.
    """

    def __init__(self, *, api: str, provider: str, model: str, timestamp: int) -> None:
        self._api = api
        self._provider = provider
        self._model = model
        self._timestamp = timestamp
        self._blocks: dict[int, _Block] = {}
        self._response_id = ""
        self._response_model = ""
        self.usage: Usage | None = None
        self.stop_reason: StopReason | None = None

    def add(self, event: StreamEvent) -> None:
        """Take in one event of the provider."""
        if isinstance(event, TextDelta | ThinkingDelta):
            if event.text:  # an empty piece begins no block
                kind = "text" if isinstance(event, TextDelta) else "thinking"
                self._block(event.index, kind).pieces.append(event.text)
        elif isinstance(event, ThinkingSigned):
            block = self._block(event.index, "thinking")
            block.signature, block.redacted = event.signature, event.redacted
        elif isinstance(event, ToolCallStarted):
            block = self._block(event.index, "toolCall")
            block.tool_id, block.name = event.id, event.name
        elif isinstance(event, ToolCallDelta):
            self._block(event.index, "toolCall").pieces.append(event.text)
        elif isinstance(event, ToolCallDone):
            self._block(event.index, "toolCall").call = event.call
        elif isinstance(event, UsageReport):
            self.usage = event.usage
        elif isinstance(event, ResponseStarted):
            self._response_id = event.response_id or self._response_id
            self._response_model = event.response_model or self._response_model
        elif isinstance(event, Stopped):
            self.stop_reason = event.reason

    def _block(self, index: int, kind: str) -> _Block:
        block = self._blocks.get(index)
        if block is None:
            block = self._blocks[index] = _Block(kind)
        return block

    @property
    def started(self) -> bool:
        """True once any block exists."""
        return bool(self._blocks)

    def message(
        self,
        stop_reason: StopReason,
        *,
        error_message: str | None = None,
        thinking_level: str | None = None,
        duration_ms: int | None = None,
        usage: Usage | None = None,
    ) -> AssistantMessage:
        """The answer so far, with the given end. `usage` replaces the reported one (priced)."""
        content = tuple(
            made
            for block in self._blocks.values()  # in the order in which they began
            if (made := block.content()) is not None
        )
        used = usage or self.usage or Usage()
        return AssistantMessage(
            content=content,
            api=self._api,
            provider=self._provider,
            model=self._model,
            usage=used,
            stop_reason=stop_reason,
            timestamp=self._timestamp,
            response_model=self._response_model or UNSET,
            response_id=self._response_id or UNSET,
            error_message=UNSET if error_message is None else error_message,
            thinking_level=UNSET if thinking_level is None else thinking_level,
            duration_ms=UNSET if duration_ms is None else duration_ms,
        )
