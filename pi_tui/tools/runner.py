"""Runs shell commands without a terminal, for the model's `bash` and the user's `!` alike.

A command gets empty standard input, a session of its own without controlling terminal, and one
pipe for both outputs, so their order is kept. It is over when the shell has ended, not when the
pipe closes: what it left in the background keeps running, its later output is thrown away, and
`close` ends it. Cancelling ends everything the command started. Times are seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import signal
import struct
import termios
from collections.abc import Callable, Mapping

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.tools.command_output import SpillDirectory
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.paths import require_directory
from pi_tui.tools.processes import TOKEN_VARIABLE, CommandProcesses, RunningProcess
from pi_tui.tools.visible_text import visible_line

_CHUNK_BYTES = 256 * 1024
_PIPE_BYTES = 1024 * 1024
_DRAIN_PAUSE_S = 0.05

HARMLESS = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "AWS_PAGER": "",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "AI_AGENT": "pi",
    "PI_CODING_AGENT": "true",
}
"""Set for every command: nothing may page, open an editor or ask."""


class CommandEnd(Struct, frozen=True):
    """How a command ended. `exit_code` is 128 + n for a shell killed by signal n, else its own."""

    exit_code: int
    signal_name: str | None
    timed_out: bool
    left_running: tuple[RunningProcess, ...]


class _Pipe:
    """The reading end of a command's output, on the event loop."""

    def __init__(self, handle: int, sink: Callable[[bytes], None]) -> None:
        self._handle = handle
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._paused: asyncio.TimerHandle | None = None
        self._received_bytes = 0
        self._draining = False
        self.ended = asyncio.Event()
        os.set_blocking(handle, False)
        self._loop.add_reader(handle, self._receive)

    async def settle(self, grace_s: float) -> bool:
        """Take what is in the pipe now and what comes within the grace; True at its end."""
        waiting = self._waiting_bytes() + self._received_bytes
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.ended.wait(), grace_s)
        while self._received_bytes < waiting and self._receive():
            pass
        return self.ended.is_set()

    def drain(self) -> None:
        """From now on throw away what comes, slowly, so that writers neither die nor race."""
        self._draining = True

    def close(self) -> None:
        if self._paused is not None:
            self._paused.cancel()
        if self._handle >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1
        self.ended.set()

    def _waiting_bytes(self) -> int:
        if self._handle < 0:
            return 0
        answer = fcntl.ioctl(self._handle, termios.FIONREAD, struct.pack("i", 0))
        return int(struct.unpack("i", answer)[0])

    def _receive(self) -> bool:
        if self._handle < 0:
            return False
        try:
            data = os.read(self._handle, _CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self.close()
            return False
        self._received_bytes += len(data)
        if self._draining:
            self._loop.remove_reader(self._handle)
            self._paused = self._loop.call_later(_DRAIN_PAUSE_S, self._resume)
        else:
            self._sink(data)
        return True

    def _resume(self) -> None:
        self._paused = None
        if self._handle >= 0:
            self._loop.add_reader(self._handle, self._receive)


class _Leftover(Struct, frozen=True):
    processes: CommandProcesses
    pipe: _Pipe | None


class ProcessRunner:
    """Runs commands one beside the other and remembers what they left running."""

    def __init__(self, options: ToolOptions) -> None:
        self.options = options
        self.spill = SpillDirectory(options.spill_dir)
        self._leftovers: list[_Leftover] = []

    async def run(
        self,
        command: str,
        cwd: str,
        sink: Callable[[bytes], None],
        *,
        environment: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> CommandEnd:
        """Run a command to its end; `sink` gets its output in chunks, on the event loop.

        Raises ToolError when it cannot be started. Cancelled, it first ends the command.
        """
        token = secrets.token_hex(8)
        variables = self.options.environment | HARMLESS | dict(environment or {})
        variables[TOKEN_VARIABLE] = token
        process, pipe = await self._start(command, cwd, sink, variables)
        processes = CommandProcesses(process.pid, token)
        ended = False
        keep_pipe = False
        try:
            timed_out = not await _ends_within(process, timeout_s)
            if timed_out:
                await self._end(process, processes)
            at_end = await pipe.settle(self.options.output_grace_s)
            left = tuple(await asyncio.to_thread(processes.find))
            processes.distrust_group()
            if left or not at_end:
                pipe.drain()
                keep_pipe = True
                self._leftovers.append(_Leftover(processes, None if at_end else pipe))
            ended = True
        except asyncio.CancelledError:
            await self._end(process, processes)
            ended = True
            raise
        finally:
            if not ended:
                processes.send(signal.SIGKILL, processes.find())
            if not keep_pipe:
                pipe.close()
        return _command_end(process.returncode, timed_out, left)

    @property
    def left_running(self) -> list[RunningProcess]:
        """What commands left in the background and is alive now."""
        return [process for leftover in self._leftovers for process in leftover.processes.find()]

    def close(self) -> list[str]:
        """End what was left in the background; gives the commands that were alive. Blocking."""
        ended: list[str] = []
        for leftover in self._leftovers:
            alive = leftover.processes.end_now(self.options.kill_grace_s / 2)
            ended += [f"{process.command} (process {process.pid})" for process in alive]
            if leftover.pipe is not None:
                leftover.pipe.close()
        self._leftovers.clear()
        return ended

    async def _start(
        self,
        command: str,
        cwd: str,
        sink: Callable[[bytes], None],
        variables: dict[str, str],
    ) -> tuple[asyncio.subprocess.Process, _Pipe]:
        require_directory(cwd)
        prefix = self.options.shell_command_prefix
        script = f"{prefix}\n{command}" if prefix else command
        reading, writing = os.pipe()
        try:
            if hasattr(fcntl, "F_SETPIPE_SZ"):
                # Smaller than asked for is fine: some systems limit it for the whole user.
                with contextlib.suppress(OSError):
                    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
            process = await asyncio.create_subprocess_exec(
                self._shell(),
                "-c",
                script,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=writing,
                stderr=writing,
                cwd=cwd,
                env=variables,
                start_new_session=True,
            )
        except BaseException as error:
            os.close(reading)
            if isinstance(error, (OSError, ValueError)):
                raise _not_started(error, self._shell()) from error
            raise
        finally:
            os.close(writing)
        return process, _Pipe(reading, sink)

    def _shell(self) -> str:
        if self.options.shell_path:
            return self.options.shell_path
        path = self.options.environment.get("PATH")
        return shutil.which("bash", path=path) or shutil.which("bash") or "/bin/sh"

    async def _end(self, process: asyncio.subprocess.Process, processes: CommandProcesses) -> None:
        """Ask everything to end, kill after the grace what has not."""
        deadline = asyncio.get_running_loop().time() + self.options.kill_grace_s
        alive = await asyncio.to_thread(processes.find)
        processes.send(signal.SIGTERM, alive)
        pause_s = 0.01
        while alive and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(pause_s)
            pause_s = min(0.1, pause_s * 2)
            alive = await asyncio.to_thread(processes.find)
        processes.send(signal.SIGKILL, alive)
        # A process in an uninterruptible wait does not end even now; nobody waits for it for ever.
        await _ends_within(process, 2.0)


async def _ends_within(process: asyncio.subprocess.Process, seconds: float | None) -> bool:
    try:
        await asyncio.wait_for(process.wait(), seconds)
    except TimeoutError:
        return False
    return True


def _not_started(error: OSError | ValueError, shell: str) -> ToolError:
    if isinstance(error, ValueError):
        return ToolError("The command holds a NUL or another character no command line can have.")
    if error.errno == errno.E2BIG:
        return ToolError(
            "The command is too long for the system. Write it to a file and run that file."
        )
    return ToolError(
        f"The shell {visible_line(shell)} could not be started: {error.strerror or error}."
    )


def _command_end(code: int | None, timed_out: bool, left: tuple[RunningProcess, ...]) -> CommandEnd:
    if code is None:
        return CommandEnd(128 + signal.SIGKILL, "SIGKILL", timed_out, left)
    if code >= 0:
        return CommandEnd(code, None, timed_out, left)
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return CommandEnd(128 - code, name, timed_out, left)
