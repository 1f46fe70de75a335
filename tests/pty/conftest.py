"""A program in a pseudo-terminal: everything it writes is recorded and shown on a pyte screen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyte
import pytest

DEADLINE_S = 20.0
SCRIPT = Path(__file__).parent / "run_double.py"

# What pyte would take for text: private modes with markers, device control strings, keyboard stack.
_UNKNOWN_TO_PYTE = re.compile(
    rb"\x1b\[[<>=][0-9;:]*[a-zA-Z]|\x1b[P_^X].*?\x1b\\|\x1b\[\?\d+\$p", re.DOTALL
)


class PseudoTerminal:
    """One program run. All waits have a deadline and fail with the screen."""

    def __init__(
        self,
        argv: list[str],
        env: Mapping[str, str],
        cwd: Path,
        size: tuple[int, int] = (80, 24),
        early: bytes = b"",
    ) -> None:
        columns, rows = size
        self.written = bytearray()
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._fed = 0
        self.status: int | None = None
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self._slave = slave  # kept open: its attributes are read after the program's end
        self.fd = master
        if early:  # typed while the terminal is still the shell's
            os.write(master, early)
        self.pid = os.fork()
        if self.pid == 0:
            os.close(master)
            os.login_tty(slave) if hasattr(os, "login_tty") else _login_tty(slave)
            os.chdir(cwd)
            os.execve(argv[0], argv, dict(env))

    # ------------------------------------------------------------ talking

    def send(self, data: bytes) -> None:
        """Write at once; what does not fit waits until the program has read."""
        while data:
            _, writable, _ = select.select([], [self.fd], [], DEADLINE_S)
            assert writable, "the program does not read"
            data = data[os.write(self.fd, data[:4096]) :]

    def resize(self, columns: int, rows: int) -> None:
        """Another size, told as a terminal does: with a signal."""
        assert self.text is not None  # what was drawn for the old size is behind us
        self._screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def signal(self, signum: int) -> None:
        os.kill(self.pid, signum)

    def pump(self, timeout_s: float = 0.0) -> bool:
        """Take what the program has written; False when nothing came in time."""
        readable, _, _ = select.select([self.fd], [], [], timeout_s)
        if not readable:
            return False
        try:
            data = os.read(self.fd, 1 << 16)
        except OSError:
            return False
        self.written += data
        return bool(data)

    # ------------------------------------------------------------ waiting

    def wait_for(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not done():
            if self._ended():
                while self.pump(0.02):
                    pass
                assert done(), f"{what} did not come before the end; screen:\n{self.text}"
                return
            assert time.monotonic() < deadline, f"{what} did not come; screen:\n{self.text}"
            self.pump(0.05)

    def _ended(self) -> bool:
        """True when the program has ended; its status stays to be collected."""
        if self.status is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, flags) is not None

    def wait_text(self, text: str) -> None:
        self.wait_for(lambda: text in self.text, repr(text))

    def wait_bytes(self, data: bytes) -> None:
        self.wait_for(lambda: data in self.written, repr(data))

    def wait_exit(self) -> int:
        """The exit code, negative for a signal."""

        def ended() -> bool:
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = status
            return self.status is not None

        self.wait_for(ended, "the end")
        while self.pump(0.02):
            pass
        assert self.status is not None
        print(self.text)  # shown by pytest when a test fails
        return os.waitstatus_to_exitcode(self.status)

    def wait_stopped(self) -> None:
        def stopped() -> bool:
            pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
            return bool(pid) and os.WIFSTOPPED(status)

        self.wait_for(stopped, "the stop")
        while self.pump(0.02):
            pass

    # ------------------------------------------------------------ looking

    @property
    def text(self) -> str:
        """The screen, rows joined by newlines."""
        data = bytes(self.written[self._fed :])
        self._fed = len(self.written)
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", data))
        return "\n".join(row.rstrip() for row in self._screen.display)

    @property
    def attributes(self) -> list[object]:
        return termios.tcgetattr(self._slave)

    def unread_input(self) -> bytes:
        """What the next program on the terminal would read at once."""
        attributes = termios.tcgetattr(self._slave)
        raw = [*attributes]
        raw[3] = attributes[3] & ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._slave, termios.TCSANOW, raw)
        readable, _, _ = select.select([self._slave], [], [], 0.05)
        return os.read(self._slave, 4096) if readable else b""

    def close(self) -> None:
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        os.close(self.fd)
        os.close(self._slave)


def _login_tty(fd: int) -> None:
    os.setsid()
    fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
    for target in (0, 1, 2):
        os.dup2(fd, target)
    if fd > 2:
        os.close(fd)


def environment(home: Path) -> dict[str, str]:
    """A private environment: nothing of the person who runs the tests."""
    keep = {name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ}
    return {
        **keep,
        "HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(home),
        "PI_TUI_DIR": str(home / "pi-tui"),
    }


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., PseudoTerminal]]:
    """Starts the double; the argument says what goes wrong in it."""
    running: list[PseudoTerminal] = []

    def begin(
        kind: str = "", *, ready: str = "fake-model", early: bytes = b"", **env: str
    ) -> PseudoTerminal:
        argv = [sys.executable, str(SCRIPT), kind]
        terminal = PseudoTerminal(argv, environment(tmp_path) | env, tmp_path, early=early)
        running.append(terminal)
        if ready:
            terminal.wait_text(ready)
        return terminal

    yield begin
    for terminal in running:
        terminal.close()
