"""Opening session files, sound ones and damaged ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_tui.core.entries import EntryHead, MessageEntry, SessionHeader, UnknownEntry
from pi_tui.core.errors import NotASessionError, SessionNotFoundError, StorageError
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.jsonl import open_session

Line = Callable[..., bytes]
Session = Callable[..., Path]

FRAGMENT = b'{"type":"message","id":"e0000007","parentId":"e0000006","timest'


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def ids(heads: tuple[EntryHead, ...]) -> list[str]:
    return [head.id for head in heads]


def test_a_sound_file_is_indexed_and_left_alone(session: Session, line: Line) -> None:
    path = session(line(1, "birch"), line(2, "cedar"))
    before = path.read_bytes()
    opened = open_session(path)
    assert opened.notices == ()
    assert opened.store.path == str(path.resolve())
    assert opened.store.header.cwd == "/home/demo/project"
    assert opened.heads[1] == EntryHead(
        "e0000002", "e0000001", "message", "2025-07-01T00:00:02.000Z", "user"
    )
    loaded = opened.store.load("e0000001")
    assert isinstance(loaded, MessageEntry)
    assert loaded.message.content == "birch"  # type: ignore[union-attr]
    opened.store.close()
    assert path.read_bytes() == before
    assert names_in(path.parent) == [path.name]


# ---------------------------------------------------------------- SES-01


def test_an_unfinished_last_line_is_closed_and_nothing_is_glued_to_it(
    session: Session, line: Line, entry: Callable[..., MessageEntry]
) -> None:
    whole = [line(n) for n in range(1, 7)]
    path = session(*whole, FRAGMENT)
    opened = open_session(path)
    assert len(opened.heads) == 6
    assert opened.heads[-1].id == "e0000006"
    assert len(opened.notices) == 1
    assert "last line was incomplete" in opened.notices[0]
    opened.store.append(entry(8))
    opened.store.close()
    assert path.read_bytes().split(b"\n")[7] == FRAGMENT
    again = open_session(path)
    assert ids(again.heads)[-2:] == ["e0000006", "e0000008"]
    again.store.close()


def test_several_crashes_in_one_file(session: Session, line: Line, entry: Line) -> None:
    path = session(line(1))
    for number in (2, 3, 4):
        with path.open("ab") as file:
            file.write(FRAGMENT)
        opened = open_session(path)
        opened.store.append(entry(number))  # type: ignore[arg-type]
        opened.store.close()
    opened = open_session(path)
    assert ids(opened.heads) == ["e0000001", "e0000002", "e0000003", "e0000004"]
    assert "3 lines could not be read" in opened.notices[0]
    opened.store.close()


def test_a_whole_last_line_without_its_end_counts(session: Session, line: Line) -> None:
    path = session(line(1), line(2).rstrip(b"\n"))
    before = path.read_bytes()
    opened = open_session(path)
    assert len(opened.heads) == 2
    assert opened.notices == ()
    assert path.read_bytes() == before + b"\n"
    opened.store.close()


def test_a_header_without_line_end(session: Session, head_line: Line) -> None:
    path = session(head_line().rstrip(b"\n"), bare=True)
    open_session(path).store.close()
    assert path.read_bytes() == head_line()


# ---------------------------------------------------------------- SES-02


def test_only_line_feeds_end_lines(session: Session, line: Line) -> None:
    texts = ["a\u2028b\u2029c\u0085d", "v\u000bt", "f\u001cs", "cr\rlone", "nul\0"]
    path = session(*(line(n, text) for n, text in enumerate(texts, 1)))
    before = path.read_bytes()
    opened = open_session(path)
    got = [opened.store.load(h.id).message.content for h in opened.heads]  # type: ignore[union-attr]
    assert got == texts
    opened.store.close()
    assert path.read_bytes() == before


def test_a_lone_surrogate_breaks_neither_reading_nor_writing(
    session: Session, line: Line, entry: Callable[..., MessageEntry]
) -> None:
    path = session(line(1).replace(b"quartz", b"x\\ud83dy"))
    opened = open_session(path)
    assert opened.store.load("e0000001").message.content == "x\ufffdy"  # type: ignore[union-attr]
    opened.store.append(entry(2, "x\ud83dy"))
    assert opened.store.load("e0000002").message.content == "x\ufffdy"  # type: ignore[union-attr]
    opened.store.close()


# ---------------------------------------------------------------- damage


def test_crlf_blank_and_bare_lines_are_no_entries(session: Session, line: Line) -> None:
    crlf = line(1).replace(b"\n", b"\r\n")
    path = session(crlf, b"\n", b"   \r\n", b'null\nfalse\n0\n""\n', line(2))
    opened = open_session(path)
    assert ids(opened.heads) == ["e0000001", "e0000002"]
    assert opened.notices == ()
    assert opened.store.load("e0000001").id == "e0000001"
    opened.store.close()


@pytest.mark.parametrize(
    "junk", [b"garbage\n", b"[1,2]\n", b"7\n", b"true\n", b'"text"\n', b"{\n", b"\xff\xfe\n"]
)
def test_a_bad_line_costs_only_itself(session: Session, line: Line, junk: bytes) -> None:
    opened = open_session(session(line(1), junk, line(2)))
    assert ids(opened.heads) == ["e0000001", "e0000002"]
    assert opened.notices == (
        "1 line could not be read and was skipped (line 3). Everything else was read.",
    )
    opened.store.close()


def test_zero_bytes_of_a_crash_hide_no_entry(session: Session, line: Line) -> None:
    zeros = b"\0" * 5000
    path = session(line(1), zeros + line(2), zeros + b"\n", line(3), zeros)
    opened = open_session(path)
    assert ids(opened.heads) == ["e0000001", "e0000002", "e0000003"]
    assert opened.store.load("e0000002").id == "e0000002"
    assert any("zero bytes" in notice for notice in opened.notices)
    opened.store.close()


def test_an_entry_glued_to_a_fragment_is_recovered(session: Session, line: Line) -> None:
    path = session(line(1), FRAGMENT + line(2), line(3).rstrip(b"\n") + line(4))
    opened = open_session(path)
    assert ids(opened.heads) == ["e0000001", "e0000002", "e0000003", "e0000004"]
    assert [opened.store.load(h.id).id for h in opened.heads] == ids(opened.heads)
    assert any("3 entries on damaged lines" in notice for notice in opened.notices)
    opened.store.close()


def test_a_byte_order_mark_before_the_header_is_skipped(
    session: Session, head_line: Line, line: Line
) -> None:
    path = session(b"\xef\xbb\xbf", head_line(), line(1), bare=True)
    opened = open_session(path)
    assert ids(opened.heads) == ["e0000001"]
    assert opened.store.load("e0000001").id == "e0000001"
    opened.store.close()


def test_garbage_and_blank_lines_before_the_header(
    session: Session, head_line: Line, line: Line
) -> None:
    path = session(b"\n\0\0\nnonsense\nnull\n", head_line(), line(1), bare=True)
    opened = open_session(path)
    assert ids(opened.heads) == ["e0000001"]
    assert "before the header" in opened.notices[0]
    opened.store.close()


def test_later_headers_are_no_entries(session: Session, head_line: Line, line: Line) -> None:
    opened = open_session(session(line(1), head_line(id="other"), line(2)))
    assert len(opened.heads) == 2
    assert opened.store.header.id != "other"
    opened.store.close()


def test_equal_ids_the_later_line_wins(session: Session, line: Line) -> None:
    opened = open_session(session(line(1, "old"), line(2), line(1, "new")))
    assert len(opened.heads) == 3
    assert opened.store.load("e0000001").message.content == "new"  # type: ignore[union-attr]
    assert "id of an earlier one" in opened.notices[0]
    opened.store.close()


def test_circles_and_missing_parents_are_told(session: Session, line: Line) -> None:
    path = session(
        line(1, parentId="e0000003"),
        line(2, parentId="e0000001"),
        line(3, parentId="e0000002"),
        line(4, parentId="ffffffff"),
        line(5, parentId="e0000005"),
        line(6, parentId="e0000007"),
        line(7, parentId=None),
    )
    opened = open_session(path)
    assert len(opened.heads) == 7
    assert len([n for n in opened.notices if "own ancestors" in n]) == 1
    assert len([n for n in opened.notices if n.startswith("1 entry named a parent")]) == 1
    opened.store.close()


def test_a_parent_that_follows_its_child_is_no_circle(session: Session, line: Line) -> None:
    opened = open_session(session(line(1, parentId="e0000002"), line(2, parentId=None)))
    assert opened.notices == ()
    opened.store.close()


def test_odd_field_types_do_not_lose_the_entry(session: Session, line: Line) -> None:
    path = session(
        line(1, message=None),
        line(2, message="text"),
        line(3, message={"role": 5}),
        line(4, parentId=7, timestamp=3),
        line(5, type="hologram", message=[1]),
        line(6, type=None),
        line(7, id=7),
    )
    opened = open_session(path)
    assert len(opened.heads) == 6
    assert opened.heads[3].parent_id is None
    assert isinstance(opened.store.load("e0000005"), UnknownEntry)
    for head in opened.heads:
        assert opened.store.load(head.id).id == head.id
    assert any("without an id" in notice for notice in opened.notices)
    opened.store.close()


def test_very_deep_nesting_is_read(session: Session, line: Line) -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    path = session(line(1, zzz="@").replace(b'"@"', deep), line(2))
    opened = open_session(path)
    assert ids(opened.heads) == ["e0000001", "e0000002"]
    assert opened.notices == ()
    assert opened.store.load("e0000001").message.content == "quartz"  # type: ignore[union-attr]
    opened.store.close()


def test_lines_across_block_borders(session: Session, line: Line) -> None:
    class SmallReads(FileSystem):
        def read_at(self, fd: int, length_bytes: int, offset: int) -> bytes:
            return super().read_at(fd, min(length_bytes, 97), offset)

    texts = ["x" * length for length in (0, 50, 97, 300, 1000)]
    path = session(*(line(n, text) for n, text in enumerate(texts, 1)))
    opened = open_session(path, fs=SmallReads())
    got = [opened.store.load(h.id).message.content for h in opened.heads]  # type: ignore[union-attr]
    assert got == texts
    opened.store.close()


# ---------------------------------------------------------------- what is no session


@pytest.mark.parametrize(
    "content",
    [
        b"\n\n",
        b"hello world\nnot json\n",
        b'{"type":"message","id":"a"}\n{"type":"session","version":3,"id":"b"}\n',
        b'{"type":"session","version":3}\n',
        b'{"type":"session","version":3,"id":5}\n',
        b'[1]\n{"type":"session","version":3,"id":"b"}\n',
        b"\0" * 100,
    ],
)
@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_no_session_is_refused_and_untouched(
    session: Session, content: bytes, read_only: bool
) -> None:
    path = session(content, bare=True)
    with pytest.raises(NotASessionError):
        open_session(path, read_only=read_only)
    assert path.read_bytes() == content
    assert names_in(path.parent) == [path.name]


def test_a_huge_file_without_lines_is_refused_soon(tmp_path: Path) -> None:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(10 << 30)  # sparse
    with pytest.raises(NotASessionError):
        open_session(path)


def test_folders_pipes_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(NotASessionError):
        open_session(tmp_path)
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(NotASessionError):
        open_session(tmp_path / "pipe.jsonl")
    with pytest.raises(SessionNotFoundError):
        open_session(tmp_path / "none.jsonl")
    assert names_in(tmp_path) == ["pipe.jsonl"]


@pytest.mark.parametrize("read_only", [False, True])
def test_an_empty_file_given_by_name_is_refused(session: Session, read_only: bool) -> None:
    path = session(b"", bare=True)
    with pytest.raises(NotASessionError, match="the file is empty") as refusal:
        open_session(path, read_only=read_only)
    assert "not touched" in refusal.value.message
    assert path.read_bytes() == b""
    assert names_in(path.parent) == ["s.jsonl"]


def test_an_empty_file_gets_a_header_where_one_is_given(
    session: Session, header: SessionHeader
) -> None:
    path = session(b"", bare=True)
    opened = open_session(path, new_header=lambda: header)
    assert opened.heads == ()
    opened.store.close()
    again = open_session(path)
    assert again.store.header == header
    again.store.close()


def test_an_empty_file_opened_for_reading_stays_empty(
    session: Session, header: SessionHeader
) -> None:
    path = session(b"", bare=True)
    open_session(path, read_only=True, new_header=lambda: header).store.close()
    assert path.read_bytes() == b""


def test_a_newer_format_is_left_alone_and_told(session: Session, head_line: Line) -> None:
    path = session(head_line(version=4), bare=True)
    opened = open_session(path)
    assert "newer program" in opened.notices[0]
    opened.store.close()
    assert path.read_bytes() == head_line(version=4)


def test_reading_only_changes_nothing_at_all(
    session: Session, line: Line, entry: Callable[..., MessageEntry]
) -> None:
    path = session(line(1), FRAGMENT)
    before = path.read_bytes()
    opened = open_session(path, read_only=True)
    assert "left as it is" in opened.notices[0]
    with pytest.raises(StorageError, match="reading only"):
        opened.store.append(entry(2))
    opened.store.close()
    assert path.read_bytes() == before
    assert names_in(path.parent) == [path.name]


# ---------------------------------------------------------------- old versions


def old_file(head_line: Line, version: int | None) -> list[bytes]:
    return [
        head_line(version=version, extra=1),
        b'{"type":"message","message":{"role":"hookMessage","content":"h"},"zzz":[1]}\n',
        b"torn{\n",
        b'{"type":"compaction","summary":"s","firstKeptEntryIndex":1}\n',
        b'{"type":"message","message":{"role":"user","content":"u"}}',
    ]


def test_version_1_is_rewritten_and_the_old_file_kept(
    session: Session,
    head_line: Line,
    stored: Callable[[Path], list[dict[str, object]]],
    entry: Callable[..., MessageEntry],
) -> None:
    path = session(*old_file(head_line, None), bare=True)
    path.chmod(0o640)
    before = path.read_bytes()
    opened = open_session(path)
    assert [h.parent_id for h in opened.heads] == [None, opened.heads[0].id, opened.heads[1].id]
    assert "format version 1" in opened.notices[0]
    assert "1 line could not be read" in opened.notices[1]
    lines = stored(path)
    assert lines[0]["version"] == 3
    assert lines[0]["extra"] == 1
    assert lines[1]["zzz"] == [1]
    assert lines[1]["message"] == {"role": "custom", "content": "h"}
    assert lines[2]["firstKeptEntryId"] == lines[1]["id"]
    assert "firstKeptEntryIndex" not in lines[2]
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.with_name(path.name + ".v1.bak").read_bytes() == before
    opened.store.append(entry(9))
    opened.store.close()
    assert stored(path)[-1]["id"] == "e0000009"
    assert names_in(path.parent) == [path.name, path.name + ".v1.bak"]


def test_version_1_can_be_read_without_rewriting(session: Session, head_line: Line) -> None:
    path = session(*old_file(head_line, 1), bare=True)
    before = path.read_bytes()
    opened = open_session(path, read_only=True)
    assert [opened.store.load(h.id).type for h in opened.heads] == [
        "message",
        "compaction",
        "message",
    ]
    opened.store.close()
    assert path.read_bytes() == before
    assert names_in(path.parent) == [path.name]


def test_a_symbolic_link_to_an_old_file_stays_a_link(session: Session, head_line: Line) -> None:
    path = session(*old_file(head_line, 2), bare=True)
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    open_session(link).store.close()
    assert link.is_symlink()
    assert b'"version":3' in path.read_bytes()
