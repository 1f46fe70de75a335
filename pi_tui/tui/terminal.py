"""The terminal as the program found it, and the promise to leave it that way.

Imports neither Textual nor Rich: `hold_terminal()` is the first thing a full-screen run does, so
that keys typed while modules load are neither echoed nor lost. From then on every way out (return,
exception, SIGTERM, SIGHUP, SIGINT, SIGQUIT) passes through `TerminalGuard.restore`. Durations are
seconds.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import select
import signal
import struct
import termios
import time
import tty
from collections.abc import Callable, Sequence
from types import FrameType, TracebackType
from typing import Any, TypeAlias

EXIT_INTERRUPTED = 130

FORCED_EXIT_S = 5
"""How long an orderly end after a signal may take before the process is ended at once."""

SAME_REQUEST_S = 2.0
"""Signals that come together are one request: a closing terminal hangs up more than once."""

DRAIN_QUIET_S = 0.03
DRAIN_QUIET_REMOTE_S = 0.12
DRAIN_MAX_S = 0.5

STOPPED_OUTPUT_S = 2.0
FORCED_OUTPUT_S = 0.2
"""How long the reset waits for a terminal whose output is stopped, as Ctrl+S does."""

LEAVE_SCREEN = (
    "\x1b[?2026l"  # a frame may have been cut in the middle
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l"
    "\x1b[<u"  # before leaving: the keyboard protocol has one stack per screen
    "\x1b[0m\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"
)

# What `termios.tcgetattr` returns: six numbers and the list of control characters.
Attributes: TypeAlias = list[Any]
Handler: TypeAlias = Callable[[int, FrameType | None], Any] | int | None


class TerminalGuard:
    """Holds the terminal's attributes from the start to the end of a full-screen run.

    `on_signal`, once set, is called with the signal's number and must start an orderly end. An end
    that takes too long, a second signal that does not come together with the first, and SIGQUIT
    restore the terminal and end the process; `on_forced_end` is called before and must be quick,
    and the lines it returns are written on the normal screen.
    """

    def __init__(self, *, input_fd: int = 0, output_fd: int = 1) -> None:
        self._in = input_fd
        self._out = output_fd
        self._before: Attributes | None = None
        self._handlers: dict[int, Handler] = {}
        self._signalled: int | None = None
        self._ending_since_s: float | None = None
        self._early_bytes = 0
        self._stopped_output_s = STOPPED_OUTPUT_S
        self.on_screen = False
        """True between entering and leaving the alternate screen."""
        self.remote = False
        """True when replies of the terminal cross a network."""
        self.on_signal: Callable[[int], None] | None = None
        self.on_forced_end: Callable[[], Sequence[str]] | None = None

    @property
    def signalled(self) -> int | None:
        """The number of the signal that is ending the program, if one is."""
        return self._signalled

    def hold(self) -> None:
        """Switch echo and line editing off and take over the ending signals; once is enough."""
        if self._handlers:
            return
        try:
            self._before = termios.tcgetattr(self._in)
        except (termios.error, OSError, ValueError):
            self._before = None  # not a terminal: nothing to hold
        else:
            self.quiet()
        for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            self._take_over(signum, self._ending_signal)
        self._take_over(signal.SIGQUIT, self._end_now)

    def _take_over(self, signum: int, handler: Callable[[int, FrameType | None], None]) -> None:
        self._handlers[signum] = signal.getsignal(signum)
        signal.signal(signum, handler)

    def quiet(self) -> None:
        """No echo, no line editing, no CR translation; Ctrl+C still interrupts."""
        if self._before is None:
            return
        attributes = termios.tcgetattr(self._in)
        translated = attributes[tty.IFLAG] & termios.ICRNL
        attributes[tty.LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN)
        attributes[tty.IFLAG] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
        attributes[tty.CC] = list(attributes[tty.CC])
        attributes[tty.CC][termios.VMIN] = 1
        attributes[tty.CC][termios.VTIME] = 0
        self._set(attributes)
        if translated:  # what has arrived so far has its Enter keys as line feeds
            self._early_bytes = self._waiting_bytes()

    def take_early_bytes(self) -> int:
        """How many bytes at the start of the input hold line feeds that were Enter keys."""
        early, self._early_bytes = self._early_bytes, 0
        return early

    def _waiting_bytes(self) -> int:
        try:
            answer = fcntl.ioctl(self._in, termios.FIONREAD, struct.pack("i", 0))
        except OSError:
            return 0
        return int(struct.unpack("i", answer)[0])

    def begin_leaving(self) -> None:
        """The person has left: a Ctrl+C that comes too late is not a wish of its own."""
        if self._ending_since_s is None:
            self._ending_since_s = time.monotonic()

    def leave_screen(self) -> None:
        """Switch everything off that a full-screen program switches on, then drain the input."""
        if self.on_screen:
            self.on_screen = False
            self._write(LEAVE_SCREEN)
        self.drain()

    def original(self) -> None:
        """Give the terminal the attributes it had before the program started."""
        if self._before is not None:
            self._set(self._before)

    def restore_screen(self) -> None:
        """Leave the screen and give the attributes back; the ending signals stay taken over."""
        self.leave_screen()
        self.original()

    def restore(self) -> None:
        """Leave the terminal as it was found. May be called more than once.

        Ctrl+C is ignored from then on: only the exit is left to do, and it has a code to give.
        """
        self.restore_screen()
        self._before = None
        for signum, handler in self._handlers.items():
            if signum == signal.SIGINT:
                handler = signal.SIG_IGN
            signal.signal(signum, handler if handler is not None else signal.SIG_DFL)
        self._handlers.clear()
        if self._signalled is not None:
            signal.alarm(0)
        atexit.unregister(self.restore)

    def drain(self) -> None:
        """Throw away input nobody will read: mouse reports, key releases, replies to queries."""
        if self._before is None:
            return
        quiet_s = DRAIN_QUIET_REMOTE_S if self.remote else DRAIN_QUIET_S
        deadline = time.monotonic() + DRAIN_MAX_S
        try:
            while time.monotonic() < deadline:
                readable, _, _ = select.select([self._in], [], [], quiet_s)
                if not readable or not os.read(self._in, 65536):
                    break
            termios.tcflush(self._in, termios.TCIFLUSH)
        except (OSError, ValueError, termios.error):
            return  # the terminal is gone, and its input with it

    def _set(self, attributes: Attributes) -> None:
        try:
            termios.tcsetattr(self._in, termios.TCSANOW, attributes)
        except (termios.error, OSError):
            return  # hung up

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        try:
            while data:
                _, writable, _ = select.select([], [self._out], [], self._stopped_output_s)
                if not writable:
                    return
                data = data[os.write(self._out, data) :]
        except (OSError, ValueError):
            return  # hung up

    def _ending_signal(self, signum: int, frame: FrameType | None) -> None:
        now_s = time.monotonic()
        since_s = self._ending_since_s
        again = self._signalled is not None or signum == signal.SIGINT
        if since_s is not None and again:
            if now_s - since_s < SAME_REQUEST_S:
                return
            self._end_now(signum, frame)
        self._signalled = signum
        self._ending_since_s = now_s
        signal.signal(signal.SIGALRM, self._end_now)
        signal.alarm(FORCED_EXIT_S)
        if self.on_signal is None:
            raise SystemExit(128 + signum)  # before the event loop: nothing to end in order
        self.on_signal(signum)

    def _end_now(self, signum: int, frame: FrameType | None) -> None:
        first = self._signalled or signum
        self._signalled = first
        self._stopped_output_s = FORCED_OUTPUT_S
        told: Sequence[str] = ()
        try:
            try:
                if self.on_forced_end is not None:
                    told = self.on_forced_end()
            finally:
                self.restore_screen()
            self._write("".join(f"{line}\n" for line in told))
        finally:
            os._exit(128 + first)

    def __enter__(self) -> TerminalGuard:
        self.hold()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()
        release_terminal(self)


_held: TerminalGuard | None = None


def hold_terminal() -> TerminalGuard:
    """The guard of this process's terminal; the first call switches echo off.

    A process has one terminal, so there is one guard: the command line takes it before anything
    slow is imported, and the app finds the same one.
    """
    global _held
    if _held is None:
        _held = TerminalGuard()
        _held.hold()
        atexit.register(_held.restore)  # a start that fails before `with` is reached
    return _held


def release_terminal(guard: TerminalGuard) -> None:
    """Forget a guard that has restored the terminal."""
    global _held
    if _held is guard:
        _held = None


def silence_terminal() -> None:
    """Switch echo off before anything slow is imported; `run_tui` takes over from there."""
    hold_terminal()
