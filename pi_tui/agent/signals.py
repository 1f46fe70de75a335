"""Abort signals: how Escape reaches work in progress without cancelling the whole run.

A run is one task that must live on after Escape to store what was cut short. So work that may be
interrupted runs as a child task, and the signal cancels only that child.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Aborted(Exception):
    """The signal was set while the work ran."""


class AbortSignal:
    """Set once; everybody who waits through it is interrupted."""

    def __init__(self) -> None:
        self._set = False
        self._callbacks: list[Callable[[], object]] = []

    @property
    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        """Interrupt what runs now and whatever is started later."""
        if self._set:
            return
        self._set = True
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work; raise Aborted when the signal is set first.

        The work has ended when this returns or raises. A result that is ready in the same instant
        as the signal wins: what has happened is not reported as aborted.
        """
        if self._set:
            work.close()
            raise Aborted
        task = asyncio.ensure_future(work)
        cancel = task.cancel
        self._callbacks.append(cancel)
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait((task,))
            if not task.cancelled():
                task.exception()  # seen here, so that asyncio does not report it a second time
            raise
        finally:
            if cancel in self._callbacks:
                self._callbacks.remove(cancel)
        if task.cancelled():
            raise Aborted
        return task.result()
