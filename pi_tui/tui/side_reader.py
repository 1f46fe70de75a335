"""Runs something that blocks in a thread of its own; what it gives reaches the event loop in parts.

For lists that are long or on a slow disk: the first part comes at once, the others as they are
found, and no key ever waits. The thread is a daemon: a disk that does not answer cannot keep the
program from ending. Times are seconds.
"""

from __future__ import annotations

import asyncio
import threading
import time
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
        self._running = True
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
        part: list[T] = []
        due_s = time.monotonic() + FIRST_PART_S
        rest_s = time.monotonic() + WORK_S
        try:
            for item in items:
                if self._stop.is_set():
                    return
                part.append(item)
                now_s = time.monotonic()
                if now_s >= due_s:
                    self._post_part(part)
                    part = []
                    due_s = now_s + PART_S
                if now_s >= rest_s:
                    time.sleep(REST_S)  # the loop's thread gets the interpreter at once
                    rest_s = time.monotonic() + WORK_S
        finally:
            if isinstance(items, Generator):
                items.close()
            if part:
                self._post_part(part)

    def _post_part(self, part: Sequence[T]) -> None:
        self._post(lambda: self._hand_over(part))

    def _post(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits for this any more
            self._loop.call_soon_threadsafe(call)

    # ------------------------------------------------------------ on the loop

    def _hand_over(self, part: Sequence[T]) -> None:
        if not self._stop.is_set():
            self._deliver(part)

    def _end(self, failure: Exception | None) -> None:
        if not self._stop.is_set():
            self._running = False
            self._ended(failure)
