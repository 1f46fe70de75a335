"""A clock that a test drives by hand, and ids that are counted: the same in every run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class FakeClock:
    """Stands still until told; a sleeper waits for `advance`."""

    def __init__(self) -> None:
        self.ms = 1_767_323_045_000
        self.sleeps: list[float] = []
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self.ms

    def monotonic_s(self) -> float:
        return self.ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self.ms + seconds * 1000, future))
        await future

    def advance(self, seconds: float) -> None:
        self.ms += round(seconds * 1000)
        for due, future in self._waiting:
            if due <= self.ms and not future.done():
                future.set_result(None)


class SequentialIds:
    """Ids counted from 1, so that every run of a test sees the same ones."""

    def __init__(self) -> None:
        self._next = 0
        self._sessions = 0

    def entry_id(self, taken: Callable[[str], bool]) -> str:
        self._next += 1
        while taken(f"{self._next:08x}"):
            self._next += 1
        return f"{self._next:08x}"

    def session_id(self) -> str:
        self._sessions += 1
        return f"00000000-0000-0000-0000-{self._sessions:012x}"


class SpreadIds(SequentialIds):
    """Counted ids whose beginnings differ, as those of real ones do: 10000000, 20000000, …"""

    def entry_id(self, taken: Callable[[str], bool]) -> str:
        return super().entry_id(lambda counted: taken(counted[::-1]))[::-1]
