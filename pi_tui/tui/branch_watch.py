"""Keeps the git branch up to date: looks when somebody is there, never by itself.

A branch may be switched in another terminal at any time. Asking is cheap (one `stat` of the HEAD
file that was read before) and done in a thread; without a reason to ask nothing runs at all. Times
are seconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from msgspec import Struct

from pi_tui.tui.git_branch import branch_in, find_head

LOOK_S = 1.0
"""Not more often than this is the disk asked."""


class Seen(Struct, frozen=True):
    """What was found for a directory. `stamp` tells versions of the file `head` apart."""

    directory: str
    head: Path | None
    stamp: tuple[int, int, int] | None
    branch: str | None


class BranchWatch:
    """One per app. `changed` is told the new branch, on the event loop."""

    def __init__(
        self,
        directory: Callable[[], str],
        spawn: Callable[[Coroutine[Any, Any, object]], object],
        changed: Callable[[str | None], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._spawn = spawn
        self._changed = changed
        self._clock = clock
        self._seen: Seen | None = None
        self._reading = self._asked_meanwhile = False
        self._looked_s = float("-inf")
        self._due: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Have the branch read soon: now, or once the last look is long enough ago."""
        if self._seen is None or self._due is not None:  # the first look is `read`
            return
        wait_s = max(0.0, self._looked_s + LOOK_S - self._clock())
        self._due = asyncio.get_running_loop().call_later(wait_s, self._begin)

    async def read(self, *, anew: bool = False) -> None:
        """Read the branch now. `anew`: also where the file that was found before has not changed.

        A disk that does not answer is not asked a second time meanwhile.
        """
        if self._reading:
            self._asked_meanwhile = True
            return
        self._reading = True
        self._looked_s = self._clock()
        try:
            seen = await asyncio.to_thread(look_at, self._directory(), None if anew else self._seen)
        finally:
            self._reading = False
        before, self._seen = self._seen, seen
        if self._asked_meanwhile:
            self._asked_meanwhile = False
            self.look()
        if seen.branch != (before.branch if before is not None else None):
            self._changed(seen.branch)

    def stop(self) -> None:
        """Look no more."""
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _begin(self) -> None:
        self._due = None
        self._spawn(self.read())


def look_at(directory: str, seen: Seen | None) -> Seen:
    """What holds for a directory now; `seen` is what was found before, if anything."""
    if seen is not None and seen.directory == directory and _is_unchanged(seen):
        return seen
    head = find_head(directory)
    if head is None:
        return Seen(directory, None, None, None)
    stamp = _stamp(head)  # before reading: a change in between is seen the next time
    return Seen(directory, head, stamp, branch_in(head))


def _is_unchanged(seen: Seen) -> bool:
    if seen.head is None or seen.stamp is None:
        return False
    return _stamp(seen.head) == seen.stamp


def _stamp(head: Path) -> tuple[int, int, int] | None:
    try:
        found = head.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
