"""The clients, made when a model is first used and kept: one per provider, API and address.

HTTP libraries are imported only here and only then. Keys and headers are asked for before every
request, because a command may have to print them; they are never kept in a client.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field

from pi_tui.core.errors import ModelError, ProviderError
from pi_tui.core.models import Model
from pi_tui.core.protocols import Provider
from pi_tui.providers.client_options import USUAL, ClientOptions
from pi_tui.providers.text_only import Client, TextOnlyClient

if TYPE_CHECKING:
    from pi_tui.providers.http_provider import HttpProvider
    from pi_tui.providers.litellm_process import LiteLLMProcess
    from pi_tui.providers.request_headers import HeadersSource


class Access(Struct, frozen=True):
    """What opens a provider's door. `bearer`: the key goes into an Authorization header."""

    api_key: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    bearer: bool = False


AccessSource: TypeAlias = Callable[[], Awaitable[Access]]
_Key: TypeAlias = tuple[str, str, str, tuple[tuple[str, str], ...]]


class Clients:
    """Makes and keeps clients. `child_environment` is asked when litellm's child is started."""

    def __init__(
        self,
        child_environment: Callable[[], Mapping[str, str]],
        options: ClientOptions = USUAL,
    ) -> None:
        self._child_environment = child_environment
        self._options = options
        self._clients: dict[_Key, Client] = {}
        self._process: LiteLLMProcess | None = None

    def client(self, model: Model, access: AccessSource, headers: Mapping[str, str]) -> Provider:
        """The client for the model; `headers` tell apart models that need different ones."""
        key = _key(model, headers)
        if key not in self._clients:
            made = self._make(model, access)
            self._clients[key] = TextOnlyClient(made) if self._options.block_images else made
        return self._clients[key]

    def _make(self, model: Model, access: AccessSource) -> Client:
        if model.api == "openai-completions":
            from pi_tui.providers.openai_compatible import OpenAICompatibleProvider

            return self._over_http(OpenAICompatibleProvider, model, _bearer_headers(access))
        if model.api == "anthropic-messages":
            from pi_tui.providers.anthropic import AnthropicProvider

            return self._over_http(AnthropicProvider, model, _anthropic_headers(access))
        if model.api == "litellm":
            from pi_tui.providers.litellm_process import (
                REQUEST_TIMEOUT_S,
                LiteLLMProcess,
                LiteLLMProvider,
            )

            if self._process is None:
                variables = {**self._child_environment(), **self._options.child_variables()}
                self._process = LiteLLMProcess(variables)
            silence_s = self._options.idle_timeout_s or REQUEST_TIMEOUT_S
            return LiteLLMProvider(self._process, access_for=access, timeout_s=silence_s)
        raise ModelError(
            f"Nothing here serves {model.full_name}: its API is called {model.api!r}.",
            hint="The extension that brought this model may be missing. Choose another with"
            " /model.",
        )

    def _over_http(
        self, kind: type[HttpProvider], model: Model, headers_for: HeadersSource
    ) -> Client:
        from pi_tui.providers.http import IDLE_TIMEOUT_S

        return kind(
            model.base_url,
            headers_for=headers_for,
            provider=model.provider,
            idle_timeout_s=self._options.idle_timeout_s or IDLE_TIMEOUT_S,
            proxy=self._options.proxy,
        )

    def forget(self, provider: str) -> None:
        """Make new clients for the provider from now on."""
        for key in [key for key in self._clients if key[0] == provider]:
            del self._clients[key]

    async def prepare(self, model: Model, headers: Mapping[str, str]) -> None:
        """Warm up the client of the model, if there is one."""
        client = self._clients.get(_key(model, headers))
        if client is not None:
            await client.warm_up()

    async def close(self) -> None:
        """Close all connections and end the child process."""
        clients, self._clients = list(self._clients.values()), {}
        process, self._process = self._process, None
        for client in clients:
            with contextlib.suppress(ProviderError):
                await client.aclose()
        if process is not None:
            await process.close()


def _key(model: Model, headers: Mapping[str, str]) -> _Key:
    return (model.provider, model.api, model.base_url, tuple(sorted(headers.items())))


def _bearer_headers(access: AccessSource) -> HeadersSource:
    async def headers() -> Mapping[str, str]:
        door = await access()
        key = {"Authorization": f"Bearer {door.api_key}"} if door.api_key else {}
        return {**key, **door.headers}

    return headers


def _anthropic_headers(access: AccessSource) -> HeadersSource:
    async def headers() -> Mapping[str, str]:
        door = await access()
        if not door.api_key:
            return door.headers
        if door.bearer:
            return {"Authorization": f"Bearer {door.api_key}", **door.headers}
        return {"x-api-key": door.api_key, **door.headers}

    return headers
