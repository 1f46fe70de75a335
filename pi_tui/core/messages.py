"""Messages and content blocks as session format v3 stores them.

Everything is a frozen value. Decoding is tolerant: a session written by another program may hold
null contents, odd blocks and roles nobody knows; such parts become empty or `Unknown…` values and
never an exception. The stored line itself is kept by the storage, so nothing is lost by reading.
Timestamps are Unix milliseconds; token counts are whole tokens; costs are US dollars.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

JSON: TypeAlias = Any
"""A decoded JSON value: None, bool, int, float, str, list or dict."""

StopReason: TypeAlias = Literal[
    "stop", "length", "toolUse", "error", "aborted", "deferred", "pending"
]
ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
THINKING_LEVELS: tuple[ThinkingLevel, ...] = (
    "off",
    "minimal",
    "low",
    "medium",
    "high",
    "xhigh",
    "max",
)


class Cost(Struct, frozen=True, rename="camel"):
    """Dollars, split the way providers bill them."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0
    total: float = 0


class Usage(Struct, frozen=True, rename="camel", omit_defaults=False):
    """Tokens of one model answer. `reasoning` is a part of `output`, not an addition.

    The four counts are None when a stored usage lacks them; the estimate rules need to know.
    """

    input: int | None = 0
    output: int | None = 0
    cache_read: int | None = 0
    cache_write: int | None = 0
    total_tokens: int | None = 0
    cost: Cost = Cost()
    reasoning: int | UnsetType = UNSET

    @property
    def sum_tokens(self) -> int:
        """Input, output, cache read and cache write together; missing counts are 0."""
        return (
            (self.input or 0)
            + (self.output or 0)
            + (self.cache_read or 0)
            + (self.cache_write or 0)
        )

    def plus(self, other: Usage) -> Usage:
        """Add two usages, field by field."""
        a, b = self.cost, other.cost
        reasoning = _int(self.reasoning) + _int(other.reasoning)
        return Usage(
            input=(self.input or 0) + (other.input or 0),
            output=(self.output or 0) + (other.output or 0),
            cache_read=(self.cache_read or 0) + (other.cache_read or 0),
            cache_write=(self.cache_write or 0) + (other.cache_write or 0),
            total_tokens=(self.total_tokens or self.sum_tokens)
            + (other.total_tokens or other.sum_tokens),
            cost=Cost(
                a.input + b.input,
                a.output + b.output,
                a.cache_read + b.cache_read,
                a.cache_write + b.cache_write,
                a.total + b.total,
            ),
            reasoning=reasoning or UNSET,
        )


def _int(value: int | UnsetType) -> int:
    return 0 if value is UNSET else value


# ---------------------------------------------------------------- content blocks


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


# ---------------------------------------------------------------- messages


class ToolDeclaration(Struct, frozen=True, rename="camel"):
    """What the model is told of a tool: name, description and JSON schema of the arguments."""

    name: str
    description: str
    parameters: dict[str, JSON]


class SystemMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="system"):
    """Prompt text, named prompt sections and tool declarations; a later one patches earlier ones.

    `sections`: name -> text, or None to remove. `tools_added` None means the field is absent.
    `tools_removed` are names; the format stores each as an object with a `name`.
    """

    content: str | ContentList
    timestamp: int
    sections: dict[str, str | None] | None = None
    tools_added: tuple[JSON, ...] | None = None
    tools_removed: tuple[str, ...] | None = None


class UserMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="user"):
    content: str | ContentList
    timestamp: int


class AssistantMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="assistant"):
    """One model answer. `usage` is None only for stored messages that lack it."""

    content: ContentList
    api: str
    provider: str
    model: str
    usage: Usage | None
    stop_reason: StopReason | str
    timestamp: int
    response_model: str | UnsetType = UNSET
    response_id: str | UnsetType = UNSET
    error_message: str | UnsetType = UNSET
    thinking_level: str | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls in the order the model made them."""
        return tuple(b for b in self.content if isinstance(b, ToolCall))

    @property
    def text(self) -> str:
        """All text blocks, joined by a newline."""
        return "\n".join(b.text for b in self.content if isinstance(b, TextContent))


class ToolResultMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="toolResult"):
    """The answer to one tool call. `details` is for people and extensions, never for the model."""

    tool_call_id: str
    tool_name: str
    content: ContentList
    is_error: bool
    timestamp: int
    details: JSON | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    nested_calls: JSON | UnsetType = UNSET


class BashExecutionMessage(
    Struct, frozen=True, rename="camel", tag_field="role", tag="bashExecution"
):
    """A command the user ran with `!` (or `!!`, then `exclude_from_context`)."""

    command: str
    output: str
    exit_code: int | None
    cancelled: bool
    truncated: bool
    timestamp: int
    full_output_path: str | UnsetType = UNSET
    exclude_from_context: bool | UnsetType = UNSET

    @property
    def excluded(self) -> bool:
        """True when the output is never sent to the model."""
        return self.exclude_from_context is True


class CustomMessage(Struct, frozen=True, rename="camel", tag_field="role", tag="custom"):
    """A message an extension added; sent to the model as a user message."""

    custom_type: str
    content: str | ContentList
    display: bool
    timestamp: int
    details: JSON | UnsetType = UNSET


class BranchSummaryMessage(
    Struct, frozen=True, rename="camel", tag_field="role", tag="branchSummary"
):
    """Projected from a branch_summary entry; never stored as a message."""

    summary: str
    from_id: str
    timestamp: int


class CompactionSummaryMessage(
    Struct, frozen=True, rename="camel", tag_field="role", tag="compactionSummary"
):
    """Projected from a compaction entry; never stored as a message."""

    summary: str
    tokens_before: int
    timestamp: int


class UnknownMessage(Struct, frozen=True):
    """A message of a role this program does not know; kept, never sent, worth 0 tokens."""

    role: str
    data: JSON


Message: TypeAlias = (
    SystemMessage
    | UserMessage
    | AssistantMessage
    | ToolResultMessage
    | BashExecutionMessage
    | CustomMessage
    | BranchSummaryMessage
    | CompactionSummaryMessage
    | UnknownMessage
)


def role_of(message: Message) -> str:
    """The role under which the message is stored or projected."""
    if isinstance(message, UnknownMessage):
        return message.role
    return cast(str, message.__struct_config__.tag)


def text_of(content: str | ContentList) -> str:
    """All text of a content, blocks joined with nothing between."""
    if isinstance(content, str):
        return content
    return "".join(b.text for b in content if isinstance(b, TextContent))


def text_content(text: str) -> ContentList:
    """One text block, as a content list."""
    return (TextContent(text),)


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
        return TextContent(item["text"], _opt_str(item, "textSignature"))
    if kind == "thinking" and isinstance(item.get("thinking"), str):
        redacted = item.get("redacted")
        return ThinkingContent(
            item["thinking"],
            _opt_str(item, "thinkingSignature"),
            redacted if isinstance(redacted, bool) else UNSET,
        )
    if kind == "toolCall" and isinstance(item.get("name"), str):
        arguments = item.get("arguments")
        return ToolCall(
            _str(item, "id"),
            item["name"],
            arguments if isinstance(arguments, dict) else {},
            _opt_str(item, "thoughtSignature"),
        )
    if kind == "image":
        return ImageContent(_str(item, "data"), _str(item, "mimeType"))
    return UnknownContent(item)


def usage_from_data(data: JSON) -> Usage | None:
    """Decode a usage object; None when it is not an object."""
    if not isinstance(data, dict):
        return None
    cost = data.get("cost")
    cost = cost if isinstance(cost, dict) else {}
    reasoning = _count(data, "reasoning")
    return Usage(
        input=_count(data, "input"),
        output=_count(data, "output"),
        cache_read=_count(data, "cacheRead"),
        cache_write=_count(data, "cacheWrite"),
        total_tokens=_count(data, "totalTokens"),
        cost=Cost(
            _number(cost, "input"),
            _number(cost, "output"),
            _number(cost, "cacheRead"),
            _number(cost, "cacheWrite"),
            _number(cost, "total"),
        ),
        reasoning=UNSET if reasoning is None else reasoning,
    )


def message_from_data(data: JSON) -> Message:
    """Decode a stored message object; never raises."""
    if not isinstance(data, dict):
        return UnknownMessage("", data)
    role = data.get("role")
    decode = _DECODERS.get(role) if isinstance(role, str) else None
    if decode is None:
        return UnknownMessage(role if isinstance(role, str) else "", data)
    return decode(data)


def _system(d: Mapping[str, JSON]) -> Message:
    content = d.get("content")
    sections = d.get("sections")
    added, removed = d.get("toolsAdded"), d.get("toolsRemoved")
    return SystemMessage(
        content=content_from_data(content) if isinstance(content, list) else _text(content),
        timestamp=_ms(d),
        sections=(
            {k: v for k, v in sections.items() if v is None or isinstance(v, str)}
            if isinstance(sections, dict)
            else None
        ),
        tools_added=tuple(added) if isinstance(added, list) else None,
        tools_removed=_tool_names(removed) if isinstance(removed, list) else None,
    )


def _tool_names(removed: list[JSON]) -> tuple[str, ...]:
    """The format names a removed tool by an object; a bare name is read too."""
    names = (item.get("name") if isinstance(item, dict) else item for item in removed)
    return tuple(name for name in names if isinstance(name, str))


def _string_or_blocks(content: JSON) -> str | ContentList:
    return content if isinstance(content, str) else content_from_data(content)


def _user(d: Mapping[str, JSON]) -> Message:
    return UserMessage(_string_or_blocks(d.get("content")), _ms(d))


def _assistant(d: Mapping[str, JSON]) -> Message:
    duration = _count(d, "durationMs")
    return AssistantMessage(
        content=content_from_data(d.get("content")),
        api=_str(d, "api"),
        provider=_str(d, "provider"),
        model=_str(d, "model"),
        usage=usage_from_data(d.get("usage")),
        stop_reason=_str(d, "stopReason"),
        timestamp=_ms(d),
        response_model=_opt_str(d, "responseModel"),
        response_id=_opt_str(d, "responseId"),
        error_message=_opt_str(d, "errorMessage"),
        thinking_level=_opt_str(d, "thinkingLevel"),
        duration_ms=UNSET if duration is None else duration,
    )


def _tool_result(d: Mapping[str, JSON]) -> Message:
    duration = _count(d, "durationMs")
    usage = usage_from_data(d.get("usage"))
    return ToolResultMessage(
        tool_call_id=_str(d, "toolCallId"),
        tool_name=_str(d, "toolName"),
        content=content_from_data(d.get("content")),
        is_error=d.get("isError") is True,
        timestamp=_ms(d),
        details=d.get("details", UNSET),
        duration_ms=UNSET if duration is None else duration,
        usage=UNSET if usage is None else usage,
        nested_calls=d.get("nestedCalls", UNSET),
    )


def _bash(d: Mapping[str, JSON]) -> Message:
    excluded = d.get("excludeFromContext")
    return BashExecutionMessage(
        command=_str(d, "command"),
        output=_str(d, "output"),
        exit_code=_count(d, "exitCode"),
        cancelled=d.get("cancelled") is True,
        truncated=d.get("truncated") is True,
        timestamp=_ms(d),
        full_output_path=_opt_str(d, "fullOutputPath"),
        exclude_from_context=excluded if isinstance(excluded, bool) else UNSET,
    )


def _custom(d: Mapping[str, JSON]) -> Message:
    return CustomMessage(
        custom_type=_str(d, "customType"),
        content=_string_or_blocks(d.get("content")),
        display=d.get("display") is True,
        timestamp=_ms(d),
        details=d.get("details", UNSET),
    )


def _branch_summary(d: Mapping[str, JSON]) -> Message:
    return BranchSummaryMessage(_str(d, "summary"), _str(d, "fromId"), _ms(d))


def _compaction_summary(d: Mapping[str, JSON]) -> Message:
    return CompactionSummaryMessage(_str(d, "summary"), _count(d, "tokensBefore") or 0, _ms(d))


_DECODERS = {
    "system": _system,
    "user": _user,
    "assistant": _assistant,
    "toolResult": _tool_result,
    "bashExecution": _bash,
    "custom": _custom,
    "branchSummary": _branch_summary,
    "compactionSummary": _compaction_summary,
}


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _str(data: Mapping[str, JSON], key: str) -> str:
    return _text(data.get(key))


def _opt_str(data: Mapping[str, JSON], key: str) -> str | UnsetType:
    value = data.get(key)
    return value if isinstance(value, str) else UNSET


def _count(data: Mapping[str, JSON], key: str) -> int | None:
    value = data.get(key)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value == value and abs(value) < 2**63:
        return int(value)
    return None


def _number(data: Mapping[str, JSON], key: str) -> float:
    value = data.get(key)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0


def _ms(data: Mapping[str, JSON]) -> int:
    return _count(data, "timestamp") or 0


# ---------------------------------------------------------------- values -> JSON


def content_to_data(content: str | Sequence[Content]) -> JSON:
    """Encode a content for a stored line."""
    if isinstance(content, str):
        return content
    return [_builtins(block) for block in content]


def message_to_data(message: Message) -> dict[str, JSON]:
    """Encode a message for a stored line; absent optional fields are left out."""
    if isinstance(message, UnknownMessage):
        return dict(message.data) if isinstance(message.data, dict) else {"role": message.role}
    data = cast("dict[str, JSON]", _builtins(message))
    if isinstance(message, SystemMessage):
        for key in ("sections", "toolsAdded", "toolsRemoved"):
            if data.get(key) is None:
                data.pop(key, None)
        if message.tools_added is not None:
            data["toolsAdded"] = list(message.tools_added)
        if message.tools_removed is not None:
            data["toolsRemoved"] = [{"name": name} for name in message.tools_removed]
    if "content" in data and not isinstance(data["content"], str):
        data["content"] = content_to_data(message.content)  # type: ignore[union-attr]
    return data


def _builtins(value: Any) -> JSON:
    if isinstance(value, UnknownContent):
        return value.data
    return msgspec.to_builtins(value)


def images_in(content: str | Iterable[Content]) -> int:
    """How many image blocks a content has."""
    if isinstance(content, str):
        return 0
    return sum(isinstance(block, ImageContent) for block in content)


__all__ = [
    "INVALID_JSON_KEY",
    "JSON",
    "THINKING_LEVELS",
    "AssistantMessage",
    "BashExecutionMessage",
    "BranchSummaryMessage",
    "CompactionSummaryMessage",
    "Content",
    "ContentList",
    "Cost",
    "CustomMessage",
    "ImageContent",
    "Message",
    "StopReason",
    "SystemMessage",
    "TextContent",
    "ThinkingContent",
    "ThinkingLevel",
    "ToolCall",
    "ToolDeclaration",
    "ToolResultMessage",
    "UnknownContent",
    "UnknownMessage",
    "Usage",
    "UserMessage",
    "content_from_data",
    "content_to_data",
    "images_in",
    "message_from_data",
    "message_to_data",
    "role_of",
    "text_content",
    "text_of",
    "usage_from_data",
]
