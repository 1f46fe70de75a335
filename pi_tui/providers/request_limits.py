"""How many tokens an answer may take, so that question and answer fit the window together. Pure."""

from __future__ import annotations

import msgspec

from pi_tui.core.messages import AssistantMessage, ImageContent, TextContent, ThinkingContent
from pi_tui.core.protocols import ModelRequest, RequestMessage

_CHARS_PER_TOKEN = 3.5
_IMAGE_TOKENS = 1200
_LEAST_TOKENS = 4096


def output_limit_tokens(request: ModelRequest) -> int:
    """The output limit to ask for.

    Several servers refuse a request whose input and output limit together exceed the window, so
    near its end the limit is what is left, but never less than a useful answer: then the request is
    truly too long and the server may say so.
    """
    wanted = request.model.max_tokens
    if request.max_tokens is not None:
        wanted = min(wanted, request.max_tokens)
    left = request.model.context_window - _rough_input_tokens(request)
    return max(1, min(wanted, max(left, _LEAST_TOKENS)))


def _rough_input_tokens(request: ModelRequest) -> int:
    chars = len(request.system) + sum(_chars(message) for message in request.messages)
    chars += sum(
        len(tool.description) + len(msgspec.json.encode(tool.parameters)) for tool in request.tools
    )
    images = sum(
        isinstance(block, ImageContent)
        for message in request.messages
        if not isinstance(message.content, str)
        for block in message.content
    )
    return int(chars / _CHARS_PER_TOKEN) + images * _IMAGE_TOKENS


def _chars(message: RequestMessage) -> int:
    if isinstance(message.content, str):
        return len(message.content)
    chars = 0
    for block in message.content:
        if isinstance(block, TextContent):
            chars += len(block.text)
        elif isinstance(block, ThinkingContent):
            chars += len(block.thinking)
    if isinstance(message, AssistantMessage):
        chars += sum(len(str(call.arguments)) for call in message.tool_calls)
    return chars
