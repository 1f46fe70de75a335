"""Servers on this machine: found in the background, quickly or not at all."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pi_tui.providers.local import LocalServer, local_servers, probe

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[str]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.close()


def answering(body: bytes, head: bytes = b"HTTP/1.1 200 OK\r\n", length: bool = True) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        assert request.startswith(b"GET /v1/models HTTP/1.")
        size = f"Content-Length: {len(body)}\r\n".encode() if length else b""
        writer.write(head + size + b"\r\n" + body)
        await writer.drain()

    return handler


def listing(*ids: str, **more: object) -> bytes:
    return json.dumps({"object": "list", "data": [{"id": i, **more} for i in ids]}).encode()


async def found(url: str) -> list[str]:
    return [model.full_name for model in await probe([LocalServer("ollama", url)])]


async def test_lists_the_models_of_a_server() -> None:
    async with serving(answering(listing("qwen3:8b", "nomic-embed-text"))) as url:
        (model,) = await probe([LocalServer("ollama", url)])
    assert model.full_name == "ollama/qwen3:8b"
    assert (model.api, model.base_url) == ("openai-completions", url)
    assert model.cost.input == 0


async def test_takes_the_window_where_it_is_told() -> None:
    async with serving(answering(listing("m", max_context_length=8192))) as url:
        (model,) = await probe([LocalServer("lmstudio", url)])
    assert (model.context_window, model.max_tokens) == (8192, 8192)


@pytest.mark.parametrize("length", [True, False])
async def test_body_with_and_without_a_length(length: bool) -> None:
    async with serving(answering(listing("m"), length=length)) as url:
        assert await found(url) == ["ollama/m"]


async def test_chunked_body() -> None:
    body = listing("m")
    chunked = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (9, body[:9], len(body) - 9, body[9:])
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
    async with serving(answering(chunked, head, length=False)) as url:
        assert await found(url) == ["ollama/m"]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'{"data": 1}', b'{"data": [1, {"id": 2}, {}]}', b"\xff", b"[" * 9000],
)
async def test_other_programs_on_the_port_are_no_models(body: bytes) -> None:
    async with serving(answering(body)) as url:
        assert await found(url) == []


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 404 Not Found\r\n",
        b"HTTP/1.1 301 Moved\r\nLocation: http://elsewhere/\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\nX: 1\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n",
    ],
)
async def test_answers_that_are_none(head: bytes) -> None:
    async with serving(answering(listing("m"), head, length=False)) as url:
        assert await found(url) == []


async def test_a_silent_server_costs_no_more_than_the_limit() -> None:
    released = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()

    async with serving(silent) as slow, serving(answering(listing("m"))) as fast:
        async with asyncio.timeout(20):  # the silent one never answers
            models = await probe([LocalServer("ollama", slow), LocalServer("lmstudio", fast)])
        released.set()
    assert [model.full_name for model in models] == ["lmstudio/m"]


async def test_nobody_there_and_nobody_asked() -> None:
    async with serving(answering(b"")) as url:
        pass
    assert await found(url) == []
    assert await probe([]) == ()


async def test_cancelling_leaves_no_task_behind() -> None:
    reached, released = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await released.wait()

    async with serving(silent) as url:
        before = asyncio.all_tasks()
        task = asyncio.create_task(probe([LocalServer("ollama", url)], timeout_s=60))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        left = [t for t in asyncio.all_tasks() - before if "_models" in repr(t)]
        released.set()
    assert left == []


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:9999", "http://127.0.0.1:9999/v1"),
        (":9999", "http://127.0.0.1:9999/v1"),
        ("box", "http://box:11434/v1"),
        ("box:1/", "http://box:1/v1"),
        ("http://box:1/v1", "http://box:1/v1"),
        ("https://ai.example", "https://ai.example:443/v1"),
        ("https://ai.example/ollama", "https://ai.example:443/ollama/v1"),
        ("[::1]:5", "http://[::1]:5/v1"),
        ("box:port", "http://127.0.0.1:11434/v1"),
        ("ftp://box", "http://127.0.0.1:11434/v1"),
    ],
)
def test_the_address_of_ollama(given: str, url: str) -> None:
    servers = {s.provider: s.base_url for s in local_servers({"OLLAMA_HOST": given})}
    assert servers["ollama"] == url
    assert servers["lmstudio"] == "http://127.0.0.1:1234/v1"
    assert servers["llamacpp"] == "http://127.0.0.1:8080/v1"


async def test_half_a_character_in_a_name_is_replaced() -> None:
    async with serving(answering(listing("m\ud83d"))) as url:
        assert await found(url) == ["ollama/m\ufffd"]
