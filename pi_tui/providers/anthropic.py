"""The client for servers that speak Anthropic's messages format.

Thin: `anthropic_request` words the request, `http` carries it, `anthropic_stream` reads the answer.
Makes no second attempt; the agent decides about that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from pi_tui.core.json_text import decode_json
from pi_tui.core.messages import JSON
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import StreamEvent
from pi_tui.providers.anthropic_request import anthropic_compat, messages_payload
from pi_tui.providers.anthropic_stream import MessagesStream
from pi_tui.providers.errors import unreadable
from pi_tui.providers.http import CONNECT_TIMEOUT_S, DRAIN_S, IDLE_TIMEOUT_S, HttpClient
from pi_tui.providers.request_headers import HeadersSource, RequestHeaders
from pi_tui.providers.tool_calls import CallIds

DEFAULT_BASE_URL = "https://api.anthropic.com"
_VERSION = "2023-06-01"
_INTERLEAVED_THINKING = "interleaved-thinking-2025-05-14"
_AFTER_FINISH_S = 10.0


class AnthropicProvider:
    """Streams answers of one messages server.

    `base_url` with or without the `/v1`. `headers_for` is asked before every request; `api_key` is
    the simple way. `compat` holds the provider's overrides; `Model.compat` goes over them.
    `long_cache`: cached prefixes live an hour, at a higher price for writing.
    """

    def __init__(
        self,
        base_url: str = DEFAULT_BASE_URL,
        *,
        api_key: str = "",
        headers_for: HeadersSource | None = None,
        headers: Mapping[str, str] | None = None,
        compat: Mapping[str, JSON] | None = None,
        provider: str = "anthropic",
        long_cache: bool = False,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        proxy: str = "",
    ) -> None:
        base_url = base_url or DEFAULT_BASE_URL
        self._url = messages_url(base_url)
        self._compat = dict(compat or {})
        self._long_cache = long_cache
        key = api_key.strip()
        self._headers = RequestHeaders(headers_for, headers, {"x-api-key": key} if key else {})
        self._is_anthropic = "//api.anthropic.com" in base_url
        self._http = HttpClient(
            provider=provider,
            base_url=base_url,
            connect_timeout_s=connect_timeout_s,
            idle_timeout_s=idle_timeout_s,
            proxy=proxy,
        )

    async def warm_up(self) -> None:
        """Load the HTTP library and the certificates before the first request needs them."""
        await self._http.warm_up()

    async def aclose(self) -> None:
        """Close the pooled connections of the running event loop."""
        await self._http.aclose()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request and yield what comes back; see `core.protocols.Provider`."""
        model = request.model
        compat = anthropic_compat(model.id, {**self._compat, **model.compat})
        payload = messages_payload(request, compat, long_cache=self._long_cache)
        headers, secrets = await self._headers.make()
        headers.setdefault("anthropic-version", _VERSION)
        if self._is_anthropic and payload.get("thinking", {}).get("type") == "enabled":
            # Thinking between tool calls; models that plan their thinking do it anyway.
            headers.setdefault("anthropic-beta", _INTERLEAVED_THINKING)
        provider = self._http.provider or model.provider
        answer = MessagesStream(
            provider=provider, model_id=model.id, ids=CallIds.for_request(request)
        )
        done = False
        async with (
            self._http.post(self._url, payload, headers, secrets=secrets) as reply,
            aclosing(reply.events()) as events,
        ):
            async for name, data in events:
                if done or name == "ping":
                    continue  # read to the end, so that the connection can be used again
                try:
                    event = decode_json(data, keep_halves=True)
                except ValueError as exc:
                    raise unreadable(provider) from exc
                if isinstance(event, dict) and event.get("type") == "message_stop":
                    done = True
                    reply.settle(DRAIN_S)
                    continue
                for made in answer.feed(event):
                    yield made
                if answer.has_finish:
                    reply.settle(_AFTER_FINISH_S)
        for made in answer.finish(ended_by_server=done):
            yield made


def messages_url(base_url: str) -> str:
    """The address requests go to; `/v1` is added where the base URL lacks it."""
    base = base_url.rstrip("/")
    if base.endswith("/messages"):
        return base
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"
