"""Events of an Anthropic messages stream as stream events. Pure; fed with decoded events.

A signature is passed on only when its block ended: half a signature would make the server refuse
the whole conversation later. Usage counts that a later event leaves out keep their earlier value.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from pi_tui.core.json_text import decode_json, encode_json, mended
from pi_tui.core.messages import INVALID_JSON_KEY, JSON, StopReason, ToolCall, Usage
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
from pi_tui.providers.errors import classify, incomplete, refused, window_exceeded
from pi_tui.providers.tool_calls import CallIds, parse_calls
from pi_tui.providers.whole_characters import WholeCharacters
from pi_tui.providers.wire_answer import END_MARK

_USAGE_NAMES = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class _Block(Struct):
    """One content block while it grows. `index` counts our blocks, not the server's."""

    index: int
    kind: str
    raw_id: str = ""
    id: str = ""
    name: str = ""
    input: JSON = None
    pieces: list[str] = []
    signature: list[str] = []


class MessagesStream:
    """Turns the events of one answer into ours."""

    def __init__(self, *, provider: str, model_id: str, ids: CallIds) -> None:
        self._provider = provider
        self._model_id = model_id
        self._ids = ids
        self._open: dict[int, _Block] = {}
        self._characters = WholeCharacters()
        self._blocks = 0
        self._done: list[tuple[str, str, dict[str, JSON]]] = []
        self._unfinished: list[ToolCallDone] = []
        self._counts: dict[str, int] = {}
        self._stop: str | None = None
        self._has_content = False

    @property
    def has_finish(self) -> bool:
        """True once the server said why the answer ended."""
        return self._stop is not None

    def decode(self, name: str, data: str) -> JSON:
        """Read one event; pings are None, whatever they carry. Raises ValueError."""
        event = None if name == "ping" else decode_json(data, keep_halves=True)
        is_end = isinstance(event, dict) and event.get("type") == "message_stop"
        return END_MARK if is_end else event

    def feed(self, event: JSON) -> Iterator[StreamEvent]:
        """Take in one decoded event; unknown ones, and pings, say nothing."""
        return self._characters.hand_on(self._read(event))

    def _read(self, event: JSON) -> Iterator[StreamEvent]:
        if not isinstance(event, dict):
            return
        match event.get("type"):
            case "content_block_delta":
                yield from self._delta(event)
            case "content_block_start":
                yield from self._start_block(event)
            case "content_block_stop":
                yield from self._stop_block(self._open.pop(_int(event.get("index")), None))
            case "message_start":
                yield from self._start(event.get("message"))
            case "message_delta":
                delta = event.get("delta")
                reason = delta.get("stop_reason") if isinstance(delta, dict) else None
                if isinstance(reason, str) and reason:
                    self._stop = reason
                yield from self._usage(event.get("usage"))
            case "error":
                raise classify(None, encode_json(event).decode(), {}, self._provider)
            case None if event.get("error"):
                raise classify(None, encode_json(event).decode(), {}, self._provider)

    def finish(self, *, ended_by_server: bool) -> Iterator[StreamEvent]:
        """Yield what is left and the end. `ended_by_server`: `message_stop` came.

        Raises ProviderError when the answer was cut, refused or did not fit.
        """
        return self._characters.hand_on(self._end(ended_by_server))

    def _end(self, ended_by_server: bool) -> Iterator[StreamEvent]:
        reason = self._stop or ""
        if reason == "refusal":
            raise refused(self._provider)
        if reason == "model_context_window_exceeded":
            raise window_exceeded(self._provider)
        if not reason and not (ended_by_server and (self._has_content or self._blocks)):
            raise incomplete(self._provider)
        cut = reason == "max_tokens"
        for block in list(self._open.values()):
            if block.kind == "tool_use":  # some gateways do not close their blocks
                yield from self._stop_block(block)
        if not cut:
            yield from self._unfinished
        yield Stopped(self._reason(cut))

    def _reason(self, cut: bool) -> StopReason:
        if cut:
            return "length"
        return "toolUse" if self._done or self._unfinished else "stop"

    def _start(self, message: JSON) -> Iterator[StreamEvent]:
        if not isinstance(message, dict):
            return
        named = _str(message.get("model"))
        yield ResponseStarted(_str(message.get("id")), "" if named == self._model_id else named)
        yield from self._usage(message.get("usage"))

    def _usage(self, data: JSON) -> Iterator[StreamEvent]:
        if not isinstance(data, dict):
            return
        for name in _USAGE_NAMES:
            count = _int(data.get(name))
            if count:
                self._counts[name] = count
        if not self._counts:
            return  # all zeros means unknown
        given, made, read, written = (self._counts.get(name, 0) for name in _USAGE_NAMES)
        yield UsageReport(
            Usage(
                input=given,
                output=made,
                cache_read=read,
                cache_write=written,
                total_tokens=given + made + read + written,
            )
        )

    def _start_block(self, event: dict[str, JSON]) -> Iterator[StreamEvent]:
        data = event.get("content_block")
        data = data if isinstance(data, dict) else {}
        kind = _str(data.get("type"))
        if kind not in ("text", "thinking", "redacted_thinking", "tool_use"):
            return  # blocks of the server's own tools
        number = _int(event.get("index"))
        # An index that is still open: the server forgot to close it, or counts wrongly.
        yield from self._stop_block(self._open.pop(number, None))
        block = _Block(self._blocks, kind)
        self._blocks += 1
        self._open[number] = block
        if kind == "text" and (text := _str(data.get("text"))):
            self._has_content = True
            yield TextDelta(block.index, text)
        elif kind == "thinking":
            block.signature.append(_str(data.get("signature")))
            if thought := _str(data.get("thinking")):
                yield ThinkingDelta(block.index, thought)
        elif kind == "redacted_thinking":
            block.signature.append(_str(data.get("data")))
        elif kind == "tool_use":
            block.raw_id, block.name = _str(data.get("id")), _str(data.get("name"))
            block.input = data.get("input")
            block.id = self._ids.give(block.raw_id)
            yield ToolCallStarted(block.index, block.id, block.name)

    def _delta(self, event: dict[str, JSON]) -> Iterator[StreamEvent]:
        delta = event.get("delta")
        block = self._open.get(_int(event.get("index")))
        if block is None or not isinstance(delta, dict):
            return
        match delta.get("type"):
            case "text_delta" if text := _str(delta.get("text")):
                self._has_content = True
                yield TextDelta(block.index, text)
            case "thinking_delta" if text := _str(delta.get("thinking")):
                yield ThinkingDelta(block.index, text)
            case "input_json_delta" if text := _str(delta.get("partial_json")):
                block.pieces.append(text)
                yield ToolCallDelta(block.index, text)
            case "signature_delta":
                block.signature.append(_str(delta.get("signature")))

    def _stop_block(self, block: _Block | None) -> Iterator[StreamEvent]:
        if block is None:
            return
        if block.kind in ("thinking", "redacted_thinking"):
            signature = "".join(block.signature)
            if signature:
                yield ThinkingSigned(
                    block.index, signature, redacted=block.kind == "redacted_thinking"
                )
        elif block.kind == "tool_use" and block.name:
            yield from self._call(block)

    def _call(self, block: _Block) -> Iterator[StreamEvent]:
        text = "".join(block.pieces)
        if not text.strip() and isinstance(block.input, dict):
            several = [mended(block.input)]  # the whole input came with the start of the block
        else:
            several = parse_calls(text)
        for number, arguments in enumerate(several):
            key = (block.raw_id, block.name, arguments)
            if block.raw_id and key in self._done:
                continue  # the same call, sent twice
            index, call_id = block.index, block.id
            if number:
                index, call_id = self._blocks, self._ids.give(block.raw_id)
                self._blocks += 1
                yield ToolCallStarted(index, call_id, block.name)
            done = ToolCallDone(index, ToolCall(call_id, block.name, arguments))
            if INVALID_JSON_KEY in arguments:
                self._unfinished.append(done)  # left out when the output limit was the reason
                continue
            self._done.append(key)
            yield done


def _str(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _int(value: JSON) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
