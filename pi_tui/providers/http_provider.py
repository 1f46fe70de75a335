"""What the clients on HTTP do alike: one request, one stream of events, read to its end.

A wire format is worded by a subclass (`exchange`) and read by a `WireAnswer`; how long the
connection is kept once the answer is complete is decided here. Makes no second attempt; the agent
decides about that. Times are seconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import ClassVar

from msgspec import Struct, field

from pi_tui.core.messages import JSON
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import StreamEvent
from pi_tui.providers.errors import unreadable
from pi_tui.providers.http import CONNECT_TIMEOUT_S, DRAIN_S, IDLE_TIMEOUT_S, HttpClient
from pi_tui.providers.request_headers import HeadersSource, RequestHeaders
from pi_tui.providers.wire_answer import END_MARK, WireAnswer

_AFTER_FINISH_S = 10.0
"""How long to wait for usage and the end mark once the server said why it stopped."""


class Exchange(Struct, frozen=True):
    """A request in the words of a wire format, and who reads its answer.

    `headers` give way to those of the user. `has_end_mark`: without the mark the answer was cut.
    """

    payload: JSON
    answer: WireAnswer
    headers: Mapping[str, str] = field(default_factory=dict)
    has_end_mark: bool = True


class HttpProvider(ABC):
    """Streams answers of one server.

    `headers_for` is asked before every request and may run for long (a key command); `api_key` is
    the simple way. `compat` holds the provider's overrides; `Model.compat` goes over them.
    """

    default_base_url: ClassVar[str] = ""

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str = "",
        headers_for: HeadersSource | None = None,
        headers: Mapping[str, str] | None = None,
        compat: Mapping[str, JSON] | None = None,
        provider: str = "",
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        proxy: str = "",
    ) -> None:
        self._base_url = base_url or self.default_base_url
        self._compat = dict(compat or {})
        key = api_key.strip()
        self._headers = RequestHeaders(headers_for, headers, self.key_headers(key) if key else {})
        self._http = HttpClient(
            provider=provider,
            base_url=self._base_url,
            connect_timeout_s=connect_timeout_s,
            idle_timeout_s=idle_timeout_s,
            proxy=proxy,
        )

    @staticmethod
    @abstractmethod
    def key_headers(key: str) -> Mapping[str, str]:
        """The headers that carry a key."""

    @staticmethod
    @abstractmethod
    def request_url(base_url: str) -> str:
        """The address requests go to."""

    @abstractmethod
    def exchange(self, request: ModelRequest, provider: str) -> Exchange:
        """Word the request. `provider` is the name errors are given under."""

    async def warm_up(self) -> None:
        """Load the HTTP library and the certificates before the first request needs them."""
        await self._http.warm_up()

    async def aclose(self) -> None:
        """Close the pooled connections of the running event loop."""
        await self._http.aclose()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request and yield what comes back; see `core.protocols.Provider`."""
        provider = self._http.provider or request.model.provider
        exchange = self.exchange(request, provider)
        answer = exchange.answer
        headers, secrets = await self._headers.make()
        headers = {**exchange.headers, **headers}
        url = self.request_url(self._base_url)
        done = False
        async with (
            self._http.post(url, exchange.payload, headers, secrets=secrets) as reply,
            aclosing(reply.events()) as events,
        ):
            async for name, data in events:
                if done:
                    continue  # read to the end, so that the connection can be used again
                try:
                    event = answer.decode(name, data)
                except ValueError as exc:
                    raise unreadable(provider) from exc
                if event is END_MARK:
                    done = True
                    reply.settle(DRAIN_S)
                    continue
                for made in answer.feed(event):
                    yield made
                if answer.has_finish:
                    reply.settle(_AFTER_FINISH_S)
        for made in answer.finish(ended_by_server=done or not exchange.has_end_mark):
            yield made
