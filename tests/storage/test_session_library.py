"""The stored sessions as pickers see them: list, search, rename, delete, import."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from pi_tui.core.errors import (
    NotASessionError,
    NoTrashError,
    SessionLockedError,
    SessionNotFoundError,
    StorageError,
    UsageError,
)
from pi_tui.core.leaf import LEAF_TYPE
from pi_tui.core.session_library import SessionRow, snapshot_of_opened, threaded
from pi_tui.core.session_search import parse_query
from pi_tui.storage.doctor import examine
from pi_tui.storage.jsonl import open_session
from pi_tui.storage.library import FileLibrary
from pi_tui.storage.trash import Trash

CWD = "/home/demo/project"


@pytest.fixture
def place(tmp_path: Path, head_line: Callable[..., bytes], line: Callable[..., bytes]) -> Any:
    """Writes sessions of a library: `place("name", texts…, cwd=…)`."""
    folder = tmp_path / "sessions" / "--x--"
    folder.mkdir(parents=True)

    def write(name: str, *texts: str, **header: Any) -> Path:
        path = folder / f"2026-01-01T00-00-00-000Z_{name}.jsonl"
        lines = [line(number, text) for number, text in enumerate(texts, 1)]
        path.write_bytes(head_line(id=name, **header) + b"".join(lines))
        return path

    return write


@pytest.fixture
def library(tmp_path: Path) -> FileLibrary:
    return FileLibrary(tmp_path / "sessions", CWD, trash=Trash(tmp_path / "Trash"))


def names(library: FileLibrary, query: str, *, everywhere: bool = True) -> list[str]:
    hits = library.search(parse_query(query), everywhere=everywhere)
    return sorted(hit.row.id for hit in hits)


def test_rows_of_here_and_of_everywhere(library: FileLibrary, place: Any, tmp_path: Path) -> None:
    place("here", "one two")
    place("there", "three", cwd=str(tmp_path))
    assert [row.id for row in library.rows(everywhere=False)] == ["here"]
    rows = {row.id: row for row in library.rows(everywhere=True)}
    assert rows["there"].cwd_exists
    assert not rows["here"].cwd_exists
    assert rows["here"].title == "one two"
    assert rows["here"].message_count == 1


def test_search_looks_at_names_and_texts(library: FileLibrary, place: Any) -> None:
    place("a", "about roses", "and then tulips")
    place("b", "about cars", cwd="/elsewhere")
    assert names(library, "roses") == ["a"]
    assert names(library, "tulips") == ["a"], "beyond the first message"
    assert names(library, "about") == ["a", "b"]
    assert names(library, "about", everywhere=False) == ["a"]
    assert names(library, "about tulips") == ["a"], "terms may stand in different messages"
    assert names(library, '"then tulips"') == ["a"]
    assert names(library, r"re:t\w+ps") == ["a"]
    assert names(library, "absent") == []
    assert names(library, "") == ["a", "b"]


def test_a_hit_shows_where_it_is(library: FileLibrary, place: Any) -> None:
    place("a", "first", "x " * 200 + "tulips\nbloom " + "y " * 200)
    (hit,) = library.search(parse_query("tulips"), everywhere=True)
    assert [hit.excerpt[start:end] for start, end in hit.spans] == ["tulips"]
    assert "\n" not in hit.excerpt
    assert len(hit.excerpt) <= 120


def test_tool_output_is_not_searched(library: FileLibrary, place: Any, line: Any) -> None:
    path = place("a", "first")
    message = {"role": "toolResult", "content": [{"type": "text", "text": "needle"}]}
    with path.open("ab") as file:
        file.write(line(2, message=message))
    assert names(library, "needle") == []


def test_odd_lines_do_not_stop_a_search(library: FileLibrary, place: Any) -> None:
    path = place("a", "first")
    with path.open("ab") as file:
        file.write(b'garbage "user"\n{"type":7,"message":{"role":"user","content":"tulips"}}\n')
        file.write(b'{"type":"message","message":{"role":"user","content":[null,{"type":"text",')
        file.write(b'"text":"roses"}]}}\n')
    assert names(library, "tulips roses") == ["a"]


def test_a_costly_pattern_is_told(library: FileLibrary, place: Any) -> None:
    import random

    place("a", "".join(random.Random(7).choices("ab", k=60_000)))
    with pytest.raises(UsageError, match="too costly"):
        names(library, "re:(a|b)*a(a|b){60}c")


# ---------------------------------------------------------------- threads of forks


def row(name: str, parent: str | None = None) -> SessionRow:
    return SessionRow(f"/s/{name}", name, "", False, name, "", 0, None, 0, 0, parent)


def test_forks_hang_below_their_parents() -> None:
    rows = [row("c", "b"), row("a"), row("b", "/s/a"), row("d", "gone"), row("e", "a")]
    assert [(depth, r.id) for depth, r in threaded(rows)] == [
        (0, "a"),
        (1, "b"),
        (2, "c"),
        (1, "e"),
        (0, "d"),
    ]


def test_a_ring_of_forks_is_listed_once() -> None:
    rows = [row("a", "b"), row("b", "a"), row("c", "c")]
    assert sorted(r.id for _, r in threaded(rows)) == ["a", "b", "c"]


# ---------------------------------------------------------------- rename


def test_rename_keeps_the_place(library: FileLibrary, place: Any, line: Any) -> None:
    path = place("a", "one", "two")
    marker = {"customType": LEAF_TYPE, "data": {"leafId": "e0000001"}, "parentId": "e0000001"}
    with path.open("ab") as file:
        file.write(line(3, type="custom", **marker))
    library.rename(str(path), "  garden\nplan ")
    (found,) = library.rows(everywhere=True)
    assert found.name == "garden plan"
    opened = open_session(path)
    tree = snapshot_of_opened(opened).tree()
    assert tree.path_ids()[:-1] == ["e0000001"]
    opened.store.close()


def test_a_session_in_use_is_neither_renamed_nor_deleted(library: FileLibrary, place: Any) -> None:
    path = place("a", "one")
    before = path.read_bytes()
    opened = open_session(path)
    try:
        for change in (
            lambda: library.rename(str(path), "x"),
            lambda: library.delete(str(path)),
            lambda: library.delete(str(path), for_good=True),
        ):
            with pytest.raises(SessionLockedError):
                change()
    finally:
        opened.store.close()
    assert path.read_bytes() == before


# ---------------------------------------------------------------- delete


def test_delete_moves_to_the_trash(library: FileLibrary, place: Any, tmp_path: Path) -> None:
    content = place("a", "one").read_bytes()
    for _ in range(2):
        path = place("a", "one")
        library.delete(str(path))
        assert not path.exists()
    files = sorted((tmp_path / "Trash" / "files").iterdir())
    assert len(files) == 2
    assert all(file.read_bytes() == content for file in files)
    notes = sorted((tmp_path / "Trash" / "info").iterdir())
    assert [note.name.removesuffix(".trashinfo") for note in notes] == [f.name for f in files]
    words = notes[0].read_text().splitlines()
    assert words[0] == "[Trash Info]"
    assert unquote(words[1]) == f"Path={path}"
    assert words[2].startswith("DeletionDate=20")
    assert list(path.parent.iterdir()) == []


def test_without_a_trash_nothing_is_deleted_unasked(tmp_path: Path, place: Any) -> None:
    library = FileLibrary(tmp_path / "sessions", CWD)
    path = place("a", "one")
    with pytest.raises(NoTrashError):
        library.delete(str(path))
    assert path.exists()
    library.delete(str(path), for_good=True)
    assert not path.exists()


def test_a_trash_that_cannot_be_used_deletes_nothing(tmp_path: Path, place: Any) -> None:
    (tmp_path / "Trash").write_text("a file")
    library = FileLibrary(tmp_path / "sessions", CWD, trash=Trash(tmp_path / "Trash"))
    path = place("a", "one")
    with pytest.raises(NoTrashError, match="not deleted"):
        library.delete(str(path))
    assert path.exists()


def test_only_sessions_are_deleted(library: FileLibrary, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"type":"note"}\n')
    with pytest.raises(NotASessionError):
        library.delete(str(path))
    with pytest.raises(StorageError):
        library.delete(str(tmp_path / "missing.jsonl"))
    assert path.exists()


def test_a_pipe_is_neither_waited_for_nor_deleted(library: FileLibrary, tmp_path: Path) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)
    for attempt in (library.delete, library.open, library.import_file, examine):
        with pytest.raises(StorageError):
            attempt(str(path))
    assert path.exists()


# ---------------------------------------------------------------- import


def test_import_keeps_every_byte_of_the_entries(
    library: FileLibrary, tmp_path: Path, head_line: Any, line: Any
) -> None:
    source = tmp_path / "foreign.jsonl"
    rest = line(1, odd={"a": 1.50}) + b'{"type":"new","id":"x1","parentId":"e0000001","z":1e2}\n'
    source.write_bytes(head_line(cwd="/elsewhere", extra=[1, 2]) + rest)
    opened = library.import_file(str(source))
    copy = Path(opened.store.path or "")
    opened.store.close()
    first, kept = copy.read_bytes().split(b"\n", 1)
    assert kept == rest
    header = json.loads(first)
    assert header["cwd"] == CWD
    assert header["extra"] == [1, 2]
    assert header["id"] == json.loads(source.read_bytes().split(b"\n")[0])["id"]
    assert copy.stat().st_mode & 0o777 == 0o600
    again = library.import_file(str(source))
    assert again.store.header.id != header["id"], "two sessions must not answer to one id"
    again.store.close()


def test_import_takes_old_formats(library: FileLibrary, tmp_path: Path) -> None:
    source = tmp_path / "old.jsonl"
    source.write_text(
        '{"type":"session","id":"s","timestamp":"t","cwd":"/x"}\n'
        '{"type":"message","timestamp":"t","message":{"role":"user","content":"hi"}}\n'
    )
    before = source.read_bytes()
    opened = library.import_file(str(source))
    assert len(opened.heads) == 1
    opened.store.close()
    assert source.read_bytes() == before


def test_import_refuses_what_is_no_session(
    library: FileLibrary, tmp_path: Path, place: Any
) -> None:
    wrong = tmp_path / "x.jsonl"
    wrong.write_text('{"type":"note"}\n')
    with pytest.raises(NotASessionError):
        library.import_file(str(wrong))
    with pytest.raises(NotASessionError):
        library.import_file(str(tmp_path))
    with pytest.raises(SessionNotFoundError):
        library.import_file(str(tmp_path / "missing"))
    known = place("a", "one")
    with pytest.raises(StorageError, match="already"):
        library.import_file(str(known))
    assert [row.id for row in library.rows(everywhere=True)] == ["a"]
