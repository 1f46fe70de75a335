"""The client for OpenAI chat completions: OpenAI itself, gateways, local servers.

Thin: `openai_request` words the request, `http_provider` carries it, `openai_stream` reads the
answer. Not carried back: encrypted `reasoning_details` of OpenRouter, and thinking in general,
except where a server needs it (`openai_compat`).
"""

from __future__ import annotations

from collections.abc import Mapping

from pi_tui.core.protocols import ModelRequest
from pi_tui.providers.http_provider import Exchange, HttpProvider
from pi_tui.providers.openai_compat import compat_for
from pi_tui.providers.openai_request import chat_payload
from pi_tui.providers.openai_stream import ChatStream
from pi_tui.providers.tool_calls import CallIds


class OpenAICompatibleProvider(HttpProvider):
    """Streams answers of one chat-completions server.

    `base_url` is the address up to and including the version, as in `https://api.openai.com/v1`.
    """

    @staticmethod
    def key_headers(key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {key}"}

    @staticmethod
    def request_url(base_url: str) -> str:
        return chat_url(base_url)

    def exchange(self, request: ModelRequest, provider: str) -> Exchange:
        model = request.model
        compat = compat_for(self._base_url, model.id, self._compat, model.compat)
        ids = CallIds.for_request(request)
        answer = ChatStream(provider=provider, model_id=model.id, ids=ids)
        return Exchange(
            chat_payload(request, compat), answer, has_end_mark=compat.supports_finish_reason
        )


def chat_url(base_url: str) -> str:
    """The address requests go to; a base URL that already names the endpoint is kept."""
    base = base_url.rstrip("/")
    return base if base.endswith("/chat/completions") else f"{base}/chat/completions"
