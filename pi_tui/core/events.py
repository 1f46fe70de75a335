"""Everything a front end can be told, as frozen values, and their JSON form.

Names and JSON fields follow the reference's event stream; what the reference lacks is marked
"own". `entry_appended` is emitted after the entry is durable. Durations are milliseconds.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType, to_builtins

from pi_tui.core.entries import Entry, entry_to_data
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    ContentList,
    Message,
    ToolCall,
    ToolResultMessage,
    Usage,
    content_to_data,
    message_to_data,
)
from pi_tui.core.streaming import (
    Failed,
    ResponseStarted,
    Stopped,
    StreamEvent,
    TextDelta,
    TextEnded,
    TextStarted,
    ThinkingDelta,
    ThinkingSigned,
    ThinkingStarted,
    ToolCallCut,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReport,
)

CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow"]
Activity: TypeAlias = Literal["idle", "running", "compacting", "summarising_branch", "retrying"]
NoticeLevel: TypeAlias = Literal["info", "warning", "error"]


class AgentStart(Struct, frozen=True, tag="agent_start"):
    pass


class AgentEnd(Struct, frozen=True, tag="agent_end"):
    messages: tuple[Message, ...]
    will_retry: bool = False


class AgentSettled(Struct, frozen=True, tag="agent_settled"):
    aborted: bool


class TurnStart(Struct, frozen=True, tag="turn_start"):
    pass


class TurnEnd(Struct, frozen=True, tag="turn_end"):
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...]


class MessageStart(Struct, frozen=True, tag="message_start"):
    """A message begins; for an assistant message its content is still empty."""

    message: Message


class MessageUpdate(Struct, frozen=True, tag="message_update"):
    """One step of the assistant message in progress, as `AnswerEvents` makes them.

    `usage`: the newest counts of this answer, priced; None before the first.
    """

    event: StreamEvent
    usage: Usage | None = None


class MessageEnd(Struct, frozen=True, tag="message_end"):
    message: Message


class ToolExecutionStart(Struct, frozen=True, tag="tool_execution_start"):
    tool_call_id: str
    tool_name: str
    args: dict[str, JSON]


class ToolExecutionUpdate(Struct, frozen=True, tag="tool_execution_update"):
    """`partial` is a snapshot of the output so far (bounded), not a delta."""

    tool_call_id: str
    tool_name: str
    args: dict[str, JSON]
    partial: ContentList


class ToolExecutionEnd(Struct, frozen=True, tag="tool_execution_end"):
    tool_call_id: str
    tool_name: str
    content: ContentList
    is_error: bool
    duration_ms: int
    details: JSON | UnsetType = UNSET


class QueueUpdate(Struct, frozen=True, tag="queue_update"):
    steering: tuple[str, ...]
    follow_up: tuple[str, ...]


class EntryAppended(Struct, frozen=True, tag="entry_appended"):
    entry: Entry


class SessionInfoChanged(Struct, frozen=True, tag="session_info_changed"):
    name: str | None


class ThinkingLevelChanged(Struct, frozen=True, tag="thinking_level_changed"):
    level: str


class ModelChanged(Struct, frozen=True, tag="model_changed"):
    """Own: the session's model is another one now."""

    provider: str
    model_id: str


class CompactionStart(Struct, frozen=True, tag="compaction_start"):
    reason: CompactionReason


class CompactionProgress(Struct, frozen=True, tag="compaction_progress"):
    """Own: which part is being summarised (from 1) and tokens received for it (estimate)."""

    part: int
    parts: int
    received_tokens: int


class CompactionResult(Struct, frozen=True, rename="camel"):
    summary: str
    first_kept_entry_id: str
    tokens_before: int
    estimated_tokens_after: int
    usage: Usage | None = None
    details: JSON | UnsetType = UNSET
    duration_ms: int = 0
    parts: int = 1
    retries: int = 0


class CompactionEnd(Struct, frozen=True, tag="compaction_end"):
    """All from `tokens_before` on is own, and there for every outcome.

    `usage`: what all requests used, priced; also those that brought nothing.
    """

    reason: CompactionReason
    result: CompactionResult | None
    aborted: bool = False
    will_retry: bool = False
    error_message: str | None = None
    tokens_before: int = 0
    duration_ms: int = 0
    retries: int = 0
    parts: int = 0
    usage: Usage | None = None


class BranchSummaryStart(Struct, frozen=True, tag="branch_summary_start"):
    """Own: what was learnt on the branch that is left is being summarised; Escape cancels.

    `target_id` is the entry that was chosen, `entries` and `estimated_tokens` what is summarised.
    """

    target_id: str | None
    old_leaf_id: str | None
    entries: int
    estimated_tokens: int


class BranchSummaryProgress(Struct, frozen=True, tag="branch_summary_progress"):
    """Own: which part is being summarised (from 1) and tokens received for it (estimate)."""

    part: int
    parts: int
    received_tokens: int


class BranchSummaryEnd(Struct, frozen=True, tag="branch_summary_end"):
    """Own: the summary is durable under `entry_id`, and the leaf; or nothing was written.

    Without an entry it was `aborted`, or failed for the reason in `error_message`.
    """

    entry_id: str | None
    aborted: bool = False
    error_message: str | None = None
    usage: Usage | None = None
    duration_ms: int = 0
    parts: int = 0
    retries: int = 0


class AutoRetryStart(Struct, frozen=True, tag="auto_retry_start"):
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class AutoRetryEnd(Struct, frozen=True, tag="auto_retry_end"):
    success: bool
    attempt: int
    final_error: str | None = None


class SummarizationRetryScheduled(Struct, frozen=True, tag="summarization_retry_scheduled"):
    source: Literal["compaction", "branchSummary"]
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class SummarizationRetryAttemptStart(Struct, frozen=True, tag="summarization_retry_attempt_start"):
    source: Literal["compaction", "branchSummary"]
    attempt: int


class SummarizationRetryFinished(Struct, frozen=True, tag="summarization_retry_finished"):
    source: Literal["compaction", "branchSummary"]
    success: bool


class BashExecutionStart(Struct, frozen=True, tag="bash_execution_start"):
    """Own: a `!` command of the user begins."""

    id: str
    command: str
    excluded: bool


class BashExecutionUpdate(Struct, frozen=True, tag="bash_execution_update"):
    """`output` is a bounded snapshot of the end of the output so far."""

    id: str
    output: str


class BashExecutionEnd(Struct, frozen=True, tag="bash_execution_end"):
    """Own: the command ended; its entry, if it could be stored, was appended before."""

    id: str


class LeafMoved(Struct, frozen=True, tag="session_tree"):
    """The leaf is another entry; the transcript must be rebuilt from the path."""

    new_leaf_id: str | None
    old_leaf_id: str | None


class SessionReplaced(Struct, frozen=True, tag="session_start"):
    """The session object now holds another session."""

    reason: Literal["startup", "reload", "new", "resume", "fork"]


class ActivityChanged(Struct, frozen=True, tag="activity_changed"):
    """Own: the one state value of the session. `label` names the work, e.g. a running tool."""

    activity: Activity


class Notice(Struct, frozen=True, tag="notice"):
    """Own: a line for people. Not stored, never sent. `text` may be foreign: sanitise it."""

    level: NoticeLevel
    text: str


Event: TypeAlias = (
    AgentStart
    | AgentEnd
    | AgentSettled
    | TurnStart
    | TurnEnd
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | QueueUpdate
    | EntryAppended
    | SessionInfoChanged
    | ThinkingLevelChanged
    | ModelChanged
    | CompactionStart
    | CompactionProgress
    | CompactionEnd
    | BranchSummaryStart
    | BranchSummaryProgress
    | BranchSummaryEnd
    | AutoRetryStart
    | AutoRetryEnd
    | SummarizationRetryScheduled
    | SummarizationRetryAttemptStart
    | SummarizationRetryFinished
    | BashExecutionStart
    | BashExecutionUpdate
    | BashExecutionEnd
    | LeafMoved
    | SessionReplaced
    | ActivityChanged
    | Notice
)


def event_type(event: Event) -> str:
    """The `type` an event has in JSON."""
    return str(event.__struct_config__.tag)


def event_to_data(event: Event) -> dict[str, JSON]:
    """Encode an event for the JSON and RPC modes, camelCase, `type` first."""
    data: dict[str, JSON] = {"type": event_type(event)}
    if isinstance(event, MessageUpdate):
        data["usage"] = to_builtins(event.usage or Usage())
        data["assistantMessageEvent"] = stream_event_to_data(event.event)
        return data
    if isinstance(event, ToolExecutionEnd):
        data |= {
            "toolCallId": event.tool_call_id,
            "toolName": event.tool_name,
            "result": {"content": content_to_data(event.content)},
            "isError": event.is_error,
            "durationMs": event.duration_ms,
        }
        if event.details is not UNSET:
            data["result"]["details"] = event.details
        return data
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if value is UNSET or (value is None and name in ("result", "error_message", "final_error")):
            continue
        data[_json_name(name)] = _value(name, value)
    return data


def _value(name: str, value: object) -> JSON:
    if name == "message":
        return message_to_data(value)  # type: ignore[arg-type]
    if name in ("messages", "tool_results"):
        return [message_to_data(m) for m in value]  # type: ignore[attr-defined]
    if name == "entry":
        return entry_to_data(value)  # type: ignore[arg-type]
    if name == "partial":
        return {"content": content_to_data(value)}  # type: ignore[arg-type]
    return to_builtins(value)


def _json_name(name: str) -> str:
    if name == "partial":
        return "partialResult"
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def stream_event_to_data(event: StreamEvent) -> dict[str, JSON]:
    """The `assistantMessageEvent` object of one step."""
    kind, more = _step(event)
    index = event.index if not isinstance(event, ResponseStarted | UsageReport) else 0
    return {"type": kind, "contentIndex": index, **more}


def _step(event: StreamEvent) -> tuple[str, dict[str, JSON]]:
    """The type of a step, and what it has besides its index."""
    match event:
        case TextDelta(text=text):
            return "text_delta", {"delta": text}
        case ThinkingDelta(text=text):
            return "thinking_delta", {"delta": text}
        case ToolCallDelta(text=text):
            return "toolcall_delta", {"delta": text}
        case TextStarted():
            return "text_start", {}
        case TextEnded():
            return "text_end", {}
        case ThinkingStarted():
            return "thinking_start", {}
        case ThinkingSigned():
            return "thinking_end", {}
        case ToolCallCut(id=call_id, name=name):
            # Own: `incomplete` marks a call that will not be made; its arguments are not known.
            call = content_to_data((ToolCall(call_id, name, {}),))[0]
            return "toolcall_end", {"toolCall": call, "incomplete": True}
        case ToolCallStarted(id=call_id, name=name):
            return "toolcall_start", {"id": call_id, "toolName": name}
        case ToolCallDone(call=done):
            return "toolcall_end", {"toolCall": content_to_data((done,))[0]}
        case ResponseStarted():
            return "start", {}
        case Failed(reason=failure, error_message=words):
            return "error", {"reason": failure, "errorMessage": words} if words else {
                "reason": failure
            }
        case Stopped(reason=reason):
            return "done", {"reason": reason}
        case UsageReport():
            raise ValueError("counts are told with the next step, not as one")
