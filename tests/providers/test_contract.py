"""What every provider must do, whatever the wire: one suite against a real server on loopback.

All tests of the module share one event loop, because the litellm child belongs to its loop and
takes seconds to start.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import pytest
import pytest_asyncio
from model_server import Failure, Fault, ModelServer, Reply, Tool, failure

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.messages import (
    INVALID_JSON_KEY,
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
)
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest, Provider
from pi_tui.core.streaming import (
    ResponseStarted,
    Stopped,
    TextDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "k-1234567890abcdef"
READ = ToolDeclaration(
    "read",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5Erk"
    "Jggg=="
)


@dataclass
class Wire:
    """A server, what it is called, and a provider that speaks to it."""

    name: str
    api: str
    server: ModelServer
    provider: Provider
    model: Model

    def replies(self, *replies: object) -> None:
        self.server.replies = replies  # type: ignore[assignment]
        self.server._answered = 0
        self.server.requests.clear()

    def request(self, text: str = "hi", **fields: object) -> ModelRequest:
        fields.setdefault("messages", (UserMessage(text, 1),))
        return ModelRequest(self.model, "You are a test.", **fields)  # type: ignore[arg-type]

    @property
    def body(self) -> dict[str, object]:
        return self.server.requests[-1].body


@pytest_asyncio.fixture(
    scope="module",
    loop_scope="module",
    params=["openai", "anthropic", pytest.param("litellm", marks=pytest.mark.slow)],
)
async def wire(request: pytest.FixtureRequest) -> AsyncIterator[Wire]:
    name = request.param
    fields = {"reasoning": True, "input": ("text", "image"), "max_tokens": 32_000}
    async with ModelServer([Reply(text="OK.")]) as server:
        if name == "anthropic":
            from pi_tui.providers.anthropic import AnthropicProvider

            model = Model("fake", "fake-model", "anthropic-messages", **fields)
            provider: Provider = AnthropicProvider(server.url, api_key=KEY, provider="fake")
            yield Wire(name, "messages", server, provider, model)
            await provider.aclose()
        elif name == "openai":
            from pi_tui.providers.openai_compatible import OpenAICompatibleProvider

            model = Model("fake", "fake-model", "openai-completions", **fields)
            provider = OpenAICompatibleProvider(server.openai_url, api_key=KEY, provider="fake")
            yield Wire(name, "chat", server, provider, model)
            await provider.aclose()
        else:
            from pi_tui.providers.clients import Access, Clients

            async def access() -> Access:
                return Access(KEY)

            known = ("PATH", "SYSTEMROOT", "LANG")
            clients = Clients(lambda: {n: os.environ[n] for n in known if n in os.environ})
            model = Model("fake", "fake-model", "litellm", base_url=server.openai_url, **fields)
            yield Wire(name, "chat", server, clients.client(model, access, {}), model)
            await clients.close()


# ---------------------------------------------------------------- answers


async def test_text_arrives_in_pieces_and_ends_with_stop(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="one two three four"))
    heard = await hear(wire.provider, wire.request())
    assert len(heard.of(TextDelta)) > 1
    assert heard.message.text == "one two three four"
    assert heard.events[-1] == Stopped("stop")
    assert isinstance(heard.events[0], ResponseStarted)


async def test_system_prompt_and_user_text_reach_the_server(wire: Wire, hear: Callable) -> None:
    from model_server import digest

    wire.replies(Reply(text="OK."))
    await hear(wire.provider, wire.request("what is ñ?"))
    assert digest(wire.body) == ("You are a test.", "what is ñ?", 0)
    assert wire.body["model"] == "fake-model"
    assert wire.body["stream"] is True


async def test_thinking_is_told_apart_from_text(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(thinking="let me see", text="done"))
    heard = await hear(wire.provider, wire.request(thinking_level="high"))
    thinking, text = heard.message.content
    assert isinstance(thinking, ThinkingContent)
    assert thinking.thinking == "let me see"
    assert text == TextContent("done")


async def test_several_tool_calls_keep_order_and_arguments(wire: Wire, hear: Callable) -> None:
    wire.replies(
        Reply(text="I read.", tools=[Tool("read", {"path": "a"}), Tool("read", {"path": "b"})])
    )
    heard = await hear(wire.provider, wire.request(tools=(READ,)))
    calls = heard.message.tool_calls
    assert [call.arguments for call in calls] == [{"path": "a"}, {"path": "b"}]
    assert len({call.id for call in calls}) == 2
    assert heard.stop_reason == "toolUse"
    started = {event.index: event for event in heard.of(ToolCallStarted)}
    for done in heard.of(ToolCallDone):
        assert (started[done.index].id, started[done.index].name) == (done.call.id, "read")
        shown = [e.text for e in heard.of(ToolCallDelta) if e.index == done.index]
        assert "path" in "".join(shown)


async def test_a_tool_loop_is_sent_back(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="", tools=[Tool("read", {"path": "ü"})]), Reply(text="I see."))
    first = await hear(wire.provider, wire.request("read it", tools=(READ,)))
    (call,) = first.message.tool_calls
    result = ToolResultMessage(call.id, "read", (TextContent("its text"),), False, 2)
    history = (UserMessage("read it", 1), first.message, result)
    second = await hear(wire.provider, wire.request(messages=history, tools=(READ,)))
    assert second.message.text == "I see."
    sent = str(wire.body["messages"])
    assert sent.count(call.id) == 2
    assert "its text" in sent
    assert "ü" in sent


async def test_usage_counts_uncached_input(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="OK.", usage={"input": 1200, "output": 40, "cached": 1000}))
    usage = (await hear(wire.provider, wire.request())).message.usage
    assert (usage.input, usage.output, usage.cache_read) == (200, 40, 1000)
    assert usage.total_tokens == 1240
    assert usage.cost.total == 0


async def test_length_stop(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="cut he", finish="length"))
    heard = await hear(wire.provider, wire.request())
    assert heard.stop_reason == "length"
    assert heard.message.text == "cut he"


async def test_a_call_cut_by_the_length_limit_is_left_out(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="x", tools=[Tool("read", '{"path": "a')], finish="length"))
    heard = await hear(wire.provider, wire.request(tools=(READ,)))
    assert heard.stop_reason == "length"
    assert heard.message.tool_calls == ()


async def test_arguments_that_are_no_json_are_marked(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(tools=[Tool("read", '{"path": oops}' + "x" * 3000)]))
    (call,) = (await hear(wire.provider, wire.request(tools=(READ,)))).message.tool_calls
    assert list(call.arguments) == [INVALID_JSON_KEY]
    assert call.arguments[INVALID_JSON_KEY].startswith('{"path": oops}')
    assert len(call.arguments[INVALID_JSON_KEY]) == 2000


async def test_unicode_split_at_every_byte(wire: Wire, hear: Callable) -> None:
    text = "naïve — 日本語 🙂 \u2028 end"
    wire.replies(Reply(text=[text, "é"], split_bytes=1))
    assert (await hear(wire.provider, wire.request())).message.text == text + "é"


async def test_a_big_argument_arrives_whole(wire: Wire, hear: Callable) -> None:
    content = "line of text\n" * 40_000
    wire.replies(Reply(tools=[Tool("write", {"content": content})], chunk_chars=10_000))
    (call,) = (await hear(wire.provider, wire.request(tools=(READ,)))).message.tool_calls
    assert call.arguments == {"content": content}


async def test_an_image_of_the_user_is_sent(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="a pixel"))
    content = (TextContent("what is it?"), ImageContent(PIXEL, "image/png"))
    await hear(wire.provider, wire.request(messages=(UserMessage(content, 1),)))
    sent = str(wire.body["messages"])
    assert PIXEL in sent
    assert "image/png" in sent


async def test_an_image_of_a_tool_result_is_sent(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="a pixel"))
    call = ToolCall("call_a", "read", {"path": "x.png"})
    answer = AssistantMessage(
        (call,), wire.model.api, "fake", "fake-model", None, "toolUse", timestamp=1
    )
    result = ToolResultMessage("call_a", "read", (ImageContent(PIXEL, "image/png"),), False, 1)
    history = (UserMessage("look", 1), answer, result)
    await hear(wire.provider, wire.request(messages=history, tools=(READ,)))
    assert PIXEL in str(wire.body["messages"])


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("auth", None, ErrorKind.AUTH),
        ("rate_limit", None, ErrorKind.RATE_LIMIT),
        ("server", None, ErrorKind.OVERLOADED),
        ("overloaded", None, ErrorKind.OVERLOADED),
        ("overloaded", 503, ErrorKind.OVERLOADED),
        ("context_overflow", None, ErrorKind.OVERFLOW),
    ],
)
async def test_failures_are_classified(
    wire: Wire, hear: Callable, kind: str, status: int | None, expected: ErrorKind
) -> None:
    wire.replies(failure(kind, wire.api, status=status), Reply(text="must not be asked for"))
    with pytest.raises(ProviderError) as caught:
        await hear(wire.provider, wire.request())
    error = caught.value
    assert error.kind is expected
    assert error.provider == "fake"
    assert "{" not in error.message
    assert KEY not in error.message
    assert len(wire.server.requests) == 1, "trying again is the agent's decision"
    if kind == "rate_limit":
        assert error.retry_after_s == 1


async def test_a_key_quoted_by_the_server_is_hidden(wire: Wire, hear: Callable) -> None:
    wire.replies(Failure(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    with pytest.raises(ProviderError) as caught:
        await hear(wire.provider, wire.request())
    assert KEY not in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize("kind", ["cut", "reset"])
async def test_a_connection_that_breaks_is_a_network_error(
    wire: Wire, hear: Callable, new_heard: Callable, kind: str
) -> None:
    wire.replies(Reply(text="one two three four", fault=Fault(kind, after=2)))
    heard = new_heard(wire.model)
    with pytest.raises(ProviderError) as caught:
        await hear(wire.provider, wire.request(), heard)
    assert caught.value.kind is ErrorKind.NETWORK
    assert "one two three four".startswith(heard.message.text)


async def test_a_stream_without_an_end_is_incomplete(wire: Wire, hear: Callable) -> None:
    if wire.name == "litellm":
        pytest.skip("litellm makes an end up")
    wire.replies(Reply(text="one two three four", fault=Fault("eof", after=2)))
    with pytest.raises(ProviderError, match="incomplete") as caught:
        await hear(wire.provider, wire.request())
    assert caught.value.kind is ErrorKind.NETWORK
    assert caught.value.retryable


async def test_nobody_listens(wire: Wire, hear: Callable, unused_tcp_port: int) -> None:
    if wire.name == "litellm":
        pytest.skip("the address belongs to the model there")
    url = f"http://127.0.0.1:{unused_tcp_port}/v1"
    provider = type(wire.provider)(url, api_key=KEY)  # type: ignore[call-arg]
    with pytest.raises(ProviderError) as caught:
        await hear(provider, wire.request())
    assert caught.value.kind is ErrorKind.NETWORK
    assert f"Is the server running at {url}?" in str(caught.value.hint)


# ---------------------------------------------------------------- hanging up


async def _cancel_after(wire: Wire, ready: Callable[[object], bool]) -> None:
    """Cancel the reading task once `ready` says so of an event.

    How long it takes is measured in tests/bench; here the server would go on for far longer than
    anybody waits, so that a client which does not hang up at once never ends in time.
    """
    reached = asyncio.Event()

    async def read() -> None:
        async for event in wire.provider.stream(wire.request()):
            if ready(event):
                reached.set()

    task = asyncio.create_task(read())
    if ready(None):
        await wire.server.wait_request(timeout_s=20)
    else:
        async with asyncio.timeout(20):
            await reached.wait()
    task.cancel()
    async with asyncio.timeout(20):
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_cancel_before_headers_closes_the_connection(wire: Wire) -> None:
    wire.replies(Reply(stall_before_headers=True))
    await _cancel_after(wire, lambda event: event is None)
    await wire.server.requests[0].wait_closed(timeout_s=10)


async def test_cancel_in_a_stalled_stream_closes_the_connection(wire: Wire) -> None:
    wire.replies(Reply(text="some words of it", fault=Fault("stall", after=3)))
    await _cancel_after(wire, lambda event: isinstance(event, TextDelta))
    await wire.server.requests[0].wait_closed(timeout_s=10)


async def test_cancel_in_a_busy_stream_closes_the_connection(wire: Wire) -> None:
    wire.replies(Reply(text=["word "] * 5000, rate=50))
    await _cancel_after(wire, lambda event: isinstance(event, TextDelta))
    await wire.server.requests[0].wait_closed(timeout_s=10)


async def test_closing_the_iterator_closes_the_connection(wire: Wire) -> None:
    wire.replies(Reply(text=["word "] * 5000, rate=50))
    stream = wire.provider.stream(wire.request())
    async for event in stream:
        if isinstance(event, TextDelta):
            break
    await stream.aclose()  # type: ignore[attr-defined]
    await wire.server.requests[0].wait_closed(timeout_s=10)


async def test_the_next_request_after_a_cancelled_one_works(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(stall_before_headers=True), Reply(text="fine"))
    await _cancel_after(wire, lambda event: event is None)
    assert (await hear(wire.provider, wire.request())).message.text == "fine"


async def test_requests_run_side_by_side(wire: Wire, hear: Callable) -> None:
    wire.replies(Reply(text="first", delay_s=0.2), Reply(text="second"))
    slow = asyncio.create_task(hear(wire.provider, wire.request()))
    await wire.server.wait_request()
    assert (await hear(wire.provider, wire.request())).message.text == "second"
    assert not slow.done()
    assert (await slow).message.text == "first"
