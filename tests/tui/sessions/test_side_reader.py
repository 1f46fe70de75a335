"""Reading in a thread: parts in order, the end, stopping, and what goes wrong."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

from pi_tui.tui.side_reader import SideReader, Stopped

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")


class Heard:
    def __init__(self) -> None:
        self.parts: list[list[Any]] = []
        self.came = asyncio.Event()
        self.end: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self.who: set[str] = set()

    def deliver(self, part: Any) -> None:
        self.parts.append(list(part))
        self.who.add(WHO.get())
        self.came.set()

    @property
    def items(self) -> list[Any]:
        return [item for part in self.parts for item in part]


async def test_everything_comes_in_order_and_in_few_parts() -> None:
    heard = Heard()
    WHO.set("the app")
    reader = SideReader(lambda stopped: range(20_000), heard.deliver, heard.end.set_result)
    assert reader.running
    assert await asyncio.wait_for(heard.end, 10) is None
    assert heard.items == list(range(20_000)) and len(heard.parts) < 100
    assert heard.who == {"the app"} and not reader.running


async def test_what_is_there_comes_while_the_next_item_takes_long() -> None:
    heard, gate = Heard(), threading.Event()

    def source(stopped: Stopped) -> Iterator[str]:
        yield "quick"
        gate.wait(10)
        yield "slow"

    SideReader(source, heard.deliver, heard.end.set_result)
    await asyncio.wait_for(heard.came.wait(), 10)
    assert heard.items == ["quick"] and not heard.end.done()
    gate.set()
    await asyncio.wait_for(heard.end, 10)
    assert heard.items == ["quick", "slow"]


async def test_after_stop_nothing_is_heard_and_the_source_is_closed() -> None:
    heard, gate, closed = Heard(), threading.Event(), threading.Event()

    def source(stopped: Stopped) -> Iterator[int]:
        try:
            gate.wait(10)
            assert stopped()
            yield 1
            yield 2
        finally:
            closed.set()

    reader = SideReader(source, heard.deliver, heard.end.set_result)
    reader.stop()
    gate.set()
    assert await asyncio.to_thread(closed.wait, 10)
    second = Heard()
    SideReader(lambda stopped: [0], second.deliver, second.end.set_result)
    await asyncio.wait_for(second.end, 10)
    assert heard.parts == [] and not heard.end.done() and not reader.running


async def test_an_error_comes_after_what_was_read_before_it() -> None:
    heard = Heard()

    def source(stopped: Stopped) -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    SideReader(source, heard.deliver, heard.end.set_result)
    error = await asyncio.wait_for(heard.end, 10)
    assert isinstance(error, ValueError) and heard.items == [1]
