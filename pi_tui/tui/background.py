"""Work in the background of the app; a fault in it becomes a line on screen, not the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class BackgroundWork:
    """One per app. `tell` is called with the words for a fault, on the event loop."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._tasks: set[asyncio.Task[object]] = set()

    def spawn(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        """Start something."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def watch_loop(self) -> None:
        """Tell of faults that nobody else is told of, too."""
        asyncio.get_running_loop().set_exception_handler(self._unhandled)

    async def end(self) -> None:
        """Cancel everything and wait for it."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell(_words(error))

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            self._tell(_words(error))
        elif error is None:
            self._tell(f"internal error: {context.get('message', 'unknown')}")


def _words(error: BaseException) -> str:
    return f"internal error: {type(error).__name__}: {error}"
