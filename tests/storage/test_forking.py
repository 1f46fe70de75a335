"""A path of one session as a session of its own."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.errors import StorageError
from pi_tui.core.tree import SessionTree
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.fork import fork_session
from pi_tui.storage.jsonl import open_session
from pi_tui.storage.memory import MemoryStore
from pi_tui.storage.session_file import FileStore

Line = Callable[..., bytes]


@pytest.fixture
def fork_header(header: SessionHeader) -> SessionHeader:
    return msgspec.structs.replace(header, id="fork", parent_session="/source.jsonl")


def test_lines_survive_byte_for_byte_and_links_are_mended(
    session: Callable[..., Path],
    line: Line,
    sessions_directory: Path,
    fork_header: SessionHeader,
    stored: Callable[[str | None], list[dict[str, object]]],
) -> None:
    odd = (
        b'{ "zzz" : {"deep":[1, 2.50]},"type":"hologram","parentId":"e0000001","id":"e0000002",'
        b'"timestamp":"t","x":"\\u00e9\\ud83d"}\n'
    )
    label = line(3, type="label", targetId="e0000001", label="start")
    after = (
        b'{ "type":"compaction", "id":"e0000004","parentId":"e0000003","timestamp":"t",'
        b'"firstKeptEntryId":"e0000003","zzz":[1.50, "\xc3\xa9"]}\n'
    )
    other = line(5, parentId="e0000001")
    opened = open_session(session(line(1), odd, label, after, other))
    tree = SessionTree(opened.heads, opened.store, "e0000004")
    forked = fork_session(
        opened.store,  # type: ignore[arg-type]
        tree.path_ids(),
        tree.labels,
        sessions_directory,
        fork_header,
    )
    raw = Path(forked.store.path or "").read_bytes().split(b"\n")
    assert raw[1] + b"\n" == line(1)
    assert raw[2] + b"\n" == odd
    assert raw[3] == (
        b'{ "type":"compaction", "id":"e0000004","parentId":"e0000002","timestamp":"t",'
        b'"firstKeptEntryId":"e0000004","zzz":[1.50, "\xc3\xa9"]}'
    )
    last = json.loads(raw[4])
    assert (last["type"], last["targetId"], last["label"]) == ("label", "e0000001", "start")
    assert json.loads(raw[0])["parentSession"] == "/source.jsonl"
    assert forked.heads[-1].parent_id == "e0000004"
    assert Path(forked.store.path or "").stat().st_mode & 0o777 == 0o600
    forked.store.close()
    opened.store.close()


def test_odd_lines_that_must_be_relinked_keep_their_fields(
    session: Callable[..., Path], line: Line, sessions_directory: Path, fork_header: SessionHeader
) -> None:
    label = line(1, type="label", targetId="e0000002", label="")
    odd = line(2, zzz="@").replace(b"@", b"\\ud83d")
    opened = open_session(session(label, odd))
    forked = fork_session(
        opened.store,  # type: ignore[arg-type]
        ["e0000001", "e0000002"],
        (),
        sessions_directory,
        fork_header,
    )
    (head,) = forked.heads
    assert (head.id, head.parent_id) == ("e0000002", None)
    copied = Path(forked.store.path or "").read_bytes().split(b"\n")[1] + b"\n"
    assert copied == odd.replace(b'"parentId":"e0000001"', b'"parentId":null')
    forked.store.close()
    opened.store.close()


def test_waiting_entries_and_sessions_in_memory_can_be_forked(
    entry: Callable[..., MessageEntry],
    header: SessionHeader,
    fork_header: SessionHeader,
    sessions_directory: Path,
) -> None:
    source = MemoryStore(header)
    source.append(entry(1, "a\u2028b"))
    source.append(entry(2))
    forked = fork_session(source, ["e0000001", "e0000002"], (), sessions_directory, fork_header)
    assert forked.store.load("e0000001") == entry(1, "a\u2028b")
    forked.store.append(entry(3))
    forked.store.close()


def test_a_fork_before_the_first_entry_has_no_file_yet(
    header: SessionHeader, fork_header: SessionHeader, sessions_directory: Path
) -> None:
    forked = fork_session(MemoryStore(header), [], (), sessions_directory, fork_header)
    assert isinstance(forked.store, FileStore)
    assert not forked.store.exists
    assert not sessions_directory.exists()


def test_a_fork_that_cannot_be_written_leaves_nothing(
    entry: Callable[..., MessageEntry],
    header: SessionHeader,
    fork_header: SessionHeader,
    sessions_directory: Path,
) -> None:
    class Full(FileSystem):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            raise OSError(errno.ENOSPC, "full")

    source = MemoryStore(header)
    source.append(entry(1))
    with pytest.raises(StorageError, match="disk is full"):
        fork_session(source, ["e0000001"], (), sessions_directory, fork_header, fs=Full())
    with pytest.raises(StorageError, match="no such entry"):
        fork_session(source, ["none"], (), sessions_directory, fork_header)
    assert not [path for path in sessions_directory.rglob("*") if path.is_file()]
