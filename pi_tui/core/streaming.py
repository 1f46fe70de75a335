"""What a provider says while it answers, and the builder that turns it into one message.

Content indexes count the blocks of one answer from 0 in the order in which they began; deltas of
different blocks may interleave. A provider sends a signature only once it is whole, a finished call
as `ToolCallDone`, and ends with `Stopped`; anything else it raises as `ProviderError`.
"""

from __future__ import annotations

from typing import TypeAlias

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


class TextDelta(Struct, frozen=True):
    index: int
    text: str


class ThinkingDelta(Struct, frozen=True):
    index: int
    text: str


class ThinkingSigned(Struct, frozen=True):
    """The complete signature of a thinking block; `redacted`: it carries the encrypted block."""

    index: int
    signature: str
    redacted: bool = False


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


class UsageReport(Struct, frozen=True):
    """The newest counts; a later report replaces an earlier one. Cost is filled in by the loop."""

    usage: Usage


class Stopped(Struct, frozen=True):
    reason: StopReason


StreamEvent: TypeAlias = (
    ResponseStarted
    | TextDelta
    | ThinkingDelta
    | ThinkingSigned
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallDone
    | UsageReport
    | Stopped
)


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
        """Take in one event."""
        if isinstance(event, TextDelta):
            self._block(event.index, "text").pieces.append(event.text)
        elif isinstance(event, ThinkingDelta):
            self._block(event.index, "thinking").pieces.append(event.text)
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
        else:
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
            for _, block in sorted(self._blocks.items())
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
