"""Between our requests and litellm: keywords of `acompletion`, and its chunks as stream events.

litellm speaks OpenAI's chat format on both ends and adds fields of its own: thinking blocks with
signatures, and Gemini's thought signatures, which it hides in call ids. Here they are taken apart
and put back. Pure: no process, no library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import UNSET

from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    ContentList,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    text_of,
)
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import (
    ResponseStarted,
    Stopped,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolCallDone,
    ToolCallStarted,
    UsageReport,
)
from pi_tui.providers.custom_models import litellm_model
from pi_tui.providers.errors import incomplete, refused, window_exceeded
from pi_tui.providers.request_limits import output_limit_tokens
from pi_tui.providers.tool_calls import CallIds, ToolCallAssembler
from pi_tui.providers.tool_schemas import function_tools
from pi_tui.providers.whole_characters import WholeCharacters

_THOUGHT_SEPARATOR = "__thought__"
_EFFORTS = {"minimal": "minimal", "low": "low", "medium": "medium"}


# ---------------------------------------------------------------- request


def completion_params(
    request: ModelRequest, *, api_key: str, headers: Mapping[str, str], timeout_s: float
) -> dict[str, JSON]:
    """Keywords for `litellm.acompletion`, without `stream`."""
    model = request.model
    params: dict[str, JSON] = {
        "model": litellm_model(model),
        "messages": _messages(request),
        "max_tokens": output_limit_tokens(request),
        "stream_options": {"include_usage": True},
        "timeout": timeout_s,
        "num_retries": 0,
        "max_retries": 0,
    }
    if request.tools:
        params["tools"] = function_tools(request.tools)
    effort = _effort(request)
    if effort:
        params["reasoning_effort"] = effort
    if request.cache and "claude" in params["model"].lower():
        points: list[dict[str, JSON]] = [{"location": "message", "index": -1}]
        if request.system:
            points.insert(0, {"location": "message", "role": "system"})
        params["cache_control_injection_points"] = points
    if api_key:
        params["api_key"] = api_key
    if model.base_url:
        params["api_base"] = model.base_url
    if headers:
        params["extra_headers"] = dict(headers)
    extra = model.compat.get("litellmParams")
    return {**params, **extra} if isinstance(extra, dict) else params


def _effort(request: ModelRequest) -> str:
    """The word for the thinking level; "" leaves it to the model."""
    model, level = request.model, request.thinking_level
    if not model.reasoning:
        return ""
    if level in model.thinking_level_map:
        return model.thinking_level_map[level] or ""
    return "" if level == "off" else _EFFORTS.get(level, "high")


def _messages(request: ModelRequest) -> list[dict[str, JSON]]:
    made: list[dict[str, JSON]] = []
    if request.system:
        made.append({"role": "system", "content": request.system})
    images: list[dict[str, JSON]] = []
    for message in request.messages:
        if isinstance(message, ToolResultMessage):
            made.append(_result(message))
            images += _images(message.content, request.model)
            continue
        if images:  # chat tool messages carry text only; their pictures follow them
            made.append({"role": "user", "content": images})
            images = []
        if isinstance(message, UserMessage):
            made.append({"role": "user", "content": _user_content(message, request.model)})
        else:
            answer = _assistant(message, request.model)
            if answer is not None:
                made.append(answer)
    if images:
        made.append({"role": "user", "content": images})
    return made


def _user_content(message: UserMessage, model: Model) -> JSON:
    images = [] if isinstance(message.content, str) else _images(message.content, model)
    text = text_of(message.content)
    if not images:
        return text or "(empty message)"
    return [*([{"type": "text", "text": text}] if text else []), *images]


def _images(content: ContentList, model: Model) -> list[dict[str, JSON]]:
    if "image" not in model.input:
        return []
    return [
        {
            "type": "image_url",
            "image_url": {"url": f"data:{block.mime_type};base64,{block.data}"},
        }
        for block in content
        if isinstance(block, ImageContent)
    ]


def _result(message: ToolResultMessage) -> dict[str, JSON]:
    text = text_of(message.content)
    if not text:
        has_image = any(isinstance(block, ImageContent) for block in message.content)
        text = "(image)" if has_image else "(no output)"
    return {
        "role": "tool",
        "tool_call_id": message.tool_call_id,
        "name": message.tool_name,
        "content": text,
    }


def _assistant(message: AssistantMessage, model: Model) -> dict[str, JSON] | None:
    """One earlier answer; None when nothing of it can be sent.

    Signed thinking goes back only to the model that made it; other thinking is left out.
    """
    same = message.provider == model.provider and message.model == model.id
    text = "\n".join(b.text for b in message.content if isinstance(b, TextContent) and b.text)
    calls = [_call(call, same) for call in message.tool_calls]
    if not text and not calls:
        return None
    made: dict[str, JSON] = {"role": "assistant", "content": text or None}
    if calls:
        made["tool_calls"] = calls
    blocks = [_thinking(b) for b in message.content if isinstance(b, ThinkingContent)]
    signed = [block for block in blocks if block is not None]
    if same and signed:
        made["thinking_blocks"] = signed
    return made


def _thinking(block: ThinkingContent) -> dict[str, JSON] | None:
    if block.thinking_signature is UNSET or not block.thinking_signature:
        return None
    if block.redacted is True:
        return {"type": "redacted_thinking", "data": block.thinking_signature}
    return {
        "type": "thinking",
        "thinking": block.thinking,
        "signature": block.thinking_signature,
    }


def _call(call: ToolCall, same_model: bool) -> dict[str, JSON]:
    made: dict[str, JSON] = {
        "id": call.id,
        "type": "function",
        "function": {
            "name": call.name,
            "arguments": json.dumps(call.arguments, ensure_ascii=False),
        },
    }
    if same_model and call.thought_signature is not UNSET:
        made["provider_specific_fields"] = {"thought_signature": call.thought_signature}
    return made


# ---------------------------------------------------------------- answer


class ChunkReader:
    """Turns the chunks of one answer into stream events.

    `feed` each chunk, then `finish`; both raise ProviderError for an answer that is none.
    """

    def __init__(self, request: ModelRequest) -> None:
        self._provider = request.model.provider
        self._calls = ToolCallAssembler(self._begin_call, CallIds.for_request(request))
        self._characters = WholeCharacters()
        self._next_index = 0
        self._kind = ""
        self._index = 0
        self._signature: list[str] = []
        self._signatures: dict[str, str] = {}
        self._finish_reason = ""
        self._started = False

    def feed(self, chunk: Mapping[str, JSON]) -> Iterator[StreamEvent]:
        """Take in one chunk; halves of surrogate pairs may be in it."""
        return self._characters.hand_on(self._read(chunk))

    def _read(self, chunk: Mapping[str, JSON]) -> Iterator[StreamEvent]:
        if not self._started:
            self._started = True
            yield ResponseStarted(str(chunk.get("id") or ""), str(chunk.get("model") or ""))
        for choice in chunk.get("choices") or ():
            delta = choice.get("delta") or {}
            yield from self._thought(delta)
            text = delta.get("content")
            if isinstance(text, str) and text:
                yield from self._switch("text")
                yield TextDelta(self._index, text)
            for part in delta.get("tool_calls") or ():
                yield from self._call_part(part)
            reason = choice.get("finish_reason")
            if isinstance(reason, str) and reason:
                self._finish_reason = reason
        usage = _usage(chunk.get("usage"))
        if usage is not None:
            yield UsageReport(usage)

    def finish(self, *, torn: bool = False) -> Iterator[StreamEvent]:
        """End the answer. Raises ProviderError when it has no end, or none worth keeping.

        `torn`: the end was made up by litellm.
        """
        return self._characters.hand_on(self._end(torn))

    def _end(self, torn: bool) -> Iterator[StreamEvent]:
        reason = self._finish_reason
        if not reason or torn:
            raise incomplete(self._provider)
        if reason == "model_context_window_exceeded":
            raise window_exceeded(self._provider)
        if reason in ("content_filter", "refusal"):
            raise refused(self._provider, "content filter")
        yield from self._close_thinking()
        for event in self._calls.finish(cut=reason == "length"):
            yield self._with_signature(event)
        if reason == "length":
            yield Stopped("length")
        else:
            yield Stopped("stop" if self._calls.is_empty else "toolUse")

    def _thought(self, delta: Mapping[str, JSON]) -> Iterator[StreamEvent]:
        blocks = [b for b in delta.get("thinking_blocks") or () if isinstance(b, dict)]
        text = delta.get("reasoning_content")
        if not isinstance(text, str):
            text = "".join(str(b.get("thinking") or "") for b in blocks)
        if text:
            if self._signature:
                yield from self._close_thinking()
            yield from self._switch("thinking")
            yield ThinkingDelta(self._index, text)
        for block in blocks:
            if block.get("type") == "redacted_thinking" and block.get("data"):
                yield from self._close_thinking()
                yield from self._switch("thinking")
                yield ThinkingSigned(self._index, str(block["data"]), redacted=True)
                self._kind = ""
            elif block.get("signature"):
                yield from self._switch("thinking")
                self._signature.append(str(block["signature"]))

    def _close_thinking(self) -> Iterator[StreamEvent]:
        """A signature counts as whole only once something follows it."""
        if self._signature:
            yield ThinkingSigned(self._index, "".join(self._signature))
            self._signature = []
        if self._kind == "thinking":
            self._kind = ""

    def _switch(self, kind: str) -> Iterator[StreamEvent]:
        """Begin a block of another kind; text and thinking go on in the block they have."""
        if self._kind == kind:
            return
        if self._kind == "thinking":
            yield from self._close_thinking()
        self._kind = kind
        self._index = self._take_index()

    def _take_index(self) -> int:
        self._next_index += 1
        return self._next_index - 1

    def _begin_call(self) -> int:
        self._kind = ""
        return self._take_index()

    def _call_part(self, part: JSON) -> Iterator[StreamEvent]:
        yield from self._close_thinking()
        if not isinstance(part, dict):
            return
        raw_id, _, hidden = str(part.get("id") or "").partition(_THOUGHT_SEPARATOR)
        fields = part.get("provider_specific_fields")
        given = fields.get("thought_signature") if isinstance(fields, dict) else None
        signature = given if isinstance(given, str) and given else hidden
        for event in self._calls.feed({**part, "id": raw_id or None}):
            if isinstance(event, ToolCallStarted) and signature:
                self._signatures[event.id] = signature
            yield event

    def _with_signature(self, event: StreamEvent) -> StreamEvent:
        if not isinstance(event, ToolCallDone) or event.call.id not in self._signatures:
            return event
        call = msgspec.structs.replace(
            event.call, thought_signature=self._signatures[event.call.id]
        )
        return ToolCallDone(event.index, call)


def _usage(data: JSON) -> Usage | None:
    """Counts of a chunk; litellm's input includes what the cache served or took."""
    if not isinstance(data, dict):
        return None
    prompt, output = _count(data, "prompt_tokens"), _count(data, "completion_tokens")
    if not prompt and not output:
        return None
    details = data.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    read = _count(data, "cache_read_input_tokens") or _count(details, "cached_tokens")
    write = _count(data, "cache_creation_input_tokens") or _count(details, "cache_creation_tokens")
    read = min(read, prompt)
    write = min(write, prompt - read)
    out_details = data.get("completion_tokens_details")
    reasoning = _count(out_details, "reasoning_tokens") if isinstance(out_details, dict) else 0
    return Usage(
        input=prompt - read - write,
        output=output,
        cache_read=read,
        cache_write=write,
        total_tokens=prompt + output,
        reasoning=reasoning or UNSET,
    )


def _count(data: Mapping[str, JSON], name: str) -> int:
    value = data.get(name)
    return int(value) if isinstance(value, int | float) and value > 0 else 0
