"""From a path of entries to what the model sees of it.

`project` applies the newest compaction, the pins and the context edits of a path; `fold_system`
and `convert_to_llm` turn the projected messages into the parts of a request. Nothing here knows a
provider, a window or a token. Everything returned is frozen and depends on its input alone, so the
same path gives the same bytes and a provider's prompt cache keeps serving them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import UNSET, Struct

from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
    head_of,
    timestamp_ms,
)
from pi_tui.core.frames import framed
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
    content_from_data,
    text_of,
)
from pi_tui.core.pins import pin_targets, with_pin_partners
from pi_tui.core.protocols import RequestMessage

BRANCH_SUMMARY_LEAD = "Summary of a side branch of this conversation that was left:"
COMPACTION_SUMMARY_LEAD = "Summary of the earlier part of this conversation:"
SHELL_LEAD = "Shell command run by the user:"

# Named once: a union written at the place of the test would be built anew for each message.
_Editable = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage
_Plain = (UserMessage, AssistantMessage, ToolResultMessage)


class Projected(Struct, frozen=True):
    """A message the model may see, and the entry it comes from."""

    entry_id: str
    message: Message


class Projection(Struct, frozen=True):
    """The model context of a path.

    `selected`: the entries in context order, also those that give no message; the compaction leads.
    `compaction_id`: the newest compaction on the path. `model`: provider and model id, last used.
    `pinned_ids`: selected entries that are there only because they are pinned.
    """

    messages: tuple[Projected, ...]
    selected: tuple[Entry, ...]
    thinking_level: str
    model: tuple[str, str] | None
    compaction_id: str | None = None
    pinned_ids: frozenset[str] = frozenset()

    @property
    def selected_ids(self) -> tuple[str, ...]:
        """The ids of `selected`."""
        return tuple(entry.id for entry in self.selected)

    @property
    def system_message(self) -> SystemMessage | None:
        """All system messages of the context as one."""
        return fold_system(p.message for p in self.messages if isinstance(p.message, SystemMessage))


def project(path: Sequence[Entry]) -> Projection:
    """Compute the model context of a path, entries root to leaf."""
    newest = _newest_compaction(path)
    compaction_id: str | None = None
    pinned: frozenset[str] = frozenset()
    selected = list(path)
    if newest is not None:
        compaction_id = path[newest].id
        kept = _kept_index(path, newest)
        pins = [path[i] for i in _pinned_before(path, kept)]
        pinned = frozenset(entry.id for entry in pins)
        before = [entry for entry in path[kept:newest] if not _is_system(entry)]
        selected = [path[newest], *pins, *before, *path[newest + 1 :]]
    edits = _edits(path, selected, pinned)
    return Projection(
        messages=tuple(_projected(selected, edits, compaction_id)),
        selected=tuple(selected),
        thinking_level=_thinking_level(path),
        model=_model(path),
        compaction_id=compaction_id,
        pinned_ids=pinned,
    )


# ---------------------------------------------------------------- selection


def _edits(
    path: Sequence[Entry], selected: Iterable[Entry], pinned: frozenset[str]
) -> dict[str, JSON]:
    """The replacements by target; those of pinned entries also from what was summarised.

    A pin brings its entry back from before the kept part, and the edit of it stands back there too:
    a text the user took out or replaced must not return with the pin.
    """
    edits = {
        entry.target_id: entry.replacement
        for entry in (path if pinned else ())
        if isinstance(entry, ContextEditEntry) and entry.target_id in pinned
    }
    for entry in selected:
        if isinstance(entry, ContextEditEntry) and entry.id not in pinned:
            edits[entry.target_id] = entry.replacement
    return edits


def _newest_compaction(path: Sequence[Entry]) -> int | None:
    for i in reversed(range(len(path))):
        if isinstance(path[i], CompactionEntry):
            return i
    return None


def _kept_index(path: Sequence[Entry], compaction: int) -> int:
    """Where the kept entries begin; the compaction's own index when nothing is kept."""
    entry = path[compaction]
    wanted = entry.first_kept_entry_id if isinstance(entry, CompactionEntry) else None
    for i in range(compaction):
        if path[i].id == wanted:
            return i
    return compaction


def _pinned_before(path: Sequence[Entry], kept: int) -> list[int]:
    targets = pin_targets(path)
    if not targets:
        return []
    return sorted(with_pin_partners([head_of(entry) for entry in path[:kept]], targets))


def _is_system(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and isinstance(entry.message, SystemMessage)


def _thinking_level(path: Sequence[Entry]) -> str:
    for entry in reversed(path):
        if isinstance(entry, ThinkingLevelChangeEntry):
            return entry.thinking_level
    return "off"


def _model(path: Sequence[Entry]) -> tuple[str, str] | None:
    for entry in reversed(path):
        if isinstance(entry, ModelChangeEntry):
            return entry.provider, entry.model_id
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            return entry.message.provider, entry.message.model
    return None


# ---------------------------------------------------------------- entries -> messages


def _projected(
    selected: Iterable[Entry], edits: dict[str, JSON], compaction_id: str | None
) -> Iterator[Projected]:
    for entry in selected:
        edited = entry.id in edits
        if edited and edits[entry.id] is None:
            continue
        if isinstance(entry, CompactionEntry) and entry.id != compaction_id:
            continue
        for message in messages_of(entry):
            shown = with_replacement(message, edits[entry.id]) if edited else message
            yield Projected(entry.id, shown)


def messages_of(entry: Entry) -> tuple[Message, ...]:
    """The messages an entry gives by itself, without edits: none, one, or two for a compaction."""
    if isinstance(entry, MessageEntry):
        return (entry.message,)
    if isinstance(entry, CustomMessageEntry):
        return (
            CustomMessage(
                custom_type=entry.custom_type,
                content=entry.content,
                display=entry.display,
                timestamp=timestamp_ms(entry.timestamp) or 0,
                details=entry.details,
            ),
        )
    if isinstance(entry, BranchSummaryEntry):
        return (summary_of(entry),) if entry.summary else ()
    if isinstance(entry, CompactionEntry):
        summary = summary_of(entry)
        return (summary,) if entry.system_message is None else (entry.system_message, summary)
    return ()


def summary_of(entry: BranchSummaryEntry | CompactionEntry) -> Message:
    """The message that carries the summary of an entry."""
    moment = timestamp_ms(entry.timestamp) or 0
    if isinstance(entry, CompactionEntry):
        return CompactionSummaryMessage(entry.summary, entry.tokens_before, moment)
    return BranchSummaryMessage(entry.summary, entry.from_id, moment)


def with_replacement(message: Message, replacement: JSON) -> Message:
    """The message with the content of a context edit; unchanged where an edit cannot apply."""
    content = replacement.get("content") if isinstance(replacement, dict) else None
    if not isinstance(content, (str, list)) or not isinstance(message, _Editable):
        return message
    if isinstance(content, str) and isinstance(message, UserMessage | CustomMessage):
        return msgspec.structs.replace(message, content=content)
    return msgspec.structs.replace(message, content=content_from_data(content))


# ---------------------------------------------------------------- system prompt


def fold_system(messages: Iterable[SystemMessage]) -> SystemMessage | None:
    """Apply system messages one after the other; None when there are none.

    Texts are joined by blank lines. A replaced section keeps its place, one that was removed and
    added again goes last; tools likewise.
    """
    folded: SystemMessage | None = None
    texts: list[str] = []
    sections: dict[str, str] = {}
    tools: dict[str, JSON] = {}
    for message in messages:
        folded = message
        text = text_of(message.content)
        if text:
            texts.append(text)
        for name, section in (message.sections or {}).items():
            if section is None:
                sections.pop(name, None)
            else:
                sections[name] = section
        for name in message.tools_removed or ():
            tools.pop(name, None)
        for tool in message.tools_added or ():
            tools[_tool_name(tool)] = tool
    if folded is None:
        return None
    return SystemMessage(
        content="\n\n".join(texts),
        timestamp=folded.timestamp,
        sections=dict(sections) if sections else None,
        tools_added=tuple(tools.values()) or None,
    )


def system_text(message: SystemMessage) -> str:
    """The text of a system prompt: the content, then the sections, joined by blank lines."""
    texts = [text_of(message.content), *(message.sections or {}).values()]
    return "\n\n".join(text for text in texts if text)


def declared_tools(message: SystemMessage) -> tuple[ToolDeclaration, ...]:
    """The tools a system message declares; what is no declaration is passed over."""
    tools = []
    for tool in message.tools_added or ():
        if isinstance(tool, dict) and isinstance(tool.get("name"), str) and tool["name"]:
            description, parameters = tool.get("description"), tool.get("parameters")
            tools.append(
                ToolDeclaration(
                    name=tool["name"],
                    description=description if isinstance(description, str) else "",
                    parameters=parameters
                    if isinstance(parameters, dict)
                    else {"type": "object", "properties": {}},
                )
            )
    return tuple(tools)


def _tool_name(tool: JSON) -> str:
    name = tool.get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


# ---------------------------------------------------------------- roles of the model


def convert_to_llm(messages: Iterable[Message]) -> tuple[RequestMessage, ...]:
    """Turn projected messages into the roles a model knows.

    Shell commands, extension messages and summaries become user messages. System messages (see
    `fold_system`), excluded shell output and unknown roles are left out. Calls and results are
    passed on as they are; `pairing.repair_pairing` makes a valid request of them.
    """
    return tuple(m for m in map(to_llm, messages) if m is not None)


def to_llm(message: Message) -> RequestMessage | None:
    """One message in a role the model knows; None when it is not sent as a message."""
    if isinstance(message, _Plain):
        return message
    if isinstance(message, CustomMessage):
        return UserMessage(message.content, message.timestamp)
    if isinstance(message, BashExecutionMessage):
        return None if message.excluded else UserMessage(shell_text(message), message.timestamp)
    if isinstance(message, BranchSummaryMessage):
        return UserMessage(_summary_text(BRANCH_SUMMARY_LEAD, message.summary), message.timestamp)
    if isinstance(message, CompactionSummaryMessage):
        return UserMessage(
            _summary_text(COMPACTION_SUMMARY_LEAD, message.summary), message.timestamp
        )
    return None


def _summary_text(lead: str, summary: str) -> str:
    return f"{lead}\n\n<summary>\n{framed(summary, 'summary')}\n</summary>"


def shell_text(message: BashExecutionMessage) -> str:
    """How a command of the user and its output are told to the model."""
    lines = [SHELL_LEAD, _fenced(message.command)]
    lines += ["Output:", _fenced(message.output)] if message.output else ["It printed nothing."]
    if message.cancelled:
        lines.append("It was stopped before it ended.")
    elif message.exit_code:
        lines.append(f"Exit code: {message.exit_code}")
    if message.truncated and message.full_output_path is not UNSET:
        lines.append(f"The output above is shortened; all of it is in {message.full_output_path}")
    return "\n".join(lines)


def _fenced(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
