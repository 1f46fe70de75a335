"""A model server on loopback for tests: chat completions, Anthropic messages and GET /models.

Real sockets, real HTTP/1.1, standard library only. In a test:

    async with ModelServer([Reply(text="hello"), Failure(429)]) as server:
        provider = OpenAICompatibleProvider(server.openai_url, api_key="k")
        ...
        assert server.requests[0].body["model"] == "fake-model"
        await server.requests[0].wait_closed()   # the client hung up

Replies are taken in order, the last one for ever; or give a function from `Request` to a reply.
For tests that run the installed program there is a command line and a scenario file:

    python tests/model_server.py --port-file P --scenario S.json --log L.jsonl

    {"rules": [{"match": "regular expression on the last user text", "in": "user|system|any",
                "turns": [REPLY, ...],    by assistant turns since that user text; last repeats
                "seq": [REPLY, ...]}],    or by hits of the rule; last repeats
     "summary": REPLY, "default": REPLY}

    REPLY: {"text": "literal" | {"tokens": N}, "thinking": "...", "tools": [{"name", "args"}],
            "rate": pieces per second, "chunk": characters per piece, "delay": seconds before the
            headers, "finish": "stop|length|tool_calls", "usage": {"input", "output", "cached"},
            "error": {"kind": "rate_limit|server|overloaded|context_overflow|auth", "status",
                      "message", "headers"},
            "fault": {"kind": "reset|cut|eof|stall|malformed", "after": pieces, "seconds": N}}

A request that asks for a summary gets `summary` unless a rule matches first.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import re
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JSON = Any


# ---------------------------------------------------------------- what to answer


@dataclass
class Tool:
    """A call in a reply. `args` as a string is sent as it is. `id` None: one of ours."""

    name: str
    args: dict[str, JSON] | str = field(default_factory=dict)
    id: str | None = None


@dataclass
class Fault:
    """What goes wrong after `after` pieces of text: reset, cut, eof, stall or malformed.

    cut: the connection ends inside the body; eof: the body ends properly, but without an end.
    """

    kind: str
    after: int = 0
    seconds: float = 3600.0


@dataclass
class Reply:
    """A streamed answer. `text` as a list: exactly these pieces. Sizes in characters.

    `split_bytes`: cut the whole body into writes of this size, across events and characters.
    `stall_before_headers`: accept the request and say nothing. `delay_s`: time before the headers.
    """

    text: str | Sequence[str] = ""
    thinking: str = ""
    signature: str = "c2lnbmF0dXJl"
    redacted: str = ""
    tools: Sequence[Tool] = ()
    finish: str = ""
    usage: dict[str, int] = field(
        default_factory=lambda: {"input": 100, "output": 20, "cached": 0, "written": 0}
    )
    send_usage: bool = True
    chunk_chars: int = 4
    rate: float = 0
    delay_s: float = 0
    split_bytes: int = 0
    fault: Fault | None = None
    stall_before_headers: bool = False


@dataclass
class Failure:
    """An error reply. `body` as a string is sent as it is; empty: an empty body."""

    status: int
    body: str | dict[str, JSON] = ""
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass
class Raw:
    """A body sent as it is, piece by piece, as an event stream unless said otherwise.

    `then`: "end" finishes the body, "cut" breaks the connection, "stall" says nothing more.
    """

    pieces: Sequence[bytes]
    then: str = "end"
    content_type: str = "text/event-stream"


AnyReply = Reply | Failure | Raw


@dataclass
class Request:
    """A request as it came. `api` is "chat", "messages" or "get"."""

    number: int
    method: str
    path: str
    headers: dict[str, str]
    body: JSON
    api: str
    at_s: float
    connection: int
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    closed_at_s: float = 0.0

    async def wait_closed(self, timeout_s: float = 5.0) -> float:
        """Wait until the client hung up; returns the monotonic time of it."""
        async with asyncio.timeout(timeout_s):
            await self.closed.wait()
        return self.closed_at_s


# ---------------------------------------------------------------- the two formats

_tool_numbers = itertools.count(1)


def sse(data: JSON, event: str = "") -> bytes:
    """One event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return ((f"event: {event}\n" if event else "") + f"data: {text}\n\n").encode()


def chat_chunk(delta: JSON = None, finish: str | None = None, **more: JSON) -> bytes:
    """One chat-completions chunk; `more` are further top-level fields."""
    choice = {"index": 0, "delta": delta or {}, "finish_reason": finish}
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "fake-model"}
    return sse({**base, "choices": [choice], **more})


def _pieces(text: str | Sequence[str], chars: int) -> list[str]:
    if not isinstance(text, str):
        return list(text)
    return [text[at : at + chars] for at in range(0, len(text), chars)]


def _arguments(tool: Tool) -> str:
    return tool.args if isinstance(tool.args, str) else json.dumps(tool.args, ensure_ascii=False)


def chat_events(reply: Reply, model: str) -> Iterator[tuple[int, bytes]]:
    """(weight, event) pairs of a chat-completions answer; text pieces weigh 1."""
    yield 0, chat_chunk({"role": "assistant", "content": ""}, model=model)
    for piece in _pieces(reply.thinking, reply.chunk_chars):
        yield 1, chat_chunk({"reasoning_content": piece}, model=model)
    for piece in _pieces(reply.text, reply.chunk_chars):
        yield 1, chat_chunk({"content": piece}, model=model)
    for number, tool in enumerate(reply.tools):
        call_id = tool.id if tool.id is not None else f"call_fake{next(_tool_numbers)}x"
        head = {"name": tool.name, "arguments": ""}
        opening = {"index": number, "id": call_id, "type": "function", "function": head}
        yield 0, chat_chunk({"tool_calls": [opening]}, model=model)
        for piece in _pieces(_arguments(tool), max(reply.chunk_chars, 4)):
            part = {"index": number, "function": {"arguments": piece}}
            yield 1, chat_chunk({"tool_calls": [part]}, model=model)
    finish = reply.finish or ("tool_calls" if reply.tools else "stop")
    yield 0, chat_chunk({}, finish, model=model)
    if reply.send_usage:
        use = reply.usage
        given, made = use.get("input", 0), use.get("output", 0)
        usage = {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
            "prompt_tokens_details": {"cached_tokens": use.get("cached", 0)},
            "completion_tokens_details": {"reasoning_tokens": use.get("reasoning", 0)},
        }
        yield 0, sse({"id": "chatcmpl-1", "model": model, "choices": [], "usage": usage})
    yield 0, sse("[DONE]")


def messages_event(kind: str, **fields: JSON) -> bytes:
    """One event of the Anthropic format."""
    return sse({"type": kind, **fields}, kind)


_ANTHROPIC_FINISH = {"length": "max_tokens", "tool_calls": "tool_use", "stop": "end_turn"}


def messages_events(reply: Reply, model: str) -> Iterator[tuple[int, bytes]]:
    """(weight, event) pairs of an Anthropic answer."""
    use = reply.usage if reply.send_usage else {}
    cached, written = use.get("cached", 0), use.get("written", 0)
    usage = {
        "input_tokens": use.get("input", 0) - cached - written,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens": 1 if use else 0,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model}
    yield 0, messages_event("message_start", message={**message, "content": [], "usage": usage})
    yield 0, messages_event("ping")
    number = -1
    for number, (kind, pieces, tool) in enumerate(_anthropic_blocks(reply)):
        yield (
            0,
            messages_event(
                "content_block_start", index=number, content_block=_block_start(kind, pieces, tool)
            ),
        )
        if kind != "redacted_thinking":
            for piece in pieces:
                delta = {"type": _DELTA_TYPES[kind][0], _DELTA_TYPES[kind][1]: piece}
                yield 1, messages_event("content_block_delta", index=number, delta=delta)
        if kind == "thinking":
            half = len(reply.signature) // 2
            for piece in (reply.signature[:half], reply.signature[half:]):
                delta = {"type": "signature_delta", "signature": piece}
                yield 0, messages_event("content_block_delta", index=number, delta=delta)
        yield 0, messages_event("content_block_stop", index=number)
    finish = reply.finish or ("tool_calls" if reply.tools else "stop")
    stop = {"stop_reason": _ANTHROPIC_FINISH.get(finish, finish), "stop_sequence": None}
    yield (
        0,
        messages_event("message_delta", delta=stop, usage={"output_tokens": use.get("output", 0)}),
    )
    yield 0, messages_event("message_stop")


_DELTA_TYPES = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def _anthropic_blocks(reply: Reply) -> Iterator[tuple[str, list[str], Tool | None]]:
    if reply.redacted:
        yield "redacted_thinking", [reply.redacted], None
    if reply.thinking:
        yield "thinking", _pieces(reply.thinking, reply.chunk_chars), None
    if reply.text:
        yield "text", _pieces(reply.text, reply.chunk_chars), None
    for tool in reply.tools:
        yield "tool_use", _pieces(_arguments(tool), max(reply.chunk_chars, 4)), tool


def _block_start(kind: str, pieces: list[str], tool: Tool | None) -> JSON:
    if kind == "redacted_thinking":
        return {"type": kind, "data": pieces[0]}
    if tool is not None:
        call_id = tool.id if tool.id is not None else f"toolu_fake{next(_tool_numbers)}x"
        return {"type": kind, "id": call_id, "name": tool.name, "input": {}}
    return {"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}


ERROR_KINDS: dict[str, tuple[int, str, str, str, str]] = {
    # kind: status, OpenAI code, OpenAI words, Anthropic type, Anthropic words
    "auth": (
        401,
        "invalid_api_key",
        "Incorrect API key provided.",
        "authentication_error",
        "invalid x-api-key",
    ),
    "rate_limit": (
        429,
        "rate_limit_exceeded",
        "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000.",
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 30,000 input tokens.",
    ),
    "server": (
        500,
        "server_error",
        "The server had an error while processing your request.",
        "api_error",
        "Internal server error",
    ),
    "overloaded": (
        529,
        "overloaded",
        "The engine is currently overloaded, please try again later",
        "overloaded_error",
        "Overloaded",
    ),
    "context_overflow": (
        400,
        "context_length_exceeded",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in "
        "130512 tokens. Please reduce the length of the messages.",
        "invalid_request_error",
        "prompt is too long: 213462 tokens > 200000 maximum",
    ),
}


def failure(kind: str, api: str, **changes: JSON) -> Failure:
    """A failure as real servers word it; `changes`: status, message, headers."""
    status, code, words, anthropic_type, anthropic_words = ERROR_KINDS[kind]
    status = changes.get("status") or status
    headers = dict(changes.get("headers") or {})
    if kind == "rate_limit":
        headers.setdefault("retry-after", "1")
    if api == "messages":
        error = {"type": anthropic_type, "message": changes.get("message") or anthropic_words}
        return Failure(status, {"type": "error", "error": error}, headers)
    error = {"message": changes.get("message") or words, "type": code, "code": code}
    return Failure(status, {"error": error}, headers)


# ---------------------------------------------------------------- the server

Replies = Sequence[AnyReply] | Callable[[Request], AnyReply]


class ModelServer:
    """Serves until its `async with` block ends; then every connection is closed."""

    def __init__(
        self,
        replies: Replies = (),
        *,
        models: Iterable[str] = ("fake-model",),
        log: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.replies = replies or (Reply(text="OK."),)
        self.models = tuple(models)
        self.requests: list[Request] = []
        self.connections = 0
        self._log = log
        self._host, self._port = host, port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._answered = 0
        self._arrived = asyncio.Condition()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def url(self) -> str:
        return f"http://{self._host}:{self.port}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    async def __aenter__(self) -> ModelServer:
        self._server = await asyncio.start_server(self._accept, self._host, self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_request(self, number: int = 0, timeout_s: float = 5.0) -> Request:
        """Wait for the request with this number, from 0."""
        async with asyncio.timeout(timeout_s), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) > number)
        return self.requests[number]

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await _Connection(self, reader, writer, self.connections).serve()
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client hung up, or the server ends
        finally:
            self._tasks.discard(task)
            writer.close()

    async def arrived(self, request: Request) -> None:
        """Note a request."""
        self.requests.append(request)
        self.write_log(
            {
                "n": request.number,
                "t": time.time(),
                "path": request.path,
                "headers": {
                    name: "***" if name in ("authorization", "x-api-key") else value
                    for name, value in request.headers.items()
                },
                "body": request.body,
            }
        )
        async with self._arrived:
            self._arrived.notify_all()

    def closed(self, request: Request) -> None:
        """Note that the client hung up during a reply."""
        request.closed_at_s = time.monotonic()
        request.closed.set()
        self.write_log({"n": request.number, "t": time.time(), "event": "closed"})

    def write_log(self, line: JSON) -> None:
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def reply_for(self, request: Request) -> AnyReply:
        """Choose the reply."""
        if callable(self.replies):
            return self.replies(request)
        reply = self.replies[min(self._answered, len(self.replies) - 1)]
        self._answered += 1
        return reply


class _Connection:
    """One connection: reads requests, writes replies, and notices a client that hangs up."""

    def __init__(
        self,
        server: ModelServer,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        number: int,
    ) -> None:
        self._server = server
        self._reader, self._writer = reader, writer
        self._number = number
        self._ahead = b""

    async def serve(self) -> None:
        while (request := await self._read_request()) is not None:
            await self._server.arrived(request)
            work = asyncio.create_task(self._answer(request))
            watch = asyncio.create_task(self._reader.read(1))
            try:
                await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
                if watch.done() and not work.done():
                    if not _result(watch):
                        self._server.closed(request)
                        return
                    await asyncio.wait({work})
                if not _kept(work):
                    if not work.cancelled() and work.exception() is not None:
                        self._server.closed(request)  # a write told it first
                    return
                self._ahead = await watch
                if not self._ahead:
                    self._server.closed(request)
                    return
            finally:
                for task in (work, watch):
                    task.cancel()
                await asyncio.gather(work, watch, return_exceptions=True)

    async def _read_request(self) -> Request | None:
        try:
            head = self._ahead + await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        self._ahead = b""
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            if name:
                headers[name.strip().lower()] = value.strip()
        raw = await self._reader.readexactly(int(headers.get("content-length", 0)))
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = {"_unparsed": raw.decode("utf-8", "replace")[:1000]}
        plain = path.split("?")[0].rstrip("/")
        api = "messages" if plain.endswith("/messages") else "chat" if method == "POST" else "get"
        number = len(self._server.requests)
        return Request(number, method, plain, headers, body, api, time.monotonic(), self._number)

    async def _answer(self, request: Request) -> bool:
        """Send the reply; True when the connection can be used again."""
        if request.method == "GET":
            return await self._get(request)
        reply = self._server.reply_for(request)
        if isinstance(reply, Failure):
            body = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
            return await self._plain(reply.status, body, reply.headers, reply.content_type)
        if isinstance(reply, Raw):
            return await self._raw(reply)
        if reply.stall_before_headers:
            await asyncio.sleep(3600)
        if reply.delay_s:
            await asyncio.sleep(reply.delay_s)
        return await self._stream(request, reply)

    async def _get(self, request: Request) -> bool:
        if not request.path.endswith("/models"):
            return await self._plain(404, json.dumps({"error": {"message": "not found"}}), {})
        data = [
            {"id": name, "object": "model", "display_name": name, "owned_by": "fake"}
            for name in self._server.models
        ]
        return await self._plain(200, json.dumps({"object": "list", "data": data}), {})

    async def _plain(
        self,
        status: int,
        body: str,
        headers: dict[str, str],
        content_type: str = "application/json",
    ) -> bool:
        raw = body.encode()
        fields = {"content-type": content_type, "content-length": str(len(raw)), **headers}
        self._writer.write(_head(status, fields) + raw)
        await self._writer.drain()
        return True

    async def _raw(self, reply: Raw) -> bool:
        fields = {"content-type": reply.content_type, "transfer-encoding": "chunked"}
        self._writer.write(_head(200, fields))
        for piece in reply.pieces:
            self._writer.write(_chunk(piece))
            await self._writer.drain()
        if reply.then == "stall":
            await asyncio.sleep(3600)
        if reply.then == "cut":
            return False
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        return True

    async def _stream(self, request: Request, reply: Reply) -> bool:
        fields = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        self._writer.write(_head(200, fields))
        make = messages_events if request.api == "messages" else chat_events
        events = make(reply, str((request.body or {}).get("model", "")))
        if reply.split_bytes:
            whole, size = b"".join(data for _, data in events), reply.split_bytes
            for at in range(0, len(whole), size):
                self._writer.write(_chunk(whole[at : at + size]))
                await self._writer.drain()
                await asyncio.sleep(0)
        else:
            for number, data in self._until_fault(events, reply.fault):
                if data is None:
                    assert reply.fault is not None
                    ended = await self._fault(reply.fault)
                    if ended is not None:
                        return ended
                    continue
                self._writer.write(_chunk(data))
                await self._writer.drain()
                if reply.rate and number:
                    await asyncio.sleep(1 / reply.rate)
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        return True

    @staticmethod
    def _until_fault(
        events: Iterator[tuple[int, bytes]], fault: Fault | None
    ) -> Iterator[tuple[int, bytes | None]]:
        """The events, with a None where the fault belongs."""
        sent, due = 0, fault is not None
        for weight, data in events:
            if due and fault is not None and weight and sent >= fault.after:
                due = False
                yield 0, None
            sent += weight
            yield weight, data
        if due:
            yield 0, None

    async def _fault(self, fault: Fault) -> bool | None:
        """Do what goes wrong; None when the answer goes on."""
        if fault.kind == "malformed":
            self._writer.write(_chunk(b'data: {"id": "broken", "choices": [{"delta": {"con\n\n'))
            return None
        if fault.kind == "stall":
            await asyncio.sleep(fault.seconds)
            return None
        if fault.kind == "eof":
            self._writer.write(b"0\r\n\r\n")
            await self._writer.drain()
            return True
        if fault.kind == "reset":
            sock: socket.socket = self._writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
        return False


def _head(status: int, fields: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n" if data else b""


def _result(task: asyncio.Task[bytes]) -> bytes:
    return b"" if task.cancelled() or task.exception() is not None else task.result()


def _kept(task: asyncio.Task[bool]) -> bool:
    if task.cancelled() or isinstance(task.exception(), ConnectionError):
        return False
    return task.result()


# ---------------------------------------------------------------- scenarios

_SUMMARY_ASKED = re.compile(
    r"summari[sz]e|summari[sz]ation|context checkpoint|create a .*summary", re.IGNORECASE
)
SUMMARY_TEXT = (
    "## Goal\nFixed summary of the model server.\n\n## Progress\n- step one done\n\n"
    "## Next Steps\n1. continue\n"
)
_WORDS = ("the", "agent", "reads", "each", "file", "then", "writes", "small", "tested", "code")


class Scenario:
    """Chooses replies by the last user text; see the module's description."""

    def __init__(self, data: dict[str, JSON]) -> None:
        self._data = data
        self._hits: dict[int, int] = {}

    def __call__(self, request: Request) -> AnyReply:
        system, user, turns = digest(request.body or {})
        return _reply_from(self._pick(system, user, turns), request.api)

    def _pick(self, system: str, user: str, turns: int) -> dict[str, JSON]:
        for number, rule in enumerate(self._data.get("rules", ())):
            text = {"user": user, "system": system}.get(rule.get("in", "user"), system + user)
            if not re.search(rule["match"], text):
                continue
            hit = self._hits.get(number, 0)
            self._hits[number] = hit + 1
            replies, at = (rule["seq"], hit) if "seq" in rule else (rule["turns"], turns)
            return dict(replies[min(at, len(replies) - 1)])
        if _SUMMARY_ASKED.search(user[-4000:]) or _SUMMARY_ASKED.search(system[:400]):
            return dict(self._data.get("summary", {"text": SUMMARY_TEXT}))
        return dict(self._data.get("default", {"text": "OK."}))


def digest(body: dict[str, JSON]) -> tuple[str, str, int]:
    """System text, last user text, and assistant turns since then."""
    system, user, turns = _text_of(body.get("system")), "", 0
    for message in body.get("messages") or ():
        text, role = _text_of(message.get("content")), message.get("role")
        if role in ("system", "developer"):
            system += text
        elif role == "user" and text:
            user, turns = text, 0
        elif role == "assistant":
            turns += 1
    return system, user, turns


def _text_of(content: JSON) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(p["text"] for p in parts if isinstance(p, dict) and p.get("text"))


def make_text(tokens: int) -> str:
    """Markdown of about this many tokens, always the same."""
    words = [_WORDS[(n * 7) % len(_WORDS)] for n in range(tokens)]
    lines = [" ".join(words[at : at + 40]) for at in range(0, tokens, 40)]
    return "\n\n".join(f"## Section {n}\n\n{line}." for n, line in enumerate(lines))


def _reply_from(data: dict[str, JSON], api: str) -> AnyReply:
    if "error" in data:
        error = dict(data["error"])
        return failure(error.pop("kind", "server"), api, **error)
    text, usage, fault = data.get("text", ""), data.get("usage", {}), data.get("fault")
    made = make_text(text["tokens"]) if isinstance(text, dict) else text
    tools = [Tool(t["name"], t.get("args", {}), t.get("id")) for t in data.get("tools", ())]
    return Reply(
        text=made,
        thinking=data.get("thinking", ""),
        tools=tools,
        finish=data.get("finish", ""),
        usage={"input": 100, "output": len(made) // 4 + 1, **usage},
        chunk_chars=data.get("chunk", 4),
        rate=data.get("rate", 0),
        delay_s=data.get("delay", 0),
        fault=Fault(**fault) if fault else None,
    )


async def _serve(args: argparse.Namespace) -> None:
    data = json.loads(args.scenario.read_text(encoding="utf-8")) if args.scenario else {}
    models = args.models.split(",")
    async with ModelServer(Scenario(data), models=models, log=args.log, port=args.port) as server:
        if args.port_file:
            part = args.port_file.with_suffix(".part")
            part.write_text(str(server.port), encoding="utf-8")
            part.replace(args.port_file)  # a reader sees the whole number or nothing
        print(server.openai_url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Serve a scenario until interrupted."""
    parser = argparse.ArgumentParser(description="A scripted model server on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, help="the port is written here once it is open")
    parser.add_argument("--scenario", type=Path, help="JSON file; see the head of this file")
    parser.add_argument("--log", type=Path, help="requests and hang-ups are appended as JSON lines")
    parser.add_argument("--models", default="fake-model", help="ids for GET /models, by commas")
    try:
        asyncio.run(_serve(parser.parse_args()))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
