"""A `ModelRequest` as the JSON body of an Anthropic messages request. Pure; no HTTP here.

The history is already valid (every call answered, ids unique and legal). Thinking goes back only
to the model that made it, and only whole: text, signature and order untouched. Cache marks stand
on the system text, the last tool and the last block of the last user message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.providers.openai_request import NO_IMAGES_TEXT, NO_OUTPUT_TEXT
from pi_tui.providers.request_limits import output_limit_tokens

THINKING_BUDGET_TOKENS = {
    "minimal": 1024,
    "low": 4096,
    "medium": 10240,
    "high": 20480,
    "xhigh": 32768,
    "max": 49152,
}
_LEAST_BUDGET_TOKENS = 1024
_LEAST_ANSWER_TOKENS = 1024
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class AnthropicCompat(Struct, frozen=True):
    """How to word a request for one server and model.

    `adaptive`: the model plans its thinking itself, told only an effort; budgets are refused.
    `cache_tools`: cache marks on tools are accepted.
    """

    adaptive: bool = False
    version: tuple[int, int] = (0, 0)
    cache_tools: bool = True
    allow_empty_signature: bool = False


def anthropic_compat(model_id: str, overrides: dict[str, JSON]) -> AnthropicCompat:
    """Defaults told by the model's name, with the overrides of the models file."""
    version = claude_version(model_id)
    forced = overrides.get("forceAdaptiveThinking")
    return AnthropicCompat(
        adaptive=forced if isinstance(forced, bool) else version >= (4, 6),
        version=version,
        cache_tools=overrides.get("supportsCacheControlOnTools") is not False,
        allow_empty_signature=overrides.get("allowEmptySignature") is True,
    )


def claude_version(model_id: str) -> tuple[int, int]:
    """(major, minor) of names like claude-opus-4-7; (0, 0) for names of another form."""
    match = re.search(r"claude-[a-z]+-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)", model_id)
    if match is None:
        return (0, 0)
    return int(match.group(1)), int(match.group(2) or 0)


def messages_payload(
    request: ModelRequest, compat: AnthropicCompat, *, long_cache: bool = False
) -> dict[str, JSON]:
    """The body of the request. `long_cache`: cached prefixes live an hour, not five minutes."""
    mark: dict[str, JSON] = {"type": "ephemeral"}
    if long_cache:
        mark["ttl"] = "1h"
    cached = request.cache
    payload: dict[str, JSON] = {
        "model": request.model.id,
        "max_tokens": output_limit_tokens(request),
        "messages": _messages(request, compat, mark if cached else None),
        "stream": True,
    }
    if request.system.strip():
        block: dict[str, JSON] = {"type": "text", "text": request.system}
        payload["system"] = [{**block, "cache_control": mark} if cached else block]
    if request.tools:
        tools: list[JSON] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": {"type": "object", **tool.parameters},
            }
            for tool in request.tools
        ]
        if cached and compat.cache_tools:
            tools[-1]["cache_control"] = mark
        payload["tools"] = tools
    payload.update(_thinking(request, compat, payload["max_tokens"]))
    return payload


# ---------------------------------------------------------------- thinking


def _thinking(request: ModelRequest, compat: AnthropicCompat, limit: int) -> dict[str, JSON]:
    """Thinking parameters, with the output limit raised above a thinking budget."""
    model, level = request.model, request.thinking_level
    if not model.reasoning:
        return {}
    word = model.thinking_level_map.get(level)
    if level == "off":
        return {"thinking": {"type": word}} if word else {}
    if level in model.thinking_level_map and word is None:
        return {}  # the model does not offer this level
    if compat.adaptive:
        thinking: dict[str, JSON] = {"type": "adaptive"}
        if compat.version >= (4, 7):
            thinking["display"] = "summarized"  # these leave the text out unless asked
        return {
            "thinking": thinking,
            "output_config": {"effort": word or _effort(level, compat.version)},
        }
    if _has_open_calls_without_thinking(request, compat):
        return {}
    budget = int(word) if word and word.isdigit() else THINKING_BUDGET_TOKENS[level]
    limit = min(max(limit, budget + _answer_tokens(limit)), model.max_tokens)
    budget = min(budget, limit - _LEAST_ANSWER_TOKENS)
    if budget < _LEAST_BUDGET_TOKENS:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}, "max_tokens": limit}


def _answer_tokens(limit: int) -> int:
    return max(_LEAST_ANSWER_TOKENS, min(limit, 8192))


def _effort(level: str, version: tuple[int, int]) -> str:
    if level == "xhigh" and (0, 0) < version < (4, 7):
        return "high"  # these know low, medium, high and max
    return "low" if level == "minimal" else level


def _has_open_calls_without_thinking(request: ModelRequest, compat: AnthropicCompat) -> bool:
    """True in the middle of a tool loop whose first answer has no thinking that we can send.

    With a thinking budget such a request is refused, so this one goes without thinking.
    """
    first: AssistantMessage | None = None
    for message in reversed(request.messages):
        if isinstance(message, AssistantMessage):
            if not message.tool_calls:
                break
            first = message
        elif isinstance(message, UserMessage) and first is not None:
            break
    if first is None:
        return False
    blocks = _assistant_blocks(first, request.model, compat)
    return bool(blocks) and blocks[0]["type"] not in ("thinking", "redacted_thinking")


# ---------------------------------------------------------------- messages


def _messages(
    request: ModelRequest, compat: AnthropicCompat, mark: dict[str, JSON] | None
) -> list[JSON]:
    sees_images = "image" in request.model.input
    made: list[JSON] = []
    results: list[JSON] | None = None
    for message in request.messages:
        if isinstance(message, ToolResultMessage):
            if results is None:
                results = []
                made.append({"role": "user", "content": results})
            results.append(_tool_result(message, sees_images))
            continue
        results = None
        if isinstance(message, UserMessage):
            role, blocks = "user", _user_blocks(message, sees_images)
        else:
            role, blocks = "assistant", _assistant_blocks(message, request.model, compat)
        if blocks:
            made.append({"role": role, "content": blocks})
    if mark is not None:
        last = next((m for m in reversed(made) if m["role"] == "user"), None)
        if last is not None:
            last["content"][-1] = {**last["content"][-1], "cache_control": mark}
    return made


def _user_blocks(message: UserMessage, sees_images: bool) -> list[JSON]:
    if isinstance(message.content, str):
        return [_text(message.content)] if message.content.strip() else []
    return _plain_blocks(message.content, sees_images)


def _plain_blocks(content: Iterable[Content], sees_images: bool) -> list[JSON]:
    """Text and images; blank texts, which are refused, are left out."""
    blocks: list[JSON] = []
    for block in content:
        if isinstance(block, TextContent) and block.text.strip():
            blocks.append(_text(block.text))
        elif isinstance(block, ImageContent):
            blocks.append(_image(block) if sees_images else _text(NO_IMAGES_TEXT))
    return blocks


def _assistant_blocks(
    message: AssistantMessage, model: Model, compat: AnthropicCompat
) -> list[dict[str, JSON]]:
    """One earlier answer; empty when nothing but thinking is left of it."""
    own = message.provider == model.provider and message.model == model.id
    blocks: list[dict[str, JSON]] = []
    for block in message.content:
        if isinstance(block, TextContent) and block.text.strip():
            blocks.append(_text(block.text))
        elif isinstance(block, ToolCall):
            blocks.append(
                {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
            )
        elif isinstance(block, ThinkingContent) and own:
            thinking = _thinking_block(block, compat)
            if thinking is not None:
                blocks.append(thinking)
    if all(block["type"] in ("thinking", "redacted_thinking") for block in blocks):
        return []
    while blocks[-1]["type"] in ("thinking", "redacted_thinking"):
        blocks.pop()  # an answer that was cut after it; thinking may not stand last
    return blocks


def _thinking_block(block: ThinkingContent, compat: AnthropicCompat) -> dict[str, JSON] | None:
    signature = block.thinking_signature
    if not isinstance(signature, str) or not signature:
        if compat.allow_empty_signature and block.thinking:
            return {"type": "thinking", "thinking": block.thinking, "signature": ""}
        return None
    if block.redacted is True:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": block.thinking, "signature": signature}


def _tool_result(message: ToolResultMessage, sees_images: bool) -> dict[str, JSON]:
    made: dict[str, JSON] = {
        "type": "tool_result",
        "tool_use_id": message.tool_call_id,
        "content": _plain_blocks(message.content, sees_images) or [_text(NO_OUTPUT_TEXT)],
    }
    if message.is_error:
        made["is_error"] = True
    return made


def _text(text: str) -> dict[str, JSON]:
    return {"type": "text", "text": text}


def _image(block: ImageContent) -> dict[str, JSON]:
    if block.mime_type not in _IMAGE_TYPES:
        return _text(f"(an image of the type {block.mime_type or 'unknown'} was left out)")
    source = {"type": "base64", "media_type": block.mime_type, "data": block.data}
    return {"type": "image", "source": source}
