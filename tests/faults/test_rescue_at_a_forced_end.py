"""An end that waits for nobody still saves what the disk refused, or says that it is lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.agent.leaving import rescue
from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.errors import StorageError
from pi_tui.storage.jsonl import create_session, open_session

Entries = Callable[[int], MessageEntry]
LIMIT_S = 10.0
"""Never waited for where the disk answers."""


@pytest.fixture
def full_disk(failing: Any) -> Callable[[Path], Any]:
    """A file system on which everything below one directory is full once `nth` is set."""

    class FullBelow(failing):  # type: ignore[misc]
        def __init__(self, directory: Path) -> None:
            super().__init__(0, kind="write", for_good=True)
            self.directory = str(directory)
            self.on_it: set[int] = set()

        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            fd = int(super().open(path, flags, mode))
            (self.on_it.add if path.startswith(self.directory) else self.on_it.discard)(fd)
            return fd

        def write(self, fd: int, data: bytes | memoryview) -> int:
            return int(super().write(fd, data)) if fd in self.on_it else os.write(fd, data)

    return FullBelow


def ids_in(path: str | Path) -> list[str]:
    opened = open_session(path, read_only=True)
    opened.store.close()
    return [head.id for head in opened.heads]


def wait_for_nothing(store: Any, entry: Entries, numbers: range) -> None:
    for number in numbers:
        with pytest.raises(StorageError):
            store.append(entry(number))


@pytest.fixture
def store(tmp_path: Path, header: SessionHeader, entry: Entries, full_disk: Any) -> Any:
    """A store with one entry in its file and two that wait, because its disk is full."""
    fs = full_disk(tmp_path / "full")
    store = create_session(tmp_path / "full", header, fs=fs)
    store.append(entry(1))
    fs.nth = 1
    wait_for_nothing(store, entry, range(2, 4))
    store.fs = fs
    return store


def test_what_waits_is_saved_elsewhere(store: Any, tmp_path: Path) -> None:
    old = store.path
    assert store.pending == 2
    (line,) = rescue(store, str(tmp_path / "rescued"), LIMIT_S)
    assert "The whole session was saved to" in line and str(tmp_path / "rescued") in line
    assert ids_in(store.path) == [f"e{n:07x}" for n in range(1, 4)]
    assert ids_in(old) == ["e0000001"]
    assert store.pending == 0
    assert Path(store.path).stat().st_mode & 0o077 == 0
    # Once more, as when the orderly end got so far before it was cut off: it can still be told.
    (line,) = rescue(store, str(tmp_path / "rescued"), LIMIT_S)
    assert line == f"The whole session was saved to {store.path}."
    store.close()


def test_it_goes_to_its_own_file_when_there_is_room_again(store: Any, tmp_path: Path) -> None:
    store.fs.nth = 0
    assert rescue(store, str(tmp_path / "rescued"), LIMIT_S) == []
    assert ids_in(store.path) == [f"e{n:07x}" for n in range(1, 4)]
    assert not (tmp_path / "rescued").exists()
    store.close()


def test_where_nothing_waits_nothing_is_done(
    tmp_path: Path, header: SessionHeader, entry: Entries
) -> None:
    store = create_session(tmp_path / "sound", header)
    store.append(entry(1))
    before = threading.active_count()
    assert rescue(store, str(tmp_path / "rescued"), LIMIT_S) == []
    assert threading.active_count() == before and not (tmp_path / "rescued").exists()
    store.close()


def test_when_no_place_takes_it_both_reasons_are_told(store: Any, tmp_path: Path) -> None:
    (tmp_path / "rescued").write_text("a file is in the way")
    told = rescue(store, str(tmp_path / "rescued"), LIMIT_S)
    assert len(told) == 2 and "the disk is full" in told[0] and "cannot be saved" in told[1]
    assert store.pending == 2
    (told_nowhere,) = rescue(store, "", LIMIT_S)
    assert "the disk is full" in told_nowhere


def test_a_disk_that_does_not_answer_is_not_waited_for(store: Any, tmp_path: Path) -> None:
    answers = threading.Event()

    def hang(fd: int, data: bytes | memoryview) -> int:
        answers.wait()
        raise OSError(5, "gone")

    store.fs.write = hang
    try:
        told = rescue(store, str(tmp_path / "rescued"), 0.01)
    finally:
        answers.set()
    assert told == ["LOST: 2 entries could not be saved in the time that was left"]


def test_a_store_that_is_in_use_by_the_interrupted_code_is_not_waited_for_for_ever(
    store: Any, tmp_path: Path
) -> None:
    with store._mutex:  # a signal handler interrupts an append in the same thread
        told = rescue(store, str(tmp_path / "rescued"), 0.01)
    assert told == ["LOST: 2 entries could not be saved in the time that was left"]


def test_a_fault_of_its_own_does_not_go_unsaid(store: Any, tmp_path: Path) -> None:
    def broken() -> None:
        raise RuntimeError("boom")

    store.flush = broken
    (line,) = rescue(store, str(tmp_path / "rescued"), LIMIT_S)
    assert line == "LOST: internal error: RuntimeError"
    (line,) = rescue(store, str(tmp_path / "rescued"), LIMIT_S, lambda error: f"oh: {error}")
    assert line == "LOST: oh: boom"
