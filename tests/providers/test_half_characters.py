"""Half a surrogate pair in what a server sends: never the end of an answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from model_server import Raw, sse

from pi_tui.core.errors import ProviderError
from pi_tui.core.json_text import decode_json, encode_json, mended
from pi_tui.core.messages import TextContent, ThinkingContent, Usage, UserMessage
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import StreamEvent, TextDelta, ThinkingDelta, ToolCallDelta, UsageReport
from pi_tui.providers.anthropic import AnthropicProvider
from pi_tui.providers.errors import classify
from pi_tui.providers.litellm_wire import ChunkReader
from pi_tui.providers.openai_compatible import OpenAICompatibleProvider
from pi_tui.providers.tool_calls import INVALID_JSON_KEY, parse_calls
from pi_tui.providers.whole_characters import WholeCharacters

HIGH, LOW = "\ud83d", "\ude00"
SMILE = "\U0001f600"


def chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    """A chunk of chat completions; halves are written as escapes, as servers do."""
    return sse(json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))


CHAT_END = chunk({}, "stop") + sse("[DONE]")


@pytest.fixture
def chat(serve: Callable, hear: Callable) -> Callable:
    async def chat(*events: bytes) -> object:
        server = await serve([Raw([b"".join(events)], "end")])
        provider = OpenAICompatibleProvider(server.openai_url, provider="fake")
        try:
            model = Model("fake", "m", "openai-completions")
            return await hear(provider, ModelRequest(model, "s", (UserMessage("hi", 1),)))
        finally:
            await provider.aclose()

    return chat


@pytest.fixture
def claude(serve: Callable, hear: Callable) -> Callable:
    async def claude(*events: dict[str, object]) -> object:
        body = [sse(json.dumps(event), event=str(event["type"])) for event in events]
        server = await serve([Raw([b"".join(body)], "end")])
        provider = AnthropicProvider(server.url, provider="fake")
        try:
            model = Model("fake", "m", "anthropic-messages")
            return await hear(provider, ModelRequest(model, "s", (UserMessage("hi", 1),)))
        finally:
            await provider.aclose()

    return claude


async def test_a_character_in_two_deltas_is_joined(chat: Callable) -> None:
    heard = await chat(
        chunk({"content": f"a{HIGH}"}), chunk({"content": f"{LOW}b{HIGH}"}), CHAT_END
    )
    assert heard.message.content == (TextContent(f"a{SMILE}b\ufffd"),)
    assert heard.message.stop_reason == "stop"


async def test_thinking_too_and_a_half_does_not_wander_into_the_answer(chat: Callable) -> None:
    heard = await chat(
        chunk({"reasoning_content": HIGH}),
        chunk({"reasoning_content": f"{LOW}{HIGH}"}),
        chunk({"content": f"{LOW}!"}),
        CHAT_END,
    )
    assert heard.message.content == (
        ThinkingContent(f"{SMILE}\ufffd"),
        TextContent("\ufffd!"),
    )


@pytest.mark.parametrize(
    ("pieces", "path"),
    [
        (('{"path": "a' + HIGH, LOW + 'b"}'), f"a{SMILE}b"),  # cut by the server
        (('{"path": "a\\ud83d', '\\ude00b"}'), f"a{SMILE}b"),  # escapes in the arguments
        (('{"path": "a\\ud83d"}',), "a\ufffd"),
    ],
)
async def test_tool_arguments(chat: Callable, pieces: tuple[str, ...], path: str) -> None:
    parts = [
        chunk(
            {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "read", "arguments": p}}]}
        )
        for p in pieces
    ]
    heard = await chat(*parts, CHAT_END)
    (call,) = heard.message.tool_calls
    assert call.arguments == {"path": path}
    for delta in heard.of(ToolCallDelta):
        delta.text.encode()


async def test_an_error_in_the_stream_is_classified(chat: Callable) -> None:
    with pytest.raises(ProviderError, match="quota") as caught:
        await chat(sse(json.dumps({"error": {"message": f"no quota {HIGH}", "code": 429}})))
    caught.value.message.encode()


async def test_a_damaged_piece_is_still_told(chat: Callable) -> None:
    with pytest.raises(ProviderError, match="damaged"):
        await chat(sse('{"choices": [{"delta": {"content": "\\ud83d'), CHAT_END)


async def test_a_piece_nested_without_end_is_told(chat: Callable) -> None:
    with pytest.raises(ProviderError, match="damaged"):
        await chat(sse("[" * 100_000), CHAT_END)


async def test_messages_format(claude: Callable) -> None:
    heard = await claude(
        {"type": "message_start", "message": {"id": "i", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": HIGH}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": LOW}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t", "name": "x", "input": {"a": HIGH}},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    )
    assert heard.message.content[0] == TextContent(SMILE)
    assert heard.message.tool_calls[0].arguments == {"a": "\ufffd"}


def test_the_litellm_wire() -> None:
    request = ModelRequest(Model("fake", "m", "litellm"), "s", (UserMessage("hi", 1),))
    reader = ChunkReader(request)
    heard: list[StreamEvent] = []
    for delta, finish in (({"content": HIGH}, None), ({"content": LOW}, None), ({}, "stop")):
        heard += reader.feed({"choices": [{"delta": delta, "finish_reason": finish}]})
    heard += reader.finish()
    assert "".join(e.text for e in heard if isinstance(e, TextDelta)) == SMILE


def test_usage_between_the_halves_does_not_part_them() -> None:
    report = UsageReport(Usage(input=1))
    events = [TextDelta(0, HIGH), report, TextDelta(0, LOW)]
    assert list(WholeCharacters().hand_on(events)) == [report, TextDelta(0, SMILE)]


def test_nothing_is_lost_between_blocks() -> None:
    events = [TextDelta(0, HIGH), TextDelta(1, LOW), ThinkingDelta(1, LOW)]
    assert list(WholeCharacters().hand_on(events)) == [
        TextDelta(0, "\ufffd"),
        TextDelta(1, "\ufffd"),
        ThinkingDelta(1, "\ufffd"),
    ]


def test_broken_arguments_are_kept_as_text_that_can_be_stored() -> None:
    ((key, text),) = parse_calls('{"a": ' + HIGH)[0].items()
    assert key == INVALID_JSON_KEY
    text.encode()


def test_error_bodies_are_read() -> None:
    error = classify(400, '{"error": {"message": "wrong \\ud83d value"}}', {}, "fake")
    assert "wrong \ufffd value" in error.message


async def test_an_address_that_is_none_is_an_error_of_the_request(hear: Callable) -> None:
    model = Model("fake", "m", "openai-completions", base_url="http://[::1")
    request = ModelRequest(model, "s", (UserMessage("hi", 1),))
    for provider in (
        OpenAICompatibleProvider("http://[::1", provider="fake"),
        AnthropicProvider("http://[::1", provider="fake"),
        AnthropicProvider("http://[::1", provider="fake", proxy="http://127.0.0.1:9"),
    ):
        with pytest.raises(ProviderError, match="address"):
            await hear(provider, request)
        await provider.aclose()


# ---------------------------------------------------------------- JSON text


def test_what_is_no_json_stays_refused() -> None:
    for text in ('{"a": "\\ud83d', "NaN", '{"a\\ud83d": NaN}', "[" * 100_000, "{'a': 1}"):
        with pytest.raises(ValueError, match=r"\S"):
            decode_json(text)


def test_halves_are_kept_only_where_asked_for() -> None:
    assert decode_json('{"\\ud83d": ["\\ud83d"]}') == {"\ufffd": ["\ufffd"]}
    assert decode_json('"\\ud83d"', keep_halves=True) == HIGH
    assert encode_json({"a": HIGH, "b": SMILE}) == '{"a": "\ufffd", "b": "\U0001f600"}'.encode()


def test_a_value_of_any_depth_is_mended() -> None:
    value: object = HIGH
    for _ in range(5000):
        value = [value]
    found = mended(value)
    for _ in range(5000):
        (found,) = found
    assert found == "\ufffd"
    assert mended({"k": (1, None, HIGH + LOW), "z": {}}) == {"k": [1, None, SMILE], "z": {}}
