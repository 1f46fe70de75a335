"""Appending to a session: the new file, what disks refuse, what others do to the file."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_tui.core.entries import CustomEntry, MessageEntry, SessionHeader
from pi_tui.core.errors import SessionLockedError, StorageError
from pi_tui.core.messages import AssistantMessage, ToolCall
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.jsonl import create_session, open_session
from pi_tui.storage.lock import acquire
from pi_tui.storage.memory import MemoryStore
from pi_tui.storage.names import file_name, folder_name, new_session_id
from pi_tui.storage.session_file import FileStore

Entries = Callable[..., MessageEntry]
Stored = Callable[[str | Path | None], list[dict[str, object]]]


class Refusing(FileSystem):
    """Refuses writes with an error while one is set; writes a little first if asked to."""

    def __init__(self) -> None:
        self.error = 0
        self.partial_bytes = 0
        self.refuse_truncate = False
        self.refuse_open = 0

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        if self.refuse_open and flags & (os.O_RDWR | os.O_CREAT):
            raise OSError(self.refuse_open, os.strerror(self.refuse_open))
        return super().open(path, flags, mode)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        if not self.error:
            return super().write(fd, data)
        if self.partial_bytes and len(data) > self.partial_bytes:
            taken, self.partial_bytes = self.partial_bytes, 0
            return super().write(fd, data[:taken])
        raise OSError(self.error, os.strerror(self.error))

    def truncate(self, fd: int, size_bytes: int) -> None:
        if self.refuse_truncate:
            raise OSError(errno.EPERM, "no")
        super().truncate(fd, size_bytes)


@pytest.fixture
def refusing() -> Refusing:
    return Refusing()


@pytest.fixture
def store(sessions_directory: Path, header: SessionHeader, refusing: Refusing) -> FileStore:
    return create_session(sessions_directory, header, fs=refusing)


def ids_in(lines: list[dict[str, object]]) -> list[object]:
    return [line["id"] for line in lines[1:]]


# ---------------------------------------------------------------- the new file


def test_a_session_without_entries_leaves_nothing_behind(
    store: FileStore, sessions_directory: Path
) -> None:
    assert store.path is not None
    assert not store.exists
    store.sync()
    store.close()
    assert not sessions_directory.exists()


def test_header_and_first_entry_come_in_one_write(
    sessions_directory: Path, header: SessionHeader, entry: Entries, stored: Stored
) -> None:
    class Counting(FileSystem):
        writes = 0

        def write(self, fd: int, data: bytes | memoryview) -> int:
            self.writes += b'"cwd"' in bytes(data) or b'"parentId"' in bytes(data)
            return super().write(fd, data)

    fs = Counting()
    store = create_session(sessions_directory, header, fs=fs)
    store.append(entry(1))
    assert fs.writes == 1
    store.append(entry(2))
    assert fs.writes == 2
    assert [line["type"] for line in stored(store.path)] == ["session", "message", "message"]
    store.close()


def test_files_and_folders_are_private(
    store: FileStore, sessions_directory: Path, entry: Entries
) -> None:
    before = os.umask(0)
    try:
        store.append(entry(1))
    finally:
        os.umask(before)
    path = Path(store.path or "")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(sessions_directory.stat().st_mode) == 0o700
    store.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_names_of_files_and_folders(header: SessionHeader) -> None:
    assert folder_name("/home/demo/project") == "--home-demo-project--"
    assert folder_name("C:\\work\\x") == "--C--work-x--"
    assert folder_name("/a/b-c") == folder_name("/a-b/c")
    assert len(os.fsencode(folder_name("/é" * 400))) <= 255
    assert file_name(header) == (
        "2025-07-01T00-00-01-000Z_0197c000-1111-7111-8111-6709c46a50bb.jsonl"
    )
    first, second = new_session_id(), new_session_id()
    assert first != second
    assert first[14] == "7"
    assert first[:8] <= second[:8]


def test_a_foreign_file_of_the_same_name_is_not_touched(store: FileStore, entry: Entries) -> None:
    path = Path(store.path or "")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    with pytest.raises(StorageError, match="name of this session already"):
        store.append(entry(1))
    assert path.read_bytes() == b"mine"
    assert store.load("e0000001") == entry(1)


def test_written_entries_are_read_back_in_any_order(store: FileStore, entry: Entries) -> None:
    for number in range(1, 20):
        store.append(entry(number, "é😀" * number))
    for number in (7, 1, 19):
        assert store.load(f"e{number:07x}") == entry(number, "é😀" * number)
    store.close()
    with pytest.raises(StorageError, match="closed"):
        store.load("e0000001")
    with pytest.raises(StorageError, match="closed"):
        store.append(entry(20))


def test_absurdly_nested_arguments_are_stored_with_a_remark(
    store: FileStore, stored: Stored
) -> None:
    deep: object = "end"
    for _ in range(5000):
        deep = [deep]
    message = AssistantMessage(
        (ToolCall("k1", "t", {"x": deep}),), "a", "p", "m", None, "toolUse", 0
    )
    store.append(MessageEntry(id="a", parent_id=None, timestamp="", message=message))
    assert "nested too deeply" in json.dumps(stored(store.path)[1])
    assert store.load("a").id == "a"
    store.close()


# ---------------------------------------------------------------- the disk refuses


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.ENOSPC, "disk is full"), (errno.EDQUOT, "quota"), (errno.EIO, "device")],
)
@pytest.mark.parametrize("partial_bytes", [0, 1, 40])
def test_a_refused_write_is_told_kept_and_made_up_for(
    store: FileStore,
    refusing: Refusing,
    entry: Entries,
    stored: Stored,
    code: int,
    words: str,
    partial_bytes: int,
) -> None:
    store.append(entry(1))
    whole = Path(store.path or "").read_bytes()
    refusing.error, refusing.partial_bytes = code, partial_bytes
    for number in (2, 3):
        with pytest.raises(StorageError, match=f"Not saved: .*{words}") as failure:
            store.append(entry(number))
        assert failure.value.hint
        assert store.pending == number - 1
    assert Path(store.path or "").read_bytes() == whole
    assert store.load("e0000003") == entry(3)
    refusing.error = 0
    store.append(entry(4))
    assert store.pending == 0
    assert ids_in(stored(store.path)) == [f"e{n:07x}" for n in (1, 2, 3, 4)]
    assert [store.load(f"e{n:07x}") for n in (1, 2, 3, 4)] == [entry(n) for n in (1, 2, 3, 4)]
    store.close()


def test_an_entry_can_be_forgotten_instead(
    store: FileStore, refusing: Refusing, entry: Entries, stored: Stored
) -> None:
    store.append(entry(1))
    refusing.error = errno.ENOSPC
    with pytest.raises(StorageError, match="What is in the file already is safe"):
        store.append(entry(2), keep_on_failure=False)
    assert store.pending == 0
    with pytest.raises(StorageError):
        store.append(entry(3))
    with pytest.raises(StorageError):
        store.append(entry(4), keep_on_failure=False)
    assert store.pending == 1
    refusing.error = 0
    store.flush()
    assert ids_in(stored(store.path)) == ["e0000001", "e0000003"]
    store.close()


def test_a_part_that_cannot_be_cut_off_becomes_a_bad_line(
    store: FileStore, refusing: Refusing, entry: Entries
) -> None:
    store.append(entry(1))
    refusing.error, refusing.partial_bytes, refusing.refuse_truncate = errno.EIO, 30, True
    with pytest.raises(StorageError):
        store.append(entry(2))
    refusing.error = 0
    store.append(entry(3))
    store.close()
    opened = open_session(store.path or "")
    assert [head.id for head in opened.heads] == ["e0000001", "e0000002", "e0000003"]
    assert opened.store.load("e0000003") == entry(3)
    opened.store.close()


@pytest.mark.parametrize("partial_bytes", [0, 50, 200])
def test_a_first_write_that_fails_leaves_no_file(
    store: FileStore,
    refusing: Refusing,
    entry: Entries,
    stored: Stored,
    partial_bytes: int,
) -> None:
    refusing.error, refusing.partial_bytes = errno.ENOSPC, partial_bytes
    with pytest.raises(StorageError, match="disk is full"):
        store.append(entry(1))
    path = Path(store.path or "")
    assert not store.exists
    assert list(path.parent.iterdir()) == []
    refusing.error = 0
    store.flush()
    assert ids_in(stored(path)) == ["e0000001"]
    store.close()


def test_closing_with_unsaved_entries_says_so(
    store: FileStore, refusing: Refusing, entry: Entries
) -> None:
    refusing.error = errno.ENOSPC
    with pytest.raises(StorageError):
        store.append(entry(1))
    with pytest.raises(StorageError, match="Not saved"):
        store.close()
    store.close()


def test_a_file_that_cannot_be_written_opens_with_a_notice(
    session: Callable[..., Path],
    line: Callable[..., bytes],
    refusing: Refusing,
    entry: Entries,
    stored: Stored,
) -> None:
    path = session(line(1), line(2).rstrip(b"\n"))
    refusing.refuse_open = errno.EROFS
    opened = open_session(path, fs=refusing)
    assert "cannot be written: the file system is read-only" in opened.notices[-1]
    with pytest.raises(StorageError, match="read-only"):
        opened.store.append(entry(3))
    assert opened.store.load("e0000003") == entry(3)
    refusing.refuse_open = 0
    opened.store.append(entry(4))
    opened.store.close()
    assert ids_in(stored(path)) == [f"e{n:07x}" for n in (1, 2, 3, 4)]


def test_a_full_disk_at_opening_does_not_keep_the_session_shut(
    session: Callable[..., Path], line: Callable[..., bytes], refusing: Refusing, entry: Entries
) -> None:
    path = session(line(1), b'{"torn')
    refusing.error = errno.ENOSPC
    opened = open_session(path, fs=refusing)
    assert len(opened.heads) == 1
    assert "disk is full" in opened.notices[-1]
    refusing.error = 0
    opened.store.append(entry(2))
    opened.store.close()
    assert path.read_bytes().split(b"\n")[2] == b'{"torn'


# ---------------------------------------------------------------- others and the file


def test_a_second_writer_is_noticed_before_anything_is_written(
    store: FileStore, entry: Entries
) -> None:
    store.append(entry(1))
    path = Path(store.path or "")
    with path.open("ab") as file:
        file.write(b'{"half')
    before = path.read_bytes()
    with pytest.raises(StorageError, match="another program has changed"):
        store.append(entry(2))
    assert path.read_bytes() == before
    assert store.pending == 1


def test_a_file_cut_short_by_another_program_is_noticed(store: FileStore, entry: Entries) -> None:
    store.append(entry(1))
    store.append(entry(2))
    os.truncate(store.path or "", 200)
    with pytest.raises(StorageError, match="another program has changed"):
        store.append(entry(3))
    with pytest.raises(StorageError, match="not where it was"):
        store.load("e0000002")


def test_a_vanished_folder_that_comes_back(
    store: FileStore, entry: Entries, stored: Stored, tmp_path: Path
) -> None:
    store.append(entry(1))
    folder = Path(store.path or "").parent
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="moved away") as failure:
        store.append(entry(2))
    assert failure.value.reason == "the session file was moved away"
    assert failure.value.hint == (
        "Move it back. /export NAME.jsonl saves the whole session to another place."
    )
    assert store.load("e0000001") == entry(1)
    (tmp_path / "elsewhere").rename(folder)
    store.append(entry(3))
    assert ids_in(stored(store.path)) == ["e0000001", "e0000002", "e0000003"]
    store.close()


def test_a_file_put_back_with_the_same_bytes_is_ours_again(
    store: FileStore, entry: Entries, stored: Stored, tmp_path: Path
) -> None:
    store.append(entry(1))
    path = Path(store.path or "")
    copy = tmp_path / "copy"
    shutil.copyfile(path, copy)
    path.unlink()
    copy.rename(path)
    store.append(entry(2))
    assert ids_in(stored(path)) == ["e0000001", "e0000002"]
    store.close()


def test_another_file_in_its_place_is_not_touched(store: FileStore, entry: Entries) -> None:
    store.append(entry(1))
    path = Path(store.path or "")
    size = path.stat().st_size
    path.unlink()
    path.write_bytes(b"x" * size)
    with pytest.raises(StorageError, match="not the one that was opened"):
        store.append(entry(2))
    assert path.read_bytes() == b"x" * size


def test_threads_may_append_and_read_at_once(
    store: FileStore, entry: Entries, stored: Stored
) -> None:
    def work(first: int) -> None:
        for number in range(first, first + 25):
            store.append(entry(number))
            assert store.load(f"e{number:07x}") == entry(number)

    threads = [threading.Thread(target=work, args=(first,)) for first in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stored(store.path)) == 76
    store.close()


# ---------------------------------------------------------------- another place


def test_a_session_moves_to_another_place_with_all_it_has(
    store: FileStore, refusing: Refusing, entry: Entries, stored: Stored, tmp_path: Path
) -> None:
    store.append(entry(1))
    old = store.path
    refusing.error = errno.ENOSPC
    with pytest.raises(StorageError):
        store.append(entry(2))
    refusing.error = 0
    assert store.relocate(str(tmp_path / "new" / "place")) == []
    assert store.pending == 0
    assert Path(store.path or "").parent == tmp_path / "new" / "place"
    store.append(entry(3))
    assert ids_in(stored(store.path)) == ["e0000001", "e0000002", "e0000003"]
    assert [store.load(f"e{n:07x}") for n in (1, 2, 3)] == [entry(n) for n in (1, 2, 3)]
    assert ids_in(stored(old)) == ["e0000001"]
    store.close()
    for folder in (Path(old or "").parent, tmp_path / "new" / "place"):
        assert [path.suffix for path in folder.iterdir()] == [".jsonl"]


def test_a_deleted_session_is_written_anew_at_its_own_place(
    store: FileStore, entry: Entries, stored: Stored
) -> None:
    store.append(entry(1))
    path = Path(store.path or "")
    shutil.rmtree(path.parent)
    store.append(entry(2))
    assert (store.path, store.pending) == (str(path), 0)
    assert ids_in(stored(path)) == ["e0000001", "e0000002"]
    assert [store.load(f"e{n:07x}") for n in (1, 2)] == [entry(1), entry(2)]
    with pytest.raises(SessionLockedError):
        open_session(path)
    store.append(entry(3))
    path.unlink()  # the lock beside it stays
    store.append(entry(4))
    assert ids_in(stored(path)) == [f"e{n:07x}" for n in range(1, 5)]
    with pytest.raises(SessionLockedError):
        open_session(path)
    store.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_deleted_session_waits_until_its_folder_can_be_made(
    store: FileStore, entry: Entries, stored: Stored
) -> None:
    store.append(entry(1))
    path = Path(store.path or "")
    shutil.rmtree(path.parent)
    path.parent.write_text("in the way")
    for number in (2, 3):
        with pytest.raises(StorageError, match="not a folder") as failure:
            store.append(entry(number))
        assert "/export" in (failure.value.hint or "")
    assert store.pending == 2
    path.parent.unlink()
    store.flush()
    assert ids_in(stored(path)) == ["e0000001", "e0000002", "e0000003"]
    store.close()


def test_a_deleted_session_behind_a_link_is_written_anew(
    header: SessionHeader, entry: Entries, stored: Stored, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    store = create_session(tmp_path / "link", header)
    store.append(entry(1))
    Path(store.path or "").unlink()
    store.append(entry(2))
    assert ids_in(stored(store.path)) == ["e0000001", "e0000002"]
    store.close()


def test_a_deleted_session_another_process_made_anew_is_not_touched(
    store: FileStore, entry: Entries
) -> None:
    store.append(entry(1))
    path = Path(store.path or "")
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    other = acquire(str(path))
    with pytest.raises(SessionLockedError):
        store.append(entry(2))
    assert not path.exists() and store.pending == 1
    other.release()
    path.parent.rmdir()  # no lock is held now, and there is no folder to make one in
    store.append(entry(3))
    assert path.exists() and store.pending == 0
    store.close()


def test_a_session_that_never_got_a_file_can_be_saved_elsewhere(
    store: FileStore, refusing: Refusing, entry: Entries, stored: Stored, tmp_path: Path
) -> None:
    refusing.error = errno.EROFS
    with pytest.raises(StorageError):
        store.append(entry(1))
    refusing.error = 0
    store.relocate(str(tmp_path / "other"))
    assert ids_in(stored(store.path)) == ["e0000001"]
    store.close()


def test_moving_never_replaces_a_file(store: FileStore, entry: Entries, tmp_path: Path) -> None:
    store.append(entry(1))
    taken = tmp_path / Path(store.path or "").name
    taken.write_bytes(b"mine")
    with pytest.raises(StorageError, match="already"):
        store.relocate(str(tmp_path))
    assert taken.read_bytes() == b"mine"
    store.append(entry(2))
    assert store.load("e0000002") == entry(2)
    store.close()


def test_an_unreadable_old_file_is_told(
    store: FileStore, entry: Entries, stored: Stored, tmp_path: Path
) -> None:
    store.append(entry(1))
    os.truncate(store.path or "", 10)
    with pytest.raises(StorageError):
        store.append(entry(2))
    notices = store.relocate(str(tmp_path / "new"))
    assert "could not be read" in notices[0]
    assert ids_in(stored(store.path)) == ["e0000002"]
    with pytest.raises(StorageError, match="no such entry"):
        store.load("e0000001")
    assert store.load("e0000002") == entry(2)
    store.close()


# ---------------------------------------------------------------- without a file


def test_a_session_in_memory(header: SessionHeader, entry: Entries) -> None:
    store = MemoryStore(header)
    odd = CustomEntry(id="c", parent_id=None, timestamp="", custom_type="x", data={"a": [1]})
    store.append(entry(1))
    store.append(odd)
    assert (store.path, store.pending, store.load("c")) == (None, 0, odd)
    assert json.loads(store.raw_line("c"))["data"] == {"a": [1]}
    with pytest.raises(StorageError):
        store.load("none")
    store.sync()
    store.close()
