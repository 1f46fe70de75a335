"""Session entries and the session header, format v3.

An entry is one line of a session file: frozen, with an id, the id of its parent (None for a root)
and an ISO timestamp. Decoding is tolerant (see `messages`); types nobody knows become
`UnknownEntry`. Fields this program does not know stay in the stored line, which the storage keeps;
these values are for reading, and for writing entries of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pi_tui.core.messages import (
    JSON,
    ContentList,
    Message,
    SystemMessage,
    Usage,
    content_from_data,
    content_to_data,
    message_from_data,
    message_to_data,
    usage_from_data,
)

FORMAT_VERSION = 3


class SessionHeader(Struct, frozen=True, rename="camel"):
    """The first line of a session file. `cwd` is the directory the session belongs to."""

    id: str
    timestamp: str
    cwd: str
    version: int = FORMAT_VERSION
    parent_session: str | UnsetType = UNSET


class EntryHead(Struct, frozen=True, gc=False):
    """What the tree knows of an entry without decoding it. `role` is "" unless type is message."""

    id: str
    parent_id: str | None
    type: str
    timestamp: str
    role: str = ""


class EntryBase(Struct, frozen=True, kw_only=True):
    """Fields every entry has."""

    id: str
    parent_id: str | None
    timestamp: str

    @property
    def type(self) -> str:
        """The name under which the entry is stored."""
        return _TYPES[type(self)]


class MessageEntry(EntryBase, frozen=True, kw_only=True):
    message: Message


class ModelChangeEntry(EntryBase, frozen=True, kw_only=True):
    provider: str
    model_id: str


class ThinkingLevelChangeEntry(EntryBase, frozen=True, kw_only=True):
    thinking_level: str


class UsageEntry(EntryBase, frozen=True, kw_only=True):
    """Tokens spent outside answers, e.g. by a tool that asks a model."""

    kind: str
    provider: str
    model: str
    usage: Usage | None


class CompactionEntry(EntryBase, frozen=True, kw_only=True):
    """Stands for everything before `first_kept_entry_id` (its own id: nothing is kept).

    `details` is the stored object (readFiles, modifiedFiles, …) or whatever stands there.
    """

    summary: str
    first_kept_entry_id: str | None
    tokens_before: int
    system_message: SystemMessage | None = None
    usage: Usage | None = None
    details: JSON | UnsetType = UNSET
    from_hook: bool = False


class BranchSummaryEntry(EntryBase, frozen=True, kw_only=True):
    """What was learnt on the branch whose leaf was `from_id`."""

    from_id: str
    summary: str
    usage: Usage | None = None
    details: JSON | UnsetType = UNSET
    from_hook: bool = False


class ContextEditEntry(EntryBase, frozen=True, kw_only=True):
    """Replaces (`replacement`, an object with `content`) or leaves out (None) another entry."""

    target_id: str
    replacement: JSON


class CustomEntry(EntryBase, frozen=True, kw_only=True):
    """Data of an extension or of this program; never sent."""

    custom_type: str
    data: JSON | UnsetType = UNSET


class CustomMessageEntry(EntryBase, frozen=True, kw_only=True):
    custom_type: str
    content: str | ContentList
    display: bool
    details: JSON | UnsetType = UNSET


class LabelEntry(EntryBase, frozen=True, kw_only=True):
    """Names another entry; an empty or missing label removes the name."""

    target_id: str
    label: str | None = None


class SessionInfoEntry(EntryBase, frozen=True, kw_only=True):
    name: str


class UnknownEntry(EntryBase, frozen=True, kw_only=True):
    """An entry of a type this program does not know; `data` is the whole stored object."""

    type_name: str
    data: JSON

    @property
    def type(self) -> str:
        return self.type_name


Entry: TypeAlias = (
    MessageEntry
    | ModelChangeEntry
    | ThinkingLevelChangeEntry
    | UsageEntry
    | CompactionEntry
    | BranchSummaryEntry
    | ContextEditEntry
    | CustomEntry
    | CustomMessageEntry
    | LabelEntry
    | SessionInfoEntry
    | UnknownEntry
)

_TYPES: dict[type[EntryBase], str] = {
    MessageEntry: "message",
    ModelChangeEntry: "model_change",
    ThinkingLevelChangeEntry: "thinking_level_change",
    UsageEntry: "usage",
    CompactionEntry: "compaction",
    BranchSummaryEntry: "branch_summary",
    ContextEditEntry: "context_edit",
    CustomEntry: "custom",
    CustomMessageEntry: "custom_message",
    LabelEntry: "label",
    SessionInfoEntry: "session_info",
}


# ---------------------------------------------------------------- timestamps


def iso_timestamp(ms: int) -> str:
    """Unix milliseconds as the format writes them: UTC, three decimals, `Z`."""
    moment = datetime.fromtimestamp(ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"


def timestamp_ms(iso: str) -> int | None:
    """Unix milliseconds of an ISO timestamp; None when it cannot be read."""
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


# ---------------------------------------------------------------- JSON -> values


def head_of(entry: Entry) -> EntryHead:
    """The index row of an entry."""
    role = ""
    if isinstance(entry, MessageEntry):
        from pi_tui.core.messages import role_of

        role = role_of(entry.message)
    return EntryHead(entry.id, entry.parent_id, entry.type, entry.timestamp, role)


def entry_from_data(data: Mapping[str, JSON]) -> Entry:
    """Decode a stored entry object; never raises."""
    kind = data.get("type")
    decode = _DECODERS.get(kind) if isinstance(kind, str) else None
    if decode is None:
        return UnknownEntry(
            type_name=kind if isinstance(kind, str) else "", data=dict(data), **_base(data)
        )
    return decode(data)


def _base(d: Mapping[str, JSON]) -> dict[str, JSON]:
    parent = d.get("parentId")
    return {
        "id": _str(d, "id"),
        "parent_id": parent if isinstance(parent, str) else None,
        "timestamp": _str(d, "timestamp"),
    }


def _message(d: Mapping[str, JSON]) -> Entry:
    return MessageEntry(message=message_from_data(d.get("message")), **_base(d))


def _model_change(d: Mapping[str, JSON]) -> Entry:
    return ModelChangeEntry(provider=_str(d, "provider"), model_id=_str(d, "modelId"), **_base(d))


def _thinking(d: Mapping[str, JSON]) -> Entry:
    return ThinkingLevelChangeEntry(thinking_level=_str(d, "thinkingLevel"), **_base(d))


def _usage(d: Mapping[str, JSON]) -> Entry:
    return UsageEntry(
        kind=_str(d, "kind"),
        provider=_str(d, "provider"),
        model=_str(d, "model"),
        usage=usage_from_data(d.get("usage")),
        **_base(d),
    )


def _compaction(d: Mapping[str, JSON]) -> Entry:
    kept = d.get("firstKeptEntryId")
    system = d.get("systemMessage")
    tokens = d.get("tokensBefore")
    folded = message_from_data({**system, "role": "system"}) if isinstance(system, dict) else None
    return CompactionEntry(
        summary=_str(d, "summary"),
        first_kept_entry_id=kept if isinstance(kept, str) else None,
        tokens_before=tokens if isinstance(tokens, int) and not isinstance(tokens, bool) else 0,
        system_message=folded if isinstance(folded, SystemMessage) else None,
        usage=usage_from_data(d.get("usage")),
        details=d.get("details", UNSET),
        from_hook=d.get("fromHook") is True,
        **_base(d),
    )


def _branch_summary(d: Mapping[str, JSON]) -> Entry:
    return BranchSummaryEntry(
        from_id=_str(d, "fromId"),
        summary=_str(d, "summary"),
        usage=usage_from_data(d.get("usage")),
        details=d.get("details", UNSET),
        from_hook=d.get("fromHook") is True,
        **_base(d),
    )


def _context_edit(d: Mapping[str, JSON]) -> Entry:
    return ContextEditEntry(
        target_id=_str(d, "targetId"), replacement=d.get("replacement"), **_base(d)
    )


def _custom(d: Mapping[str, JSON]) -> Entry:
    return CustomEntry(custom_type=_str(d, "customType"), data=d.get("data", UNSET), **_base(d))


def _custom_message(d: Mapping[str, JSON]) -> Entry:
    content = d.get("content")
    return CustomMessageEntry(
        custom_type=_str(d, "customType"),
        content=content if isinstance(content, str) else content_from_data(content),
        display=d.get("display") is True,
        details=d.get("details", UNSET),
        **_base(d),
    )


def _label(d: Mapping[str, JSON]) -> Entry:
    label = d.get("label")
    return LabelEntry(
        target_id=_str(d, "targetId"), label=label if isinstance(label, str) else None, **_base(d)
    )


def _session_info(d: Mapping[str, JSON]) -> Entry:
    return SessionInfoEntry(name=_str(d, "name"), **_base(d))


_DECODERS: dict[str, Callable[[Mapping[str, JSON]], Entry]] = {
    "message": _message,
    "model_change": _model_change,
    "thinking_level_change": _thinking,
    "usage": _usage,
    "compaction": _compaction,
    "branch_summary": _branch_summary,
    "context_edit": _context_edit,
    "custom": _custom,
    "custom_message": _custom_message,
    "label": _label,
    "session_info": _session_info,
}


def _str(data: Mapping[str, JSON], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


# ---------------------------------------------------------------- values -> JSON


def header_to_data(header: SessionHeader) -> dict[str, JSON]:
    """Encode the header line, fields in the order the format shows them."""
    data: dict[str, JSON] = {
        "type": "session",
        "version": header.version,
        "id": header.id,
        "timestamp": header.timestamp,
        "cwd": header.cwd,
    }
    if header.parent_session is not UNSET:
        data["parentSession"] = header.parent_session
    return data


def entry_to_data(entry: Entry) -> dict[str, JSON]:
    """Encode an entry of our own for a stored line; absent optional fields are left out."""
    if isinstance(entry, UnknownEntry):
        return dict(entry.data)
    data: dict[str, JSON] = {
        "type": entry.type,
        "id": entry.id,
        "parentId": entry.parent_id,
        "timestamp": entry.timestamp,
    }
    for name in entry.__struct_fields__:
        if name in ("id", "parent_id", "timestamp"):
            continue
        value = getattr(entry, name)
        if name == "replacement":
            data["replacement"] = value
        elif value is UNSET or value is None or (name == "from_hook" and not value):
            continue
        elif name == "content":
            data["content"] = content_to_data(value)
        elif name in ("message", "system_message"):
            data[_camel(name)] = message_to_data(value)
        else:
            data[_camel(name)] = msgspec.to_builtins(value)
    return data


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)
