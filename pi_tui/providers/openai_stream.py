"""Chunks of a chat-completions stream as stream events. Pure; fed with decoded chunks.

Tolerant of what servers really send: chunks without choices, usage in four places, content as a
list, finish words nobody documented, an error in the middle of a good stream.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import UNSET

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.json_text import decode_json, encode_json
from pi_tui.core.messages import JSON, StopReason, Usage
from pi_tui.core.streaming import (
    ResponseStarted,
    Stopped,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from pi_tui.providers.errors import classify, incomplete, refused, window_exceeded
from pi_tui.providers.tool_calls import CallIds, ToolCallAssembler
from pi_tui.providers.whole_characters import WholeCharacters
from pi_tui.providers.wire_answer import END_MARK

_THINKING_FIELDS = ("reasoning_content", "reasoning", "reasoning_text", "thinking")
_FULL = frozenset({"length", "max_tokens", "max_output_tokens"})
_REFUSALS = frozenset({"content_filter", "refusal", "sensitive", "safety"})
_BROKEN = frozenset({"error", "network_error", "abort", "cancelled"})


class ChatStream:
    """Turns the chunks of one answer into events."""

    def __init__(self, *, provider: str, model_id: str, ids: CallIds) -> None:
        self._provider = provider
        self._model_id = model_id
        self._calls = ToolCallAssembler(self._next_block, ids)
        self._characters = WholeCharacters()
        self._blocks = 0
        self._open: tuple[str, int] = ("", -1)
        self._started = False
        self._has_content = False
        self._finish: str | None = None
        self._usage: Usage | None = None

    @property
    def has_finish(self) -> bool:
        """True once the server said why the answer ended."""
        return self._finish is not None

    def decode(self, name: str, data: str) -> JSON:
        """Read one chunk. Raises ValueError."""
        return END_MARK if data.strip() == "[DONE]" else decode_json(data, keep_halves=True)

    def feed(self, chunk: JSON) -> Iterator[StreamEvent]:
        """Take in one decoded chunk; halves of surrogate pairs may be in it."""
        return self._characters.hand_on(self._read(chunk))

    def _read(self, chunk: JSON) -> Iterator[StreamEvent]:
        if not isinstance(chunk, dict):
            return
        if chunk.get("error"):
            raise self._error(chunk)
        if not self._started:
            self._started = True
            named = _str(chunk.get("model"))
            yield ResponseStarted(_str(chunk.get("id")), "" if named == self._model_id else named)
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if isinstance(choice, dict):
            # A server that ignores `stream` sends the message whole.
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                yield from self._delta(delta)
            finish = choice.get("finish_reason")
            if isinstance(finish, str) and finish:
                self._finish = finish
        yield from self._usage_of(chunk, choice)

    def finish(self, *, ended_by_server: bool) -> Iterator[StreamEvent]:
        """Yield the whole calls and the end. `ended_by_server`: the end mark came, or none is due.

        Raises ProviderError when the answer was cut, refused or did not fit.
        """
        return self._characters.hand_on(self._end(ended_by_server))

    def _end(self, ended_by_server: bool) -> Iterator[StreamEvent]:
        reason = (self._finish or "").lower()
        if reason in _REFUSALS:
            raise refused(self._provider)
        if reason == "model_context_window_exceeded":
            raise window_exceeded(self._provider)
        has_any = self._has_content or not self._calls.is_empty
        if self._finish is None and not (ended_by_server and has_any):
            raise incomplete(self._provider)
        if reason in _BROKEN:
            raise ProviderError(
                "The model server broke the answer off because of a fault of its own.",
                kind=ErrorKind.OVERLOADED,
                provider=self._provider,
                hint="The conversation is safe; try again.",
            )
        cut = reason in _FULL
        yield from self._calls.finish(cut=cut)
        yield Stopped(self._stop_reason(cut))

    def _stop_reason(self, cut: bool) -> StopReason:
        if cut:
            return "length"
        return "stop" if self._calls.is_empty else "toolUse"

    def _next_block(self) -> int:
        self._blocks += 1
        self._open = ("", -1)
        return self._blocks - 1

    def _delta(self, delta: dict[str, JSON]) -> Iterator[StreamEvent]:
        for name in _THINKING_FIELDS:
            thought = _joined(delta.get(name))
            if thought:
                yield ThinkingDelta(self._block("thinking"), thought)
                break  # gateways repeat the same text under several names
        content = delta.get("content")
        if isinstance(content, list):
            yield from self._parts(content)
        elif isinstance(content, str) and content:
            yield self._text(content)
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            yield self._text(refusal)
        parts = delta.get("tool_calls")
        for part in parts if isinstance(parts, list) else ():
            yield from self._calls.feed(part)

    def _parts(self, content: list[JSON]) -> Iterator[StreamEvent]:
        """Content as a list: text parts, and Mistral's thinking parts with text parts inside."""
        for part in content:
            if isinstance(part, str):
                part = {"text": part}
            if not isinstance(part, dict):
                continue
            if part.get("type") == "thinking":
                thought = _joined(part.get("thinking"))
                if thought:
                    yield ThinkingDelta(self._block("thinking"), thought)
            elif text := _str(part.get("text")):
                yield self._text(text)

    def _text(self, text: str) -> TextDelta:
        self._has_content = True
        return TextDelta(self._block("text"), text)

    def _block(self, kind: str) -> int:
        if self._open[0] != kind:
            index = self._next_block()
            self._open = (kind, index)
        return self._open[1]

    def _usage_of(self, chunk: dict[str, JSON], choice: JSON) -> Iterator[StreamEvent]:
        found = chunk.get("usage")
        if not found and isinstance(choice, dict):
            found = choice.get("usage")
        if not found and isinstance(chunk.get("x_groq"), dict):
            found = chunk["x_groq"].get("usage")
        if isinstance(found, dict):
            usage = chat_usage(found)
            if usage is not None and usage != self._usage:
                self._usage = usage
                yield UsageReport(usage)

    def _error(self, chunk: dict[str, JSON]) -> ProviderError:
        return classify(None, encode_json(chunk).decode(), {}, self._provider)


def chat_usage(data: dict[str, JSON]) -> Usage | None:
    """Counts of a usage object; None when it holds nothing but zeros, which means unknown."""
    prompt, completion = _int(data.get("prompt_tokens")), _int(data.get("completion_tokens"))
    details = data.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cache_read = _int(details.get("cached_tokens")) or _int(data.get("prompt_cache_hit_tokens"))
    cache_write = _int(details.get("cache_write_tokens"))
    out_details = data.get("completion_tokens_details")
    out_details = out_details if isinstance(out_details, dict) else {}
    reasoning = _int(out_details.get("reasoning_tokens"))
    if not (prompt or completion or reasoning):
        return None
    if reasoning and _int(data.get("total_tokens")) == prompt + completion + reasoning:
        completion += reasoning  # some servers count reasoning beside the output
    cache_read = min(cache_read, prompt)
    cache_write = min(cache_write, prompt - cache_read)
    return Usage(
        input=prompt - cache_read - cache_write,
        output=completion,
        cache_read=cache_read,
        cache_write=cache_write,
        total_tokens=prompt + completion,
        reasoning=reasoning or UNSET,
    )


def _joined(value: JSON) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(
            part if isinstance(part, str) else _str(part.get("text"))
            for part in value
            if isinstance(part, str | dict)
        )
    return value if isinstance(value, str) else ""


def _str(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _int(value: JSON) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
