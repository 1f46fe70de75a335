"""What fills the context: for people who want to know where the window goes.

Everything is counted by an estimator, so the parts can be compared with each other; what a provider
reported for the whole stands beside them. It must not know how the report is drawn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.compaction.cut import is_unsent
from pi_tui.core.entries import (
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    EntryHead,
    MessageEntry,
)
from pi_tui.core.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ThinkingContent,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from pi_tui.core.pins import pin_targets
from pi_tui.core.projection import Projected, Projection, messages_of
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import estimate_context, sent_tokens

PartKind: TypeAlias = Literal[
    "system", "context-file", "tools", "summary", "pins", "messages", "tool-results"
]
NotSentReason: TypeAlias = Literal[
    "summarised", "left-out", "failed", "excluded", "thinking-only", "empty"
]

PROJECT_SECTION = "project_context"
"""The section of the system prompt in which each context file stands in a frame of its own."""

_CONTEXT_FILE = re.compile(
    r'<project_instructions path="([^"]*)"[^>]*>\n.*?\n</project_instructions>', re.DOTALL
)


class ContextPart(Struct, frozen=True):
    """One thing that takes room. `count`: of how many messages or tools it consists."""

    kind: PartKind
    label: str
    tokens: int
    count: int = 1


class NotSent(Struct, frozen=True):
    """Messages that are on the screen, but not in the context."""

    reason: NotSentReason
    count: int


class ContextReport(Struct, frozen=True):
    """`tokens` is the best estimate of the whole; `is_reported` when a provider's count is in it.

    `parts` are in the order of the request; their sum may differ from `tokens`.
    """

    parts: tuple[ContextPart, ...]
    not_sent: tuple[NotSent, ...]
    tokens: int
    is_reported: bool

    @property
    def estimated_tokens(self) -> int:
        """All parts together."""
        return sum(part.tokens for part in self.parts)


def context_report(
    heads: Sequence[EntryHead],
    path: Sequence[Entry],
    projection: Projection,
    estimator: TokenEstimator,
) -> ContextReport:
    """Break down a context.

    `heads` are those of the whole path, `path` at least the entries that decide the context (see
    `SessionTree.context_path`), both root to leaf.
    """
    parts = [*_system_parts(projection.system_message, estimator)]
    pinned = projection.pinned_ids | pin_targets(path)
    parts += _message_parts(projection, pinned, estimator)
    estimate = estimate_context(path, projection, estimator)
    return ContextReport(
        parts=tuple(part for part in parts if part.tokens),
        not_sent=tuple(_not_sent(heads, path, projection)),
        tokens=estimate.tokens,
        is_reported=estimate.usage_entry_id is not None,
    )


# ---------------------------------------------------------------- system prompt and tools


def _system_parts(
    message: SystemMessage | None, estimator: TokenEstimator
) -> Iterator[ContextPart]:
    if message is None:
        return

    def tokens(text: str) -> int:
        return estimator.message_tokens(UserMessage(text, 0))

    plain = text_of(message.content)
    files: list[ContextPart] = []
    for name, text in (message.sections or {}).items():
        text = text or ""
        if name == PROJECT_SECTION:
            for found in _CONTEXT_FILE.finditer(text):
                path = _unescaped(found[1])
                files.append(ContextPart("context-file", path, tokens(found[0])))
            text = _CONTEXT_FILE.sub("", text)
        plain += text
    yield ContextPart("system", "system prompt", tokens(plain))
    yield from files
    tools = message.tools_added or ()
    if tools:
        declared = SystemMessage("", 0, tools_added=tools)
        size = estimator.message_tokens(declared)
        yield ContextPart("tools", "tool declarations", size, len(tools))


def _unescaped(attribute: str) -> str:
    return attribute.replace("&quot;", '"').replace("&lt;", "<").replace("&amp;", "&")


# ---------------------------------------------------------------- messages


def _message_parts(
    projection: Projection, pinned_ids: frozenset[str], estimator: TokenEstimator
) -> list[ContextPart]:
    sums: dict[tuple[PartKind, str], list[int]] = {}
    for projected in projection.messages:
        message = projected.message
        if isinstance(message, SystemMessage) or is_unsent(message):
            continue
        key = _PINNED if projected.entry_id in pinned_ids else _key(message)
        if key is None:
            continue
        row = sums.setdefault(key, [0, 0])
        row[0] += sent_tokens(message, estimator)
        row[1] += 1
    order: Mapping[PartKind, int] = {"summary": 0, "pins": 1, "messages": 2, "tool-results": 3}
    rows = sorted(sums.items(), key=lambda row: (order[row[0][0]], -row[1][0]))
    return [ContextPart(kind, label, size, count) for (kind, label), (size, count) in rows]


_PINNED: tuple[PartKind, str] = ("pins", "pinned messages")


def _key(message: Message) -> tuple[PartKind, str] | None:
    if isinstance(message, CompactionSummaryMessage):
        return "summary", "summary of earlier messages"
    if isinstance(message, UserMessage):
        return "messages", "your messages"
    if isinstance(message, AssistantMessage):
        return "messages", "answers, thinking and tool calls"
    if isinstance(message, ToolResultMessage):
        return "tool-results", f"results of {message.tool_name}"
    if isinstance(message, BashExecutionMessage):
        return "messages", "your shell commands"
    if isinstance(message, CustomMessage):
        return "messages", "messages of extensions"
    if isinstance(message, BranchSummaryMessage):
        return "messages", "summaries of branches"
    return None


# ---------------------------------------------------------------- what is not sent


def _not_sent(
    heads: Sequence[EntryHead], path: Sequence[Entry], projection: Projection
) -> Iterator[NotSent]:
    selected = {entry.id for entry in projection.selected}
    summarised = sum(_is_message(head) for head in heads if head.id not in selected)
    counts: dict[NotSentReason, int] = {"summarised": summarised}
    given = {p.entry_id for p in projection.messages}
    edits = {e.target_id for e in path if isinstance(e, ContextEditEntry)}
    for entry in projection.selected:
        if entry.id not in given and entry.id in edits and _gives_message(entry):
            counts["left-out"] = counts.get("left-out", 0) + 1
    for reason in _unsendable(projection.messages):
        counts[reason] = counts.get(reason, 0) + 1
    for name, count in counts.items():
        if count:
            yield NotSent(name, count)


def _is_message(head: EntryHead) -> bool:
    if head.type == "message":
        return head.role != "system"
    return head.type in ("custom_message", "branch_summary")


def _gives_message(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry | CustomMessageEntry) and bool(messages_of(entry))


def _unsendable(messages: Iterable[Projected]) -> Iterator[NotSentReason]:
    """Why messages of the projection are not sent: no provider would take them."""
    for projected in messages:
        message = projected.message
        if is_unsent(message):
            yield "excluded"
        elif isinstance(message, AssistantMessage):
            if message.stop_reason in ("error", "aborted"):
                yield "failed"
            elif not message.tool_calls and not message.text.strip():
                thought = any(isinstance(b, ThinkingContent) for b in message.content)
                yield "thinking-only" if thought else "empty"
