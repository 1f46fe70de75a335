"""Ctrl+C, SIGTERM and SIGHUP as a wish to stop, while a run without a screen lasts.

The first one asks the run to end itself, so that the running tool is killed and the session file is
left whole; a second one stops the waiting. A signal the parent process had ignored (`nohup`) stays
ignored.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Listens from entering to leaving the `with` block, on the main thread only.

    `first` and `second` are set on the event loop; `received` is the number of the first signal.
    `at_once` runs inside the handler, even while the loop is blocked: it may only set flags.
    """

    def __init__(self, at_once: Callable[[], None] = lambda: None) -> None:
        self._at_once = at_once
        self._loop = asyncio.get_running_loop()
        self._before: dict[signal.Signals, Any] = {}
        self.received: int | None = None
        self.first = asyncio.Event()
        self.second = asyncio.Event()

    @property
    def exit_code(self) -> int | None:
        """128 and the number of the signal; None when none came."""
        return None if self.received is None else 128 + self.received

    def __enter__(self) -> StopSignals:
        # signal.signal and not the loop's own handlers: these are heard while the loop is blocked.
        if threading.current_thread() is threading.main_thread():
            for number in STOPPING:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        event = self.second
        if self.received is None:
            self.received = number
            event = self.first
        self._at_once()
        self._loop.call_soon_threadsafe(event.set)
