"""What a row of the tree navigator says: one line about an entry, in parts with a role each.

Roles are names of theme colours. Texts come out safe for one line of a terminal. Also the texts in
which a search looks, and the numbers beside a row. Everything here is made for one entry at a time,
when it is looked at. Times are Unix milliseconds.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from msgspec import UNSET, Struct

from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomEntry,
    CustomMessageEntry,
    Entry,
    LabelEntry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    UnknownEntry,
    UsageEntry,
    timestamp_ms,
)
from pi_tui.core.errors import StorageError
from pi_tui.core.leaf import LEAF_TYPE
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    BashExecutionMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    role_of,
    text_of,
)
from pi_tui.core.numbers import compact_count
from pi_tui.core.pins import PIN_TYPE
from pi_tui.core.projection import system_text
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.sanitise import reveal_line, sanitise_line
from pi_tui.core.tokens import valid_usage_tokens
from pi_tui.core.transcript import output_text
from pi_tui.core.tree import SessionTree

ROW_CHARS = 1_000
"""How much of a text is looked at for a row; no terminal is wider."""
CALL_SEARCH_ENTRIES = 200
"""How far above a tool result its call is looked for: one answer makes so many calls at most."""
TOKEN_SEARCH_ENTRIES = 60
"""How far above an entry the last known size of the context is looked for."""

LABEL_ROLE = "warning"
COMPARED_MARK, PINNED_MARK, LEFT_OUT_MARK = "[marked] ", "[pinned] ", "[left out] "

Part: TypeAlias = tuple[str, str]
"""A piece of text and its role."""

_MAIN_ARGUMENTS = ("command", "pattern", "path", "file_path", "query", "url", "name")


class RowMarks(Struct, frozen=True):
    """What stands before a row's text besides its label."""

    pinned: bool = False
    left_out: bool = False
    compared: bool = False
    label_time: str = ""


NO_MARKS = RowMarks()


def row_parts(tree: SessionTree, entry_id: str, marks: RowMarks = NO_MARKS) -> tuple[Part, ...]:
    """The text of a row with what stands before it."""
    return mark_parts(tree, entry_id, marks) + said_parts(tree, entry_id)


def mark_parts(tree: SessionTree, entry_id: str, marks: RowMarks = NO_MARKS) -> tuple[Part, ...]:
    """What stands before the text of a row: the label, then the marks."""
    parts: list[Part] = []
    label = tree.label(entry_id)
    if label is not None:
        when = f" {marks.label_time}" if marks.label_time else ""
        parts.append((f"[{_line(label)}{when}] ", LABEL_ROLE))
    if marks.compared:
        parts.append((COMPARED_MARK, "accent"))
    if marks.pinned:
        parts.append((PINNED_MARK, "accent"))
    if marks.left_out:
        parts.append((LEFT_OUT_MARK, "dim"))
    return tuple(parts)


def said_parts(tree: SessionTree, entry_id: str) -> tuple[Part, ...]:
    """The text of a row alone. An entry that cannot be read says so."""
    try:
        parts = _entry_parts(tree, tree.entry(entry_id))
    except StorageError as error:
        parts = [(f"[cannot be read: {_line(error.message)}]", "error")]
    return tuple(part for part in parts if part[0])


def _entry_parts(tree: SessionTree, entry: Entry) -> list[Part]:
    if isinstance(entry, MessageEntry):
        return _message_parts(tree, entry)
    if isinstance(entry, CompactionEntry):
        size = compact_count(entry.tokens_before)
        return [(f"[compaction: {size} tokens] ", "customMessageLabel"), _dim(entry.summary)]
    if isinstance(entry, BranchSummaryEntry):
        return [("[branch summary]: ", "customMessageLabel"), (_line(entry.summary), "text")]
    if isinstance(entry, CustomMessageEntry):
        name = _line(entry.custom_type) or "extension"
        return [(f"{name}: ", "customMessageLabel"), (_line(text_of(entry.content)), "text")]
    return [(f"[{_backstage(tree, entry)}]", "dim")]


def _message_parts(tree: SessionTree, entry: MessageEntry) -> list[Part]:
    message = entry.message
    if isinstance(message, UserMessage):
        return [("user: ", "accent"), (_content_line(text_of(message.content)), "text")]
    if isinstance(message, AssistantMessage):
        return [("assistant: ", "success"), *_answer_parts(message)]
    if isinstance(message, ToolResultMessage):
        call = find_call(tree, entry)
        said = f"{_line(message.tool_name)}: {main_argument(call.arguments)}" if call else ""
        text = said.removesuffix(": ") or _line(message.tool_name)
        return [(f"[{text}]", "error" if message.is_error else "muted")]
    if isinstance(message, BashExecutionMessage):
        apart = " (not sent)" if message.excluded else ""
        return [(f"[bash]: {_reveal(message.command)}{apart}", "bashMode")]
    if isinstance(message, SystemMessage):
        return [("[system]", "dim")]
    if isinstance(message, CustomMessage):
        name = _line(message.custom_type) or "extension"
        return [(f"{name}: ", "customMessageLabel"), (_line(text_of(message.content)), "text")]
    return [(f"[{_line(role_of(message)) or 'message'}]", "dim")]


def _answer_parts(message: AssistantMessage) -> list[Part]:
    text = _line(message.text)
    parts: list[Part] = []
    if message.stop_reason == "error":
        why = message.error_message if message.error_message is not UNSET else ""
        if text:
            parts.append((f"{text} ", "text"))
        return [*parts, (_line(why) or "the model request failed", "error")]
    if text:
        parts.append((text, "text"))
    elif message.tool_calls:
        calls = ", ".join(_line(call.name) for call in message.tool_calls[:5])
        parts.append((f"(calls {calls})", "muted"))
    elif message.stop_reason != "aborted":
        parts.append(("(no content)", "dim"))
    if message.stop_reason == "aborted":
        parts.append((" (aborted)" if parts else "(aborted)", "warning"))
    return parts


def _backstage(tree: SessionTree, entry: Entry) -> str:
    """What an entry that is no part of the conversation changes."""
    if isinstance(entry, SessionInfoEntry):
        return f"title: {_line(entry.name)}"
    if isinstance(entry, ModelChangeEntry):
        return f"model: {_line(entry.provider)}/{_line(entry.model_id)}"
    if isinstance(entry, ThinkingLevelChangeEntry):
        return f"thinking: {_line(entry.thinking_level)}"
    if isinstance(entry, LabelEntry):
        label = f"label: {_line(entry.label)}" if entry.label else "label removed"
        return f"{label} at {_target(tree, entry.target_id)}"
    if isinstance(entry, ContextEditEntry):
        what = "left out of the context" if entry.replacement is None else "context edit"
        return f"{what}: {_target(tree, entry.target_id)}"
    if isinstance(entry, UsageEntry):
        tokens = entry.usage.sum_tokens if entry.usage is not None else 0
        return f"usage: {_line(entry.kind) or 'tokens'} {compact_count(tokens)}"
    if isinstance(entry, CustomEntry):
        return _custom(tree, entry)
    return _line(entry.type) or "unknown entry"


def _custom(tree: SessionTree, entry: CustomEntry) -> str:
    data = entry.data if isinstance(entry.data, dict) else {}
    if entry.custom_type == PIN_TYPE:
        target = data.get("targetId")
        what = "pin" if data.get("pinned") is True else "pin removed"
        return f"{what}: {_target(tree, target if isinstance(target, str) else '')}"
    if entry.custom_type == LEAF_TYPE:
        return "position"
    return f"custom: {_line(entry.custom_type)}"


def _target(tree: SessionTree, entry_id: str) -> str:
    if entry_id not in tree:
        return _line(entry_id) or "?"
    head = tree.head(entry_id)
    return f"{_line(head.role or head.type)} {_line(entry_id)}"


def row_role(tree: SessionTree, entry_id: str) -> str:
    """What an entry is, in one word for people."""
    head = tree.head(entry_id)
    return {"toolResult": "tool", "bashExecution": "bash"}.get(head.role, head.role or head.type)


def find_call(tree: SessionTree, entry: MessageEntry) -> ToolCall | None:
    """The call a tool result answers, looked for above it; None when it is not there."""
    found = find_call_entry(tree, entry)
    return None if found is None else found[1]


def find_call_entry(tree: SessionTree, entry: MessageEntry) -> tuple[MessageEntry, ToolCall] | None:
    """The answer that made the call of a tool result, and the call."""
    message = entry.message
    if not isinstance(message, ToolResultMessage):
        return None
    at = tree.parent(entry.id)
    for _ in range(CALL_SEARCH_ENTRIES):
        if at is None:
            return None
        head = tree.head(at)
        if head.role == "assistant":
            above = tree.entry(at)
            if isinstance(above, MessageEntry) and isinstance(above.message, AssistantMessage):
                for call in above.message.tool_calls:
                    if call.id == message.tool_call_id:
                        return above, call
            return None
        if head.role == "user":
            return None
        at = tree.parent(at)
    return None


def main_argument(arguments: dict[str, JSON]) -> str:
    """The argument of a call that says most, on one line, with nothing in it hidden."""
    for name in _MAIN_ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            where = arguments.get("path")
            place = f" in {_reveal(where)}" if name == "pattern" and isinstance(where, str) else ""
            return _reveal(value) + place
    return _reveal(_json(arguments)) if arguments else ""


# ---------------------------------------------------------------- searching


class EntryTexts(Struct, frozen=True):
    """All of an entry in which a search looks. `names`: label, what it is, tools, arguments of
    calls, commands, models; `bodies`: what was said, thought, put out or summarised."""

    names: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()


def search_texts(tree: SessionTree, entry_id: str) -> EntryTexts:
    """The texts of an entry, none when it cannot be read.

    A tool result is found by its tool, by each argument of its call and by its output.
    """
    try:
        entry = tree.entry(entry_id)
    except StorageError:
        return EntryTexts()
    names, bodies = _texts(tree, entry)
    named = [tree.label(entry_id) or "", row_role(tree, entry_id), *names]
    return EntryTexts(tuple(filter(None, named)), tuple(filter(None, bodies)))


def _texts(tree: SessionTree, entry: Entry) -> tuple[list[str], list[str]]:
    """Names and bodies."""
    if isinstance(entry, MessageEntry):
        return _message_texts(tree, entry, entry.message)
    if isinstance(entry, CompactionEntry):
        return [], [entry.summary]
    if isinstance(entry, BranchSummaryEntry):
        return ["branch summary"], [entry.summary]
    if isinstance(entry, CustomMessageEntry):
        return [entry.custom_type], [text_of(entry.content)]
    data: JSON = None
    if isinstance(entry, CustomEntry | UnknownEntry):
        data = entry.data
    elif isinstance(entry, ContextEditEntry):
        data = entry.replacement
    return [_backstage(tree, entry)], [] if data is None or data is UNSET else [_json(data)]


def _message_texts(
    tree: SessionTree, entry: MessageEntry, message: Message
) -> tuple[list[str], list[str]]:
    if isinstance(message, UserMessage | CustomMessage):
        return [], [text_of(message.content)]
    if isinstance(message, AssistantMessage):
        names = [message.model]
        for call in message.tool_calls:
            names += [call.name, *_argument_texts(call.arguments)]
        thoughts = (part for part in message.content if isinstance(part, ThinkingContent))
        bodies = [message.text, *(part.thinking for part in thoughts)]
        if message.error_message is not UNSET:
            bodies.append(message.error_message)
        return names, bodies
    if isinstance(message, ToolResultMessage):
        found = find_call(tree, entry)
        arguments = _argument_texts(found.arguments) if found is not None else []
        return [message.tool_name, *arguments], [output_text(message.content)]
    if isinstance(message, BashExecutionMessage):
        return [message.command], [message.output]
    if isinstance(message, SystemMessage):
        return [], [system_text(message)]
    return [], []


def _argument_texts(arguments: dict[str, JSON]) -> list[str]:
    return [value if isinstance(value, str) else _json(value) for value in arguments.values()]


def full_text(tree: SessionTree, entry_id: str) -> str:
    """What is copied of an entry: its plain text, as it was stored."""
    entry = tree.entry(entry_id)
    if isinstance(entry, MessageEntry):
        message = entry.message
        if isinstance(message, AssistantMessage):
            calls = [f"{call.name} {_json(call.arguments)}" for call in message.tool_calls]
            return message.text or "\n".join(calls)
        if isinstance(message, ToolResultMessage):
            return output_text(message.content)
        if isinstance(message, BashExecutionMessage):
            return f"$ {message.command}\n{message.output}"
    names, bodies = _texts(tree, entry)
    return "\n".join(text for text in (*names, *bodies) if text)


# ---------------------------------------------------------------- numbers


def path_tokens(tree: SessionTree, entry_id: str, estimator: TokenEstimator) -> int | None:
    """About how many tokens the context has with this entry at its end.

    From the last answer above that reports it; None when none is near, or a compaction is nearer.
    """
    at: str | None = entry_id
    after = 0
    for _ in range(TOKEN_SEARCH_ENTRIES):
        if at is None:
            return after or None
        if tree.head(at).type == "compaction":
            return None
        try:
            entry = tree.entry(at)
        except StorageError:
            return None
        if isinstance(entry, MessageEntry):
            known = valid_usage_tokens(entry.message)
            if known:
                return known + after
            after += estimator.message_tokens(entry.message)
        at = tree.parent(at)
    return None


def age_text(timestamp: str, now_ms: int) -> str:
    """How long ago: `now`, `5m`, `3h`, `2d`, `6w`, `2y`; "" when the time cannot be read."""
    then = timestamp_ms(timestamp)
    if then is None:
        return ""
    minutes = max(0, now_ms - then) // 60_000
    for limit, size, unit in (
        (60, 1, "m"),
        (48 * 60, 60, "h"),
        (14 * 1440, 1440, "d"),
        (104 * 10080, 10080, "w"),
    ):
        if minutes < limit:
            return "now" if minutes < 1 else f"{minutes // size}{unit}"
    return f"{minutes // 525_600}y"


# ---------------------------------------------------------------- inside


def _line(text: str | None) -> str:
    """The start of a foreign text on one line; blanks in a row become one."""
    return " ".join(sanitise_line((text or "")[:ROW_CHARS]).split())


def _reveal(text: str) -> str:
    """The start of something a person may have to judge, with nothing in it hidden."""
    return reveal_line(text[:ROW_CHARS]).strip()


def _content_line(text: str) -> str:
    return _line(text) or "(no text)"


def _dim(text: str) -> Part:
    return _line(text), "dim"


def _json(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
