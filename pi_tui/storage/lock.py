"""One lock per session file, which dies with its owner.

The lock is the file `<session>.lock` beside the real file (symbolic links are followed; for hard
links the session file itself is locked too, see `file_hold`). It is held with flock(2), which the
system gives up when the owner dies, and it names the owner: process id, start time of the process,
host. Where a file system has no flock, the record alone is the lock and its owner is looked up. An
owner that cannot be looked up, because it is on another host, is never pushed aside unless the
caller says so.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from pi_tui.core.errors import SessionLockedError
from pi_tui.storage.file_hold import FileHold
from pi_tui.storage.filesystem import REAL_FILE_SYSTEM, FileSystem, write_all

NO_FLOCK = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL})
_RECORD_MAX_BYTES = 4096
_DYING_TRIES = 25
_DYING_WAIT_S = 0.02

Verdict = Literal["dead", "alive", "unknown"]


class Owner(Struct, frozen=True):
    """Who holds a lock. Empty strings where the system does not tell.

    `start` is the start time of the process in the system's own count, `kernel` names one running
    system (it changes when the machine starts again), `processes` the table its ids belong to.
    """

    pid: int
    start: str
    host: str
    kernel: str = ""
    processes: str = ""
    flock: bool = True

    def describe(self, here: Owner) -> str:
        """The owner in words, seen from another process."""
        where = "" if self.host == here.host else f" on {self.host}"
        return f"process {self.pid}{where}"


def this_process() -> Owner:
    """Describe the running process."""
    pid = os.getpid()
    return Owner(
        pid=pid,
        start=_start_of(pid),
        host=os.uname().nodename,
        kernel=_read("/proc/sys/kernel/random/boot_id"),
        processes=_link("/proc/self/ns/pid"),
    )


def judge(owner: Owner, here: Owner, *, flock_is_free: bool) -> Verdict:
    """Decide whether the process that left a record still holds it.

    `flock_is_free`: the system has just given us the lock the owner would hold.
    """
    if owner.kernel and here.kernel and owner.kernel == here.kernel:
        if owner.flock and flock_is_free:
            return "dead"
        if owner.processes == here.processes:
            return "alive" if _is_running(owner) else "dead"
        return "unknown"
    if owner.host != here.host:
        return "unknown"
    if owner.kernel and here.kernel:
        return "dead"  # the machine was started again since
    if owner.flock and flock_is_free:
        return "dead"
    return "alive" if _is_running(owner) else "dead"


def _is_running(owner: Owner) -> bool:
    looks_closed = not Path("/proc/self/stat").exists()
    try:
        os.kill(owner.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        looks_closed = True  # somebody else's process; the system may hide its start time
    start = _start_of(owner.pid)
    if not owner.start or (not start and looks_closed):
        return True
    return start == owner.start


def _start_of(pid: int) -> str:
    """Start time of a process in clock ticks since boot; "" when it is gone or unknown."""
    text = _read(f"/proc/{pid}/stat")
    fields = text.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return ""  # a zombie holds nothing any more
    return fields[19]


def _read(path: str) -> str:
    try:
        return Path(path).read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


class SessionLock:
    """A lock that is held. Give it up with `release`."""

    def __init__(self, fs: FileSystem, path: str, fd: int | None, record: bytes) -> None:
        self._fs = fs
        self.path = path
        self._fd = fd
        self._record = record
        self._file = FileHold(fs)

    def hold(self, session_path: str) -> None:
        """Lock the session file itself as well, or the one that has its name now.

        Call it once the file is there, and again when it was replaced. Raises SessionLockedError.
        """
        try:
            self._file.take(session_path)
        except BlockingIOError:
            raise _locked(session_path, None, this_process(), "elsewhere") from None

    @property
    def in_place(self) -> bool:
        """False when its file was taken away, so that another process could take the lock too."""
        try:
            if self._fd is not None:
                return _same_file(self._fs, self.path, self._fd)
            return _read_record(self._fs, self.path) == self._record
        except OSError:
            return False

    def release(self) -> None:
        """Give the lock up and take its file away. Never raises; doing it twice is harmless."""
        self._file.release()
        fd, self._fd = self._fd, None
        record, self._record = self._record, b""
        if fd is None and not record:
            return
        with suppress(OSError):  # a lock file that stays is judged by the next one
            if fd is not None:
                self._fs.truncate(fd, 0)
                if _same_file(self._fs, self.path, fd):
                    self._fs.unlink(self.path)
            elif _read_record(self._fs, self.path) == record:
                self._fs.unlink(self.path)
        if fd is not None:
            with suppress(OSError):
                self._fs.close(fd)


def lock_path(session_path: str) -> str:
    """The lock file of a session file, the same for every name of it."""
    return os.path.realpath(session_path) + ".lock"


def acquire(
    session_path: str,
    *,
    take_over: bool = False,
    fs: FileSystem = REAL_FILE_SYSTEM,
    here: Owner | None = None,
) -> SessionLock:
    """Lock a session file.

    `take_over` also takes a lock whose owner cannot be looked up; never one whose owner lives.
    Raises SessionLockedError, and OSError where no lock file can be made.
    """
    lock = _acquire_beside(fs, session_path, here or this_process(), take_over)
    try:
        lock.hold(os.path.realpath(session_path))
    except BaseException:
        lock.release()
        raise
    return lock


def _acquire_beside(fs: FileSystem, session_path: str, here: Owner, take_over: bool) -> SessionLock:
    path = lock_path(session_path)
    dying = 0
    while True:
        fd = fs.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            fs.lock(fd)
        except BlockingIOError:
            owner = _owner_in(fs, fd)
            fs.close(fd)
            # A killed process holds its locks until the system has cleared it away.
            if owner is None or judge(owner, here, flock_is_free=False) != "dead":
                raise _locked(session_path, owner, here) from None
            dying += 1
            if dying > _DYING_TRIES:
                raise _locked(session_path, owner, here) from None
            time.sleep(_DYING_WAIT_S)
            continue
        except OSError as error:
            fs.close(fd)
            if error.errno not in NO_FLOCK:
                raise
            return _acquire_by_record(fs, session_path, path, here, take_over)
        try:
            if not _same_file(fs, path, fd):
                fs.close(fd)
                continue  # the last owner took the file away in this moment
            owner = _owner(_read_fd(fs, fd))
            if owner is not None and not take_over:
                verdict = judge(owner, here, flock_is_free=True)
                if verdict != "dead":
                    raise _locked(session_path, owner, here, verdict)
            record = msgspec.json.encode(here) + b"\n"
            # The lock holds without its text, which a full disk may refuse.
            with suppress(OSError):
                fs.truncate(fd, 0)
                write_all(fs, fd, record)
        except BaseException:
            fs.close(fd)
            raise
        return SessionLock(fs, path, fd, record)


def _acquire_by_record(
    fs: FileSystem, session_path: str, path: str, here: Owner, take_over: bool
) -> SessionLock:
    here = msgspec.structs.replace(here, flock=False)
    record = msgspec.json.encode(here) + b"\n"
    own = f"{path}.{here.pid}"
    fd = fs.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        try:
            write_all(fs, fd, record)
        finally:
            fs.close(fd)
        for _ in range(3):
            if _place(fs, own, path, record):
                return SessionLock(fs, path, None, record)
            found = _read_record(fs, path)
            if found is None:
                continue
            owner = _owner(found)
            verdict = judge(owner, here, flock_is_free=False) if owner is not None else "unknown"
            if not found.strip():
                verdict = "dead"  # given up, or made by the try with flock
            if verdict == "alive" or (verdict == "unknown" and not take_over):
                raise _locked(session_path, owner, here, verdict)
            _remove_record(fs, path, found, f"{own}.dead")
    finally:
        with suppress(FileNotFoundError):
            fs.unlink(own)
    raise _locked(session_path, None, here)


def _place(fs: FileSystem, own: str, path: str, record: bytes) -> bool:
    """Put a record into place if none is there."""
    try:
        fs.link(own, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
            raise
        try:
            fd = fs.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        try:
            write_all(fs, fd, record)
        finally:
            fs.close(fd)
    return True


def _remove_record(fs: FileSystem, path: str, judged: bytes, aside: str) -> None:
    """Take a dead record away; put back what another process placed there meanwhile."""
    try:
        fs.rename(path, aside)
    except FileNotFoundError:
        return
    if _read_record(fs, aside) != judged:
        with suppress(FileExistsError):
            fs.link(aside, path)
    fs.unlink(aside)


def _same_file(fs: FileSystem, path: str, fd: int) -> bool:
    try:
        named = fs.stat(path)
    except FileNotFoundError:
        return False
    held = fs.fstat(fd)
    return (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)


def _read_fd(fs: FileSystem, fd: int) -> bytes:
    return fs.read_at(fd, _RECORD_MAX_BYTES, 0)


def _owner_in(fs: FileSystem, fd: int) -> Owner | None:
    """The owner named in a lock file that another process holds, where it can be read at all."""
    try:
        return _owner(_read_fd(fs, fd))
    except OSError:
        return None


def _read_record(fs: FileSystem, path: str) -> bytes | None:
    try:
        fd = fs.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return _read_fd(fs, fd)
    finally:
        fs.close(fd)


def _owner(record: bytes) -> Owner | None:
    try:
        return msgspec.json.decode(record, type=Owner)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _locked(
    session_path: str,
    owner: Owner | None,
    here: Owner,
    verdict: Verdict | Literal["elsewhere"] = "alive",
) -> SessionLockedError:
    who = owner.describe(here) if owner is not None else "another process"
    if verdict == "elsewhere":
        who += ", under another name of its file"
    if verdict == "unknown":
        message = (
            f"The session is marked as in use by {who}, and it cannot be found out from here "
            "whether that is still so. Nothing was changed."
        )
        hint = (
            "Make sure that nothing else uses the session and take it over; or open it "
            "read-only, or fork it."
        )
    else:
        message = f"The session is in use by {who}. Nothing was changed."
        hint = "Open it read-only, fork it into a new session, or end the other one."
    return SessionLockedError(
        message,
        path=session_path,
        owner=who,
        hint=hint,
        can_take_over=verdict == "unknown",
    )
