"""Textual's terminal driver with the faults that matter here taken out.

What it changes: bytes are written through a file that survives a hung-up terminal and any text;
what one read brings arrives as one event; the reading thread sleeps until there is something to
read; the size is the terminal's own, whatever COLUMNS and LINES say; suspending is done from the
event loop; leaving restores what `TerminalGuard` found.
"""

from __future__ import annotations

import os
import select
import signal
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

from textual import _ansi_sequences, constants, events
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from pi_tui.tui.terminal import TerminalGuard, hold_terminal
from pi_tui.tui.terminal_input import InputItem, PasteSplitter, TerminalInput, TypedText

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message

READ_BYTES = 65536
FALLBACK_SIZE = (80, 24)
"""For a terminal that does not know its size, as on a serial line."""

_STOP_S = 0.02
"""A stopping signal may reach another thread first; this long it takes to stop them all."""


class TerminalFile:
    """The output side of the terminal as a file: UTF-8, and silent once nobody listens."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._parts: list[str] = []
        self._lock = Lock()
        self._gone = False

    def write(self, text: str) -> int:
        self._parts.append(text)
        return len(text)

    def flush(self) -> None:
        with self._lock:
            parts, self._parts = self._parts, []
            data = memoryview("".join(parts).encode("utf-8", "replace"))
            try:
                while data and not self._gone:
                    data = data[self._write(data) :]
            except OSError:
                self._gone = True

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except BlockingIOError:
            select.select([], [self._fd], [], 1)
            return 0

    def fileno(self) -> int:
        return self._fd

    def isatty(self) -> bool:
        return True


class _NamedKey:
    """A key for Textual's sequence table, which wants objects with a `value`."""

    def __init__(self, value: str) -> None:
        self.value = value


def map_alt_keys() -> None:
    """Teach Textual's table Alt + key as terminals without a keyboard protocol send it.

    Without an entry the parser waits for the escape delay, takes what follows into the sequence
    and, in a fast burst, gives up on all of it.
    """
    table = cast("dict[str, Any]", _ansi_sequences.ANSI_SEQUENCES_KEYS)
    named = {"\r": "enter", "\n": "enter", "\x7f": "backspace", "\x08": "backspace"}
    for character, name in named.items():
        table["\x1b" + character] = (_NamedKey(f"alt+{name}"),)
    for code in range(0x21, 0x7F):
        character = chr(code)
        if character in "[OP]^_X":  # these begin sequences
            continue
        name = f"shift+{character.lower()}" if character.isupper() else character
        table["\x1b" + character] = (_NamedKey(f"alt+{name}"),)
    for code in range(1, 27):
        if chr(code) not in "\x08\t\n\r\x1b":
            table["\x1b" + chr(code)] = (_NamedKey(f"ctrl+alt+{chr(code + 96)}"),)


class TerminalDriver(LinuxDriver):
    """Reads and writes the terminal that `hold_terminal` holds."""

    def __init__(
        self,
        app: App[Any],
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._guard: TerminalGuard = hold_terminal()
        self._file = cast("Any", TerminalFile(1))
        self._size = self._size or self._get_terminal_size()
        self._wake_r, self._wake_w = os.pipe()
        self._own_signals()
        map_alt_keys()

    # ------------------------------------------------------------ screen on and off

    def start_application_mode(self) -> None:
        self._guard.on_screen = True
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        self.disable_input()
        if self._writer_thread is not None:
            self._writer_thread.stop()  # everything written so far is out before the reset
            self._writer_thread = None
        self._guard.leave_screen()
        self._guard.original()

    def _get_terminal_size(self) -> tuple[int, int]:
        for fd in (1, self.fileno, 2):
            try:
                columns, rows = os.get_terminal_size(fd)
            except OSError:
                continue
            if columns > 0 and rows > 0:
                return columns, rows
        return FALLBACK_SIZE

    @classmethod
    def _patch_lflag(cls, attrs: int) -> int:
        # Ctrl+C is a key here, whatever TEXTUAL_ALLOW_SIGNALS says.
        return super()._patch_lflag(attrs) & ~termios.ISIG

    def write(self, data: str) -> None:
        if self._writer_thread is not None:  # late frames after the end are dropped
            self._writer_thread.write(data)

    def close(self) -> None:
        if self._writer_thread is not None:
            self._writer_thread.stop()
            self._writer_thread = None

    def disable_input(self) -> None:
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        if self._key_thread is not None:
            os.write(self._wake_w, b"x")
            self._key_thread.join()
            self._key_thread = None
            os.read(self._wake_r, 1)

    def _enable_mouse_support(self) -> None:
        if self._mouse:  # 1002, not 1003: a mouse that only passes by is nobody's business
            self.write("\x1b[?1000h\x1b[?1002h\x1b[?1015h\x1b[?1006h")

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Another program has the terminal meanwhile; the app goes on without a screen.

        Whatever that program left switched on is switched off afterwards.
        """
        self._auto_restart = False
        self.stop_application_mode()
        try:
            yield
        finally:
            self._auto_restart = True
            self._guard.on_screen = True
            self._guard.leave_screen()
            if self._app.is_running:  # else the program ended in the meantime
                self._guard.quiet()
                self.start_application_mode()
                self._redraw()

    # ------------------------------------------------------------ suspend

    def suspend_process(self) -> None:
        """Hand the terminal back and stop the whole job, as the shell's Ctrl+Z would."""
        leave = self._auto_restart  # else an external editor has the terminal
        if leave:
            self.stop_application_mode()
        self._stop_job()
        if leave:
            self._guard.quiet()
            self.start_application_mode()
            self._redraw()

    def _stop_job(self) -> None:
        """Returns when somebody continues the process."""
        self._loop.remove_signal_handler(signal.SIGTSTP)
        continued = False

        def note(signum: int, frame: FrameType | None) -> None:
            nonlocal continued
            continued = True

        self._loop.remove_signal_handler(signal.SIGCONT)
        signal.signal(signal.SIGCONT, note)
        os.killpg(0, signal.SIGTSTP)
        time.sleep(_STOP_S)
        if not continued:  # without a job-controlling shell the signal above does nothing
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(_STOP_S)
        self._own_signals()

    def _own_signals(self) -> None:
        self._loop.add_signal_handler(signal.SIGTSTP, self.suspend_process)
        self._loop.add_signal_handler(signal.SIGCONT, self._continued)

    def _continued(self) -> None:
        """Stopped from outside, without a chance to leave: the shell wrote over the screen."""
        if self._writer_thread is not None:
            self._redraw()

    def _redraw(self) -> None:
        # Without a layout: only then is every line painted, whether it differs or not.
        self._loop.call_soon(lambda: self._app.screen.refresh())

    # ------------------------------------------------------------ input

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except Exception as error:  # noqa: BLE001 - without keys the program cannot go on
            self._loop.call_soon_threadsafe(self._app._handle_exception, error)

    def run_input_thread(self) -> None:
        """Turn bytes into events until woken through the pipe."""
        splitter = PasteSplitter(XTermParser(self._debug))
        decode = getincrementaldecoder("utf-8")("replace").decode
        early_bytes = self._guard.take_early_bytes()
        while True:
            due_s = splitter.due_s
            timeout_s = None if due_s is None else max(0.0, due_s - get_time())
            readable, _, _ = select.select([self.fileno, self._wake_r], [], [], timeout_s)
            if self._wake_r in readable:
                return
            if readable:
                try:
                    data = os.read(self.fileno, READ_BYTES)
                except OSError:
                    data = b""
                if not data:  # hung up; SIGHUP, if it comes, ends the program with its code
                    self._loop.call_soon_threadsafe(self._hung_up)
                    return
                if early_bytes:
                    early, late = data[:early_bytes], data[early_bytes:]
                    early_bytes -= len(early)
                    data = early.replace(b"\n", b"\r") + late
                self._pass_on(splitter.feed(decode(data)))
            else:
                self._pass_on(splitter.tick())

    def _pass_on(self, messages: Iterable[Message]) -> None:
        """Post what was read; keys that follow each other go together."""
        items: list[InputItem] = []
        for message in messages:
            if isinstance(message, events.Key | events.Paste | TypedText):
                items.append(message)
                continue
            if items:
                self.process_message(TerminalInput(tuple(items)))
                items.clear()
            self.process_message(message)
        if items:
            self.process_message(TerminalInput(tuple(items)))

    def _hung_up(self) -> None:
        if self._guard.on_signal is not None and self._guard.signalled is None:
            self._guard.on_signal(signal.SIGHUP)


def set_escape_delay(seconds: float) -> None:
    """How long a lone ESC waits for the rest of a sequence before it counts as the Escape key."""
    constants.ESCAPE_DELAY = seconds  # type: ignore[misc]


def ignore_textual_settings() -> None:
    """Take no notice of TEXTUAL_* variables: they are for the developers of Textual apps.

    Some of them stop this one, such as a filter that cannot stand a segment without a colour.
    """
    settings = cast("Any", constants)
    settings.FILTERS = ""
    settings.PRESS = ""
    settings.SCREENSHOT_DELAY = -1
    settings.SHOW_RETURN = False
    settings.COLOR_SYSTEM = "auto"
    settings.LOG_FILE = None
    settings.DEBUG = False


__all__ = ["PasteSplitter", "TerminalDriver", "ignore_textual_settings", "set_escape_delay"]
