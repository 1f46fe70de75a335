"""Standard output and standard error of a run without a screen.

Output is written by a thread of its own, straight to the descriptor: a reader that is slow holds up
the run only once a few megabytes wait, and never keeps a signal from being heard. A reader that
goes away is no error to talk about. Units: bytes and seconds.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections.abc import Callable
from typing import TextIO

from pi_tui.core.events import NoticeLevel
from pi_tui.core.sanitise import sanitise

MAX_BACKLOG_BYTES = 8 * 1024 * 1024
GIVE_UP_AFTER_S = 1.0


class OutputWriter:
    """Writes bytes to a stream, in order; `failure` is why it stopped, if it did."""

    def __init__(self, stream: TextIO, *, max_backlog_bytes: int = MAX_BACKLOG_BYTES) -> None:
        self._stream = stream
        self._descriptor = _descriptor(stream)
        self._max_backlog_bytes = max_backlog_bytes
        self._changed = threading.Condition()
        self._chunks: list[bytes] = []
        self._backlog_bytes = 0
        self._closing = False
        self._released = False
        self._loop = asyncio.get_running_loop()
        self._done = asyncio.Event()
        self.failure: OSError | None = None
        self.on_failure: Callable[[], None] = lambda: None
        # A daemon: a reader that never reads must not keep the program from ending.
        self._thread = threading.Thread(target=self._write_all, name="output", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Hand over bytes. Blocks the event loop while too much waits: the run must not go on."""
        with self._changed:
            if self.failure is not None or self._closing:
                return
            self._chunks.append(data)
            self._backlog_bytes += len(data)
            self._changed.notify_all()
            # Woken now and then because a signal handler may only set a flag.
            while (
                self._backlog_bytes > self._max_backlog_bytes
                and self.failure is None
                and not self._released
            ):
                self._changed.wait(0.1)

    def release(self) -> None:
        """Let `put` block no more. Safe in a signal handler."""
        self._released = True

    async def finish(self, give_up: asyncio.Event) -> None:
        """Wait until all is written; once `give_up` is set, only for a moment."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        done = asyncio.ensure_future(self._done.wait())
        told = asyncio.ensure_future(give_up.wait())
        try:
            await asyncio.wait((done, told), return_when=asyncio.FIRST_COMPLETED)
            if not done.done():
                await asyncio.wait((done,), timeout=GIVE_UP_AFTER_S)
        finally:
            done.cancel()
            told.cancel()

    def _write_all(self) -> None:
        while True:
            with self._changed:
                while not self._chunks and not self._closing:
                    self._changed.wait()
                if not self._chunks:
                    break
                data = b"".join(self._chunks)
                self._chunks.clear()
            try:
                self._write(data)
            except OSError as error:
                with self._changed:
                    self.failure = error
                    self._chunks.clear()
                    self._changed.notify_all()
                self._tell(self.on_failure)
                break
            with self._changed:
                self._backlog_bytes -= len(data)
                self._changed.notify_all()
        self._tell(self._done.set)

    def _write(self, data: bytes) -> None:
        if self._descriptor is None:
            self._stream.write(data.decode())
            self._stream.flush()
            return
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._descriptor, view) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])

    def _tell(self, call: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            # The loop is closed: the program has stopped waiting for this thread.
            return


def _descriptor(stream: TextIO) -> int | None:
    try:
        descriptor = stream.fileno()
        stream.flush()
    except (OSError, ValueError):
        return None  # the stream itself says why, when it is written to
    return descriptor


def encode_text(text: str, stream: TextIO) -> bytes:
    """The bytes of a text in the stream's encoding, ending in a newline; what has none is `?`."""
    if not text.endswith("\n"):
        text += "\n"
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "replace")


class Diagnostics:
    """Lines for people on standard error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._last = ""

    def say(self, level: NoticeLevel, text: str) -> None:
        """Write one notice; the same one twice in a row is written once."""
        word = "" if level == "info" else f"{level}: "
        line = f"pi-tui: {word}{sanitise(text).strip()}\n"
        if line == self._last:
            return
        self._last = line
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            self._stream.write(line.encode(encoding, "replace").decode(encoding))
            self._stream.flush()
        except (OSError, ValueError):
            # Nobody can be told that telling failed; the exit code still says it.
            return
