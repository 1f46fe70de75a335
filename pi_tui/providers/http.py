"""The way to a model server: one pooled HTTP client per event loop, and event streams over it.

httpx is imported in a thread at the first request (or by `warm_up`), so that neither the start of
the program nor the first key strokes wait for it. Proxies of the environment are honoured, except
for servers on this machine. There is no limit on the whole answer, only on silence. Times are
seconds. Knows no wire format.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.json_text import encode_json
from pi_tui.core.messages import JSON
from pi_tui.providers.errors import classify, classify_exception, not_a_stream
from pi_tui.providers.web_address import host_of

if TYPE_CHECKING:
    import httpx
    from httpx_sse import ServerSentEvent

    _EventIterator = AsyncGenerator[ServerSentEvent, None]

CONNECT_TIMEOUT_S = 15.0
IDLE_TIMEOUT_S = 300.0
KEEP_ALIVE_S = 60.0
DRAIN_S = 0.05
"""How long the end of a body may take after the last event, so that its connection is reusable."""

_MAX_ERROR_BYTES = 1_000_000
_MAX_BODY_BYTES = 64_000_000


class EventStream:
    """The events of one answer. Iterate `events()` once."""

    def __init__(
        self, response: httpx.Response, client: HttpClient, secrets: Sequence[str]
    ) -> None:
        self._response = response
        self._client = client
        self._secrets = secrets
        self._patience_s: float | None = None

    def settle(self, patience_s: float) -> None:
        """Say that the answer is complete but for extras: from now on silence or a break is an end.

        Some servers keep the connection open, or break it, after their last word.
        """
        self._patience_s = patience_s

    async def events(self) -> AsyncGenerator[tuple[str, str], None]:
        """Yield (event name, data); raises ProviderError when the connection fails."""
        content_type = self._response.headers.get("content-type", "").partition(";")[0].lower()
        if content_type == "application/json" or "html" in content_type:
            yield "", await self._whole_body(content_type)
            return
        # The library insists on this type, and the format on UTF-8, whatever the server says.
        self._response.headers["content-type"] = "text/event-stream; charset=utf-8"
        async with aclosing(self._sse()) as source:
            while True:
                try:
                    event = await self._next(source)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    return
                except Exception as exc:  # classified, or the end of an answer that is complete
                    if self._patience_s is not None and self._client.is_transport_error(exc):
                        return
                    raise self._client.failure(exc, self._secrets) from exc
                if event.data:
                    yield event.event, event.data

    def _sse(self) -> _EventIterator:
        from httpx_sse import EventSource

        return EventSource(self._response).aiter_sse()

    async def _next(self, source: _EventIterator) -> ServerSentEvent:
        if self._patience_s is None:
            return await anext(source)
        async with asyncio.timeout(self._patience_s):
            return await anext(source)

    async def _whole_body(self, content_type: str) -> str:
        """The body of a server that answered without a stream."""
        try:
            body = await _read_up_to(self._response, _MAX_BODY_BYTES)
        except Exception as exc:
            raise self._client.failure(exc, self._secrets) from exc
        if content_type != "application/json":
            raise not_a_stream(
                self._client.provider, content_type, body, base_url=self._client.base_url
            )
        return body


class HttpClient:
    """Posts requests of one provider. One pool per event loop, made when it is first needed."""

    def __init__(
        self,
        *,
        provider: str,
        base_url: str,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        proxy: str = "",
    ) -> None:
        self.provider = provider
        self.base_url = base_url
        self._proxy = proxy
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            WeakKeyDictionary()
        )

    async def warm_up(self) -> None:
        """Import and set up everything a request needs, without sending one."""
        await self._pool()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    @asynccontextmanager
    async def post(
        self, url: str, payload: JSON, headers: Mapping[str, str], *, secrets: Sequence[str] = ()
    ) -> AsyncIterator[EventStream]:
        """Send the payload and give the stream of the answer.

        Leaving the block early closes the connection at once. Raises ProviderError for everything
        that is not a success.
        """
        body = encode_json(payload)
        client = await self._pool()
        sent = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "accept-encoding": "identity",  # a compressing proxy would hold tokens back
            "user-agent": "pi-tui",
            **{name.lower(): value for name, value in headers.items()},
        }
        try:
            request = client.build_request("POST", url, content=body, headers=sent)
            response = await client.send(request, stream=True)
        except Exception as exc:
            raise self.failure(exc, secrets) from exc
        try:
            if response.status_code != 200:
                raise await self._rejection(response, secrets)
            yield EventStream(response, self, secrets)
        finally:
            await response.aclose()

    async def _rejection(self, response: httpx.Response, secrets: Sequence[str]) -> ProviderError:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                text = await _read_up_to(response, _MAX_ERROR_BYTES)
        except Exception as exc:
            if not (isinstance(exc, TimeoutError) or self.is_transport_error(exc)):
                raise
            text = ""  # the status alone says enough
        return classify(
            response.status_code,
            text,
            {name.lower(): value for name, value in response.headers.items()},
            self.provider,
            secrets=secrets,
            base_url=self.base_url,
        )

    def is_transport_error(self, exc: BaseException) -> bool:
        """True for what the HTTP library raises when the connection fails."""
        import httpx

        return isinstance(exc, httpx.HTTPError | httpx.StreamError | OSError | ssl.SSLError)

    def failure(self, exc: BaseException, secrets: Sequence[str] = ()) -> ProviderError:
        """What an exception of the library means."""
        return classify_exception(exc, self.provider, base_url=self.base_url, secrets=secrets)

    async def _pool(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is not None and not client.is_closed:
            return client
        try:
            made = await asyncio.to_thread(self._make_client)
        except (ValueError, ImportError, OSError) as exc:
            raise ProviderError(
                f"The HTTP client could not be set up: {exc}.",
                kind=ErrorKind.BAD_REQUEST,
                provider=self.provider,
                hint="Check httpProxy, HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and SSL_CERT_FILE.",
            ) from exc
        # Another task may have been faster; an unused client holds no connection.
        return self._clients.setdefault(loop, made)

    def _make_client(self) -> httpx.AsyncClient:
        import httpx
        import httpx_sse  # noqa: F401  (imported here, in the thread, not at the first event)

        return httpx.AsyncClient(
            verify=_ssl_context(plain=self.base_url.startswith("http://")),
            trust_env=not is_loopback(self.base_url),
            proxy=self._proxy_for_server(),
            timeout=httpx.Timeout(
                connect=self._connect_timeout_s,
                read=self._idle_timeout_s,
                write=self._idle_timeout_s,
                pool=self._connect_timeout_s,
            ),
            limits=httpx.Limits(
                max_connections=None, max_keepalive_connections=8, keepalive_expiry=KEEP_ALIVE_S
            ),
        )

    def _proxy_for_server(self) -> str | None:
        """The proxy that was set, unless the environment excepts the server from proxies."""
        if not self._proxy or is_loopback(self.base_url):
            return None
        from urllib.request import proxy_bypass

        return None if proxy_bypass(host_of(self.base_url)) else self._proxy


_contexts: dict[bool, ssl.SSLContext] = {}


def _ssl_context(*, plain: bool) -> ssl.SSLContext:
    """Share one context: loading the certificates takes tens of milliseconds.

    `plain`: the server speaks no TLS; an empty context, which trusts nobody, costs nothing.
    """
    if plain not in _contexts:
        import httpx

        _contexts[plain] = (
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if plain else httpx.create_ssl_context()
        )
    return _contexts[plain]


def is_loopback(url: str) -> bool:
    """True when the address means this machine, where no proxy can help."""
    host = host_of(url)
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _read_up_to(response: httpx.Response, limit_bytes: int) -> str:
    pieces: list[bytes] = []
    size_bytes = 0
    async for piece in response.aiter_bytes():
        pieces.append(piece)
        size_bytes += len(piece)
        if size_bytes >= limit_bytes:
            break
    return b"".join(pieces)[:limit_bytes].decode("utf-8", "replace")
