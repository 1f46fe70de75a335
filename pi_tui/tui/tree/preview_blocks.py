"""What the preview of the navigator shows of an entry: blocks as in the transcript, all of it.

A tool result is shown with the call it answers, an answer with the results of its calls. Entries
that have no place in the transcript get a plain block. Pure; texts are foreign and raw.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, tzinfo

from msgspec import UNSET, UnsetType

from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    UnknownEntry,
    UsageEntry,
    entry_to_data,
    timestamp_ms,
)
from pi_tui.core.errors import StorageError
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    SystemMessage,
    ToolResultMessage,
    Usage,
)
from pi_tui.core.numbers import compact_count, short_duration
from pi_tui.core.projection import system_text
from pi_tui.core.transcript import (
    AssistantBlock,
    Block,
    CustomBlock,
    NoticeBlock,
    ToolBlock,
    blocks_of,
)
from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_rows import find_call_entry, row_parts

RESULTS_FOLLOWED = 200
"""How many results of one answer are looked for below it."""


def preview_blocks(tree: SessionTree, entry_id: str, zone: tzinfo | None = None) -> list[Block]:
    """The blocks of one entry, a line with its numbers first. Times in `zone`, None: local."""
    try:
        entry = tree.entry(entry_id)
        return [NoticeBlock("facts", "info", facts(tree, entry, zone)), *_body(tree, entry)]
    except StorageError as error:
        return [NoticeBlock("facts", "error", error.text)]


def _body(tree: SessionTree, entry: Entry) -> list[Block]:
    if isinstance(entry, MessageEntry):
        message = entry.message
        if isinstance(message, ToolResultMessage):
            return _tool(tree, entry, message.tool_call_id)
        if isinstance(message, AssistantMessage):
            return blocks_of([entry, *_results(tree, entry)], running=True)
        if isinstance(message, SystemMessage):
            return [CustomBlock(entry.id, "system prompt", system_text(message) or "(empty)")]
    blocks = blocks_of([entry], running=True)
    if isinstance(entry, CompactionEntry | BranchSummaryEntry):
        # The summary as it is; its numbers stand in the line above.
        return [AssistantBlock(entry.id, entry.summary)] if entry.summary else []
    if blocks:
        return blocks
    line = "".join(text for text, _ in row_parts(tree, entry.id))
    return [NoticeBlock(entry.id, "info", line), *_data(entry)]


def _tool(tree: SessionTree, entry: MessageEntry, call_id: str) -> list[Block]:
    found = find_call_entry(tree, entry)
    blocks = blocks_of([entry] if found is None else [found[0], entry])
    return [block for block in blocks if isinstance(block, ToolBlock) and block.call_id == call_id]


def _results(tree: SessionTree, entry: MessageEntry) -> Iterator[Entry]:
    """The tool results that follow an answer, on the active path where it goes on there."""
    path = set(tree.path_ids())
    at = entry.id
    for _ in range(RESULTS_FOLLOWED):
        below = [child for child in tree.children(at) if tree.head(child).role == "toolResult"]
        if not below:
            return
        at = next((child for child in below if child in path), below[0])
        yield tree.entry(at)


def _data(entry: Entry) -> list[Block]:
    data: JSON = None
    if isinstance(entry, CustomEntry):
        data = None if entry.data is UNSET else entry.data
    elif isinstance(entry, UnknownEntry):
        data = entry.data
    else:
        data = entry_to_data(entry)
    if data is None:
        return []
    text = json.dumps(data, ensure_ascii=False, indent=2, default=str)
    fence = "`" * 3
    while fence in text:
        fence += "`"
    return [AssistantBlock(f"{entry.id}:data", f"{fence}json\n{text}\n{fence}")]


def facts(tree: SessionTree, entry: Entry, zone: tzinfo | None = None) -> str:
    """Time, model, tokens, cost, duration and id of an entry, in one line."""
    ms = timestamp_ms(entry.timestamp)
    words: list[str] = []
    if ms is not None:
        words.append(f"{datetime.fromtimestamp(ms / 1000, zone):%Y-%m-%d %H:%M:%S}")
    label = tree.label(entry.id)
    if label is not None:
        words.append(f"label {label}")
    words += _message_facts(entry)
    words.append(f"id {entry.id}")
    return " · ".join(words)


def _message_facts(entry: Entry) -> list[str]:
    if isinstance(entry, CompactionEntry):
        details = entry.details if isinstance(entry.details, dict) else {}
        after = details.get("estimatedTokensAfter")
        to = f" → {compact_count(after)}" if isinstance(after, int) else ""
        size = f"compacted {compact_count(entry.tokens_before)}{to} tokens"
        return [size, *_usage_facts(entry.usage)]
    if isinstance(entry, BranchSummaryEntry):
        return [
            "branch summary",
            *_sizes(entry.details),
            f"from {entry.from_id}",
            *_usage_facts(entry.usage),
        ]
    if isinstance(entry, UsageEntry):
        return [f"{entry.provider}/{entry.model}", *_usage_facts(entry.usage)]
    if not isinstance(entry, MessageEntry):
        return []
    message = entry.message
    words: list[str] = []
    if isinstance(message, AssistantMessage):
        words.append(f"{message.provider}/{message.model}")
        if message.thinking_level is not UNSET:
            words.append(f"thinking {message.thinking_level}")
        words += _usage_facts(message.usage)
    elif isinstance(message, ToolResultMessage) and message.usage is not UNSET:
        words += _usage_facts(message.usage)
    if isinstance(message, AssistantMessage | ToolResultMessage):
        if message.duration_ms is not UNSET:
            words.append(short_duration(message.duration_ms))
        if isinstance(message, AssistantMessage) and message.stop_reason not in ("stop", "toolUse"):
            words.append(str(message.stop_reason))
    return words


def _sizes(details: JSON | UnsetType) -> list[str]:
    """How large a branch was and how large its summary is, where that was noted."""
    noted = details if isinstance(details, dict) else {}
    before, after = noted.get("estimatedTokens"), noted.get("estimatedTokensAfter")
    if not isinstance(before, int) or not isinstance(after, int):
        return []
    return [f"{compact_count(before)} → {compact_count(after)} tokens"]


def _usage_facts(usage: Usage | None) -> list[str]:
    if usage is None or not usage.sum_tokens:
        return []
    words = [f"{compact_count(usage.input or 0)} in", f"{compact_count(usage.output or 0)} out"]
    if usage.cache_read:
        words.append(f"{compact_count(usage.cache_read)} cached")
    if usage.cache_write:
        words.append(f"{compact_count(usage.cache_write)} cache written")
    if usage.cost.total:
        words.append(f"${usage.cost.total:.4f}")
    return words
