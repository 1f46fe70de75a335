"""The doctor names what is wrong, and its copy needs no tolerance; the original stays as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import NotASessionError, SessionNotFoundError, StorageError
from pi_tui.core.session_library import snapshot_of_opened
from pi_tui.storage.doctor import examine, write_repaired
from pi_tui.storage.jsonl import open_session

Line = Callable[..., bytes]
CALL = {"type": "toolCall", "id": "k1", "name": "read", "arguments": {}}


def codes(path: Path) -> list[str]:
    return [finding.code for finding in examine(path).findings]


def reading(path: Path) -> tuple[list[str], list[str], list[Any]]:
    """Ids, path and entries as the program reads the file."""
    opened = open_session(path, read_only=True)
    tree = snapshot_of_opened(opened).tree()
    seen = tree.ids(), tree.path_ids(), [tree.parent(i) for i in tree.ids()]
    opened.store.close()
    return seen


def test_a_sound_file(session: Any, line: Line) -> None:
    path = session(line(1), line(2))
    report = examine(path)
    assert report.findings == ()
    assert report.sound
    assert report.entries == 2
    assert "nothing is wrong" in report.text()


@pytest.fixture
def broken(line: Line) -> dict[str, tuple[bytes, ...]]:
    """For each finding a file body that shows it."""
    assistant = {"role": "assistant", "content": [CALL], "stopReason": "toolUse"}
    result = {"role": "toolResult", "toolCallId": "k9", "toolName": "read", "content": []}
    compaction = {"type": "compaction", "summary": "s", "tokensBefore": 1}
    return {
        "garbage": (line(1), b"{not json\n", line(2)),
        "torn": (line(1), line(2)[:-20]),
        "zero-block": (line(1), b"\0" * 64 + b"\n", line(2)),
        "glued": (line(1), b'{"type":"mess' + line(2)),
        "second-header": (line(1), b'{"type":"session","id":"x"}\n'),
        "not-an-entry": (line(1), b"[1,2]\n"),
        "no-line-end": (line(1), line(2)[:-1]),
        "missing-id": (line(1), line(2, id=None), line(3, parentId="e0000001")),
        "odd-id": (line(1, id="not hex"), line(2, parentId="not hex")),
        "duplicate-id": (line(1), line(2), line(2, "again"), line(3)),
        "orphan": (line(1), line(2, parentId="ffffffff"), line(3)),
        "cycle": (line(1, parentId="e0000002"), line(2), line(3)),
        "parent-later": (line(1, parentId="e0000002"), line(2, parentId=None)),
        "missing-type": (line(1), line(2, type="")),
        "unknown-type": (line(1), line(2, type="new")),
        "unknown-role": (line(1), line(2, message={"role": "ghost"})),
        "odd-message": (line(1), line(2, message=None)),
        "odd-time": (line(1, timestamp="yesterday"),),
        "missing-target": (line(1), line(2, type="label", targetId="ffffffff", label="x")),
        "kept-missing": (line(1), line(2, **compaction, firstKeptEntryId="ffffffff"), line(3)),
        "unanswered-call": (line(1), line(2, message=assistant), line(3)),
        "unpaired-result": (line(1), line(2, message=result)),
    }


LEFT_ALONE = {
    "odd-id",
    "parent-later",
    "missing-type",
    "unknown-type",
    "unknown-role",
    "odd-message",
    "odd-time",
    "missing-target",
    "unanswered-call",
    "unpaired-result",
}
MENDED = {
    "garbage",
    "torn",
    "zero-block",
    "glued",
    "second-header",
    "not-an-entry",
    "no-line-end",
    "missing-id",
    "duplicate-id",
    "orphan",
    "cycle",
    "kept-missing",
}


@pytest.mark.parametrize("code", sorted(MENDED | LEFT_ALONE))
def test_it_is_found_and_repaired(
    session: Any, broken: dict[str, tuple[bytes, ...]], tmp_path: Path, code: str
) -> None:
    path = session(*broken[code])
    before = path.read_bytes()
    report = examine(path)
    assert code in [finding.code for finding in report.findings]
    finding = next(f for f in report.findings if f.code == code)
    assert finding.lines
    assert finding.text in report.text()
    copy = tmp_path / "repaired.jsonl"
    write_repaired(path, copy)
    assert path.read_bytes() == before
    assert copy.read_bytes().endswith(b"\n")
    left = [found for found in codes(copy) if found not in LEFT_ALONE]
    assert left == []
    if code not in ("missing-id", "duplicate-id"):
        assert reading(copy) == reading(path)
    else:
        assert set(reading(path)[0]) <= set(reading(copy)[0])
        assert reading(copy)[1] == reading(path)[1]


def test_a_duplicate_is_kept_under_another_id(session: Any, line: Line, tmp_path: Path) -> None:
    path = session(line(1), line(2, "early"), line(2, "late"), line(2, "late"), line(3))
    write_repaired(path, tmp_path / "out")
    text = (tmp_path / "out").read_text()
    assert text.count("early") == 1
    assert text.count("late") == 1
    assert reading(tmp_path / "out")[1] == ["e0000001", "e0000002", "e0000003"]


def test_answered_calls_are_no_finding(session: Any, line: Line) -> None:
    two = [CALL, {**CALL, "id": "k2"}]
    answer = {"role": "toolResult", "toolName": "read", "content": []}
    path = session(
        line(1),
        line(2, message={"role": "assistant", "content": two, "stopReason": "toolUse"}),
        line(3, message={**answer, "toolCallId": "k2"}),
        line(4, type="custom", customType="x"),
        line(5, message={**answer, "toolCallId": "k1"}),
        line(6, message={"role": "assistant", "content": [CALL], "stopReason": "aborted"}),
    )
    assert codes(path) == []


def test_headers(session: Any, line: Line, head_line: Any, tmp_path: Path) -> None:
    bom = session(b"\xef\xbb\xbf" + head_line(), line(1), bare=True)
    assert codes(bom) == ["byte-order-mark"]
    late = session(b"junk\n" + head_line(), line(1), bare=True, name="late")
    assert codes(late) == ["before-header"]
    for path in (bom, late):
        copy = tmp_path / f"{path.name}.copy"
        write_repaired(path, copy)
        assert codes(copy) == []
        assert copy.read_bytes() == head_line() + line(1)
    headless = session(line(1), line(2), bare=True)
    assert codes(headless) == ["header-missing"]
    write_repaired(headless, tmp_path / "new")
    assert reading(tmp_path / "new")[1] == ["e0000001", "e0000002"]


def test_old_formats_are_brought_up_to_date(session: Any, tmp_path: Path) -> None:
    path = session(
        b'{"type":"session","id":"s","timestamp":"t","cwd":"/x"}\n',
        b'{"type":"message","timestamp":"t","message":{"role":"user","content":"hi"}}\n',
        bare=True,
    )
    report = examine(path)
    assert [finding.code for finding in report.findings] == ["older"]
    assert report.sound
    write_repaired(path, tmp_path / "out")
    first = json.loads((tmp_path / "out").read_text().splitlines()[0])
    assert first["version"] == 3


def test_sound_lines_keep_their_bytes(session: Any, line: Line, tmp_path: Path) -> None:
    odd = line(2).replace(b'"quartz"', b'"qu\\u0061rtz" ').replace(b"}\n", b',"x":1.50}\n')
    path = session(line(1), b"junk\n", odd)
    write_repaired(path, tmp_path / "out")
    assert (tmp_path / "out").read_bytes().split(b"\n")[2] + b"\n" == odd


def test_nothing_is_written_over(session: Any, line: Line, tmp_path: Path) -> None:
    path = session(line(1))
    target = tmp_path / "there"
    target.write_text("mine")
    with pytest.raises(StorageError, match="already"):
        write_repaired(path, target)
    with pytest.raises(StorageError, match="already"):
        write_repaired(path, path)
    assert target.read_text() == "mine"


def test_what_is_no_session(session: Any, tmp_path: Path) -> None:
    for path in (session(b"hello\n", bare=True), session(b"", bare=True), tmp_path):
        with pytest.raises(NotASessionError):
            examine(path)
    with pytest.raises(SessionNotFoundError):
        examine(tmp_path / "missing")


def test_the_report_shows_no_text_of_the_conversation(session: Any, line: Line) -> None:
    path = session(line(1, "a secret"), b"another secret\n", line(2, type="\x1b[31m"))
    text = examine(path).text()
    assert "secret" not in text
    assert "\x1b" not in text


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_any_damage_gives_a_copy_that_reads_the_same(
    session: Any, line: Line, tmp_path: Path, data: st.DataObject
) -> None:
    ids = [f"e000000{n}" for n in range(1, 6)]
    lines = []
    for number in range(1, data.draw(st.integers(1, 6)) + 1):
        parent = data.draw(st.sampled_from([*ids, None, "ffffffff"]))
        entry = line(number, id=data.draw(st.sampled_from(ids)), parentId=parent)
        cut = data.draw(st.integers(0, len(entry))) if data.draw(st.booleans()) else len(entry)
        lines.append(entry[:cut])
    path = session(*lines)
    copy = tmp_path / "copy"
    copy.unlink(missing_ok=True)
    write_repaired(path, copy)
    assert [code for code in codes(copy) if code not in LEFT_ALONE] == []
    before, after = reading(path), reading(copy)
    assert before[1] == after[1]
    assert set(before[0]) <= set(after[0])


ODD = [None, [], {}, 7, True, "x", [{}], {"role": []}, {"role": "assistant", "content": {}}]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_odd_values_never_stop_it(
    session: Any, line: Line, tmp_path: Path, data: st.DataObject
) -> None:
    fields = ["type", "id", "parentId", "timestamp", "message", "targetId", "firstKeptEntryId"]
    kinds = ["message", "label", "compaction", "context_edit", "custom"]
    lines = []
    for number in range(1, 4):
        odd = {data.draw(st.sampled_from(fields)): data.draw(st.sampled_from(ODD))}
        lines.append(line(number, **{"type": data.draw(st.sampled_from(kinds)), **odd}))
    path = session(*lines)
    copy = tmp_path / "copy"
    copy.unlink(missing_ok=True)
    write_repaired(path, copy)
    assert [code for code in codes(copy) if code not in LEFT_ALONE] == []
    assert reading(path)[1] == reading(copy)[1] or "missing-id" in codes(path)


# ---------------------------------------------------------------- bytes that are not UTF-8


STRAY = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"]


@pytest.mark.parametrize("stray", STRAY)
def test_bytes_that_are_not_utf8_are_named_and_kept_as_they_are_read(
    session: Any, line: Line, tmp_path: Path, stray: bytes
) -> None:
    bad = line(2, "a@z é", other=1.0).replace(b"@", stray)
    path = session(line(1), bad, line(3))
    before = path.read_bytes()
    report = examine(path)
    assert [(f.code, f.severity, f.lines) for f in report.findings] == [
        ("not-utf8", "warning", (3,))
    ]
    assert not report.sound
    assert "U+FFFD" in report.text() and "line 3" in report.text()
    copy = tmp_path / "repaired.jsonl"
    write_repaired(path, copy)
    assert path.read_bytes() == before
    assert examine(copy).findings == ()
    # Everything else keeps its bytes, and both read the same.
    changed = stray.decode("utf-8", "replace").encode()
    assert copy.read_bytes() == before.replace(b"a%bz" % stray, b"a%bz" % changed)
    assert texts(copy) == texts(path) == ["quartz", f"a{changed.decode()}z é", "quartz"]


def texts(path: Path) -> list[str]:
    opened = open_session(path, read_only=True)
    entries = [opened.store.load(head.id) for head in opened.heads]
    opened.store.close()
    return [entry.message.content for entry in entries]  # type: ignore[attr-defined]


def test_stray_bytes_in_the_header_and_in_a_line_that_is_changed(
    session: Any, line: Line, tmp_path: Path
) -> None:
    path = session(line(1), line(2, "a@", parentId="ffffffff").replace(b"@", b"\xff"))
    data = path.read_bytes().replace(b"/home/demo", b"/home/\xffdemo")
    path.write_bytes(data)
    found = {f.code: f.lines for f in examine(path).findings}
    assert found["not-utf8"] == (1, 3)
    copy = tmp_path / "repaired.jsonl"
    write_repaired(path, copy)
    assert examine(copy).findings == ()
    assert "/home/\ufffddemo" in copy.read_text("utf-8")
    assert texts(copy) == ["quartz", "a\ufffd"]


def test_a_line_that_cannot_be_read_is_garbage_and_nothing_else(session: Any, line: Line) -> None:
    path = session(line(1), b"\xff\xfe nothing\n", line(2))
    assert codes(path) == ["garbage"]


def test_a_line_that_is_put_right_keeps_all_its_other_bytes(tmp_path: Path) -> None:
    odd = (
        b'{ "type": "message","id":"b","parentId": "gone" ,"timestamp":"2026-01-01T00:00:02.000Z",'
        b'"message":{"role":"user","content":"hi","timestamp":2},"mine":[1.50,"\\ud83d"] }'
    )
    path = tmp_path / "odd.jsonl"
    header = {"type": "session", "version": 3, "id": "s", "timestamp": "t", "cwd": "/"}
    path.write_bytes(json.dumps(header).encode() + b"\n" + odd + b"\n")
    target = tmp_path / "repaired.jsonl"
    write_repaired(path, target)
    assert target.read_bytes().splitlines()[1] == odd.replace(b'"gone"', b"null")
