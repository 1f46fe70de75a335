"""Damaged and odd session files: what opens, with what, and what is left on disk."""

from pi_tui.core.entries import SessionHeader
from pi_tui.core.errors import NotASessionError
from pi_tui.core.messages import role_of
from pi_tui.core.projection import project
from pi_tui.core.tree import SessionTree
from pi_tui.storage.jsonl import open_session

GROUP = "malformed"


def content_of(parts):
    pieces = []
    for part in parts:
        if "hex" in part:
            pieces.append(bytes.fromhex(part["hex"]))
        elif "repeat" in part:
            pieces.append(part["repeat"].encode() * part["count"])
        else:
            pieces.append(part["text"].encode())
    return b"".join(pieces)


def what_became_of(before, after):
    if after == before:
        return "unchanged"
    if after == before + b"\n":
        return "newline-appended"
    return "header-written" if not before else "rewritten"


def opened(path):
    count = iter(range(1, 10_000))
    try:
        session = open_session(
            path,
            new_header=lambda: SessionHeader("<generated>", "2025-07-01T00:00:00.000Z", "/x"),
            new_id=lambda: f"#{next(count)}",
        )
    except NotASessionError:
        return {"opens": False, "reason": "not-a-session"}
    store, heads = session.store, session.heads
    tree = SessionTree(heads, store)
    try:
        return {
            "opens": True,
            "sessionId": store.header.id,
            "entryCount": len(heads),
            "entryTypes": [head.type for head in heads],
            "entryIds": [head.id for head in heads],
            "leafId": tree.leaf_id,
            "roots": list(tree.roots),
            "leafPath": tree.path_ids(),
            "messages": [
                {"entryId": p.entry_id, "role": role_of(p.message)}
                for p in project(tree.path()).messages
            ],
        }
    finally:
        store.close()


def test_malformed(case, expected, check, tmp_path):
    path = tmp_path / "session.jsonl"
    before = content_of(case["input"]["parts"])
    path.write_bytes(before)
    found = opened(path)
    found["fileAfter"] = what_became_of(before, path.read_bytes())
    check(found, expected)
