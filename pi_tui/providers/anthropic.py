"""The client for servers that speak Anthropic's messages format.

Thin: `anthropic_request` words the request, `http_provider` carries it, `anthropic_stream` reads
the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

from pi_tui.core.protocols import ModelRequest
from pi_tui.providers.anthropic_request import anthropic_compat, messages_payload
from pi_tui.providers.anthropic_stream import MessagesStream
from pi_tui.providers.http_provider import Exchange, HttpProvider
from pi_tui.providers.tool_calls import CallIds
from pi_tui.providers.web_address import host_of

_VERSION = "2023-06-01"
_INTERLEAVED_THINKING = "interleaved-thinking-2025-05-14"


class AnthropicProvider(HttpProvider):
    """Streams answers of one messages server; `base_url` with or without the `/v1`.

    `long_cache`: cached prefixes live an hour, at a higher price for writing.
    """

    default_base_url = "https://api.anthropic.com"
    long_cache: bool = False

    @staticmethod
    def key_headers(key: str) -> Mapping[str, str]:
        return {"x-api-key": key}

    @staticmethod
    def request_url(base_url: str) -> str:
        return messages_url(base_url)

    def exchange(self, request: ModelRequest, provider: str) -> Exchange:
        model = request.model
        compat = anthropic_compat(model.id, {**self._compat, **model.compat})
        payload = messages_payload(request, compat, long_cache=self.long_cache)
        headers = {"anthropic-version": _VERSION}
        thinking = payload.get("thinking", {}).get("type")
        if thinking == "enabled" and host_of(self._base_url) == "api.anthropic.com":
            # Thinking between tool calls; models that plan their thinking do it anyway.
            headers["anthropic-beta"] = _INTERLEAVED_THINKING
        ids = CallIds.for_request(request)
        answer = MessagesStream(provider=provider, model_id=model.id, ids=ids)
        return Exchange(payload, answer, headers)


def messages_url(base_url: str) -> str:
    """The address requests go to; `/v1` is added where the base URL lacks it."""
    base = base_url.rstrip("/")
    if base.endswith("/messages"):
        return base
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"
