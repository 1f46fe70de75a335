"""How long a stream takes to end once it is cancelled: `python tests/bench/bench_cancel.py`.

Each wire against a real server on loopback, in the middle of a busy stream: the time until the
reading task has ended, and until the server sees the connection close. Beside it, in the same run,
what cancelling a bare task costs. Exits with 1 when a median is over the promised 100 ms.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "doubles"))
from model_server import ModelServer, Reply

from pi_tui.core.messages import UserMessage
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest, Provider
from pi_tui.core.streaming import TextDelta
from pi_tui.providers.clients import Access, Clients

PROMISED_S = 0.1
ROUNDS = 12
APIS = ("openai-completions", "anthropic-messages", "litellm")


@asynccontextmanager
async def connected(api: str, server: ModelServer) -> AsyncIterator[tuple[Provider, Model]]:
    async def access() -> Access:
        return Access("k-1234567890abcdef")

    url = server.url if api == "anthropic-messages" else server.openai_url
    model = Model("fake", "fake-model", api, base_url=url, max_tokens=32_000)
    clients = Clients(lambda: {"PATH": os.environ["PATH"]})
    try:
        yield clients.client(model, access, {}), model
    finally:
        await clients.close()


async def cancelled_once(
    provider: Provider, model: Model, server: ModelServer
) -> tuple[float, float]:
    """Seconds until the task ended and until the server saw it."""
    arrived = asyncio.Event()
    before = len(server.requests)

    async def read() -> None:
        async for event in provider.stream(ModelRequest(model, "", (UserMessage("hi", 1),))):
            if isinstance(event, TextDelta):
                arrived.set()

    task = asyncio.create_task(read())
    await arrived.wait()
    began = time.monotonic()
    task.cancel()
    await asyncio.wait([task])
    ended = time.monotonic() - began
    return ended, await server.requests[before].wait_closed(30) - began


async def bare_task_s() -> float:
    task = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    began = time.monotonic()
    task.cancel()
    await asyncio.wait([task])
    return time.monotonic() - began


async def main() -> int:
    slow = False
    floor = statistics.median([await bare_task_s() for _ in range(ROUNDS)])
    print(f"{'a bare task':20} ended {floor * 1000:7.2f} ms")
    for api in APIS:
        async with (
            ModelServer([Reply(text=["word "] * 5000, rate=200)]) as server,
            connected(api, server) as (provider, model),
        ):
            times = [await cancelled_once(provider, model, server) for _ in range(ROUNDS)]
        ended, closed = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{api:20} ended {ended * 1000:7.2f} ms   server saw it {closed * 1000:7.2f} ms")
        slow = slow or max(ended, closed) > PROMISED_S
    return int(slow)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
