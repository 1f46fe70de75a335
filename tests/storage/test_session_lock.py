"""The lock of a session file: one owner, who may die."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from pi_tui.core.entries import MessageEntry
from pi_tui.core.errors import SessionLockedError, StorageError
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.jsonl import open_session
from pi_tui.storage.lock import Owner, acquire, judge, lock_path, this_process

Session = Callable[..., Path]

HOLDER = """
import sys
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.jsonl import open_session
class NoFlock(FileSystem):
    def lock(self, fd):
        raise OSError(37, "no locks")
fs = NoFlock() if "no-flock" in sys.argv else FileSystem()
opened = open_session(sys.argv[1], fs=fs)
sys.stdout.write("held\\n")
sys.stdout.flush()
sys.stdin.read()
"""


class NoFlock(FileSystem):
    """A network file system without locks."""

    def lock(self, fd: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")


@pytest.fixture(params=["flock", "no-flock"])
def fs(request: pytest.FixtureRequest) -> FileSystem:
    return NoFlock() if request.param == "no-flock" else FileSystem()


@pytest.fixture
def holder() -> Iterator[Callable[[Path, FileSystem], subprocess.Popen[str]]]:
    """Starts another process that opens a session and keeps it."""
    running: list[subprocess.Popen[str]] = []

    def start(path: Path, fs: FileSystem) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", HOLDER, str(path)]
        if isinstance(fs, NoFlock):
            arguments.append("no-flock")
        process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        running.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


# ---------------------------------------------------------------- SES-03


def test_a_second_process_notices_before_it_writes(
    session: Session,
    line: Callable[..., bytes],
    holder: Callable[[Path, FileSystem], subprocess.Popen[str]],
    fs: FileSystem,
    entry: Callable[..., MessageEntry],
) -> None:
    path = session(line(1))
    link = path.with_name("link.jsonl")
    link.symlink_to(path)
    first = holder(path, fs)
    for name in (path, link):
        with pytest.raises(SessionLockedError, match=f"process {first.pid}") as refusal:
            open_session(name, fs=fs)
        assert refusal.value.owner == f"process {first.pid}"
        assert refusal.value.hint
        with pytest.raises(SessionLockedError):
            open_session(name, fs=fs, take_over=True)
    reading = open_session(link, read_only=True, fs=fs)
    assert len(reading.heads) == 1
    with pytest.raises(StorageError, match="reading only"):
        reading.store.append(entry(2))
    reading.store.close()
    first.communicate("")
    assert first.returncode == 0
    open_session(path, fs=fs).store.close()


def test_a_killed_owner_is_succeeded_at_once(
    session: Session,
    holder: Callable[[Path, FileSystem], subprocess.Popen[str]],
    fs: FileSystem,
    entry: Callable[..., MessageEntry],
) -> None:
    path = session()
    first = holder(path, fs)
    first.send_signal(signal.SIGKILL)
    # Not waited for: a dead process that nobody has collected must not count as alive either.
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
    opened = open_session(path, fs=fs)
    opened.store.append(entry(1))
    opened.store.close()
    assert not Path(lock_path(str(path))).exists()


def test_the_same_process_cannot_open_a_session_twice(session: Session, fs: FileSystem) -> None:
    path = session()
    first = open_session(path, fs=fs)
    with pytest.raises(SessionLockedError):
        open_session(path, fs=fs)
    with pytest.raises(SessionLockedError):
        open_session(path, fs=fs)
    first.store.close()
    first.store.close()
    second = open_session(path, fs=fs)
    first.store.close()
    with pytest.raises(SessionLockedError):
        open_session(path, fs=fs)
    second.store.close()


def test_the_lock_of_another_host_is_never_taken_silently(session: Session, fs: FileSystem) -> None:
    path = session()
    there = Owner(pid=1, start="1", host="elsewhere", kernel="k", processes="p")
    Path(lock_path(str(path))).write_bytes(msgspec.json.encode(there))
    with pytest.raises(SessionLockedError, match="process 1 on elsewhere") as refusal:
        open_session(path, fs=fs)
    assert "take it over" in (refusal.value.hint or "")
    assert Path(lock_path(str(path))).exists()
    opened = open_session(path, fs=fs, take_over=True)
    opened.store.close()
    assert not Path(lock_path(str(path))).exists()


def test_a_lock_file_with_nonsense_and_no_owner_is_taken(session: Session) -> None:
    path = session()
    Path(lock_path(str(path))).write_bytes(b"\xff{nonsense")
    open_session(path).store.close()


def test_a_lock_file_with_nonsense_cannot_be_judged_without_flock(session: Session) -> None:
    path = session()
    Path(lock_path(str(path))).write_bytes(b"\xff{nonsense")
    with pytest.raises(SessionLockedError):
        open_session(path, fs=NoFlock())
    open_session(path, fs=NoFlock(), take_over=True).store.close()


def test_a_lock_file_that_is_a_link_is_not_followed(session: Session, tmp_path: Path) -> None:
    path = session()
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    Path(lock_path(str(path))).symlink_to(victim)
    opened = open_session(path)
    assert "cannot be written" in opened.notices[-1]
    opened.store.close()
    assert victim.read_bytes() == b"precious"


def test_the_lock_holds_when_its_text_cannot_be_written(session: Session) -> None:
    class Full(FileSystem):
        def write(self, fd: int, data: bytes | memoryview) -> int:
            raise OSError(errno.ENOSPC, "full")

    path = session()
    held = acquire(str(path), fs=Full())
    with pytest.raises(SessionLockedError, match="another process"):
        acquire(str(path))
    held.release()
    acquire(str(path)).release()


def test_an_owner_that_goes_in_the_moment_we_look_is_succeeded(session: Session) -> None:
    class Late(FileSystem):
        """Lets the file vanish between opening and locking it, once."""

        done = False

        def lock(self, fd: int) -> None:
            if not self.done:
                self.done = True
                self.unlink(lock_path(str(path)))
            super().lock(fd)

    path = session()
    held = acquire(str(path), fs=Late())
    with pytest.raises(SessionLockedError):
        acquire(str(path))
    held.release()


# ---------------------------------------------------------------- judging


HERE = Owner(pid=os.getpid(), start="5", host="here", kernel="boot", processes="ns")


@pytest.mark.parametrize(
    ("changes", "flock_is_free", "verdict"),
    [
        ({}, True, "dead"),
        ({"flock": False}, True, "dead"),  # the process id is ours, the start time is not
        ({"processes": "other"}, True, "dead"),
        ({"processes": "other"}, False, "unknown"),
        ({"processes": "other", "flock": False}, True, "unknown"),
        ({"host": "other"}, True, "dead"),  # a container on the same running system
        ({"kernel": "earlier"}, True, "dead"),
        ({"kernel": "earlier"}, False, "dead"),
        ({"kernel": "earlier", "host": "other"}, True, "unknown"),
        ({"kernel": "", "host": "other"}, True, "unknown"),
        ({"kernel": ""}, True, "dead"),
        ({"kernel": "", "start": "", "flock": False}, False, "alive"),
        ({"start": "", "flock": False}, False, "alive"),
        ({"pid": 2**40, "flock": False}, False, "dead"),
    ],
)
def test_whether_an_owner_lives(
    changes: dict[str, object], flock_is_free: bool, verdict: str
) -> None:
    owner = msgspec.structs.replace(HERE, start="4")
    owner = msgspec.structs.replace(owner, **changes)
    assert judge(owner, HERE, flock_is_free=flock_is_free) == verdict


def test_this_process_lives() -> None:
    owner = msgspec.structs.replace(this_process(), flock=False)
    assert judge(owner, this_process(), flock_is_free=True) == "alive"
