"""The scripted provider: what tests of other rooms rely on."""

from __future__ import annotations

import asyncio

import pytest

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.messages import Usage, UserMessage
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import (
    MessageBuilder,
    Stopped,
    TextDelta,
    ThinkingSigned,
    ToolCallDone,
    UsageReport,
)
from pi_tui.providers.scripted import (
    SCRIPTED_MODEL,
    Call,
    Fail,
    Gate,
    ScriptedProvider,
    Text,
    Thinking,
    reply,
)

REQUEST = ModelRequest(SCRIPTED_MODEL, "be brief", (UserMessage("hi", 1),))


async def play(provider: ScriptedProvider) -> list[object]:
    return [event async for event in provider.stream(REQUEST)]


async def test_plays_parts_in_order_as_one_message() -> None:
    provider = ScriptedProvider(
        [reply(Thinking("hm", "sig"), Text.of("Hel", "lo"), Call("read", {"path": "a"}))]
    )
    events = await play(provider)
    builder = MessageBuilder(api="scripted", provider="scripted", model="model", timestamp=1)
    for event in events:
        builder.add(event)  # type: ignore[arg-type]
    message = builder.message("toolUse")
    assert message.text == "Hello"
    assert [call.arguments for call in message.tool_calls] == [{"path": "a"}]
    assert ThinkingSigned(0, "sig") in events
    assert events[-2:] == [
        UsageReport(Usage(input=10, output=5, total_tokens=15)),
        Stopped("toolUse"),
    ]


async def test_replies_are_used_one_by_one_and_requests_recorded() -> None:
    provider = ScriptedProvider(["one", lambda request: f"two {len(request.messages)}"])
    first, second = await play(provider), await play(provider)
    assert TextDelta(0, "one") in first
    assert TextDelta(0, "two 1") in second
    assert provider.requests == [REQUEST, REQUEST]
    with pytest.raises(AssertionError, match="request 3"):
        await play(provider)


async def test_fallback_answers_when_the_script_is_used_up() -> None:
    provider = ScriptedProvider(fallback="again")
    assert TextDelta(0, "again") in await play(provider)
    assert TextDelta(0, "again") in await play(provider)


async def test_call_ids_are_unique_in_the_provider() -> None:
    provider = ScriptedProvider([reply(Call("ls", {}), Call("ls", {})), reply(Call("ls", {}))])
    events = [*await play(provider), *await play(provider)]
    ids = [event.call.id for event in events if isinstance(event, ToolCallDone)]
    assert len(set(ids)) == 3


async def test_an_error_comes_after_what_was_streamed() -> None:
    error = ProviderError("too fast", kind=ErrorKind.RATE_LIMIT, retry_after_s=3)
    provider = ScriptedProvider([reply("begun", Fail(error)), error])
    seen: list[object] = []
    with pytest.raises(ProviderError) as caught:
        async for event in provider.stream(REQUEST):
            seen.append(event)  # noqa: PERF401  (what came before the end counts)
    assert caught.value is error
    assert TextDelta(0, "begun") in seen
    with pytest.raises(ProviderError):
        await play(provider)
    assert (provider.active, provider.cancelled) == (0, 0)


async def test_a_stream_that_breaks_off_has_no_stop() -> None:
    provider = ScriptedProvider([reply("half", ends=False, usage=None)])
    seen: list[object] = []
    with pytest.raises(ProviderError) as caught:
        async for event in provider.stream(REQUEST):
            seen.append(event)  # noqa: PERF401  (what came before the end counts)
    assert caught.value.retryable
    assert not any(isinstance(event, Stopped | UsageReport) for event in seen)


async def test_a_gate_holds_the_stream_and_cancelling_is_counted() -> None:
    gate, never = Gate(), Gate()
    provider = ScriptedProvider([reply("a", gate, "b", never, "c")])
    seen: list[object] = []

    async def consume() -> None:
        async for event in provider.stream(REQUEST):
            seen.append(event)  # noqa: PERF401  (what came before the end counts)

    task = asyncio.create_task(consume())
    await gate.reached.wait()
    assert TextDelta(0, "a") in seen
    assert provider.active == 1
    gate.open()
    await never.reached.wait()
    assert TextDelta(2, "b") in seen
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (provider.active, provider.cancelled) == (0, 1)


async def test_other_tasks_run_between_two_deltas() -> None:
    provider = ScriptedProvider([reply(Text.of("a", "b", "c"))])
    turns = 0
    running = True

    async def count() -> None:
        nonlocal turns
        while running:
            turns += 1
            await asyncio.sleep(0)

    counter = asyncio.create_task(count())
    events = await play(provider)
    running = False
    await counter
    assert turns >= len(events)
