"""Finds and ends the processes a command has started, also those that left its process group.

Where /proc is, it is read: a process belongs to a command when it is in its group or session, or
when its environment carries the command's token. Elsewhere (macOS) only the process group is known:
it is seen, named and signalled as one, and what left it on purpose is not found. Blocking, a few
milliseconds; call it in a thread where keys are waited for.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from pi_tui.tools.visible_text import visible_line

TOKEN_VARIABLE = "PI_TUI_COMMAND"
PROC_ROOT = Path("/proc")


class RunningProcess(Struct, frozen=True):
    """A live process. `start_ticks` tells it from a later one with the same number.

    Without /proc it is a whole process group, `pid` its number.
    """

    pid: int
    command: str
    start_ticks: int = 0


class CommandProcesses:
    """The processes of one command, by group number and token.

    The shell that leads the group must not have been waited for yet, or `distrust_group` be called.
    """

    def __init__(self, group: int, token: str) -> None:
        self._group = group
        self._mark = f"{TOKEN_VARIABLE}={token}".encode()
        self._known: dict[int, RunningProcess] = {}
        self._group_trusted = True
        self._proc = PROC_ROOT if (PROC_ROOT / "self" / "environ").exists() else None

    def find(self) -> list[RunningProcess]:
        """All of them that are alive now."""
        if self._proc is None:
            return self._find_group()
        found = [
            process
            for name in os.listdir(self._proc)  # noqa: PTH208 - names are enough, and faster
            if name.isdigit()
            and (process := self._examine(int(name), self._proc / name)) is not None
        ]
        self._known = {process.pid: process for process in found}
        return found

    def distrust_group(self) -> None:
        """The shell is gone: from now on its number may belong to somebody else."""
        self._group_trusted = False

    def send(self, signal_number: int, processes: Sequence[RunningProcess]) -> None:
        """Signal the processes; those that are gone or belong to others are left out."""
        for process in processes:
            try:
                if self._proc is None:
                    os.killpg(process.pid, signal_number)
                else:
                    os.kill(process.pid, signal_number)
            except (ProcessLookupError, PermissionError):
                continue

    def end_now(self, grace_s: float) -> list[RunningProcess]:
        """Ask all to end, kill what stays; blocking for at most the grace. Gives what was alive."""
        ended = alive = self.find()
        self.send(signal.SIGTERM, alive)
        deadline = time.monotonic() + grace_s
        while alive and time.monotonic() < deadline:
            time.sleep(0.02)
            alive = self.find()
        self.send(signal.SIGKILL, alive)
        return ended

    def _examine(self, pid: int, directory: Path) -> RunningProcess | None:
        if pid == os.getpid():
            return None
        try:
            stat = (directory / "stat").read_bytes()
            name, _, rest = stat.partition(b"(")[2].rpartition(b")")
            fields = rest.split()
            state, group, session, start = fields[0], fields[2], fields[3], int(fields[19])
            if state in (b"Z", b"X", b"x"):
                return None
            known = self._known.get(pid)
            in_group = self._group_trusted and self._group in (int(group), int(session))
            if not in_group and not (known is not None and known.start_ticks == start):
                environment = (directory / "environ").read_bytes()
                if self._mark not in environment.split(b"\0"):
                    return None
            words = (directory / "cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, IndexError):
            return None  # it ended meanwhile, or is not ours to look at
        command = (b" ".join(words).strip() or name).decode("utf-8", "replace")
        return RunningProcess(pid, visible_line(command[:80].strip()), start)

    def _find_group(self) -> list[RunningProcess]:
        # No process gets the number of a group that lives. So when the shell is gone and there is
        # a process of that number, the group is gone too and the number somebody else's.
        if not self._group_trusted and _can_signal(os.kill, self._group) is not False:
            return []
        alive = _can_signal(os.killpg, self._group)
        return [RunningProcess(self._group, "a process group")] if alive else []


def _can_signal(send: Callable[[int, int], None], number: int) -> bool | None:
    """Whether what has the number can be signalled; False: nothing has it, None: not by us."""
    try:
        send(number, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return None
    return True
