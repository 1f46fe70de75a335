"""How much a request holds, counted by a provider of tests and by no code of the product."""

from __future__ import annotations

import msgspec

from pi_tui.core.messages import TextContent, ToolCall
from pi_tui.core.protocols import ModelRequest


def request_chars(request: ModelRequest) -> int:
    """System prompt, tools as JSON, texts, and calls; images count nothing."""
    chars = len(request.system)
    chars += sum(len(msgspec.json.encode(tool)) for tool in request.tools)
    for message in request.messages:
        if isinstance(message.content, str):
            chars += len(message.content)
            continue
        for block in message.content:
            if isinstance(block, TextContent):
                chars += len(block.text)
            elif isinstance(block, ToolCall):
                chars += len(block.name) + len(msgspec.json.encode(block.arguments))
    return chars
