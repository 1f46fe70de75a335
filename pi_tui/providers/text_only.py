"""A client that sends no images, whatever its model could see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from msgspec.structs import replace

from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import StreamEvent


class Client(Protocol):
    """A provider that holds connections."""

    async def warm_up(self) -> None: ...

    async def aclose(self) -> None: ...

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]: ...


class TextOnlyClient:
    """Treats every model as one that reads text: its client says in words where an image was."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def warm_up(self) -> None:
        await self._client.warm_up()

    async def aclose(self) -> None:
        await self._client.aclose()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request without its images; see `core.protocols.Provider`."""
        blind = replace(request, model=replace(request.model, input=("text",)))
        source = self._client.stream(blind)
        try:
            async for event in source:
                yield event
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
