"""Chat completions as real servers speak them: odd streams in, exact requests out."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from model_server import Failure, Raw, Reply, chat_chunk, sse

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
from pi_tui.core.streaming import Stopped, ToolCallStarted, UsageReport
from pi_tui.providers.openai_compat import compat_for, guess_compat
from pi_tui.providers.openai_compatible import OpenAICompatibleProvider, chat_url
from pi_tui.providers.openai_request import chat_payload

DONE = sse("[DONE]")
MODEL = Model("fake", "m", "openai-completions", reasoning=True, input=("text", "image"))
REQUEST = ModelRequest(MODEL, "sys", (UserMessage("hi", 1),))
READ = ToolDeclaration("read", "Read a file.", {"type": "object", "properties": {}})


def part(arguments: str | None = None, *, index: int | None = 0, id: str | None = None,
         name: str | None = None) -> bytes:  # fmt: skip
    """A chunk with one piece of a call, holding only the fields that are given."""
    function = {"name": name, "arguments": arguments}
    call: dict[str, object] = {"function": {k: v for k, v in function.items() if v is not None}}
    if index is not None:
        call["index"] = index
    if id is not None:
        call["id"] = id
    return chat_chunk({"tool_calls": [call]})


@pytest.fixture
def ask(serve: Callable, hear: Callable) -> Callable:
    """Let a server send exactly these events, and read the answer."""

    async def ask(*events: bytes, then: str = "end", request: ModelRequest = REQUEST) -> object:
        server = await serve([Raw([b"".join(events)], then)])
        provider = OpenAICompatibleProvider(server.openai_url, provider="fake")
        try:
            return await hear(provider, request)
        finally:
            await provider.aclose()

    return ask


END = chat_chunk({}, "tool_calls") + DONE


# ---------------------------------------------------------------- tool calls


async def test_same_index_other_id_is_another_call(ask: Callable) -> None:
    heard = await ask(
        part('{"path":"left.txt"}', id="c1", name="read"),
        part('{"path":"right.txt"}', id="c2", name="read"),
        END,
    )
    assert [(c.id, c.arguments) for c in heard.message.tool_calls] == [
        ("c1", {"path": "left.txt"}),
        ("c2", {"path": "right.txt"}),
    ]


async def test_interleaved_calls_keep_their_arguments(ask: Callable) -> None:
    heard = await ask(
        part("", index=0, id="c1", name="read"),
        part("", index=1, id="c2", name="write"),
        part('{"path":', index=0),
        part('{"path":', index=1),
        part('"a"}', index=0),
        part('"b"}', index=1),
        END,
    )
    assert [(c.name, c.arguments) for c in heard.message.tool_calls] == [
        ("read", {"path": "a"}),
        ("write", {"path": "b"}),
    ]


@pytest.mark.parametrize("index", [0, None])
async def test_id_on_every_part_is_one_call(ask: Callable, index: int | None) -> None:
    pieces = ['{"p', "ath", '": ', '"a', '"}']
    parts = [part(p, index=index, id="c1", name="read" if n == 0 else None)
             for n, p in enumerate(pieces)]  # fmt: skip
    (call,) = (await ask(*parts, END)).message.tool_calls
    assert call == ToolCall("c1", "read", {"path": "a"})


async def test_name_on_every_part_is_one_call(ask: Callable) -> None:
    parts = [part(p, id="c1", name="read") for p in ('{"pa', 'th": "a"', "}")]
    (call,) = (await ask(*parts, END)).message.tool_calls
    assert call.arguments == {"path": "a"}


async def test_an_index_that_counts_parts_is_one_call(ask: Callable) -> None:
    parts = [part(p, index=n, id="c1", name=None if n else "read")
             for n, p in enumerate(['{"path"', ':"a"', "}"])]  # fmt: skip
    (call,) = (await ask(*parts, END)).message.tool_calls
    assert call.arguments == {"path": "a"}


async def test_arguments_repeated_at_the_end_count_once(ask: Callable) -> None:
    heard = await ask(
        part('{"path":', id="c1", name="read"), part('"a"}'), part('{"path":"a"}', id="c1"), END
    )
    (call,) = heard.message.tool_calls
    assert call.arguments == {"path": "a"}


async def test_an_empty_object_before_the_arguments_is_dropped(ask: Callable) -> None:
    (call,) = (
        await ask(part("{}", id="c1", name="read"), part('{"path":"a"}'), END)
    ).message.tool_calls
    assert call.arguments == {"path": "a"}


async def test_name_on_the_last_part_only(ask: Callable) -> None:
    heard = await ask(part('{"path":'), part('"a"'), part("}", name="read"), END)
    (call,) = heard.message.tool_calls
    assert (call.name, call.arguments) == ("read", {"path": "a"})
    assert call.id.startswith("call_")
    assert len(heard.of(ToolCallStarted)) == 1


@pytest.mark.parametrize("finish", ["stop", "end_turn", "eos", "function_call"])
async def test_calls_are_carried_out_whatever_the_finish_word(ask: Callable, finish: str) -> None:
    heard = await ask(part('{"path":"a"}', id="c1", name="read"), chat_chunk({}, finish), DONE)
    assert heard.stop_reason == "toolUse"
    assert heard.message.tool_calls


async def test_two_calls_with_one_id_get_different_ids(ask: Callable) -> None:
    heard = await ask(
        part('{"path":"a"}', index=0, id="same", name="read"),
        part('{"path":"b"}', index=1, id="same", name="read"),
        END,
    )
    first, second = heard.message.tool_calls
    assert first.id != second.id
    assert (first.arguments, second.arguments) == ({"path": "a"}, {"path": "b"})


async def test_two_calls_with_one_id_and_one_index(ask: Callable) -> None:
    heard = await ask(
        part('{"path":"a"}', id="same", name="read"),
        part('{"path":"b"}', id="same", name="read"),
        END,
    )
    first, second = heard.message.tool_calls
    assert first.id != second.id
    assert (first.arguments, second.arguments) == ({"path": "a"}, {"path": "b"})
    assert len(heard.of(ToolCallStarted)) == 2


@pytest.mark.parametrize("raw_id", [None, ""])
async def test_a_missing_id_becomes_one_of_ours(ask: Callable, raw_id: str | None) -> None:
    heard = await ask(
        part('{"path":"a"}', index=0, id=raw_id, name="read"),
        part('{"path":"a"}', index=1, id=raw_id, name="read"),
        END,
    )
    ids = {call.id for call in heard.message.tool_calls}
    assert len(ids) == 2, "calls without ids may be equal"
    assert all(i.startswith("call_") and len(i) > 12 for i in ids)


async def test_a_call_sent_twice_runs_once(ask: Callable) -> None:
    whole = part('{"path":"a"}', index=0, id="c1", name="read")
    again = part('{"path":"a"}', index=1, id="c1", name="read")
    assert len((await ask(whole, whole, again, END)).message.tool_calls) == 1


@pytest.mark.parametrize("raw_id", ["run:0", "call_0", "functions.read:1"])
async def test_an_id_that_counts_from_zero_is_new_in_every_answer(
    ask: Callable, raw_id: str
) -> None:
    one = part('{"path":"a"}', id=raw_id, name="read")
    first = (await ask(one, END)).message.tool_calls[0].id
    second = (await ask(one, END)).message.tool_calls[0].id
    assert first != second
    assert all(c.isalnum() or c in "_-" for c in first + second)


async def test_an_id_of_the_history_is_not_used_again(ask: Callable) -> None:
    call = ToolCall("call_abcdefgh", "read", {})
    answer = AssistantMessage((call,), "x", "fake", "m", None, "toolUse", 1)
    result = ToolResultMessage(call.id, "read", (TextContent("t"),), False, 1)
    request = ModelRequest(MODEL, "", (UserMessage("x", 1), answer, result))
    heard = await ask(part("{}", id=call.id, name="read"), END, request=request)
    (new,) = heard.message.tool_calls
    assert new.id != call.id
    assert new.id.startswith("call_abcdefgh_")


async def test_arguments_as_an_object_or_as_json_in_json(ask: Callable) -> None:
    as_object = {"index": 0, "id": "a1", "function": {"name": "read", "arguments": {"path": "ü"}}}
    heard = await ask(
        chat_chunk({"tool_calls": [as_object]}),
        part(json.dumps('{"path": "b"}'), index=1, id="a2", name="read"),
        part("", index=2, id="a3", name="read"),
        END,
    )
    assert [c.arguments for c in heard.message.tool_calls] == [{"path": "ü"}, {"path": "b"}, {}]


# ---------------------------------------------------------------- thin streams


def usage(given: int, made: int, **more: object) -> dict[str, object]:
    return {"prompt_tokens": given, "completion_tokens": made, **more}


TEXT = chat_chunk({"content": "hello"})
STOP = chat_chunk({}, "stop")


async def test_usage_in_a_chunk_without_choices(ask: Callable) -> None:
    heard = await ask(TEXT, STOP, sse({"choices": [], "usage": usage(1200, 40)}), DONE)
    assert (heard.message.usage.input, heard.message.usage.output) == (1200, 40)


async def test_chunks_without_a_choices_field_and_comments_are_skipped(ask: Callable) -> None:
    odd = (
        b": keep-alive\n\n"
        + sse({"id": "x"})
        + b"\n\n"
        + sse({"choices": None})
        + sse({"choices": [None]})
        + sse({"choices": [{"delta": None}]})
        + sse([])
        + b"event: ping\n\n"
    )
    heard = await ask(odd, TEXT, odd, STOP, odd, DONE)
    assert heard.message.text == "hello"
    assert heard.stop_reason == "stop"


@pytest.mark.parametrize(
    "last",
    [
        sse({"choices": [{"delta": {}, "finish_reason": "stop", "usage": usage(7, 8)}]}),
        sse(
            {"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": usage(7, 8)}}
        ),
        chat_chunk({}, "stop", usage=usage(7, 8)),
    ],
)
async def test_usage_in_other_places(ask: Callable, last: bytes) -> None:
    heard = await ask(TEXT, last, DONE)
    assert (heard.message.usage.input, heard.message.usage.output) == (7, 8)


async def test_usage_of_zeros_is_no_usage(ask: Callable) -> None:
    heard = await ask(TEXT, chat_chunk({}, "stop", usage=usage(0, 0)), DONE)
    assert heard.of(UsageReport) == []


async def test_reasoning_counted_beside_the_output(ask: Callable) -> None:
    counts = usage(10, 5, total_tokens=45, completion_tokens_details={"reasoning_tokens": 30})
    used = (await ask(TEXT, chat_chunk({}, "stop", usage=counts), DONE)).message.usage
    assert (used.output, used.reasoning, used.total_tokens) == (35, 30, 45)


async def test_cache_counts_of_several_dialects(ask: Callable) -> None:
    details = {"cached_tokens": 60, "cache_write_tokens": 30}
    counts = usage(100, 5, prompt_tokens_details=details)
    used = (await ask(TEXT, chat_chunk({}, "stop", usage=counts), DONE)).message.usage
    assert (used.input, used.cache_read, used.cache_write) == (10, 60, 30)
    counts = usage(100, 5, prompt_cache_hit_tokens=64)
    used = (await ask(TEXT, chat_chunk({}, "stop", usage=counts), DONE)).message.usage
    assert (used.input, used.cache_read) == (36, 64)


@pytest.mark.parametrize("finish", ["end", "eos", "unheard_of"])
async def test_unknown_finish_words_mean_stop(ask: Callable, finish: str) -> None:
    assert (await ask(TEXT, chat_chunk({}, finish), DONE)).stop_reason == "stop"


async def test_an_end_mark_without_a_finish_word_means_stop(ask: Callable) -> None:
    assert (await ask(TEXT, chat_chunk({}, None), DONE)).stop_reason == "stop"


async def test_an_end_without_a_finish_word_is_an_end_where_the_server_has_none(
    ask: Callable,
) -> None:
    model = Model("fake", "m", "openai-completions", compat={"supportsFinishReason": False})
    request = ModelRequest(model, "", (UserMessage("hi", 1),))
    assert (await ask(TEXT, request=request)).stop_reason == "stop"


async def test_nothing_but_a_role_is_an_empty_answer(ask: Callable) -> None:
    heard = await ask(chat_chunk({"role": "assistant"}), STOP, DONE)
    assert heard.message.content == ()
    assert heard.events[-1] == Stopped("stop")


@pytest.mark.parametrize("events", [(TEXT,), (chat_chunk({"role": "assistant"}), DONE), ()])
async def test_an_end_without_a_finish_is_incomplete(ask: Callable, events: tuple) -> None:
    with pytest.raises(ProviderError, match="incomplete") as caught:
        await ask(*events)
    assert caught.value.kind is ErrorKind.NETWORK


async def test_content_as_a_list_of_parts(ask: Callable) -> None:
    parts = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}, "!", None]
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    heard = await ask(
        chat_chunk({"content": [thought]}), chat_chunk({"content": parts}), STOP, DONE
    )
    assert heard.message.content == (ThinkingContent("hm"), TextContent("one two!"))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
async def test_thinking_under_its_many_names(ask: Callable, field: str) -> None:
    heard = await ask(chat_chunk({field: "hm", "content": ""}), TEXT, STOP, DONE)
    assert heard.message.content == (ThinkingContent("hm"), TextContent("hello"))


async def test_thinking_sent_under_two_names_counts_once(ask: Callable) -> None:
    both = {"reasoning": "hm", "reasoning_content": "hm", "reasoning_details": [{"text": "hm"}]}
    assert (await ask(chat_chunk(both), TEXT, STOP, DONE)).message.content[0] == ThinkingContent(
        "hm"
    )


async def test_a_break_after_the_finish_word_is_no_error(ask: Callable) -> None:
    assert (await ask(TEXT, STOP, then="cut")).stop_reason == "stop"


async def test_silence_after_the_end_mark_is_no_error(ask: Callable) -> None:
    assert (await ask(TEXT, STOP, DONE, then="stall")).stop_reason == "stop"


async def test_a_damaged_chunk_is_an_error_that_may_be_tried_again(ask: Callable) -> None:
    with pytest.raises(ProviderError, match="damaged") as caught:
        await ask(TEXT, b'data: {"choices": [{"del\n\n', STOP, DONE)
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "slow down"}, ErrorKind.RATE_LIMIT),
        ({"code": 502, "message": "Provider returned error"}, ErrorKind.OVERLOADED),
        ("prompt is too long: 9 tokens > 8 maximum", ErrorKind.OVERFLOW),
    ],
)
async def test_an_error_in_the_stream(ask: Callable, error: object, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(TEXT, sse({"error": error}), DONE)
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    ("finish", "kind"),
    [
        ("content_filter", ErrorKind.REFUSED),
        ("model_context_window_exceeded", ErrorKind.OVERFLOW),
        ("error", ErrorKind.OVERLOADED),
    ],
)
async def test_finish_words_that_are_failures(ask: Callable, finish: str, kind: ErrorKind) -> None:
    with pytest.raises(ProviderError) as caught:
        await ask(TEXT, chat_chunk({}, finish), DONE)
    assert caught.value.kind is kind


async def test_a_server_that_does_not_stream(serve: Callable, hear: Callable) -> None:
    call = {"id": "c9", "function": {"name": "read", "arguments": '{"path":"a"}'}}
    message = {"role": "assistant", "content": "whole", "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    body = {"id": "x", "model": "m", "choices": [choice], "usage": usage(3, 4)}
    server = await serve([Raw([json.dumps(body).encode()], content_type="application/json")])
    heard = await hear(OpenAICompatibleProvider(server.openai_url), REQUEST)
    assert heard.message.text == "whole"
    assert heard.message.tool_calls == (ToolCall("c9", "read", {"path": "a"}),)
    assert heard.message.usage.output == 4


async def test_a_web_page_instead_of_an_answer(serve: Callable, hear: Callable) -> None:
    page = b"<html><head><title>Sign in</title></head></html>"
    server = await serve([Raw([page], content_type="text/html; charset=utf-8")])
    with pytest.raises(ProviderError, match="Sign in") as caught:
        await hear(OpenAICompatibleProvider(server.openai_url), REQUEST)
    assert not caught.value.retryable
    assert "base URL" in str(caught.value.hint)


@pytest.mark.parametrize("content_type", ["", "text/plain", "text/event-stream; charset=latin-1"])
async def test_a_wrong_content_type_of_a_stream(
    serve: Callable, hear: Callable, content_type: str
) -> None:
    events = chat_chunk({"content": "ü"}) + STOP + DONE
    server = await serve([Raw([events], content_type=content_type)])
    heard = await hear(OpenAICompatibleProvider(server.openai_url), REQUEST)
    assert heard.message.text == "ü"


async def test_other_line_ends(ask: Callable) -> None:
    assert (await ask((TEXT + STOP + DONE).replace(b"\n", b"\r\n"))).message.text == "hello"


# ---------------------------------------------------------------- the way there


async def test_the_connection_is_used_again(serve: Callable, hear: Callable) -> None:
    server = await serve([Reply(text="OK.")])
    provider = OpenAICompatibleProvider(server.openai_url)
    for _ in range(3):
        await hear(provider, REQUEST)
    assert server.connections == 1
    await provider.aclose()
    await hear(provider, REQUEST)
    assert server.connections == 2


async def test_silence_is_limited(serve: Callable, hear: Callable) -> None:
    server = await serve([Reply(stall_before_headers=True)])
    provider = OpenAICompatibleProvider(server.openai_url, idle_timeout_s=0.05)
    with pytest.raises(ProviderError) as caught:
        await hear(provider, REQUEST)
    assert caught.value.kind is ErrorKind.TIMEOUT
    assert caught.value.retryable


async def test_headers_are_asked_for_before_every_request(serve: Callable, hear: Callable) -> None:
    server = await serve([Reply(text="OK.")])
    keys = iter(["first-key-1", "second-key-2"])

    async def headers() -> dict[str, str]:
        return {"Authorization": f"Bearer {next(keys)}\n"}

    provider = OpenAICompatibleProvider(
        server.openai_url, api_key="unused-key-0", headers_for=headers, headers={"X-Team": "blue"}
    )
    await hear(provider, REQUEST)
    await hear(provider, REQUEST)
    assert [r.headers["authorization"] for r in server.requests] == [
        "Bearer first-key-1",
        "Bearer second-key-2",
    ]
    assert server.requests[0].headers["x-team"] == "blue"


@pytest.mark.parametrize("key", ["“quoted-key-9”", "two\nlines-key-9"])
async def test_a_key_that_cannot_be_a_header(serve: Callable, hear: Callable, key: str) -> None:
    server = await serve([Reply(text="OK.")])
    with pytest.raises(ProviderError, match="header is wrong") as caught:
        await hear(OpenAICompatibleProvider(server.openai_url, api_key=key), REQUEST)
    assert caught.value.kind is ErrorKind.BAD_REQUEST
    assert "key-9" not in caught.value.message


async def test_no_key_no_header(serve: Callable, hear: Callable) -> None:
    server = await serve([Reply(text="OK.")])
    await hear(OpenAICompatibleProvider(server.openai_url), REQUEST)
    assert "authorization" not in server.requests[0].headers


async def test_a_proxy_of_the_environment_is_not_used_for_this_machine(
    serve: Callable, hear: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server = await serve([Reply(text="OK.")])
    heard = await hear(OpenAICompatibleProvider(server.openai_url), REQUEST)
    assert heard.message.text == "OK."


async def test_a_proxy_of_the_environment_is_used(
    serve: Callable, hear: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await serve([Reply(text="through the proxy")])
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    heard = await hear(OpenAICompatibleProvider("http://models.invalid/v1"), REQUEST)
    assert heard.message.text == "through the proxy"
    assert server.requests[0].path == "http://models.invalid/v1/chat/completions"


async def test_halves_of_surrogate_pairs_do_not_stop_a_request(
    serve: Callable, hear: Callable
) -> None:
    server = await serve([Reply(text="OK.")])
    request = ModelRequest(MODEL, "", (UserMessage("a\ud83d b \ud83d\ude42", 1),))
    await hear(OpenAICompatibleProvider(server.openai_url), request)
    assert server.requests[0].body["messages"][0]["content"] == "a\ufffd b 🙂"


async def test_a_redirect_is_not_followed(serve: Callable, hear: Callable) -> None:
    server = await serve([Failure(308, "", {"location": "http://elsewhere.invalid/"})])
    with pytest.raises(ProviderError, match="moved") as caught:
        await hear(OpenAICompatibleProvider(server.openai_url), REQUEST)
    assert "base URL" in str(caught.value.hint)


def test_the_address() -> None:
    assert chat_url("https://h/v1/") == "https://h/v1/chat/completions"
    assert chat_url("https://h/x/chat/completions") == "https://h/x/chat/completions"


# ---------------------------------------------------------------- the request


def payload(request: ModelRequest = REQUEST, base_url: str = "http://localhost:11434/v1",
            **compat: object) -> dict:  # fmt: skip
    return chat_payload(request, compat_for(base_url, request.model.id, compat))


def with_model(**fields: object) -> ModelRequest:
    level = fields.pop("level", "off")
    model = Model("fake", "m", "openai-completions", **fields)
    return ModelRequest(model, "sys", (UserMessage("hi", 1),), thinking_level=level)


def test_a_plain_request() -> None:
    assert payload(with_model(max_tokens=500)) == {
        "model": "m",
        "messages": [{"role": "system", "content": "sys"}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 500,
    }


def test_openai_itself() -> None:
    request = ModelRequest(
        Model("openai", "gpt-x", "openai-completions", reasoning=True),
        "sys",
        (UserMessage("hi", 1),),
        thinking_level="minimal",
        session_id="s1",
    )
    body = payload(request, "https://api.openai.com/v1")
    assert body["store"] is False
    assert body["messages"][0]["role"] == "developer"
    assert body["max_completion_tokens"] == 16_384
    assert "max_tokens" not in body
    assert body["reasoning_effort"] == "minimal"
    assert body["prompt_cache_key"] == "s1"


def test_names_of_the_models_file_override_the_guess() -> None:
    body = payload(
        with_model(reasoning=True, level="high"),
        "https://api.openai.com/v1",
        supportsStore=False,
        supportsDeveloperRole=False,
        supportsReasoningEffort=False,
        supportsUsageInStreaming=False,
        maxTokensField="max_tokens",
        thinkingFormat=7,
    )
    assert set(body) == {"model", "messages", "stream", "max_tokens"}
    assert body["messages"][0]["role"] == "system"


@pytest.mark.parametrize(
    ("level", "levels", "effort"),
    [
        ("off", {}, None),
        ("minimal", {}, "low"),
        ("medium", {}, "medium"),
        ("max", {}, "high"),
        ("max", {"max": "xhigh"}, "xhigh"),
        ("high", {"high": None}, None),
        ("off", {"off": "none"}, "none"),
    ],
)
def test_effort_words(level: str, levels: dict, effort: str | None) -> None:
    request = with_model(reasoning=True, level=level, thinking_level_map=levels)
    assert payload(request).get("reasoning_effort") == effort


def test_a_model_without_reasoning_is_never_asked_to_think() -> None:
    assert "reasoning_effort" not in payload(with_model(level="high"))


@pytest.mark.parametrize(
    ("base_url", "compat", "level", "expected"),
    [
        ("https://openrouter.ai/api/v1", {}, "high", {"reasoning": {"effort": "high"}}),
        ("https://openrouter.ai/api/v1", {}, "off", {}),
        ("https://api.deepseek.com/v1", {}, "high", {"thinking": {"type": "enabled"}}),
        ("https://api.z.ai/api/paas/v4", {}, "off", {"thinking": {"type": "disabled"}}),
        ("https://dashscope.aliyuncs.com/v1", {}, "low", {"enable_thinking": True}),
        ("http://h/v1", {"thinkingFormat": "qwen-chat-template"}, "off",
         {"chat_template_kwargs": {"enable_thinking": False, "preserve_thinking": True}}),
        ("http://h/v1", {"thinkingFormat": "chat-template", "supportsReasoningEffort": False,
                         "chatTemplateKwargs": {"deep": {"$var": "thinking.enabled"}, "x": 1}},
         "low", {"chat_template_kwargs": {"deep": True, "x": 1}}),
        ("http://h/v1", {"thinkingFormat": "together"}, "low",
         {"reasoning": {"enabled": True}, "reasoning_effort": "low"}),
    ],
)  # fmt: skip
def test_thinking_dialects(base_url: str, compat: dict, level: str, expected: dict) -> None:
    plain = payload(with_model(), base_url, **compat)
    body = payload(with_model(reasoning=True, level=level), base_url, **compat)
    added = {k: v for k, v in body.items() if k not in plain}
    if "reasoning_effort" in added and "reasoning_effort" not in expected:
        del added["reasoning_effort"]
    assert added == expected


def test_hosts_are_matched_as_domains_not_as_text() -> None:
    assert guess_compat("https://eu.api.mistral.ai/v1").tool_call_ids == "mistral"
    assert guess_compat("https://mistral.ai.evil.example/v1").tool_call_ids == "any"
    assert guess_compat("https://notx.ai/v1").supports_reasoning_effort


CALL = ToolCall("call_1234567890", "read", {"path": "ü", "n": [1]})
LOOP = (
    UserMessage("read", 1),
    AssistantMessage(
        (ThinkingContent("hm", "sig"), TextContent("I read."), CALL),
        "openai-completions", "fake", "m", None, "toolUse", 1,
    ),
    ToolResultMessage(CALL.id, "read", (TextContent("a"), TextContent("b")), False, 1),
    UserMessage("thanks", 1),
)  # fmt: skip


def messages(history: tuple, base_url: str = "http://localhost/v1", **compat: object) -> list:
    level = "high" if compat.pop("think", False) else "off"
    request = ModelRequest(MODEL, "", history, (READ,), thinking_level=level)
    return payload(request, base_url, **compat)["messages"]


def test_a_tool_loop() -> None:
    user, answer, result, thanks = messages(LOOP)
    assert user == {"role": "user", "content": "read"}
    assert answer["content"] == "I read."
    (call,) = answer["tool_calls"]
    assert call["id"] == CALL.id
    assert call["type"] == "function"
    assert json.loads(call["function"]["arguments"]) == CALL.arguments
    assert set(answer) == {"role", "content", "tool_calls"}, "thinking is not sent back"
    assert result == {"role": "tool", "tool_call_id": CALL.id, "content": "a\nb"}
    assert thanks["content"] == "thanks"


def test_mistrals_ids_and_order() -> None:
    _, answer, result, bridge, thanks = messages(LOOP, "https://api.mistral.ai/v1")
    call_id = answer["tool_calls"][0]["id"]
    assert len(call_id) == 9
    assert call_id.isalnum()
    assert result["tool_call_id"] == call_id
    assert result["name"] == "read"
    assert (bridge["role"], thanks["role"]) == ("assistant", "user")
    again = messages(LOOP, "https://api.mistral.ai/v1")[1]["tool_calls"][0]["id"]
    assert again == call_id, "prompt caches need the same id every time"


def test_thinking_goes_back_where_a_server_needs_it() -> None:
    deepseek = "https://api.deepseek.com/v1"
    assert messages(LOOP, deepseek, think=True)[1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in messages(LOOP, deepseek)[1]
    other = AssistantMessage(LOOP[1].content, "x", "other", "m2", None, "toolUse", 1)
    foreign = (LOOP[0], other, *LOOP[2:])
    assert messages(foreign, deepseek, think=True)[1]["reasoning_content"] == ""
    assert messages(LOOP, requiresThinkingAsText=True)[1]["content"] == "hm\n\nI read."


def test_an_answer_of_nothing_but_thinking_is_left_out() -> None:
    only = AssistantMessage((ThinkingContent("hm"),), "x", "fake", "m", None, "aborted", 1)
    roles = [m["role"] for m in messages((UserMessage("a", 1), only, UserMessage("b", 1)))]
    assert roles == ["user", "user"]


IMAGE = ImageContent("QUJD", "image/png")


def test_images_of_user_and_tools() -> None:
    second = ToolCall("call_second", "read", {})
    answer = AssistantMessage((CALL, second), "x", "fake", "m", None, "toolUse", 1)
    history = (
        UserMessage((TextContent("look"), IMAGE), 1),
        answer,
        ToolResultMessage(CALL.id, "read", (IMAGE,), False, 1),
        ToolResultMessage(second.id, "read", (), False, 1),
        UserMessage("and?", 1),
    )
    user, _, first, empty, pictures, last = messages(history)
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    assert user["content"] == [{"type": "text", "text": "look"}, url]
    assert first["role"] == empty["role"] == "tool", "results stand together"
    assert empty["content"] == "(no output)"
    assert pictures["role"] == "user"
    assert url in pictures["content"]
    assert last["content"] == "and?"


def test_images_are_replaced_by_words_for_a_blind_model() -> None:
    blind = Model("fake", "m", "openai-completions")
    history = (UserMessage((TextContent("look"), IMAGE), 1),)
    body = payload(ModelRequest(blind, "", history))
    assert "QUJD" not in str(body)
    assert "cannot see images" in str(body)


def test_cache_marks_for_claude_over_openrouter() -> None:
    model = Model("openrouter", "anthropic/claude-x", "openai-completions")
    request = ModelRequest(model, "sys", LOOP, (READ,))
    body = payload(request, "https://openrouter.ai/api/v1")
    mark = {"type": "ephemeral"}
    assert body["messages"][0]["content"][0]["cache_control"] == mark
    assert body["messages"][-1]["content"][0]["cache_control"] == mark
    assert body["tools"][0]["cache_control"] == mark
    uncached = ModelRequest(model, "sys", LOOP, (READ,), cache=False)
    assert "cache_control" not in str(payload(uncached, "https://openrouter.ai/api/v1"))


def test_the_output_limit_leaves_room_for_the_input() -> None:
    model = Model("fake", "m", "openai-completions", context_window=20_000, max_tokens=16_000)

    def limit(chars: int, asked: int | None = None) -> int:
        request = ModelRequest(model, "", (UserMessage("x" * chars, 1),), max_tokens=asked)
        return payload(request)["max_tokens"]

    assert limit(10) == 16_000
    assert limit(10, asked=100) == 100
    assert limit(35_000) == 10_000
    assert limit(1_000_000) == 4096
