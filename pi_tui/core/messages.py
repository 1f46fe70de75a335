"""Messages as session format v3 stores them; with their content blocks and usage, one vocabulary.

Everything is a frozen value. Decoding is tolerant: a session written by another program may hold
null contents, odd blocks and roles nobody knows; such parts become empty or `Unknown…` values and
never an exception. The stored line itself is kept by the storage, so nothing is lost by reading.
Timestamps are Unix milliseconds; token counts are whole tokens; costs are US dollars.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pi_tui.core.content import (
    INVALID_JSON_KEY,
    Content,
    ContentList,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    UnknownContent,
    content_from_data,
    content_to_data,
    images_in,
    images_of,
    text_content,
    text_of,
    text_or_blocks_from_data,
)
from pi_tui.core.json_fields import (
    JSON,
    count_field,
    optional_text,
    text_field,
    text_or_empty,
    timestamp_field,
)
from pi_tui.core.usage import Cost, Usage, usage_from_data

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


# ---------------------------------------------------------------- JSON -> values


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
        content=content_from_data(content) if isinstance(content, list) else text_or_empty(content),
        timestamp=timestamp_field(d),
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


def _user(d: Mapping[str, JSON]) -> Message:
    return UserMessage(text_or_blocks_from_data(d.get("content")), timestamp_field(d))


def _assistant(d: Mapping[str, JSON]) -> Message:
    duration = count_field(d, "durationMs")
    return AssistantMessage(
        content=content_from_data(d.get("content")),
        api=text_field(d, "api"),
        provider=text_field(d, "provider"),
        model=text_field(d, "model"),
        usage=usage_from_data(d.get("usage")),
        stop_reason=text_field(d, "stopReason"),
        timestamp=timestamp_field(d),
        response_model=optional_text(d, "responseModel"),
        response_id=optional_text(d, "responseId"),
        error_message=optional_text(d, "errorMessage"),
        thinking_level=optional_text(d, "thinkingLevel"),
        duration_ms=UNSET if duration is None else duration,
    )


def _tool_result(d: Mapping[str, JSON]) -> Message:
    duration = count_field(d, "durationMs")
    usage = usage_from_data(d.get("usage"))
    return ToolResultMessage(
        tool_call_id=text_field(d, "toolCallId"),
        tool_name=text_field(d, "toolName"),
        content=content_from_data(d.get("content")),
        is_error=d.get("isError") is True,
        timestamp=timestamp_field(d),
        details=d.get("details", UNSET),
        duration_ms=UNSET if duration is None else duration,
        usage=UNSET if usage is None else usage,
        nested_calls=d.get("nestedCalls", UNSET),
    )


def _bash(d: Mapping[str, JSON]) -> Message:
    excluded = d.get("excludeFromContext")
    return BashExecutionMessage(
        command=text_field(d, "command"),
        output=text_field(d, "output"),
        exit_code=count_field(d, "exitCode"),
        cancelled=d.get("cancelled") is True,
        truncated=d.get("truncated") is True,
        timestamp=timestamp_field(d),
        full_output_path=optional_text(d, "fullOutputPath"),
        exclude_from_context=excluded if isinstance(excluded, bool) else UNSET,
    )


def _custom(d: Mapping[str, JSON]) -> Message:
    return CustomMessage(
        custom_type=text_field(d, "customType"),
        content=text_or_blocks_from_data(d.get("content")),
        display=d.get("display") is True,
        timestamp=timestamp_field(d),
        details=d.get("details", UNSET),
    )


def _branch_summary(d: Mapping[str, JSON]) -> Message:
    return BranchSummaryMessage(
        text_field(d, "summary"), text_field(d, "fromId"), timestamp_field(d)
    )


def _compaction_summary(d: Mapping[str, JSON]) -> Message:
    return CompactionSummaryMessage(
        text_field(d, "summary"), count_field(d, "tokensBefore") or 0, timestamp_field(d)
    )


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


# ---------------------------------------------------------------- values -> JSON


def message_to_data(message: Message) -> dict[str, JSON]:
    """Encode a message for a stored line; absent optional fields are left out."""
    if isinstance(message, UnknownMessage):
        return dict(message.data) if isinstance(message.data, dict) else {"role": message.role}
    data = cast("dict[str, JSON]", msgspec.to_builtins(message))
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
    "images_of",
    "message_from_data",
    "message_to_data",
    "role_of",
    "text_content",
    "text_of",
    "usage_from_data",
]
