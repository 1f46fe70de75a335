"""A `ModelRequest` as the JSON body of a chat-completions request. Pure; no HTTP here.

The history is already valid (every call answered, ids unique and legal); what is left to do is each
server's own wishes, which `OpenAICompat` holds. Thinking of earlier answers is sent only where a
server needs it. Equal requests give equal bytes, so that prompt caches hit.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Iterable, Sequence
from typing import Literal

from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    Content,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
)
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.providers.openai_compat import OpenAICompat
from pi_tui.providers.request_limits import output_limit_tokens
from pi_tui.providers.tool_schemas import function_tools

NO_IMAGES_TEXT = "(an image was left out: this model cannot see images)"
NO_OUTPUT_TEXT = "(no output)"
IMAGES_FOLLOW_TEXT = "(the images of the tool result follow)"
_BRIDGE_TEXT = "Noted."

_Role = Literal["system", "developer"]


def chat_payload(request: ModelRequest, compat: OpenAICompat) -> dict[str, JSON]:
    """The body of the request."""
    payload: dict[str, JSON] = {
        "model": request.model.id,
        "messages": _messages(request, compat),
        "stream": True,
    }
    if compat.supports_usage_in_streaming:
        payload["stream_options"] = {"include_usage": True}
    if compat.supports_store:
        payload["store"] = False
    if compat.supports_prompt_cache_key and request.cache and request.session_id:
        payload["prompt_cache_key"] = request.session_id[:64]
    payload[compat.max_tokens_field] = output_limit_tokens(request)
    if request.tools:
        payload["tools"] = _tools(request, compat)
    payload.update(_thinking(request, compat))
    if compat.open_router_routing:
        payload["provider"] = compat.open_router_routing
    if compat.vercel_gateway_routing:
        payload["providerOptions"] = {"gateway": compat.vercel_gateway_routing}
    return payload


def _tools(request: ModelRequest, compat: OpenAICompat) -> list[JSON]:
    tools: list[JSON] = [*function_tools(request.tools)]
    if request.cache and compat.cache_control_format == "anthropic":
        tools[-1] = {**tools[-1], "cache_control": {"type": "ephemeral"}}
    return tools


# ---------------------------------------------------------------- thinking


def effort_for(model: Model, level: str, lowest: str = "low") -> str | None:
    """The server's word for a thinking level; None when the model does not offer the level.

    Without a map, the levels above high mean high and the one below low means `lowest`.
    """
    if level in model.thinking_level_map:
        return model.thinking_level_map[level]
    if level == "off":
        return None
    return {"minimal": lowest, "xhigh": "high", "max": "high"}.get(level, level)


def _thinking(request: ModelRequest, compat: OpenAICompat) -> dict[str, JSON]:
    """The parameters that ask for thinking, or for none, in the server's own way."""
    model, level = request.model, request.thinking_level
    if not model.reasoning:
        return {}
    on = level != "off"
    effort = effort_for(model, level, compat.lowest_effort)
    asked: dict[str, JSON] = {}
    if compat.supports_reasoning_effort and effort is not None:
        asked = {"reasoning_effort": effort}
    match compat.thinking_format:
        case "openrouter":
            return {"reasoning": {"effort": effort}} if effort is not None else {}
        case "together":
            return {"reasoning": {"enabled": on}, **asked}
        case "deepseek" | "zai":
            return {"thinking": {"type": "enabled" if on else "disabled"}, **asked}
        case "qwen":
            return {"enable_thinking": on, **asked}
        case "qwen-chat-template":
            kwargs = {"enable_thinking": on, "preserve_thinking": True}
            return {"chat_template_kwargs": {**kwargs, **_template(compat, on, effort)}, **asked}
        case "chat-template":
            made = _template(compat, on, effort) or {"enable_thinking": on}
            return {"chat_template_kwargs": made, **asked}
        case "none":
            return {}
        case _:
            return asked


def _template(compat: OpenAICompat, on: bool, effort: str | None) -> dict[str, JSON]:
    """Template arguments of the models file, with our thinking values in their places."""
    places: dict[str, JSON] = {"thinking.enabled": on, "thinking.effort": effort}
    made: dict[str, JSON] = {}
    for name, value in compat.chat_template_kwargs.items():
        place = value.get("$var") if isinstance(value, dict) else None
        made[name] = places.get(place) if isinstance(place, str) else value
    return {name: value for name, value in made.items() if value is not None}


# ---------------------------------------------------------------- messages


def _messages(request: ModelRequest, compat: OpenAICompat) -> list[JSON]:
    sees_images = "image" in request.model.input
    made: list[JSON] = []
    if request.system:
        reasoning = request.model.reasoning and compat.supports_developer_role
        role: _Role = "developer" if reasoning else "system"
        made.append({"role": role, "content": request.system})
    pending_images: list[JSON] = []
    previous_was_result = False
    for message in request.messages:
        if isinstance(message, ToolResultMessage):
            result, images = _tool_result(message, compat, sees_images)
            made.append(result)
            pending_images += images
            previous_was_result = True
            continue
        if pending_images:
            made += _image_message(pending_images, compat)
            pending_images = []
        elif previous_was_result and isinstance(message, UserMessage):
            made += _bridge(compat)
        previous_was_result = False
        if isinstance(message, UserMessage):
            content = _user_content(message, sees_images)
            if content:
                made.append({"role": "user", "content": content})
        elif (answer := _assistant(message, request, compat)) is not None:
            made.append(answer)
    if pending_images:
        made += _image_message(pending_images, compat)
    if request.cache and compat.cache_control_format == "anthropic":
        _mark_for_cache(made)
    return made


def _bridge(compat: OpenAICompat) -> list[JSON]:
    if not compat.requires_assistant_after_tool_result:
        return []
    return [{"role": "assistant", "content": _BRIDGE_TEXT}]


def _image_message(images: Sequence[JSON], compat: OpenAICompat) -> list[JSON]:
    """Images of tool results, which role tool cannot carry, as a message of the user."""
    content = [{"type": "text", "text": IMAGES_FOLLOW_TEXT}, *images]
    return [*_bridge(compat), {"role": "user", "content": content}]


def _user_content(message: UserMessage, sees_images: bool) -> str | list[JSON]:
    """Plain text where there is only text: every server takes that."""
    if isinstance(message.content, str):
        return message.content
    if not any(isinstance(block, ImageContent) for block in message.content):
        return "\n".join(_texts(message.content))
    parts: list[JSON] = []
    for block in message.content:
        if isinstance(block, TextContent) and block.text:
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, ImageContent):
            parts.append(_image(block) if sees_images else _text_part(NO_IMAGES_TEXT))
    return parts


def _assistant(
    message: AssistantMessage, request: ModelRequest, compat: OpenAICompat
) -> dict[str, JSON] | None:
    """One earlier answer; None when nothing of it can be sent."""
    text = "".join(_texts(message.content))
    thinking = "\n\n".join(
        block.thinking
        for block in message.content
        if isinstance(block, ThinkingContent) and block.redacted is not True and block.thinking
    )
    calls = [
        {
            "id": _call_id(call.id, compat),
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(call.arguments, ensure_ascii=False),
            },
        }
        for call in message.tool_calls
    ]
    if not text.strip() and not calls:
        return None
    if compat.requires_thinking_as_text and thinking:
        text = f"{thinking}\n\n{text}" if text else thinking
    made: dict[str, JSON] = {"role": "assistant", "content": text or None}
    if compat.requires_reasoning_content_on_assistant_messages and request.thinking_level != "off":
        made["reasoning_content"] = thinking if _is_own(message, request.model) else ""
    if calls:
        made["tool_calls"] = calls
    return made


def _tool_result(
    message: ToolResultMessage, compat: OpenAICompat, sees_images: bool
) -> tuple[dict[str, JSON], list[JSON]]:
    """The tool message, and the images that must follow in a message of their own."""
    images = [block for block in message.content if isinstance(block, ImageContent)]
    text = "\n".join(_texts(message.content))
    if images and not sees_images:
        text = f"{text}\n{NO_IMAGES_TEXT}" if text else NO_IMAGES_TEXT
    if not text:
        text = IMAGES_FOLLOW_TEXT if images else NO_OUTPUT_TEXT
    made: dict[str, JSON] = {
        "role": "tool",
        "tool_call_id": _call_id(message.tool_call_id, compat),
        "content": text,
    }
    if compat.requires_tool_result_name and message.tool_name:
        made["name"] = message.tool_name
    return made, [_image(block) for block in images] if sees_images else []


def _is_own(message: AssistantMessage, model: Model) -> bool:
    return message.provider == model.provider and message.model == model.id


def _texts(content: Iterable[Content]) -> list[str]:
    return [block.text for block in content if isinstance(block, TextContent) and block.text]


def _text_part(text: str) -> JSON:
    return {"type": "text", "text": text}


def _image(block: ImageContent) -> JSON:
    url = f"data:{block.mime_type or 'image/png'};base64,{block.data}"
    return {"type": "image_url", "image_url": {"url": url}}


def _mark_for_cache(messages: list[JSON]) -> None:
    """Set Anthropic's marks on the system text and on the last user or tool text."""
    for role_names in (("system", "developer"), ("user", "tool")):
        found = next((m for m in reversed(messages) if m["role"] in role_names), None)
        if found is None:
            continue
        content = found["content"]
        parts = [_text_part(content)] if isinstance(content, str) else list(content)
        parts[-1] = {**parts[-1], "cache_control": {"type": "ephemeral"}}
        found["content"] = parts


_NINE = string.digits + string.ascii_letters


def _call_id(call_id: str, compat: OpenAICompat) -> str:
    """The id as the server takes it; the same for the call and its answer, every time."""
    if compat.tool_call_ids != "mistral" or (
        len(call_id) == 9 and call_id.isascii() and call_id.isalnum()
    ):
        return call_id
    number = int.from_bytes(hashlib.sha256(call_id.encode("utf-8", "replace")).digest()[:8], "big")
    digits = []
    for _ in range(9):
        number, rest = divmod(number, len(_NINE))
        digits.append(_NINE[rest])
    return "".join(digits)
