"""What the doctor checks in the entries of a session file: ids, parents, targets, pairing."""

from __future__ import annotations

from pi_tui.core.entries import entry_from_data, timestamp_ms
from pi_tui.core.messages import JSON, ToolCall, content_from_data
from pi_tui.core.tree import tree_of
from pi_tui.storage.doctor_reading import SeenFile, StoredLine

KNOWN_TYPES = frozenset(
    {
        "message",
        "model_change",
        "thinking_level_change",
        "usage",
        "compaction",
        "branch_summary",
        "context_edit",
        "custom",
        "custom_message",
        "label",
        "session_info",
    }
)
_KNOWN_ROLES = frozenset({"system", "user", "assistant", "toolResult", "bashExecution", "custom"})
_TARGETS = {"label": "targetId", "context_edit": "targetId"}
_HEX = frozenset("0123456789abcdef")


def check_entries(seen: SeenFile) -> None:
    """Note everything that is odd about the entries of a file of the present format."""
    last_of: dict[str, StoredLine] = {}
    order: dict[str, int] = {}
    for place, line in enumerate(seen.lines):
        entry_id = line.data.get("id")
        if not isinstance(entry_id, str) or not entry_id:
            seen.note("missing-id", line.number)
            continue
        if len(entry_id) != 8 or not _HEX.issuperset(entry_id):
            seen.note("odd-id", line.number)
        if entry_id in last_of:
            seen.note("duplicate-id", line.number)
        last_of[entry_id] = line
        order[entry_id] = place
    for line in seen.lines:
        _check_fields(seen, line, last_of)
        parent = line.data.get("parentId")
        if isinstance(parent, str) and parent not in last_of:
            seen.note("orphan", line.number)
        elif isinstance(parent, str) and order[parent] > order.get(line.id, len(order)):
            seen.note("parent-later", line.number)
    for entry_id in opened_rings(seen):
        seen.note("cycle", last_of[entry_id].number)
    _check_kept(seen, last_of)
    _check_pairing(seen, last_of)


def _check_fields(seen: SeenFile, line: StoredLine, last_of: dict[str, StoredLine]) -> None:
    data, number = line.data, line.number
    kind, message, time = data.get("type"), data.get("message"), data.get("timestamp")
    if not isinstance(kind, str) or not kind:
        seen.note("missing-type", number)
    elif kind not in KNOWN_TYPES:
        seen.note("unknown-type", number)
    elif kind == "message":
        if not isinstance(message, dict):
            seen.note("odd-message", number)
        elif _text(message.get("role")) not in _KNOWN_ROLES:
            seen.note("unknown-role", number)
    elif kind in _TARGETS and _text(data.get(_TARGETS[kind])) not in last_of:
        seen.note("missing-target", number)
    if not isinstance(time, str) or timestamp_ms(time) is None:
        seen.note("odd-time", number)


def opened_rings(seen: SeenFile) -> list[str]:
    """Where the reader opens rings of parents: the entries whose stored parent it ignores."""
    entries = [
        entry_from_data({"type": "", "id": line.id, "parentId": line.parent, "timestamp": ""})
        for line in seen.lines
        if line.id
    ]
    tree = tree_of(entries)
    return [
        entry_id
        for entry_id in tree.ids()
        if tree.parent(entry_id) is None and tree.head(entry_id).parent_id in tree
    ]


def _check_kept(seen: SeenFile, last_of: dict[str, StoredLine]) -> None:
    for line in seen.lines:
        if line.data.get("type") != "compaction" or not line.id:
            continue
        kept = line.data.get("firstKeptEntryId")
        if kept != line.id and not is_ancestor(kept, line, last_of):
            seen.note("kept-missing", line.number)


def is_ancestor(wanted: JSON, line: StoredLine, last_of: dict[str, StoredLine]) -> bool:
    """True when an id stands before an entry on its branch."""
    if not isinstance(wanted, str) or wanted not in last_of:
        return False
    walked: set[str] = set()
    at = line.parent
    while at is not None and at in last_of and at not in walked:
        if at == wanted:
            return True
        walked.add(at)
        at = last_of[at].parent
    return False


def _check_pairing(seen: SeenFile, last_of: dict[str, StoredLine]) -> None:
    """Match results with the calls before them on their branch; entries between may be others."""
    calls: dict[str, set[str]] = {}
    waiting: dict[str, set[str]] = {}
    for entry_id, line in last_of.items():
        message = line.message
        if message.get("role") != "assistant":
            continue
        blocks = content_from_data(message.get("content"))
        calls[entry_id] = {block.id for block in blocks if isinstance(block, ToolCall)}
        # What an answer that failed asked for is never sent and needs no result.
        if message.get("stopReason") not in ("error", "aborted"):
            waiting[entry_id] = set(calls[entry_id])
    for line in last_of.values():
        if line.message.get("role") != "toolResult":
            continue
        asked = _asker(line, last_of)
        call_id = _text(line.message.get("toolCallId"))
        if asked is None or call_id not in calls[asked]:
            seen.note("unpaired-result", line.number)
        elif asked in waiting:
            waiting[asked].discard(call_id)
    for entry_id, unanswered in waiting.items():
        for _ in unanswered:
            seen.note("unanswered-call", last_of[entry_id].number)


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _asker(line: StoredLine, last_of: dict[str, StoredLine]) -> str | None:
    """The assistant message a result follows, over other results and entries without a message."""
    walked: set[str] = set()
    at = line.parent
    while at is not None and at in last_of and at not in walked:
        walked.add(at)
        role = last_of[at].message.get("role")
        if role == "assistant":
            return at
        if role == "user":
            return None
        at = last_of[at].parent
    return None
