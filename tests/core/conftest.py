"""Short ways to write entries, shared by the tests of the core."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pi_tui.core.entries import (
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    EntryHead,
    LabelEntry,
    MessageEntry,
    iso_timestamp,
)
from pi_tui.core.messages import (
    AssistantMessage,
    BashExecutionMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
    text_content,
)

START_MS = 1_750_000_000_000


def user(text="hello", at=0):
    return UserMessage(text, at)


def assistant(text="", *calls, stop="stop", thinking=None, signature=None, total=0, at=0):
    content = []
    if thinking is not None:
        extra = {} if signature is None else {"thinking_signature": signature}
        content.append(ThinkingContent(thinking, **extra))
    if text:
        content.append(TextContent(text))
    content += [
        call if isinstance(call, ToolCall) else ToolCall(call, "read", {}) for call in calls
    ]
    return AssistantMessage(
        content=tuple(content),
        api="scripted",
        provider="acme",
        model="m",
        usage=Usage(total_tokens=total),
        stop_reason="toolUse" if calls and stop == "stop" else stop,
        timestamp=at,
    )


def result(call_id, text="done", at=0):
    return ToolResultMessage(call_id, "read", text_content(text), False, at)


def shell(command="ls", output="a b", *, excluded=False):
    return BashExecutionMessage(command, output, 0, False, False, 0, exclude_from_context=excluded)


def _base(entry_id, parent_id, at):
    return {"id": entry_id, "parent_id": parent_id, "timestamp": iso_timestamp(START_MS + at)}


def entry(entry_id, parent_id, message, at=0):
    return MessageEntry(message=message, **_base(entry_id, parent_id, at))


def compaction(entry_id, parent_id, kept, summary="S", details=None):
    extra = {} if details is None else {"details": details}
    return CompactionEntry(
        summary=summary,
        first_kept_entry_id=kept,
        tokens_before=1,
        **extra,
        **_base(entry_id, parent_id, 0),
    )


def edit(entry_id, parent_id, target, replacement=None):
    return ContextEditEntry(
        target_id=target, replacement=replacement, **_base(entry_id, parent_id, 0)
    )


def label(entry_id, parent_id, target, text, at=0):
    return LabelEntry(target_id=target, label=text, **_base(entry_id, parent_id, at))


def custom(entry_id, parent_id, custom_type, data):
    return CustomEntry(custom_type=custom_type, data=data, **_base(entry_id, parent_id, 0))


def head(entry_id, parent_id, timestamp="2025-01-01T00:00:00.000Z"):
    return EntryHead(entry_id, parent_id, "message", timestamp, "user")


def chain(*items):
    """Entries one after the other: (id, message) pairs, or functions of (parent id)."""
    entries, parent = [], None
    for item in items:
        made = item(parent) if callable(item) else entry(item[0], parent, item[1])
        entries.append(made)
        parent = made.id
    return entries


@pytest.fixture(scope="session")
def make():
    return SimpleNamespace(
        user=user,
        assistant=assistant,
        result=result,
        shell=shell,
        entry=entry,
        compaction=compaction,
        edit=edit,
        label=label,
        custom=custom,
        head=head,
        chain=chain,
    )
