"""Anthropic's messages format: streams in, exact requests out, thinking above all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from model_server import Fault, Raw, Reply, Tool, messages_event, sse

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.messages import (
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
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import Stopped, ThinkingSigned, UsageReport
from pi_tui.providers.anthropic import AnthropicProvider, messages_url
from pi_tui.providers.anthropic_request import (
    anthropic_compat,
    claude_version,
    messages_payload,
)

MODEL = Model(
    "fake",
    "claude-sonnet-4-5",
    "anthropic-messages",
    reasoning=True,
    input=("text", "image"),
    max_tokens=64_000,
    context_window=200_000,
)
REQUEST = ModelRequest(MODEL, "sys", (UserMessage("hi", 1),))
READ = ToolDeclaration("read", "Read a file.", {"type": "object", "properties": {}})
MARK = {"type": "ephemeral"}


# ---------------------------------------------------------------- streams


def start(usage: dict | None = None) -> bytes:
    message = {"id": "msg_1", "role": "assistant", "model": MODEL.id, "content": []}
    return messages_event("message_start", message={**message, "usage": usage or {}})


def block(index: int, kind: str, **fields: object) -> bytes:
    return messages_event(
        "content_block_start", index=index, content_block={"type": kind, **fields}
    )


def delta(index: int, kind: str, **fields: object) -> bytes:
    return messages_event("content_block_delta", index=index, delta={"type": kind, **fields})


def close(index: int) -> bytes:
    return messages_event("content_block_stop", index=index)


def end(reason: str | None = "end_turn", usage: dict | None = None) -> bytes:
    closing = messages_event("message_delta", delta={"stop_reason": reason}, usage=usage or {})
    return closing + messages_event("message_stop")


def text(words: str, index: int = 0) -> bytes:
    return block(index, "text", text="") + delta(index, "text_delta", text=words) + close(index)


@pytest.fixture
def ask(serve: Callable, hear: Callable) -> Callable:
    """Let a server send exactly these events, and read the answer."""

    async def ask(*events: bytes, then: str = "end", heard: object = None) -> object:
        server = await serve([Raw([b"".join(events)], then)])
        provider = AnthropicProvider(server.url, api_key="k", provider="fake")
        try:
            return await hear(provider, REQUEST, heard)
        finally:
            await provider.aclose()

    return ask


async def test_a_signature_is_kept_whole(serve: Callable, hear: Callable) -> None:
    server = await serve([Reply(thinking="hm", signature="EqoBCkgIARAB", text="yes")])
    heard = await hear(AnthropicProvider(server.url), REQUEST)
    assert heard.message.content[0] == ThinkingContent("hm", "EqoBCkgIARAB")
    assert len(heard.of(ThinkingSigned)) == 1


async def test_a_signature_cut_by_a_break_is_not_kept(ask: Callable, new_heard: Callable) -> None:
    heard = new_heard(MODEL)
    with pytest.raises(ProviderError):
        await ask(
            start(),
            block(0, "thinking", thinking="", signature=""),
            *(delta(0, "thinking_delta", thinking=t) for t in ("let ", "me ", "see")),
            delta(0, "signature_delta", signature="EqoBCk"),
            then="cut",
            heard=heard,
        )
    assert heard.message.content == (ThinkingContent("let me see"),)


async def test_redacted_thinking_is_kept(serve: Callable, hear: Callable) -> None:
    server = await serve([Reply(redacted="ZW5jcnlwdGVk", text="yes")])
    first = (await hear(AnthropicProvider(server.url), REQUEST)).message.content[0]
    assert first == ThinkingContent("", "ZW5jcnlwdGVk", True)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("pause_turn", "stop"),
        ("max_tokens", "length"),
        ("tool_use", "stop"),
        ("unheard_of", "stop"),
        (None, "stop"),
    ],
)
async def test_stop_reasons(ask: Callable, word: str | None, reason: str) -> None:
    assert (await ask(start(), text("x"), end(word))).events[-1] == Stopped(reason)


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("refusal", ErrorKind.REFUSED),
        ("model_context_window_exceeded", ErrorKind.OVERFLOW),
    ],
)
async def test_stop_reasons_that_are_failures(ask: Callable, word: str, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(start(), text("x"), end(word))
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, ErrorKind.OVERLOADED),
        ({"type": "api_error", "message": "Internal server error"}, ErrorKind.OVERLOADED),
        ({"type": "rate_limit_error", "message": "too fast"}, ErrorKind.RATE_LIMIT),
        ({"type": "invalid_request_error", "message": "prompt is too long"}, ErrorKind.OVERFLOW),
        ({"type": "authentication_error", "message": "who?"}, ErrorKind.AUTH),
    ],
)
async def test_errors_in_the_stream(ask: Callable, error: dict, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(start(), text("x"), messages_event("error", error=error))
    assert caught.value.kind is kind


async def test_usage_of_the_start_is_kept_when_the_end_lacks_it(ask: Callable) -> None:
    given = {
        "input_tokens": 100,
        "output_tokens": 1,
        "cache_read_input_tokens": 1000,
        "cache_creation_input_tokens": 50,
    }
    heard = await ask(start(given), text("x"), end(usage={"output_tokens": 40, "input_tokens": 0}))
    used = heard.message.usage
    assert (used.input, used.output, used.cache_read, used.cache_write) == (100, 40, 1000, 50)
    assert used.total_tokens == 1190


async def test_usage_of_zeros_is_no_usage(ask: Callable) -> None:
    zeros = {"input_tokens": 0, "output_tokens": 0}
    assert (await ask(start(zeros), text("x"), end(usage=zeros))).of(UsageReport) == []


async def test_usage_is_known_even_when_the_answer_is_cut(
    ask: Callable, new_heard: Callable
) -> None:
    heard = new_heard(MODEL)
    with pytest.raises(ProviderError):
        await ask(start({"input_tokens": 70}), text("x"), then="cut", heard=heard)
    assert heard.message.usage.input == 70


async def test_an_end_without_a_stop_is_incomplete(ask: Callable) -> None:
    for events in ((start(), text("x")), (start(), end(None)), ()):
        with pytest.raises(ProviderError, match="incomplete"):
            await ask(*events)


async def test_unknown_events_and_blocks_are_passed_over(ask: Callable) -> None:
    odd = (
        messages_event("ping")
        + messages_event("news", data=1)
        + sse([])
        + block(5, "server_tool_use", id="s", name="search", input={})
        + delta(5, "input_json_delta", partial_json="{}")
        + close(5)
        + delta(9, "text_delta", text="no such block")
        + delta(5, "citations_delta", citation={})
        + messages_event("content_block_start")
        + close(77)
    )
    heard = await ask(odd, start(), odd, text("x"), odd, end())
    assert heard.message.content == (TextContent("x"),)


def call(index: int, call_id: str | None, *pieces: str, stop: bool = True, **more: object) -> bytes:
    opening = block(index, "tool_use", id=call_id, name="read", **{"input": {}, **more})
    parts = b"".join(delta(index, "input_json_delta", partial_json=p) for p in pieces)
    return opening + parts + (close(index) if stop else b"")


async def test_interleaved_blocks(ask: Callable) -> None:
    heard = await ask(
        start(),
        call(0, "toolu_a", '{"path":', stop=False),
        call(1, "toolu_b", '{"path":', stop=False),
        delta(0, "input_json_delta", partial_json='"a"}'),
        delta(1, "input_json_delta", partial_json='"b"}'),
        close(1),
        close(0),
        end("tool_use"),
    )
    assert heard.message.tool_calls == (
        ToolCall("toolu_a", "read", {"path": "a"}),
        ToolCall("toolu_b", "read", {"path": "b"}),
    )


async def test_the_same_index_twice_and_blocks_that_are_never_closed(ask: Callable) -> None:
    heard = await ask(
        start(),
        call(0, "toolu_a", '{"path":"a"}', stop=False),
        call(0, "toolu_b", '{"path":"b"}', stop=False),
        end("end_turn"),
    )
    assert [c.arguments["path"] for c in heard.message.tool_calls] == ["a", "b"]
    assert heard.stop_reason == "toolUse"


async def test_missing_repeated_and_doubled_calls(ask: Callable) -> None:
    heard = await ask(
        start(),
        call(0, "same", '{"path":"a"}'),
        call(1, "same", '{"path":"b"}'),
        call(2, "same", '{"path":"a"}'),
        call(3, "", '{"path":"c"}'),
        call(4, None, '{"path":"d"}{"path":"d"}'),
        end("tool_use"),
    )
    calls = heard.message.tool_calls
    assert [c.arguments["path"] for c in calls] == ["a", "b", "c", "d"]
    assert len({c.id for c in calls}) == 4


async def test_input_that_comes_with_the_start_of_the_block(ask: Callable) -> None:
    heard = await ask(start(), call(0, "t1x", input={"path": "a"}), call(1, "t2x"), end("tool_use"))
    assert [c.arguments for c in heard.message.tool_calls] == [{"path": "a"}, {}]


async def test_an_aborted_answer_holds_no_open_call(ask: Callable, new_heard: Callable) -> None:
    heard = new_heard(MODEL)
    with pytest.raises(ProviderError):
        await ask(
            start(), text("x"), call(1, "t", '{"path": "a', stop=False), then="cut", heard=heard
        )
    assert heard.message.content == (TextContent("x"),)


async def test_headers(serve: Callable, hear: Callable) -> None:
    server = await serve([Reply(text="OK.")])
    await hear(AnthropicProvider(server.url, api_key="key-1\n"), REQUEST)
    headers = server.requests[0].headers
    assert server.requests[0].path == "/v1/messages"
    assert headers["x-api-key"] == "key-1"
    assert headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in headers

    async def bearer() -> dict[str, str]:
        return {"Authorization": "Bearer t"}

    await hear(AnthropicProvider(server.url, headers_for=bearer), REQUEST)
    assert server.requests[1].headers["authorization"] == "Bearer t"
    assert "x-api-key" not in server.requests[1].headers


def test_the_address() -> None:
    for base in ("https://h", "https://h/", "https://h/v1", "https://h/v1/messages"):
        assert messages_url(base) == "https://h/v1/messages"


async def test_a_server_that_refuses_foreign_signatures_accepts_what_comes_back(
    serve: Callable, hear: Callable
) -> None:
    """After an interrupted thinking block, and after a whole one, the next request is fine."""
    whole = Reply(thinking="one", signature="V0hPTEU=", tools=[Tool("read", {"path": "a"})])
    broken = Reply(thinking="a longer thought", text="x", fault=Fault("cut", after=2))
    server = await serve([whole, broken, Reply(text="fine")])
    provider = AnthropicProvider(server.url, provider="fake")
    first = (await hear(provider, REQUEST)).message
    result = ToolResultMessage(first.tool_calls[0].id, "read", (TextContent("t"),), False, 1)
    history = (UserMessage("hi", 1), first, result)
    request = ModelRequest(MODEL, "sys", history, thinking_level="low")
    with pytest.raises(ProviderError):
        await hear(provider, request)
    leftover = AssistantMessage(
        (ThinkingContent("a long"),), MODEL.api, "fake", MODEL.id, None, "aborted", 1
    )
    request = ModelRequest(
        MODEL, "sys", (*history, leftover, UserMessage("go on", 1)), thinking_level="low"
    )
    assert (await hear(provider, request)).message.text == "fine"
    sent = server.requests[-1].body["messages"]
    signatures = [b["signature"] for m in sent for b in m["content"] if b["type"] == "thinking"]
    assert signatures == ["V0hPTEU="]
    assert [m["role"] for m in sent] == ["user", "assistant", "user", "user"]


# ---------------------------------------------------------------- requests


def payload(request: ModelRequest = REQUEST, **overrides: object) -> dict:
    return messages_payload(request, anthropic_compat(request.model.id, overrides))


def answer(*content: object, model: str = MODEL.id, provider: str = "fake") -> AssistantMessage:
    return AssistantMessage(content, MODEL.api, provider, model, None, "stop", 1)


CALLS = (ToolCall("t1", "read", {"path": "a"}), ToolCall("t2", "read", {}))
RESULTS = (
    ToolResultMessage("t1", "read", (TextContent("text of a"),), False, 1),
    ToolResultMessage("t2", "read", (), True, 1),
)


def test_a_plain_request_with_cache_marks() -> None:
    request = ModelRequest(MODEL, "sys", (UserMessage("hi", 1),), (READ, READ))
    tool = {"name": "read", "description": "Read a file.", "input_schema": READ.parameters}
    assert payload(request) == {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64_000,
        "stream": True,
        "system": [{"type": "text", "text": "sys", "cache_control": MARK}],
        "tools": [tool, {**tool, "cache_control": MARK}],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi", "cache_control": MARK}],
            }
        ],
    }
    assert "cache_control" not in READ.parameters


def test_no_cache_no_marks() -> None:
    request = ModelRequest(MODEL, "sys", (UserMessage("hi", 1),), (READ,), cache=False)
    assert "cache_control" not in str(payload(request))


def test_marks_of_an_hour_and_servers_without_marks_on_tools() -> None:
    request = ModelRequest(MODEL, "sys", (UserMessage("hi", 1),), (READ,))
    compat = anthropic_compat(MODEL.id, {"supportsCacheControlOnTools": False})
    body = messages_payload(request, compat, long_cache=True)
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert "cache_control" not in body["tools"][0]


def test_results_stand_in_one_message_directly_after_the_calls() -> None:
    history = (UserMessage("x", 1), answer(*CALLS), *RESULTS, UserMessage("and?", 1))
    _, calls, results, last = payload(ModelRequest(MODEL, "", history))["messages"]
    assert [b["type"] for b in calls["content"]] == ["tool_use", "tool_use"]
    assert calls["content"][0] == {
        "type": "tool_use",
        "id": "t1",
        "name": "read",
        "input": {"path": "a"},
    }
    assert results["role"] == "user"
    assert results["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "t1",
            "content": [{"type": "text", "text": "text of a"}],
        },
        {
            "type": "tool_result",
            "tool_use_id": "t2",
            "content": [{"type": "text", "text": "(no output)"}],
            "is_error": True,
        },
    ]
    assert last["content"][-1]["cache_control"] == MARK
    assert "system" not in payload(ModelRequest(MODEL, "", history))


def test_thinking_goes_back_only_to_its_own_model_and_only_whole() -> None:
    parts = (
        ThinkingContent("", "ENC==", True),
        ThinkingContent(" two\n", "SIG+/=="),
        ThinkingContent("no signature"),
        TextContent("text"),
    )
    own = payload(ModelRequest(MODEL, "", (UserMessage("x", 1), answer(*parts))))["messages"][1]
    assert own["content"] == [
        {"type": "redacted_thinking", "data": "ENC=="},
        {"type": "thinking", "thinking": " two\n", "signature": "SIG+/=="},
        {"type": "text", "text": "text"},
    ]
    for foreign in (answer(*parts, model="claude-x"), answer(*parts, provider="other")):
        sent = payload(ModelRequest(MODEL, "", (UserMessage("x", 1), foreign)))["messages"][1]
        assert sent["content"] == [{"type": "text", "text": "text"}]


def test_empty_signatures_go_back_where_the_server_makes_them() -> None:
    history = (UserMessage("x", 1), answer(ThinkingContent("hm"), TextContent("y")))
    sent = payload(ModelRequest(MODEL, "", history), allowEmptySignature=True)["messages"][1]
    assert sent["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


@pytest.mark.parametrize(
    "content", [(ThinkingContent("hm"),), (ThinkingContent("hm", "S"),), (TextContent(" \n"),), ()]
)
def test_an_answer_with_nothing_to_say_is_left_out(content: tuple) -> None:
    history = (UserMessage("a", 1), answer(*content), UserMessage("b", 1))
    roles = [m["role"] for m in payload(ModelRequest(MODEL, "", history))["messages"]]
    assert roles == ["user", "user"]


def test_thinking_never_stands_last() -> None:
    history = (UserMessage("a", 1), answer(TextContent("x"), ThinkingContent("hm", "S")))
    sent = payload(ModelRequest(MODEL, "", history))["messages"][1]
    assert sent["content"] == [{"type": "text", "text": "x"}]


def test_blank_texts_are_left_out() -> None:
    history = (UserMessage((TextContent("  "), TextContent("b")), 1), UserMessage("", 1))
    (only,) = payload(ModelRequest(MODEL, " ", history))["messages"]
    assert [b["text"] for b in only["content"]] == ["b"]


def test_images() -> None:
    images = (ImageContent("QUJD", "image/png"), ImageContent("WFla", "image/tiff"))
    result = ToolResultMessage("t1", "read", images, False, 1)
    history = (UserMessage(images, 1), answer(CALLS[0]), result)
    user, _, results = payload(ModelRequest(MODEL, "", history))["messages"]
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert user["content"][0] == {"type": "image", "source": source}
    assert "image/tiff was left out" in user["content"][1]["text"]
    assert results["content"][0]["content"][0]["source"] == source
    blind = Model("fake", "m", "anthropic-messages")
    assert "QUJD" not in str(payload(ModelRequest(blind, "", history)))


# ---------------------------------------------------------------- thinking parameters


def thinking(level: str, request: ModelRequest = REQUEST, **model: object) -> dict:
    import msgspec

    changed = msgspec.structs.replace(
        request, model=msgspec.structs.replace(request.model, **model), thinking_level=level
    )
    body = payload(changed)
    return {k: body.get(k) for k in ("thinking", "output_config", "max_tokens") if body.get(k)}


@pytest.mark.parametrize(
    ("level", "budget"), [("minimal", 1024), ("low", 4096), ("high", 20_480), ("max", 49_152)]
)
def test_budgets(level: str, budget: int) -> None:
    asked = thinking(level)
    assert asked["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert asked["max_tokens"] == 64_000


def test_a_small_output_limit_is_raised_above_the_budget() -> None:
    small = ModelRequest(MODEL, "", (UserMessage("x", 1),), max_tokens=2000)
    asked = thinking("low", small)
    assert asked["max_tokens"] == 4096 + 2000
    assert asked["thinking"]["budget_tokens"] == 4096


def test_a_budget_fits_a_model_with_a_small_limit() -> None:
    asked = thinking("high", max_tokens=8192)
    assert asked == {
        "thinking": {"type": "enabled", "budget_tokens": 8192 - 1024},
        "max_tokens": 8192,
    }
    assert thinking("high", max_tokens=1500) == {"max_tokens": 1500}


@pytest.mark.parametrize(
    ("model_id", "level", "effort", "display"),
    [
        ("claude-opus-4-6", "high", "high", None),
        ("claude-opus-4-6", "xhigh", "high", None),
        ("claude-opus-4-7", "xhigh", "xhigh", "summarized"),
        ("claude-opus-4-7", "minimal", "low", "summarized"),
        ("anthropic/claude-sonnet-5", "max", "max", "summarized"),
    ],
)
def test_models_that_plan_their_thinking(
    model_id: str, level: str, effort: str, display: str | None
) -> None:
    asked = thinking(level, id=model_id)
    assert asked["thinking"]["type"] == "adaptive"
    assert asked["thinking"].get("display") == display
    assert asked["output_config"] == {"effort": effort}


def test_the_models_file_decides_about_planning_and_words() -> None:
    assert payload_with({"forceAdaptiveThinking": True})["thinking"] == {"type": "adaptive"}
    assert (
        thinking("high", thinking_level_map={"high": "9000"})["thinking"]["budget_tokens"] == 9000
    )
    assert "thinking" not in thinking("high", thinking_level_map={"high": None})
    assert thinking("off", thinking_level_map={"off": "disabled"})["thinking"] == {
        "type": "disabled"
    }


def payload_with(overrides: dict) -> dict:
    request = ModelRequest(MODEL, "", (UserMessage("x", 1),), thinking_level="high")
    return payload(request, **overrides)


def test_no_thinking_where_it_is_off_or_unknown() -> None:
    assert "thinking" not in thinking("off")
    assert "thinking" not in thinking("high", reasoning=False)


@pytest.mark.parametrize(
    ("first", "asks"),
    [
        ((ThinkingContent("hm", "S"), CALLS[0]), True),
        ((ThinkingContent("hm"), CALLS[0]), False),
        ((CALLS[0],), False),
    ],
)
def test_a_tool_loop_that_began_without_thinking_goes_on_without(first: tuple, asks: bool) -> None:
    history = (UserMessage("x", 1), answer(*first), RESULTS[0])
    assert ("thinking" in thinking("low", ModelRequest(MODEL, "", history))) is asks
    longer = (*history, answer(CALLS[1]), RESULTS[1])
    assert ("thinking" in thinking("low", ModelRequest(MODEL, "", longer))) is asks
    over = (*history, answer(TextContent("done")), UserMessage("next", 1))
    assert "thinking" in thinking("low", ModelRequest(MODEL, "", over))


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-opus-4-20250514", (4, 0)),
        ("claude-sonnet-4-5-20250929", (4, 5)),
        ("claude-haiku-4.5", (4, 5)),
        ("claude-3-7-sonnet-latest", (0, 0)),
        ("us.anthropic.claude-opus-4-7-v1", (4, 7)),
        ("something-else", (0, 0)),
    ],
)
def test_versions_in_names(name: str, version: tuple) -> None:
    assert claude_version(name) == version
