"""Content blocks of messages, as session format v3 stores them.

Decoding is tolerant, as it is for messages: a block nobody knows becomes `UnknownContent`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pi_tui.core.json_fields import JSON, optional_text, text_field


class TextContent(Struct, frozen=True, rename="camel", tag_field="type", tag="text"):
    """A run of text. `text_signature` is opaque provider data, sent back as it came."""

    text: str
    text_signature: str | UnsetType = UNSET


class ThinkingContent(Struct, frozen=True, rename="camel", tag_field="type", tag="thinking"):
    """Reasoning of the model. A signature is stored only when it arrived whole.

    `redacted`: the text is hidden by the provider and the signature carries the encrypted block.
    """

    thinking: str
    thinking_signature: str | UnsetType = UNSET
    redacted: bool | UnsetType = UNSET


INVALID_JSON_KEY = "__invalid_json__"
"""The only key of a call's arguments when the model's text was no JSON object; its value is the
(bounded) text, so that the model can be told and people can see it."""


class ToolCall(Struct, frozen=True, rename="camel", tag_field="type", tag="toolCall"):
    """A call the model makes; `arguments` is one JSON object."""

    id: str
    name: str
    arguments: dict[str, JSON]
    thought_signature: str | UnsetType = UNSET


class ImageContent(Struct, frozen=True, rename="camel", tag_field="type", tag="image"):
    """An image: base64 `data` and its MIME type."""

    data: str
    mime_type: str


class UnknownContent(Struct, frozen=True):
    """A block of a type this program does not know; kept, never sent."""

    data: JSON


Content: TypeAlias = TextContent | ThinkingContent | ToolCall | ImageContent | UnknownContent
ContentList: TypeAlias = tuple[Content, ...]


def text_of(content: str | ContentList) -> str:
    """All text of a content, blocks joined with nothing between."""
    if isinstance(content, str):
        return content
    return "".join(b.text for b in content if isinstance(b, TextContent))


def text_content(text: str) -> ContentList:
    """One text block, as a content list."""
    return (TextContent(text),)


def images_of(content: str | Iterable[Content]) -> tuple[ImageContent, ...]:
    """The image blocks of a content."""
    if isinstance(content, str):
        return ()
    return tuple(block for block in content if isinstance(block, ImageContent))


def images_in(content: str | Iterable[Content]) -> int:
    """How many image blocks a content has."""
    return len(images_of(content))


# ---------------------------------------------------------------- JSON -> values


def content_from_data(data: JSON) -> ContentList:
    """Decode a content list; a string becomes one text block, anything else an empty list."""
    if isinstance(data, str):
        return (TextContent(data),)
    if not isinstance(data, list):
        return ()
    return tuple(_block(item) for item in data)


def _block(item: JSON) -> Content:
    if not isinstance(item, dict):
        return UnknownContent(item)
    kind = item.get("type")
    if kind == "text" and isinstance(item.get("text"), str):
        return TextContent(item["text"], optional_text(item, "textSignature"))
    if kind == "thinking" and isinstance(item.get("thinking"), str):
        redacted = item.get("redacted")
        return ThinkingContent(
            item["thinking"],
            optional_text(item, "thinkingSignature"),
            redacted if isinstance(redacted, bool) else UNSET,
        )
    if kind == "toolCall" and isinstance(item.get("name"), str):
        arguments = item.get("arguments")
        return ToolCall(
            text_field(item, "id"),
            item["name"],
            arguments if isinstance(arguments, dict) else {},
            optional_text(item, "thoughtSignature"),
        )
    if kind == "image":
        return ImageContent(text_field(item, "data"), text_field(item, "mimeType"))
    return UnknownContent(item)


def text_or_blocks_from_data(content: JSON) -> str | ContentList:
    """Decode a content that may be a plain string; it stays one."""
    return content if isinstance(content, str) else content_from_data(content)


# ---------------------------------------------------------------- values -> JSON


def content_to_data(content: str | Sequence[Content]) -> JSON:
    """Encode a content for a stored line."""
    if isinstance(content, str):
        return content
    return [_builtins(block) for block in content]


def _builtins(value: Any) -> JSON:
    if isinstance(value, UnknownContent):
        return value.data
    return msgspec.to_builtins(value)
