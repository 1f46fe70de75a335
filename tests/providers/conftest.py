"""Fixtures of the providers' tests: the loopback model server and requests to send to it.

The server is one file among the tests' doubles that is also run as a program.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, aclosing

import pytest

from pi_tui.core.messages import AssistantMessage, StopReason
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest, Provider
from pi_tui.core.streaming import MessageBuilder, StreamEvent


class Heard:
    """Everything one answer said, and the message it makes."""

    def __init__(self, model: Model) -> None:
        self.events: list[StreamEvent] = []
        self._builder = MessageBuilder(
            api=model.api, provider=model.provider, model=model.id, timestamp=1
        )

    def add(self, event: StreamEvent) -> None:
        self.events.append(event)
        self._builder.add(event)

    def of(self, kind: type) -> list[StreamEvent]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def stop_reason(self) -> StopReason | None:
        return self._builder.stop_reason

    @property
    def message(self) -> AssistantMessage:
        return self._builder.message(self._builder.stop_reason or "aborted")


async def listen(provider: Provider, request: ModelRequest, heard: Heard | None = None) -> Heard:
    """Read one answer to its end; `heard` keeps what came when it fails."""
    heard = heard or Heard(request.model)
    async with aclosing(provider.stream(request)) as stream:
        async for event in stream:
            heard.add(event)
    return heard


@pytest.fixture
def hear() -> Callable[..., object]:
    """The function that reads one answer to its end."""
    return listen


@pytest.fixture
def new_heard() -> type[Heard]:
    return Heard


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., object]]:
    """Start a model server with replies; all of them end with the test."""
    from model_server import ModelServer

    async with AsyncExitStack() as stack:

        async def start(replies: Sequence[object] | Callable[..., object]) -> ModelServer:
            return await stack.enter_async_context(ModelServer(replies))

        yield start
