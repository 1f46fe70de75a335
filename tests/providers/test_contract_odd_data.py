"""Whatever a server sends as JSON, the readers say events or a ProviderError, nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import ProviderError
from pi_tui.core.messages import AssistantMessage
from pi_tui.core.streaming import MessageBuilder, Stopped
from pi_tui.providers.anthropic_stream import MessagesStream
from pi_tui.providers.errors import classify
from pi_tui.providers.openai_stream import ChatStream
from pi_tui.providers.tool_calls import INVALID_JSON_KEY, CallIds, parse_calls

SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 600) | st.floats() | st.text(max_size=4)
) | st.sampled_from(
    ["stop", "length", "tool_use", "text", "thinking", "tool_calls", "{}", '{"a":1}', "c1", "read"]
)
NAMES = st.sampled_from(
    [
        "id",
        "model",
        "choices",
        "delta",
        "message",
        "finish_reason",
        "content",
        "tool_calls",
        "index",
        "function",
        "name",
        "arguments",
        "usage",
        "prompt_tokens",
        "total_tokens",
        "reasoning",
        "thinking",
        "text",
        "type",
        "error",
        "code",
        "content_block",
        "partial_json",
        "signature",
        "input",
        "stop_reason",
        "input_tokens",
        "x_groq",
        "prompt_tokens_details",
    ]
)
TYPES = st.sampled_from(
    [
        "message_start",
        "message_delta",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "error",
        "text",
        "thinking",
        "tool_use",
        "redacted_thinking",
        "text_delta",
        "input_json_delta",
        "signature_delta",
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=4)
        | st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES,
                    st.dictionaries(NAMES, inner, max_size=4))
    ),
    max_leaves=12,
)  # fmt: skip


def _read(stream: ChatStream | MessagesStream, chunks: list[object]) -> AssistantMessage:
    builder = MessageBuilder(api="a", provider="p", model="m", timestamp=1)
    with contextlib.suppress(ProviderError):
        for chunk in chunks:
            for event in stream.feed(chunk):
                builder.add(event)
        for event in stream.finish(ended_by_server=True):
            builder.add(event)
        assert isinstance(event, Stopped)
    return builder.message("stop")


def _check(make: Callable[[], ChatStream | MessagesStream], chunks: list[object]) -> None:
    message = _read(make(), chunks)
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == len(ids)
    assert all(i and len(i) <= 64 for i in ids)
    msgspec.json.encode(message)  # what was read can be stored


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES | st.fixed_dictionaries({"choices": st.lists(VALUES, max_size=2)})))
def test_chat_chunks(chunks: list[object]) -> None:
    _check(lambda: ChatStream(provider="p", model_id="m", ids=CallIds(())), chunks)


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES))
def test_messages_events(chunks: list[object]) -> None:
    _check(lambda: MessagesStream(provider="p", model_id="m", ids=CallIds(())), chunks)


PARTS = st.fixed_dictionaries(
    {"function": st.fixed_dictionaries({}, optional={
        "name": st.sampled_from(["read", "write", ""]),
        "arguments": st.sampled_from(["", "{}", '{"a":1}', '{"a"', ":2}", "}", "x"]),
    })},
    optional={"index": st.integers(0, 2), "id": st.sampled_from(["c1", "c2", "", "run:0"])},
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=8))
def test_parts_of_calls(parts: list[object]) -> None:
    chunks: list[object] = [{"choices": [{"delta": {"tool_calls": [part]}}]} for part in parts]
    chunks.append({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]})
    _check(lambda: ChatStream(provider="p", model_id="m", ids=CallIds(())), chunks)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]":, a1\\\u00e9', max_size=30))
def test_argument_texts(text: str) -> None:
    calls = parse_calls(text)
    assert calls
    for arguments in calls:
        assert isinstance(arguments, dict)
        if INVALID_JSON_KEY in arguments:
            assert len(calls) == 1


@settings(max_examples=200, deadline=None)
@given(st.none() | st.integers(300, 599), VALUES, st.text(max_size=20))
def test_error_bodies(status: int | None, body: object, noise: str) -> None:
    try:
        text = msgspec.json.encode(body).decode() + noise
    except UnicodeEncodeError:
        text = noise
    message = classify(status, text, {"retry-after": noise}, "p").message
    assert message
    assert all(c.isprintable() for c in message)
