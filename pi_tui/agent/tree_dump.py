"""The whole session tree as JSON data, for scripts and for front ends without a tree panel.

One node an entry, parents before their children, branches in the order of the tree. The one-line
texts are foreign, so they are sanitised here: what reads the dump may print it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec import UNSET

from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    EntryBase,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UsageEntry,
)
from pi_tui.core.errors import StorageError
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
    text_of,
)
from pi_tui.core.numbers import compact_count
from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.transcript import output_text
from pi_tui.core.tree import SessionTree

TEXT_CHARS = 160
_READ_CHARS = 4 * TEXT_CHARS
"""How much of a long text is looked at: blanks and control characters fall away."""

E = TypeVar("E", bound=EntryBase)


def tree_dump(tree: SessionTree, *, hidden: frozenset[str], left_out: frozenset[str]) -> JSON:
    """Describe every entry.

    `{"leafId", "name", "nodes": [{"id", "parentId", "type", "role", "timestamp", "label", "text",
    "onPath", "leaf", "hidden", "leftOut"}]}`; `hidden` marks entries at which a hidden branch
    begins, `leftOut` those of the path that are left out of the context.
    """
    on_path = set(tree.path_ids())
    nodes = [
        {
            "id": entry_id,
            "parentId": tree.parent(entry_id),
            "type": tree.head(entry_id).type,
            "role": tree.head(entry_id).role or None,
            "timestamp": tree.head(entry_id).timestamp,
            "label": _label(tree, entry_id),
            "text": _text(tree, entry_id),
            "onPath": entry_id in on_path,
            "leaf": entry_id == tree.leaf_id,
            "hidden": entry_id in hidden,
            "leftOut": entry_id in left_out,
        }
        for entry_id in tree.walk()
    ]
    return {"leafId": tree.leaf_id, "name": tree.session_name, "nodes": nodes}


def entry_line(entry: Entry) -> str:
    """One safe line that says what an entry is, without its role."""
    describe = _DESCRIBERS.get(type(entry))
    text = f"[{entry.type}]" if describe is None else describe(entry)
    return one_line(text)


def one_line(text: str) -> str:
    """The beginning of a foreign text as one safe line."""
    line = " ".join(sanitise_line(text[:_READ_CHARS]).split())
    return line if len(line) <= TEXT_CHARS else f"{line[: TEXT_CHARS - 1]}…"


def _label(tree: SessionTree, entry_id: str) -> str | None:
    label = tree.label(entry_id)
    return None if label is None else one_line(label)


def _text(tree: SessionTree, entry_id: str) -> str:
    try:
        return entry_line(tree.entry(entry_id))
    except StorageError as error:
        return one_line(f"(cannot be read: {error.text})")


def _of_message(entry: MessageEntry) -> str:
    message = entry.message
    if isinstance(message, AssistantMessage):
        return _of_answer(message)
    if isinstance(message, UserMessage | CustomMessage):
        return text_of(message.content) or "(no text)"
    if isinstance(message, ToolResultMessage):
        failed = " failed" if message.is_error else ""
        return f"[{message.tool_name}{failed}] {output_text(message.content)[:_READ_CHARS]}"
    if isinstance(message, BashExecutionMessage):
        return f"[bash] {message.command}"
    if isinstance(message, SystemMessage):
        return "[system]"
    return "[unknown message]"


def _of_answer(message: AssistantMessage) -> str:
    text = message.text[:_READ_CHARS]
    if not text.strip() and message.tool_calls:
        text = f"[calls {', '.join(call.name for call in message.tool_calls)}]"
    if message.stop_reason == "aborted":
        return f"{text} (aborted)".strip()
    if message.stop_reason == "error":
        why = "" if message.error_message is UNSET else message.error_message
        return f"{text} (failed: {why or 'the model request failed'})".strip()
    return text if text.strip() else "(no content)"


def _of_context_edit(entry: ContextEditEntry) -> str:
    what = "left out" if entry.replacement is None else "changed"
    return f"[context edit: {entry.target_id} {what}]"


def _describer(kind: type[E], describe: Callable[[E], str]) -> Callable[[Entry], str]:
    def checked(entry: Entry) -> str:
        assert isinstance(entry, kind)
        return describe(entry)

    return checked


_DESCRIBERS: dict[type, Callable[[Entry], str]] = {
    MessageEntry: _describer(MessageEntry, _of_message),
    CustomMessageEntry: _describer(
        CustomMessageEntry, lambda entry: text_of(entry.content) or "(no text)"
    ),
    CompactionEntry: _describer(
        CompactionEntry,
        lambda entry: f"[compaction: {compact_count(entry.tokens_before)} tokens]",
    ),
    BranchSummaryEntry: _describer(
        BranchSummaryEntry, lambda entry: f"[branch summary] {entry.summary[:_READ_CHARS]}"
    ),
    ModelChangeEntry: _describer(
        ModelChangeEntry, lambda entry: f"[model: {entry.provider}/{entry.model_id}]"
    ),
    ThinkingLevelChangeEntry: _describer(
        ThinkingLevelChangeEntry, lambda entry: f"[thinking: {entry.thinking_level}]"
    ),
    UsageEntry: _describer(UsageEntry, lambda entry: f"[usage: {entry.kind}]"),
    ContextEditEntry: _describer(ContextEditEntry, _of_context_edit),
    CustomEntry: _describer(CustomEntry, lambda entry: f"[{entry.custom_type}]"),
    LabelEntry: _describer(
        LabelEntry, lambda entry: f"[label of {entry.target_id}: {entry.label or 'removed'}]"
    ),
    SessionInfoEntry: _describer(SessionInfoEntry, lambda entry: f"[title: {entry.name}]"),
}
