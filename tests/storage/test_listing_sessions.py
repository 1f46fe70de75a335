"""Lists of sessions, references to one, the latest of a project."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_tui.core.errors import NotASessionError, SessionNotFoundError
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.library import FileLibrary
from pi_tui.storage.listing import (
    find_session,
    iter_sessions,
    latest_session,
    list_sessions,
)
from pi_tui.storage.names import folder_name

Line = Callable[..., bytes]
Make = Callable[..., Path]


@pytest.fixture
def make(sessions_directory: Path, head_line: Line, line: Line) -> Make:
    """Writes a session of a working directory; `age` orders by time of change."""

    def write(session_id: str, cwd: str, age: int, *lines: bytes, **header: object) -> Path:
        folder = sessions_directory / folder_name(cwd)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"2025-07-01T00-00-01-000Z_{session_id}.jsonl"
        content = lines or (line(1, "first question"), line(2, "second"))
        path.write_bytes(head_line(id=session_id, cwd=cwd, **header) + b"".join(content))
        os.utime(path, (1_751_000_000 - age, 1_751_000_000 - age))
        return path

    return write


class Opens(FileSystem):
    """Counts the session files that are opened."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        if path.endswith(".jsonl"):
            self.paths.append(path)
        return super().open(path, flags, mode)


def test_a_summary_shows_what_a_list_needs(make: Make, sessions_directory: Path) -> None:
    info = b'{"type":"session_info","id":"n1","parentId":null,"timestamp":"","name":"%s"}\n'
    path = make(
        "s1",
        "/p",
        5,
        b'{"type":"message","id":"a","message":{"role":"assistant","content":"no"}}\n',
        b'{"type":"message","id":"b","message":{"role":"user","content":[{"type":"text",'
        b'"text":" hi \\ud83d"},{"type":"image"}]}}\n',
        info % b"old",
        b"garbage\n",
        info % b" new name ",
        b'{"type":"message","id":"c","message":null}\n',
        parentSession="/other.jsonl",
    )
    (found,) = list_sessions(sessions_directory)
    assert found.path == str(path)
    assert (found.id, found.cwd, found.name) == ("s1", "/p", "new name")
    assert found.first_text == "hi \ufffd"
    assert found.message_count == 3
    assert found.created_ms == 1751328001000
    assert found.modified_ms == 1_750_999_995_000
    assert found.size_bytes == path.stat().st_size
    assert found.parent == "/other.jsonl"


def test_the_newest_comes_first_and_the_rest_waits(make: Make, sessions_directory: Path) -> None:
    for number in range(6):
        make(f"s{number}", "/p", 10 - number)
    opens = Opens()
    sessions = iter_sessions(sessions_directory, fs=opens)
    assert [next(sessions).id, next(sessions).id] == ["s5", "s4"]
    assert len(opens.paths) == 2
    assert [s.id for s in sessions] == ["s3", "s2", "s1", "s0"]
    assert [s.id for s in list_sessions(sessions_directory, limit=2)] == ["s5", "s4"]


def test_directories_that_share_a_folder_do_not_mix(make: Make, sessions_directory: Path) -> None:
    assert make("one", "/a/b-c", 1).parent == make("two", "/a-b/c", 2).parent
    assert [s.id for s in list_sessions(sessions_directory, "/a/b-c")] == ["one"]
    assert [s.id for s in list_sessions(sessions_directory, "/a-b/c/")] == ["two"]
    assert (latest_session(sessions_directory, "/a-b/c") or "").endswith("_two.jsonl")
    assert latest_session(sessions_directory, "/a/b/c") is None


def test_the_latest_session_of_a_moved_project_is_not_guessed(
    make: Make, sessions_directory: Path
) -> None:
    make("s1", "/proj-a", 1)
    assert latest_session(sessions_directory, "/proj-b") is None
    assert list_sessions(sessions_directory, "/proj-b") == []
    assert [s.cwd for s in list_sessions(sessions_directory)] == ["/proj-a"]


def test_a_link_to_a_directory_is_the_same_directory(
    make: Make, sessions_directory: Path, tmp_path: Path
) -> None:
    real, link, other = tmp_path / "real", tmp_path / "link", tmp_path / "other"
    real.mkdir()
    other.mkdir()
    link.symlink_to(real)
    by_name = make("by-name", str(real), 1)
    by_link = make("by-link", str(link), 2)
    make("elsewhere", str(other), 0)
    for here in (real, link):
        assert {s.id for s in list_sessions(sessions_directory, str(here))} == {
            "by-name",
            "by-link",
        }
        assert latest_session(sessions_directory, str(here)) == str(by_name)
    by_name.unlink()
    assert latest_session(sessions_directory, str(real)) == str(by_link)
    library = FileLibrary(sessions_directory, str(real))
    assert [row.cwd for row in library.rows(everywhere=False)] == [str(real)]
    assert library.is_here(str(link)) and not library.is_here(str(other))
    assert not library.is_here("") and not library.is_here("a\0b")


def test_a_cache_saves_reading(make: Make, sessions_directory: Path, tmp_path: Path) -> None:
    paths = [make(f"s{n}", "/p", n) for n in range(4)]
    cache = tmp_path / "cache"
    first = list_sessions(sessions_directory, cache_directory=cache)
    opens = Opens()
    assert list_sessions(sessions_directory, cache_directory=cache, fs=opens) == first
    assert opens.paths == []
    with paths[2].open("ab") as file:
        file.write(b'{"type":"session_info","id":"n","name":"named"}\n')
    paths[3].unlink()
    fresh = list_sessions(sessions_directory, cache_directory=cache, fs=opens)
    assert opens.paths == [str(paths[2])]
    assert [(s.id, s.name) for s in fresh] == [("s2", "named"), ("s0", None), ("s1", None)]


def test_a_partly_read_list_is_cached_too(
    make: Make, sessions_directory: Path, tmp_path: Path
) -> None:
    for number in range(3):
        make(f"s{number}", "/p", number)
    sessions = iter_sessions(sessions_directory, cache_directory=tmp_path)
    next(sessions)
    sessions.close()  # type: ignore[attr-defined]
    opens = Opens()
    list_sessions(sessions_directory, cache_directory=tmp_path, fs=opens)
    assert len(opens.paths) == 2


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x92\x01\x80", b"\x92\x63\x80"])
def test_a_broken_cache_is_forgotten(
    make: Make, sessions_directory: Path, tmp_path: Path, content: bytes
) -> None:
    make("s1", "/p", 1)
    (tmp_path / "session-summaries.msgpack").write_bytes(content)
    assert len(list_sessions(sessions_directory, cache_directory=tmp_path)) == 1


def test_what_is_no_session_is_not_listed(make: Make, sessions_directory: Path) -> None:
    path = make("s1", "/p", 1)
    (path.parent / "notes.jsonl").write_bytes(b"notes\n")
    (path.parent / "empty.jsonl").write_bytes(b"")
    (path.parent / (path.name + ".v1.bak")).write_bytes(path.read_bytes())
    (path.parent / "folder.jsonl").mkdir()
    os.mkfifo(path.parent / "pipe.jsonl")
    (path.parent / "dangling.jsonl").symlink_to("/nowhere")
    assert [s.id for s in list_sessions(sessions_directory)] == ["s1"]
    assert list_sessions(sessions_directory / "none") == []


def test_a_file_that_cannot_be_read_is_reported(make: Make, sessions_directory: Path) -> None:
    class Denied(FileSystem):
        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            if path.endswith("_s2.jsonl"):
                raise PermissionError(13, "no")
            return super().open(path, flags, mode)

    make("s1", "/p", 2)
    make("s2", "/p", 1)
    problems: list[str] = []
    found = list_sessions(sessions_directory, fs=Denied(), on_problem=problems.append)
    assert [s.id for s in found] == ["s1"]
    assert len(problems) == 1
    assert "permission was denied" in problems[0]
    assert (latest_session(sessions_directory, "/p", fs=Denied()) or "").endswith("_s1.jsonl")


# ---------------------------------------------------------------- references


def test_a_session_is_found_by_path_id_and_beginning(make: Make, sessions_directory: Path) -> None:
    first = make("0197aa-1", "/p", 1)
    second = make("0197ab-2", "/q", 2)
    renamed = second.with_name("renamed.jsonl")
    second.rename(renamed)
    assert find_session(sessions_directory, str(first)) == str(first)
    assert find_session(sessions_directory, "0197aa-1") == str(first)
    assert find_session(sessions_directory, "0197aa") == str(first)
    assert find_session(sessions_directory, "0197ab") == str(renamed)


def test_a_full_id_goes_before_a_longer_one(make: Make, sessions_directory: Path) -> None:
    exact = make("abc", "/p", 2)
    make("abcd", "/p", 1)
    assert find_session(sessions_directory, "abc") == str(exact)


@pytest.mark.parametrize("reference", ["zzz", "", "/no/such.jsonl", "none.jsonl", "a/b"])
def test_a_reference_nobody_answers_to(
    make: Make, sessions_directory: Path, reference: str
) -> None:
    make("abc", "/p", 1)
    with pytest.raises(SessionNotFoundError, match="There is no session"):
        find_session(sessions_directory, reference)


def test_a_reference_several_answer_to_names_them(make: Make, sessions_directory: Path) -> None:
    make("abc1", "/p", 2)
    make("abc2", "/p", 1)
    with pytest.raises(SessionNotFoundError, match="2 sessions answer") as failure:
        find_session(sessions_directory, "abc")
    assert "abc2, abc1" in (failure.value.hint or "")


# ---------------------------------------------------------------- odd things in the folder


@pytest.fixture
def odd_names(sessions_directory: Path) -> Path:
    """Pipes, folders, empty files and links in a circle that are named like sessions."""
    folder = sessions_directory / "odd"
    folder.mkdir(parents=True)
    for place in (sessions_directory, folder):
        os.mkfifo(place / "2025-07-01T00-00-01-000Z_pipe.jsonl")
        (place / "2025-07-01T00-00-01-000Z_folder.jsonl").mkdir()
        (place / "2025-07-01T00-00-01-000Z_empty.jsonl").touch()
        (place / "2025-07-01T00-00-01-000Z_device.jsonl").symlink_to("/dev/zero")
        circle = place / "2025-07-01T00-00-01-000Z_circle.jsonl"
        circle.symlink_to(circle)
        (place / "circle").symlink_to("circle")
    return sessions_directory


def test_a_list_is_made_around_them(odd_names: Path, make: Make) -> None:
    make("s1", "/p", 1)
    assert [row.id for row in list_sessions(odd_names)] == ["s1"]
    assert latest_session(odd_names, "/p") == find_session(odd_names, "s1")


@pytest.mark.parametrize("name", ["pipe", "folder", "device"])
def test_named_as_a_session_they_are_refused_at_once(odd_names: Path, name: str) -> None:
    path = odd_names / f"2025-07-01T00-00-01-000Z_{name}.jsonl"
    with pytest.raises(NotASessionError, match="not an ordinary file"):
        find_session(odd_names, str(path))


@pytest.mark.parametrize("reference", ["x" * 5000, "x" * 5000 + ".jsonl", "a/" * 3000, "/root/x\0"])
def test_an_impossible_name_is_no_session(sessions_directory: Path, reference: str) -> None:
    with pytest.raises(SessionNotFoundError):
        find_session(sessions_directory, reference)


def test_branches_are_counted_but_not_labels_and_markers(
    make: Make, sessions_directory: Path, line: Line
) -> None:
    make(
        "tree", "/w", 0,
        line(1, "root", parentId=None), line(2, "one", parentId="00000001"),
        line(3, "other", parentId="00000001"), line(4, "third", parentId="00000002"),
        line(5, "fourth", parentId="00000002"),
        b'{"type":"label","id":"0000000a","parentId":"00000002","timestamp":"t","targetId":"x"}\n',
    )  # fmt: skip
    make("line", "/w", 5)
    rows = {row.id: row for row in list_sessions(sessions_directory, "/w")}
    assert (rows["tree"].branch_count, rows["line"].branch_count) == (3, 1)


@pytest.mark.parametrize(
    ("message", "title"),
    [
        (
            '<file name="notes.md">\n- buy milk\n</file>\nturn this into a plan',
            "turn this into a plan",
        ),
        ('<stdin bytes="3">\nabc\n</stdin>\n<file name="a"></file>review this', "review this"),
        (f'<file name="a">{"x" * 5000}</file>\nand now?', "and now?"),
        ('<file name="a">only a file</file>', '<file name="a">only a file</file>'),
        ("<file is what I want to talk about", "<file is what I want to talk about"),
    ],
    ids=["file", "both", "long", "alone", "none"],
)
def test_what_is_attached_is_not_how_a_conversation_begins(
    make: Callable[..., Path], sessions_directory: Path, message: str, title: str
) -> None:
    line = {"type": "message", "id": "a", "message": {"role": "user", "content": message}}
    make("s1", "/p", 5, json.dumps(line).encode() + b"\n")
    (found,) = list_sessions(sessions_directory)
    assert found.first_text == title
