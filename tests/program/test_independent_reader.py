"""A session of ours, read back by a reader written from the description of the format alone.

It shares no code with the program: it checks every line against the fields the format requires and
rebuilds the path the way the reference does.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z")
ID = re.compile(r"[0-9a-f]{8}\Z")
ENTRY_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "message": {"message": dict},
    "model_change": {"provider": str, "modelId": str},
    "thinking_level_change": {"thinkingLevel": str},
    "compaction": {"summary": str, "firstKeptEntryId": str, "tokensBefore": int},
    "branch_summary": {"fromId": str, "summary": str},
    "context_edit": {"targetId": str},
    "custom": {"customType": str},
    "label": {"targetId": str},
    "session_info": {"name": str},
}
MESSAGE_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "system": {"content": (str, list), "timestamp": int},
    "user": {"content": (str, list), "timestamp": int},
    "assistant": {
        "content": list,
        "api": str,
        "provider": str,
        "model": str,
        "usage": dict,
        "stopReason": str,
        "timestamp": int,
    },
    "toolResult": {
        "toolCallId": str,
        "toolName": str,
        "content": list,
        "isError": bool,
        "timestamp": int,
    },
}
USAGE_FIELDS = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")


def check(data: dict[str, Any], fields: dict[str, Any]) -> None:
    for name, kind in fields.items():
        assert isinstance(data[name], kind), (name, data)


def read(raw: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Header and entries; every line is complete and valid by itself."""
    assert raw.endswith(b"\n")
    header, *entries = [json.loads(line) for line in raw[:-1].split(b"\n")]
    assert header["type"] == "session" and header["version"] == 3
    check(header, {"id": str, "timestamp": str, "cwd": str})
    assert ISO.match(header["timestamp"])
    known: set[str] = set()
    for entry in entries:
        assert ID.match(entry["id"]) and entry["id"] not in known
        assert entry["parentId"] is None or entry["parentId"] in known
        assert ISO.match(entry["timestamp"])
        datetime.fromisoformat(entry["timestamp"])
        known.add(entry["id"])
        check(entry, ENTRY_FIELDS[entry["type"]])
        if entry["type"] == "message":
            check_message(entry["message"])
    return header, entries


def check_message(message: dict[str, Any]) -> None:
    check(message, MESSAGE_FIELDS[message["role"]])
    assert message["timestamp"] > 1_600_000_000_000, "milliseconds"
    if message["role"] == "assistant":
        check(message["usage"], dict.fromkeys(USAGE_FIELDS, int) | {"cost": dict})
        check(message["usage"]["cost"], {"total": (int, float)})
        for block in message["content"]:
            if block["type"] == "toolCall":
                check(block, {"id": str, "name": str, "arguments": dict})


def path_of(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_id = {entry["id"]: entry for entry in entries}
    at: str | None = entries[-1]["id"]
    path = []
    while at is not None:
        path.append(by_id[at])
        at = by_id[at]["parentId"]
    return path[::-1]


def test_a_conversation_with_tools_names_pins_and_moves(program):
    (program.project / "a.txt").write_text("one\ntwo\n")
    program.run("-p", "--name", "a trial", "change it")
    _, entries = read(program.session_files()[0].read_bytes())
    answer = next(
        e for e in entries if e["type"] == "message" and e["message"]["role"] == "assistant"
    )
    for command in (
        f"/label {answer['id']} here",
        "/pin",
        "/thinking",
        f"/tree {answer['id']}",
        "on from there",
        "/compact --keep 1",
    ):
        program.run("-p", "--continue", command)
    header, entries = read(program.session_files()[0].read_bytes())
    assert header["cwd"] == str(program.project)
    kinds = {entry["type"] for entry in entries}
    assert {"message", "label", "session_info", "custom"} <= kinds
    path = path_of(entries)
    said = [
        e["message"]["content"][0]["text"]
        for e in path
        if e["type"] == "message" and e["message"]["role"] == "user"
    ]
    assert said == ["change it", "on from there"]
    # What came after the place we went back to is on the other branch, not lost.
    assert answer["id"] in [e["id"] for e in path]
    assert len(entries) > len(path)
