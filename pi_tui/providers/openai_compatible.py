"""The client for OpenAI chat completions: OpenAI itself, gateways, local servers.

Thin: `openai_request` words the request, `http` carries it, `openai_stream` reads the answer. Not
carried back: encrypted `reasoning_details` of OpenRouter, and thinking in general, except where a
server needs it (`openai_compat`). Makes no second attempt; the agent decides about that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing

from pi_tui.core.json_text import decode_json
from pi_tui.core.messages import JSON
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import StreamEvent
from pi_tui.providers.errors import unreadable
from pi_tui.providers.http import (
    CONNECT_TIMEOUT_S,
    DRAIN_S,
    IDLE_TIMEOUT_S,
    HttpClient,
)
from pi_tui.providers.openai_compat import compat_for
from pi_tui.providers.openai_request import chat_payload
from pi_tui.providers.openai_stream import ChatStream
from pi_tui.providers.request_headers import HeadersSource, RequestHeaders
from pi_tui.providers.tool_calls import CallIds

_AFTER_FINISH_S = 10.0
"""How long to wait for usage and the end mark once the server said why it stopped."""


class OpenAICompatibleProvider:
    """Streams answers of one chat-completions server.

    `base_url` is the address up to and including the version, as in `https://api.openai.com/v1`.
    `headers_for` is asked before every request and may run for long (a key command); `api_key` is
    the simple way. `compat` holds the provider's overrides; `Model.compat` goes over them.
    """

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
        self._url = chat_url(base_url)
        self._base_url = base_url
        self._compat = dict(compat or {})
        self._headers = RequestHeaders(
            headers_for,
            headers,
            {"authorization": f"Bearer {key}"} if (key := api_key.strip()) else {},
        )
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
        compat = compat_for(self._base_url, model.id, self._compat, model.compat)
        headers, secrets = await self._headers.make()
        provider = self._http.provider or model.provider
        answer = ChatStream(provider=provider, model_id=model.id, ids=CallIds.for_request(request))
        done = False
        async with (
            self._http.post(
                self._url, chat_payload(request, compat), headers, secrets=secrets
            ) as reply,
            aclosing(reply.events()) as events,
        ):
            async for _, data in events:
                if done:
                    continue  # read to the end, so that the connection can be used again
                if data.strip() == "[DONE]":
                    done = True
                    reply.settle(DRAIN_S)
                    continue
                try:
                    chunk = decode_json(data, keep_halves=True)
                except ValueError as exc:
                    raise unreadable(provider) from exc
                for event in answer.feed(chunk):
                    yield event
                if answer.has_finish:
                    reply.settle(_AFTER_FINISH_S)
        for event in answer.finish(ended_by_server=done or not compat.supports_finish_reason):
            yield event


def chat_url(base_url: str) -> str:
    """The address requests go to; a base URL that already names the endpoint is kept."""
    base = base_url.rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"
