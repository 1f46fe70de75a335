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

from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.errors import SessionLockedError, StorageError
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.jsonl import create_session, open_session
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


# ---------------------------------------------------------------- other names of one file


class Mandatory(FileSystem):
    """A share over SMB: what is locked cannot be read through another descriptor."""

    def __init__(self) -> None:
        self.locked: dict[int, int] = {}

    def lock(self, fd: int) -> None:
        super().lock(fd)
        self.locked[fd] = os.fstat(fd).st_ino

    def close(self, fd: int) -> None:
        self.locked.pop(fd, None)
        super().close(fd)

    def read_at(self, fd: int, length_bytes: int, offset: int) -> bytes:
        if fd not in self.locked and os.fstat(fd).st_ino in self.locked.values():
            raise PermissionError(errno.EACCES, "Permission denied")
        return super().read_at(fd, length_bytes, offset)


def hard_link(path: Path) -> Path:
    other = path.parent / "elsewhere" / "other.jsonl"
    other.parent.mkdir(exist_ok=True)
    other.hardlink_to(path)
    return other


def test_a_hard_link_meets_the_same_lock(
    session: Session,
    line: Callable[..., bytes],
    holder: Callable[[Path, FileSystem], subprocess.Popen[str]],
) -> None:
    path = session(line(1))
    other = hard_link(path)
    first = holder(path, FileSystem())
    with pytest.raises(SessionLockedError, match="another name") as refusal:
        open_session(other)
    assert not refusal.value.can_take_over
    with pytest.raises(SessionLockedError):
        open_session(other, take_over=True)
    assert sorted(p.name for p in other.parent.iterdir()) == ["other.jsonl"]
    reading = open_session(other, read_only=True)
    assert len(reading.heads) == 1
    reading.store.close()
    first.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
    open_session(other).store.close()
    open_session(path).store.close()


def test_a_new_session_is_locked_under_later_names_too(
    sessions_directory: Path, header: SessionHeader, entry: Callable[..., MessageEntry]
) -> None:
    store = create_session(sessions_directory, header)
    store.append(entry(1))
    other = hard_link(Path(store.path or ""))
    with pytest.raises(SessionLockedError):
        open_session(other)
    moved = sessions_directory.parent / "moved"
    store.relocate(str(moved))
    open_session(other).store.close()
    with pytest.raises(SessionLockedError):
        open_session(hard_link(Path(store.path or "")))
    store.close()


def test_the_lock_follows_a_file_that_was_brought_up_to_date(
    session: Session, head_line: Callable[..., bytes], line: Callable[..., bytes]
) -> None:
    path = session(head_line(version=2), line(1), bare=True)
    opened = open_session(path)
    with pytest.raises(SessionLockedError):
        open_session(hard_link(path))
    opened.store.close()


@pytest.mark.parametrize("fs", [NoFlock(), Mandatory()], ids=["no-flock", "smb"])
def test_where_the_file_itself_cannot_be_locked_it_is_used_all_the_same(
    session: Session, fs: FileSystem, entry: Callable[..., MessageEntry]
) -> None:
    path = session()
    opened = open_session(path, fs=fs)
    opened.store.append(entry(1))
    with pytest.raises(SessionLockedError):
        open_session(path, fs=fs)
    reading = open_session(path, read_only=True, fs=fs)
    assert len(reading.heads) == 1
    reading.store.close()
    opened.store.close()


def test_a_file_that_may_only_be_read_is_locked_as_far_as_it_goes(session: Session) -> None:
    path = session()

    class OnlyForReading(FileSystem):
        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            if path.endswith("s.jsonl") and flags & os.O_RDWR:
                raise PermissionError(errno.EACCES, "Permission denied")
            return super().open(path, flags, mode)

    opened = open_session(path, fs=OnlyForReading())
    assert "cannot be written" in opened.notices[-1]
    with pytest.raises(SessionLockedError):
        open_session(hard_link(path))
    opened.store.close()
