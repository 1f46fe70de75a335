"""Finds and ends the processes a command has started, also those that left its process group.

On Linux /proc is read: a process belongs to a command when it is in its group or session, or when
its environment carries the command's token. Elsewhere only the process group is known. Blocking,
a few milliseconds; call it in a thread where keys are waited for.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from pi_tui.tools.visible_text import visible_line

TOKEN_VARIABLE = "PI_TUI_COMMAND"
_PROC = Path("/proc")
_HAS_PROC = (_PROC / "self" / "environ").exists()


class RunningProcess(Struct, frozen=True):
    """A live process. `start_ticks` tells it from a later one with the same number."""

    pid: int
    command: str
    start_ticks: int = 0


class CommandProcesses:
    """The processes of one command, by group number and token."""

    def __init__(self, group: int, token: str) -> None:
        self._group = group
        self._mark = f"{TOKEN_VARIABLE}={token}".encode()
        self._known: dict[int, RunningProcess] = {}
        self._group_trusted = True

    def find(self) -> list[RunningProcess]:
        """All of them that are alive now."""
        if not _HAS_PROC:
            return self._find_group()
        found = [
            process
            for name in os.listdir(_PROC)  # noqa: PTH208 - names are enough, and faster
            if name.isdigit() and (process := self._examine(int(name))) is not None
        ]
        self._known = {process.pid: process for process in found}
        return found

    def distrust_group(self) -> None:
        """From now on the group number may belong to somebody else."""
        self._group_trusted = False

    def send(self, signal_number: int, processes: Sequence[RunningProcess]) -> None:
        """Signal the processes; those that are gone or belong to others are left out."""
        for process in processes:
            try:
                if _HAS_PROC:
                    os.kill(process.pid, signal_number)
                else:
                    os.killpg(self._group, signal_number)
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

    def _examine(self, pid: int) -> RunningProcess | None:
        if pid == os.getpid():
            return None
        directory = _PROC / str(pid)
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
        command = b" ".join(words).strip() or name
        return RunningProcess(pid, visible_line(command.decode("utf-8", "replace")[:80]), start)

    def _find_group(self) -> list[RunningProcess]:
        try:
            os.killpg(self._group, 0)
        except (ProcessLookupError, PermissionError):
            return []
        return [RunningProcess(self._group, "process group")]
