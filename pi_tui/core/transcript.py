"""What people see of a conversation, as a list of blocks; the same live and after reopening.

`blocks_of` turns entries into blocks; a front end uses it both for a stored path and, one entry at
a time, for what arrives live. Keys are stable: the entry id and the index of the part within it, so
a live block can be replaced by its stored form. Texts are foreign and raw here: every front end
sanitises them where it draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    BashExecutionMessage,
    ContentList,
    CustomMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    images_in,
    text_of,
)

ToolState: TypeAlias = Literal["pending", "running", "ok", "error", "aborted"]


class UserBlock(Struct, frozen=True):
    key: str
    text: str
    images: int = 0


class AssistantBlock(Struct, frozen=True):
    """Markdown of the model. `streaming`: more text may come."""

    key: str
    text: str
    streaming: bool = False


class ThinkingBlock(Struct, frozen=True):
    key: str
    text: str
    streaming: bool = False
    redacted: bool = False


class ToolBlock(Struct, frozen=True):
    """A call and what came of it. `details` as the tool recorded them (diff, counts)."""

    key: str
    call_id: str
    name: str
    arguments: dict[str, JSON]
    state: ToolState = "pending"
    output: str = ""
    images: int = 0
    details: JSON | UnsetType = UNSET
    duration_ms: int | None = None
    partial_arguments: str = ""


class ShellBlock(Struct, frozen=True):
    """A `!` command of the user; `excluded` for `!!`."""

    key: str
    command: str
    output: str
    exit_code: int | None = None
    cancelled: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    excluded: bool = False
    running: bool = False


class SummaryBlock(Struct, frozen=True):
    """A compaction or a branch summary; numbers are None where they were not recorded."""

    key: str
    kind: Literal["compaction", "branch"]
    summary: str
    tokens_before: int | None = None
    tokens_after: int | None = None
    duration_ms: int | None = None
    cost: float | None = None
    details: JSON | UnsetType = UNSET
    from_id: str = ""


class CustomBlock(Struct, frozen=True):
    key: str
    custom_type: str
    text: str


class NoticeBlock(Struct, frozen=True):
    """A line about the conversation: an aborted or failed answer, an error, a confirmation."""

    key: str
    level: Literal["info", "warning", "error"]
    text: str


class CoveredBlock(Struct, frozen=True):
    """Stands before blocks the model knows only through the summary below; see `core.coverage`.

    `messages`: how many the whole run has. `blocks`: how many of what follows in the list belongs
    to it, the `CoveredEndBlock` included; what stands for many blocks that are unread counts once.
    """

    key: str
    messages: int
    blocks: int


class CoveredEndBlock(Struct, frozen=True):
    """Ends what a `CoveredBlock` began."""

    key: str
    messages: int


Block: TypeAlias = (
    UserBlock
    | AssistantBlock
    | ThinkingBlock
    | ToolBlock
    | ShellBlock
    | SummaryBlock
    | CustomBlock
    | NoticeBlock
)

ShownBlock: TypeAlias = Block | CoveredBlock | CoveredEndBlock
"""What a transcript on a screen consists of."""


class ToolAnswer(Struct, frozen=True):
    """A tool result on its way to the block of its call."""

    call_id: str
    tool_name: str
    key: str
    output: str
    images: int
    is_error: bool
    details: JSON | UnsetType
    duration_ms: int | None


NO_RESULT = "interrupted: no result recorded"
ABORTED_NOTICE = "aborted; this answer is not sent to the model again"


def parts_of(entry: Entry) -> tuple[Block | ToolAnswer, ...]:
    """The blocks one entry adds; a tool result gives a `ToolAnswer` for the block of its call."""
    if isinstance(entry, MessageEntry):
        message = entry.message
        if isinstance(message, UserMessage):
            return (UserBlock(entry.id, text_of(message.content), images_in(message.content)),)
        if isinstance(message, AssistantMessage):
            return assistant_blocks(entry.id, message)
        if isinstance(message, ToolResultMessage):
            return (_answer(entry.id, message),)
        if isinstance(message, BashExecutionMessage):
            return (_shell(entry.id, message),)
        if isinstance(message, CustomMessage) and message.display:
            return (CustomBlock(entry.id, message.custom_type, text_of(message.content)),)
        return ()
    if isinstance(entry, CustomMessageEntry):
        if not entry.display:
            return ()
        return (CustomBlock(entry.id, entry.custom_type, text_of(entry.content)),)
    if isinstance(entry, CompactionEntry):
        return (_summary(entry),)
    if isinstance(entry, BranchSummaryEntry) and entry.summary:
        return (_summary(entry),)
    return ()


def assistant_blocks(key: str, message: AssistantMessage) -> tuple[Block, ...]:
    """The blocks of one answer: thinking, text, calls in their order, then how it ended."""
    blocks: list[Block] = []
    ended_early = message.stop_reason in ("error", "aborted")
    for index, part in enumerate(message.content):
        at = f"{key}:{index}"
        if isinstance(part, TextContent):
            if part.text.strip():
                blocks.append(AssistantBlock(at, part.text))
        elif isinstance(part, ThinkingContent):
            redacted = part.redacted is True
            if part.thinking.strip() or redacted:
                blocks.append(ThinkingBlock(at, part.thinking, redacted=redacted))
        elif isinstance(part, ToolCall):
            state: ToolState = "aborted" if ended_early else "pending"
            blocks.append(ToolBlock(at, part.id, part.name, part.arguments, state))
    if message.stop_reason == "aborted":
        blocks.append(NoticeBlock(f"{key}:end", "warning", ABORTED_NOTICE))
    elif message.stop_reason == "error":
        text = message.error_message if message.error_message is not UNSET else ""
        blocks.append(NoticeBlock(f"{key}:end", "error", text or "the model request failed"))
    elif message.stop_reason == "length":
        blocks.append(
            NoticeBlock(f"{key}:end", "warning", "the answer was cut at the output limit")
        )
    elif not blocks:
        blocks.append(NoticeBlock(f"{key}:end", "info", "(empty answer)"))
    return tuple(blocks)


def blocks_of(entries: Iterable[Entry], *, running: bool = False) -> list[Block]:
    """The transcript of a path, entries root to leaf; calls carry their results.

    A call without a result was interrupted, by the end of the program or by a move to before it,
    unless the path is `running`: then it may still be answered.
    """
    blocks: list[Block] = []
    open_calls: dict[str, int] = {}
    for entry in entries:
        for part in parts_of(entry):
            if isinstance(part, ToolAnswer):
                at = open_calls.pop(part.call_id, None)
                call = blocks[at] if at is not None else None
                if at is not None and isinstance(call, ToolBlock):
                    blocks[at] = answered(call, part)
                else:
                    blocks.append(orphan(part))
                continue
            if isinstance(part, ToolBlock):
                open_calls[part.call_id] = len(blocks)
            blocks.append(part)
    if running:
        return blocks
    return [
        replace(block, state="error", output=NO_RESULT)
        if isinstance(block, ToolBlock) and block.state == "pending"
        else block
        for block in blocks
    ]


def answered(call: ToolBlock, answer: ToolAnswer) -> ToolBlock:
    """The block of a call once its result is there."""
    return ToolBlock(
        key=call.key,
        call_id=call.call_id,
        name=call.name,
        arguments=call.arguments,
        state="error" if answer.is_error else "ok",
        output=answer.output,
        images=answer.images,
        details=answer.details,
        duration_ms=answer.duration_ms,
    )


def orphan(answer: ToolAnswer) -> ToolBlock:
    """A block for a result whose call is not on the path."""
    return answered(ToolBlock(answer.key, answer.call_id, answer.tool_name, {}), answer)


def _answer(key: str, message: ToolResultMessage) -> ToolAnswer:
    return ToolAnswer(
        call_id=message.tool_call_id,
        tool_name=message.tool_name,
        key=key,
        output=output_text(message.content),
        images=images_in(message.content),
        is_error=message.is_error,
        details=message.details,
        duration_ms=message.duration_ms if message.duration_ms is not UNSET else None,
    )


def output_text(content: ContentList) -> str:
    """A tool's output as one text; images are named by type."""
    parts = []
    for block in content:
        if isinstance(block, TextContent):
            parts.append(block.text)
        elif isinstance(block, ImageContent):
            parts.append(f"[image {block.mime_type}]")
    return "\n".join(parts)


def _shell(key: str, message: BashExecutionMessage) -> ShellBlock:
    path = message.full_output_path
    return ShellBlock(
        key=key,
        command=message.command,
        output=message.output,
        exit_code=message.exit_code,
        cancelled=message.cancelled,
        truncated=message.truncated,
        full_output_path=None if path is UNSET else path,
        excluded=message.excluded,
    )


def _summary(entry: CompactionEntry | BranchSummaryEntry) -> SummaryBlock:
    details = entry.details if isinstance(entry.details, dict) else {}
    usage: Usage | None = entry.usage
    compaction = isinstance(entry, CompactionEntry)
    return SummaryBlock(
        key=entry.id,
        kind="compaction" if compaction else "branch",
        summary=entry.summary,
        tokens_before=entry.tokens_before if isinstance(entry, CompactionEntry) else None,
        tokens_after=_whole(details.get("estimatedTokensAfter")),
        duration_ms=_whole(details.get("durationMs")),
        cost=usage.cost.total if usage is not None else None,
        details=entry.details,
        from_id=entry.from_id if isinstance(entry, BranchSummaryEntry) else "",
    )


def _whole(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
