"""Textual's terminal driver with the faults that matter here taken out.

What it changes: bytes are written through a file that survives a hung-up terminal and any text;
long pastes bypass the character-wise parser; the reading thread sleeps until there is something to
read; suspending is done from the event loop; leaving restores what `TerminalGuard` found.
"""

from __future__ import annotations

import os
import select
import signal
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

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message

PASTE_START = "\x1b[200~"
PASTE_END = "\x1b[201~"
READ_BYTES = 65536

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


class PasteSplitter:
    """Feeds a parser, but keeps the inside of a bracketed paste away from it.

    The parser looks at every character of a paste several times; a megabyte takes seconds. It only
    gets to see the two marks, and the empty paste event it makes of them is replaced.
    """

    def __init__(self, parser: XTermParser) -> None:
        self._parser = parser
        self._inside = False
        self._parts: list[str] = []
        self._tail = ""

    def feed(self, data: str) -> Iterable[Message]:
        """The events of the next piece of input, in order."""
        while data:
            if self._inside:
                whole, data = self._paste(data)
                if whole is not None:
                    for event in self._parser.feed(PASTE_END):
                        yield _with_text(event, whole)
                continue
            # A mark may be split over two reads: look for it in what the parser holds, too.
            seen = self._tail + data
            at = seen.find(PASTE_START)
            if at < 0:
                self._tail = _unfinished(seen, PASTE_START)
                yield from self._parser.feed(data)
                return
            end = at + len(PASTE_START) - len(self._tail)
            self._tail = ""
            self._inside = True
            yield from self._parser.feed(data[:end])
            data = data[end:]

    def _paste(self, data: str) -> tuple[str | None, str]:
        """Take paste text; returns the whole once it has ended, and what follows its end."""
        seen = self._tail + data
        at = seen.find(PASTE_END)
        if at < 0:
            self._tail = _unfinished(seen, PASTE_END)
            self._parts.append(seen[: len(seen) - len(self._tail)])
            return None, ""
        whole = "".join([*self._parts, seen[:at]])
        self._parts.clear()
        self._tail = ""
        self._inside = False
        return whole, seen[at + len(PASTE_END) :]


def _with_text(event: Message, text: str) -> Message:
    return events.Paste(text.replace("\x00", "")) if isinstance(event, events.Paste) else event


def _unfinished(text: str, mark: str) -> str:
    """The longest end of the text that could be the beginning of the mark."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-length:]):
            return text[-length:]
    return ""


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
        parser = XTermParser(self._debug)
        splitter = PasteSplitter(parser)
        decode = getincrementaldecoder("utf-8")("replace").decode
        while True:
            due = parser._timeout_time
            timeout_s = None if due is None else max(0.0, due - get_time())
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
                for event in splitter.feed(decode(data)):
                    self.process_message(event)
            else:
                for event in parser.tick():
                    self.process_message(event)

    def _hung_up(self) -> None:
        if self._guard.on_signal is not None and self._guard.signalled is None:
            self._guard.on_signal(signal.SIGHUP)


def set_escape_delay(seconds: float) -> None:
    """How long a lone ESC waits for the rest of a sequence before it counts as the Escape key."""
    constants.ESCAPE_DELAY = seconds  # type: ignore[misc]


__all__ = ["PasteSplitter", "TerminalDriver", "set_escape_delay"]
