"""Runs something that blocks in a thread of its own; what it gives reaches the event loop in parts.

For lists that are long or on a slow disk: the first part comes at once, the others as they are
found, and no key ever waits. The thread is a daemon: a disk that does not answer cannot keep the
program from ending. Times are seconds.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from typing import Generic, TypeAlias, TypeVar

T = TypeVar("T")

FIRST_PART_S = 0.015
PART_S = 0.08
WORK_S = 0.003
REST_S = 0.0005

Stopped: TypeAlias = Callable[[], bool]


class SideReader(Generic[T]):
    """Iterates a source in a thread. Make it on the event loop; it starts at once.

    `source` gets a function that says whether it should end early. `deliver` and `ended` are called
    on the loop, in order; after `stop` neither is. `ended` hears of the exception that ended the
    source, if one did.
    """

    def __init__(
        self,
        source: Callable[[Stopped], Iterable[T]],
        deliver: Callable[[Sequence[T]], None],
        ended: Callable[[Exception | None], None],
    ) -> None:
        self._source = source
        self._deliver = deliver
        self._ended = ended
        self._stop = threading.Event()
        self._loop = asyncio.get_running_loop()
        # Textual finds its application through the context, and a thread begins with an empty one.
        self._context = contextvars.copy_context()
        self._running = True
        self._waiting: deque[T] = deque()
        self._due = False
        self._pause_s = FIRST_PART_S
        threading.Thread(target=self._run, name="side-reader", daemon=True).start()

    @property
    def running(self) -> bool:
        """False once `ended` or `stop` was called."""
        return self._running

    def stop(self) -> None:
        """End soon; nothing is delivered any more."""
        self._running = False
        self._stop.set()

    # ------------------------------------------------------------ in the thread

    def _run(self) -> None:
        failure: Exception | None = None
        try:
            self._read()
        except Exception as error:  # noqa: BLE001 - handed to the owner on the loop
            failure = error
        self._post(lambda: self._end(failure))

    def _read(self) -> None:
        items = self._source(self._stop.is_set)
        rest_s = time.monotonic() + WORK_S
        try:
            for item in items:
                if self._stop.is_set():
                    return
                self._waiting.append(item)
                if not self._due:
                    self._due = True
                    self._post(self._plan)
                if time.monotonic() >= rest_s:
                    time.sleep(REST_S)  # the loop's thread gets the interpreter at once
                    rest_s = time.monotonic() + WORK_S
        finally:
            if isinstance(items, Generator):
                items.close()

    def _post(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for this any more
            self._loop.call_soon_threadsafe(call, context=self._context)

    # ------------------------------------------------------------ on the loop

    def _plan(self) -> None:
        """Hand over in a moment what has come by then, however long the next item takes."""
        self._loop.call_later(self._pause_s, self._hand_over, context=self._context)
        self._pause_s = PART_S

    def _hand_over(self) -> None:
        self._due = False
        part: list[T] = []
        while self._waiting:
            part.append(self._waiting.popleft())
        if part and not self._stop.is_set():
            self._deliver(part)

    def _end(self, failure: Exception | None) -> None:
        self._hand_over()
        if not self._stop.is_set():
            self._running = False
            self._ended(failure)
