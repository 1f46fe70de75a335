"""A conversation as plain text for a summariser.

Each message becomes parts that open with a label in brackets. By default only tool results are
shortened, by the measured rule of the format; `bounded` shortens every kind of block to its head
and tail, so that no single message can fill a window. Lengths are UTF-16 code units.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    Content,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from pi_tui.core.projection import to_llm
from pi_tui.core.tokens import compact_json, utf16_length

RESULT_HEAD_CHARS = 2000
REQUEST_TAIL_CHARS = 500
"""The tail of a tool result the engine's own requests keep: failures stand at the end."""


class Bound(Struct, frozen=True):
    """How much of a block is kept at its two ends."""

    head_chars: int
    tail_chars: int


TEXT_BOUND = Bound(12_000, 4_000)
"""User pastes, extension messages and answers of the model."""
THINKING_BOUND = Bound(2_000, 1_000)
ARGUMENT_BOUND = Bound(2_000, 500)
"""Each argument of a tool call."""


def serialize_conversation(
    messages: Iterable[Message], tail_chars: int = 0, *, bounded: bool = False
) -> str:
    """Write messages as one text, parts separated by blank lines."""
    return "\n\n".join(
        part
        for message in messages
        for part in message_parts(message, tail_chars=tail_chars, bounded=bounded)
    )


def message_parts(message: Message, *, tail_chars: int = 0, bounded: bool = False) -> list[str]:
    """The parts of one message; none for system messages and what is never sent."""
    sent = to_llm(message)
    if isinstance(sent, UserMessage):
        return _labelled("User", _bounded(_text(sent.content, bounded), TEXT_BOUND, bounded))
    if isinstance(sent, AssistantMessage):
        return _assistant_parts(sent, bounded)
    if isinstance(sent, ToolResultMessage):
        text = _text(sent.content, bounded)
        return _labelled("Tool result", shorten(text, Bound(RESULT_HEAD_CHARS, tail_chars)))
    return []


def truncation_marker(cut_chars: int) -> str:
    """What stands in a text where characters were cut out."""
    return f"\n[… {cut_chars} characters left out …]"


def shorten(text: str, bound: Bound) -> str:
    """Keep the head and the tail of a text and say between them how much was cut.

    A cut never falls inside a surrogate pair; the number is counted as if it could.
    """
    # In code points a text is never longer than in UTF-16 units, and at least half as long.
    if len(text) * 2 <= bound.head_chars + bound.tail_chars:
        return text
    cut = utf16_length(text) - bound.head_chars - bound.tail_chars
    if cut <= 0:
        return text
    tail = _last_units(text, bound.tail_chars)
    marker = truncation_marker(cut)
    return _first_units(text, bound.head_chars) + marker + (f"\n{tail}" if tail else "")


def _labelled(label: str, text: str) -> list[str]:
    return [f"[{label}]: {text}"] if text else []


def _bounded(text: str, bound: Bound, bounded: bool) -> str:
    return shorten(text, bound) if bounded else text


def _text(content: str | tuple[Content, ...], show_images: bool) -> str:
    if isinstance(content, str) or not show_images:
        return text_of(content)
    return "".join(
        block.text if isinstance(block, TextContent) else _image_placeholder(block)
        for block in content
        if isinstance(block, TextContent | ImageContent)
    )


def _image_placeholder(image: ImageContent) -> str:
    size_bytes = len(image.data) * 3 // 4
    return f"[image {image.mime_type or 'of unknown type'}, {size_bytes} bytes]"


def _assistant_parts(message: AssistantMessage, bounded: bool) -> list[str]:
    thinking = [b.thinking for b in message.content if isinstance(b, ThinkingContent)]
    thoughts = "\n".join(thinking)
    parts = _labelled("Assistant thinking", _bounded(thoughts, THINKING_BOUND, bounded))
    if any(isinstance(block, TextContent) for block in message.content):
        parts.append(f"[Assistant]: {_bounded(message.text, TEXT_BOUND, bounded)}")
    calls = "; ".join(_call(call, bounded) for call in message.tool_calls)
    return parts + _labelled("Assistant tool calls", calls)


def _call(call: ToolCall, bounded: bool) -> str:
    arguments = ", ".join(
        f"{key}={_argument(value, bounded)}" for key, value in call.arguments.items()
    )
    return f"{call.name}({arguments})"


def _argument(value: JSON, bounded: bool) -> str:
    return _bounded(compact_json(value), ARGUMENT_BOUND, bounded)


def _first_units(text: str, units: int) -> str:
    """At most so many UTF-16 units from the start, whole characters only."""
    head = text[:units]
    if head.isascii():
        return head
    # A pair cut in two leaves half of it at the end, which is dropped; lone halves that stand in
    # the text itself are kept.
    encoded = head.encode("utf-16-le", "surrogatepass")
    end = units * 2
    if len(encoded) > end and _is_low_surrogate(encoded, end) and _is_high(encoded, end - 2):
        end -= 2
    return encoded[:end].decode("utf-16-le", "surrogatepass")


def _last_units(text: str, units: int) -> str:
    if units <= 0:
        return ""
    tail = text[-units:]
    if tail.isascii():
        return tail
    encoded = tail.encode("utf-16-le", "surrogatepass")
    start = max(0, len(encoded) - units * 2)
    if start > 0 and _is_low_surrogate(encoded, start) and _is_high(encoded, start - 2):
        start += 2
    return encoded[start:].decode("utf-16-le", "surrogatepass")


def _is_low_surrogate(encoded: bytes, at: int) -> bool:
    return at + 1 < len(encoded) and 0xDC <= encoded[at + 1] <= 0xDF


def _is_high(encoded: bytes, at: int) -> bool:
    return at >= 0 and 0xD8 <= encoded[at + 1] <= 0xDB
