"""Blocking work in a thread that is never left running behind a cancelled call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_to_the_end(work: Callable[[], T]) -> T:
    """Run short work in a thread; cancelled meanwhile, it is waited for and its result counts.

    A file that was written is reported as written. A second cancellation goes through at once.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if task.cancelled() or current is None:
            raise
        result = await task
        current.uncancel()
        return result


async def run_stoppable(work: Callable[[threading.Event], T]) -> T:
    """Run work that may take long in a thread; cancelled, it is not waited for but told to stop."""
    stop = threading.Event()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()
