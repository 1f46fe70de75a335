"""Model servers on this machine: Ollama, LM Studio, llama.cpp.

They are asked in parallel over plain sockets for the models they serve, at most 200 ms altogether,
and only ever in the background: nothing waits for a server that is not there. Nothing is sent but
one GET per server, and only to addresses the user set or to the usual ports of this machine.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from pi_tui.core.json_text import decode_json
from pi_tui.core.messages import JSON
from pi_tui.core.models import Model
from pi_tui.providers.provider_names import provider_facts

PROBE_TIMEOUT_S = 0.2
_ANSWER_LIMIT_BYTES = 1_000_000
_DEFAULT_WINDOW_TOKENS = 32_768
_DEFAULT_MAX_TOKENS = 8_192
_NOT_FOR_CHAT = ("embed", "bge-", "rerank", "whisper", "tts", "clip")


class LocalServer(Struct, frozen=True):
    """A place to look: our provider id and the address of its OpenAI-compatible API."""

    provider: str
    base_url: str


def local_servers(environment: Mapping[str, str]) -> tuple[LocalServer, ...]:
    """Where to look: the usual ports, or what the servers' own variables say."""
    addresses = {
        "ollama": _address(environment.get("OLLAMA_HOST", ""), 11434),
        "lmstudio": _address(environment.get("LMSTUDIO_HOST", ""), 1234),
        "llamacpp": _address(environment.get("LLAMACPP_HOST", ""), 8080),
    }
    return tuple(LocalServer(provider, f"{url}/v1") for provider, url in addresses.items())


def _address(given: str, port: int) -> str:
    """An address from `host`, `host:port`, `:port` or a URL; the wildcard means this machine."""
    text = given.strip().rstrip("/")
    if not text:
        return f"http://127.0.0.1:{port}"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        host = parts.hostname or "127.0.0.1"
        usual = {"http": 80, "https": 443}.get(parts.scheme, port) if "://" in text else port
        number = parts.port or usual
    except ValueError:
        return f"http://127.0.0.1:{port}"
    if parts.scheme not in ("http", "https"):
        return f"http://127.0.0.1:{port}"
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}:{number}{parts.path.removesuffix('/v1')}"


async def probe(
    servers: Sequence[LocalServer], timeout_s: float = PROBE_TIMEOUT_S
) -> tuple[Model, ...]:
    """Models of every server that answers in time, in the order of the servers; never raises."""
    tasks = [asyncio.create_task(_models(server)) for server in servers]
    if not tasks:
        return ()
    try:
        await asyncio.wait(tasks, timeout=timeout_s)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return tuple(
        model
        for task in tasks
        if not task.cancelled() and task.exception() is None
        for model in task.result()
    )


async def _models(server: LocalServer) -> tuple[Model, ...]:
    """The chat models one server lists; none when it does not answer like such a server."""
    try:
        body = await _get(f"{server.base_url}/models")
        answer = decode_json(body.decode("utf-8", "replace"))
    except (OSError, ValueError, EOFError, asyncio.LimitOverrunError):
        return ()
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return ()
    found = (_model(server, item) for item in listed)
    return tuple(model for model in found if model is not None)


def _model(server: LocalServer, item: JSON) -> Model | None:
    model_id = item.get("id") if isinstance(item, dict) else None
    if not isinstance(model_id, str) or not model_id:
        return None
    if any(word in model_id.lower() for word in _NOT_FOR_CHAT):
        return None
    return local_model(server, model_id, _window_tokens(item))


def local_model(
    server: LocalServer, model_id: str, window_tokens: int = _DEFAULT_WINDOW_TOKENS
) -> Model:
    """A model of a local server, free of charge."""
    facts = provider_facts(server.provider)
    return Model(
        provider=server.provider,
        id=model_id,
        api=facts.api if facts is not None else "openai-completions",
        name=model_id,
        base_url=server.base_url,
        context_window=window_tokens,
        max_tokens=min(_DEFAULT_MAX_TOKENS, window_tokens),
    )


def _window_tokens(item: dict[str, JSON]) -> int:
    """The window where the server tells it, in one of the fields such servers use."""
    meta = item.get("meta")
    places = (item, meta if isinstance(meta, dict) else {})
    names = ("loaded_context_length", "max_context_length", "max_model_len", "n_ctx")
    for place in places:
        for name in names:
            value = place.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return _DEFAULT_WINDOW_TOKENS


async def _get(url: str) -> bytes:
    """The body of a plain GET. Raises OSError or ValueError for anything but a 200."""
    parts = urlsplit(url)
    secure = parts.scheme == "https"
    reader, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or (443 if secure else 80),
        ssl=ssl.create_default_context() if secure else None,
    )
    try:
        writer.write(
            f"GET {parts.path} HTTP/1.0\r\nHost: {parts.netloc}\r\n"
            "Accept: application/json\r\nConnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        head = await reader.readuntil(b"\r\n\r\n")
        return await _body(head, reader)
    finally:
        writer.close()


async def _body(head: bytes, reader: asyncio.StreamReader) -> bytes:
    lines = head.decode("latin-1").lower().split("\r\n")
    status = lines[0].split()
    if len(status) < 2 or status[1] != "200":
        raise ValueError("not a 200 answer")
    headers = dict(line.split(":", 1) for line in lines[1:] if ":" in line)
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while size := int((await reader.readline()).split(b";")[0], 16):
            if len(body) + size > _ANSWER_LIMIT_BYTES:
                raise ValueError("the answer is too long")
            body += await reader.readexactly(size)
            await reader.readline()
        return body
    length = int(headers.get("content-length", "-1"))
    if length > _ANSWER_LIMIT_BYTES:
        raise ValueError("the answer is too long")
    if length >= 0:
        return await reader.readexactly(length)
    body = b""
    while chunk := await reader.read(65536):
        body += chunk
        if len(body) > _ANSWER_LIMIT_BYTES:
            raise ValueError("the answer is too long")
    return body
