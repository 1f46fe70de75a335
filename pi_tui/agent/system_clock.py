"""The real clock and the real ids."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import Callable


class SystemClock:
    """Time as the system tells it."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class RandomIds:
    """Ids nobody can guess or repeat."""

    def entry_id(self, taken: Callable[[str], bool]) -> str:
        while taken(made := secrets.token_hex(4)):
            pass
        return made

    def session_id(self) -> str:
        return str(uuid.uuid4())
