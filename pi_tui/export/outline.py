"""The outline of a session for the side of the page: every branch, the current path marked."""

from __future__ import annotations

from msgspec import Struct

from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from pi_tui.core.messages import (
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    UserMessage,
    text_of,
)
from pi_tui.core.numbers import compact_count
from pi_tui.export.contents import Conversation

GLANCE_CHARS = 100
MAX_DEPTH = 8


class Row(Struct, frozen=True):
    """One row. `depth` counts forks, up to a bound; `text` is one line, foreign."""

    entry_id: str
    depth: int
    text: str
    on_path: bool
    is_leaf: bool


def outline(conversation: Conversation) -> list[Row]:
    """The rows, each branch below the entry it leaves from, the current one first."""
    tree = conversation.tree
    texts = {i: text for i in tree.ids() if (text := _text(conversation, tree.entry(i)))}
    order = list(tree.walk())
    shown: set[str] = set()
    for entry_id in reversed(order):
        if entry_id in texts or any(child in shown for child in tree.children(entry_id)):
            shown.add(entry_id)
    leaf = next((i for i in reversed(tree.path_ids()) if i in texts), None)
    rows: list[Row] = []
    waiting = [(i, 0) for i in reversed(_ordered(conversation, tree.roots)) if i in shown]
    while waiting:
        entry_id, depth = waiting.pop()
        if entry_id in texts:
            on_path = entry_id in conversation.path
            rows.append(Row(entry_id, depth, texts[entry_id], on_path, entry_id == leaf))
        below = [i for i in _ordered(conversation, tree.children(entry_id)) if i in shown]
        deeper = min(MAX_DEPTH, depth + (len(below) > 1))
        waiting.extend((child, deeper) for child in reversed(below))
    return rows


def _ordered(conversation: Conversation, ids: tuple[str, ...]) -> list[str]:
    return sorted(ids, key=lambda entry_id: entry_id not in conversation.path)


def _text(conversation: Conversation, entry: Entry) -> str:
    """What the row of an entry says; "" for entries that have none."""
    glance = conversation.glance
    if isinstance(entry, CompactionEntry):
        return f"[compaction: {compact_count(max(0, entry.tokens_before))} tokens]"
    if isinstance(entry, BranchSummaryEntry):
        return f"[branch summary] {glance(entry.summary, GLANCE_CHARS)}" if entry.summary else ""
    if isinstance(entry, CustomMessageEntry):
        return glance(text_of(entry.content), GLANCE_CHARS) if entry.display else ""
    if not isinstance(entry, MessageEntry):
        return ""
    message = entry.message
    if isinstance(message, UserMessage):
        return f"user: {glance(text_of(message.content), GLANCE_CHARS)}"
    if isinstance(message, AssistantMessage):
        return _answer(conversation, message)
    if isinstance(message, BashExecutionMessage) and not message.excluded:
        return f"$ {glance(message.command, GLANCE_CHARS)}"
    if isinstance(message, CustomMessage) and message.display:
        return glance(text_of(message.content), GLANCE_CHARS)
    return ""


def _answer(conversation: Conversation, message: AssistantMessage) -> str:
    text = conversation.glance(message.text, GLANCE_CHARS)
    if text:
        return f"assistant: {text}"
    calls = ", ".join(
        conversation.glance(f"{call.name} {conversation.main_argument(call.arguments)}", 40)
        for call in message.tool_calls[:3]
    )
    return f"[{calls}]" if calls else "assistant: (no text)"
