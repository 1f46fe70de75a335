"""litellm in its child process: the protocol with a small stand-in child, and twice for real."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from model_server import Fault, Reply, Tool

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.messages import (
    AssistantMessage,
    ImageContent,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import (
    ResponseStarted,
    Stopped,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolCallDone,
    UsageReport,
)
from pi_tui.providers.clients import Access
from pi_tui.providers.litellm_process import (
    LiteLLMProcess,
    LiteLLMProvider,
    child_command,
    classify_litellm,
)
from pi_tui.providers.litellm_wire import ChunkReader, completion_params

MODEL = Model(
    "cohere",
    "command-x",
    "litellm",
    context_window=100_000,
    max_tokens=4_000,
    reasoning=True,
    input=("text", "image"),
    thinking_level_map={"xhigh": "max", "minimal": None},
)

STAND_IN = """
import json, os, sys, time
log = open(sys.argv[1], "a")
def note(*words):
    print(*words, file=log, flush=True)
def send(**message):
    sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
note("started", os.getpid(), os.getcwd())
send(event="ready")
for line in sys.stdin:
    message = json.loads(line)
    number = message["id"]
    if message["op"] == "cancel":
        note("cancel", number); continue
    said = message["params"]["messages"][-1]["content"]
    note("request", number, len(line))
    if said == "crash":
        print("Traceback: it hurts sk-secretsecret", file=sys.stderr, flush=True); os._exit(9)
    if said == "garbage":
        print("Give Feedback / Get Help"); sys.stdout.flush(); continue
    if said == "error":
        send(id=number, event="error", status=429, message="slow down", classes=["RateLimitError"],
             headers={"retry-after": "7"}); continue
    delta = {"content": "x" * 300_000 if said == "huge" else "hello"}
    send(id=number, event="chunk", chunk={"choices": [{"delta": delta}]})
    if said != "hang":
        send(id=number, event="chunk", chunk={"choices": [{"delta": {}, "finish_reason": "stop"}]})
        send(id=number, event="end")
note("input ended")
"""


class Stand:
    """The stand-in child and what it noted."""

    def __init__(self, folder: Path) -> None:
        script = folder / "stand_in.py"
        script.write_text(STAND_IN)
        self._log = folder / "log"
        self.process = LiteLLMProcess({}, [sys.executable, str(script), str(self._log)])
        self.provider = LiteLLMProvider(self.process)

    def notes(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    async def noted(self, start: str) -> str:
        """The first note that begins so, once it is there."""
        async with asyncio.timeout(10):
            while True:
                for note in self.notes():
                    if note.startswith(start):
                        return note
                await asyncio.sleep(0.01)

    async def say(self, text: str) -> list[StreamEvent]:
        async with aclosing(self.provider.stream(request(text))) as stream:  # type: ignore[type-var]
            return [event async for event in stream]


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    made = Stand(tmp_path)
    yield made
    await made.process.close()


def request(text: str = "hi", **fields: object) -> ModelRequest:
    messages = (UserMessage(text, 1),)
    return ModelRequest(**{"model": MODEL, "system": "", "messages": messages, **fields})  # type: ignore[arg-type]


# ---------------------------------------------------------------- the process


async def test_nothing_runs_before_the_first_request_and_one_child_serves_all(
    stand: Stand,
) -> None:
    assert stand.notes() == []
    assert stand.process.pid is None
    answers = await asyncio.gather(*(stand.say("hi") for _ in range(4)))
    assert all(TextDelta(0, "hello") in events for events in answers)
    assert all(events[-1] == Stopped("stop") for events in answers)
    started = [note for note in stand.notes() if note.startswith("started")]
    assert len(started) == 1
    assert started[0].endswith(f" {os.sep}")  # never in the user's project


async def test_lines_of_any_length(stand: Stand) -> None:
    text = "y" * 3_000_000
    events = await stand.say(text)
    assert events[-1] == Stopped("stop")
    (big,) = [e for e in await stand.say("huge") if isinstance(e, TextDelta)]
    assert len(big.text) == 300_000
    assert any(int(n.split()[2]) > 3_000_000 for n in stand.notes() if n.startswith("request"))


async def test_leaving_early_cancels_in_the_child_without_waiting(stand: Stand) -> None:
    arrived = asyncio.Event()

    async def consume() -> None:
        async for event in stand.provider.stream(request("hang")):
            if isinstance(event, TextDelta):
                arrived.set()

    task = asyncio.create_task(consume())
    await arrived.wait()
    task.cancel()
    async with asyncio.timeout(10):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await stand.noted("cancel") == "cancel 1"
    assert (await stand.say("hi"))[-1] == Stopped("stop")


async def test_a_crash_fails_what_is_in_flight_and_the_next_request_starts_anew(
    stand: Stand,
) -> None:
    hanging = asyncio.create_task(stand.say("hang"))
    await stand.noted("request 1")
    with pytest.raises(ProviderError) as caught:
        await stand.say("crash")
    with pytest.raises(ProviderError):
        await hanging
    error = caught.value
    assert error.kind is ErrorKind.NETWORK
    assert error.retryable
    assert "exit code 9" in error.message
    assert "sk-secretsecret" not in error.message
    assert (await stand.say("hi"))[-1] == Stopped("stop")
    assert len([note for note in stand.notes() if note.startswith("started")]) == 2


async def test_a_child_that_does_not_speak_the_protocol_is_ended(stand: Stand) -> None:
    with pytest.raises(ProviderError, match="gone"):
        await stand.say("garbage")


async def test_errors_of_the_child_are_classified(stand: Stand) -> None:
    with pytest.raises(ProviderError) as caught:
        await stand.say("error")
    assert caught.value.kind is ErrorKind.RATE_LIMIT
    assert caught.value.status == 429
    assert caught.value.retry_after_s == 7


async def test_close_ends_the_child_and_requests_in_flight(stand: Stand) -> None:
    hanging = asyncio.create_task(stand.say("hang"))
    await stand.noted("request 1")
    pid = stand.process.pid
    assert pid is not None
    await stand.process.close()
    await stand.noted("input ended")
    with pytest.raises(ProviderError):
        await hanging
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    await stand.process.close()  # twice is fine


async def test_a_child_that_cannot_start_is_a_plain_error() -> None:
    provider = LiteLLMProvider(LiteLLMProcess({}, ["/nowhere/python"]))
    with pytest.raises(ProviderError, match="could not be started"):
        async for _ in provider.stream(request()):
            pass


async def test_a_missing_litellm_says_what_to_do(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(
        "import json, sys\n"
        "print(json.dumps({'event': 'failed', 'message': 'litellm cannot be imported: no'}))\n"
    )
    process = LiteLLMProcess({}, [sys.executable, str(script)])
    with pytest.raises(ProviderError, match="cannot be imported") as caught:
        async for _ in LiteLLMProvider(process).stream(request()):
            pass
    assert not caught.value.retryable
    assert "Install" in str(caught.value.hint)
    await process.close()


# ---------------------------------------------------------------- the real child


def test_the_child_ends_with_its_input_and_never_outlives_a_parent() -> None:
    """Even in the middle of importing litellm, and without having been told a living parent."""
    command = child_command()
    assert "-P" in command  # a project's own litellm.py must not be imported
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(20) == 0
    assert child.stdout is not None
    assert child.stdout.read() == b""
    child.stdout.close()
    orphan = subprocess.run(
        [*command[:-1], "1" if os.getppid() != 1 else "2"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert orphan.returncode == 0


@pytest.mark.slow
async def test_real_answers_through_litellm(serve: Callable, hear: Callable) -> None:
    server = await serve(
        [
            Reply(text="Good day", usage={"input": 100, "output": 7, "cached": 40}),
            Reply(tools=[Tool("read", {"path": "a"}), Tool("read", {"path": "b"})]),
            Reply(text="one two three", fault=Fault("eof", after=2)),
            Reply(text="slow " * 400, rate=40),
        ]
    )
    model = Model("fake", "m", "litellm", base_url=server.openai_url)
    process = LiteLLMProcess({"PATH": os.environ.get("PATH", "")})

    async def access() -> Access:
        return Access("the-key", {"X-Team": "blue"})

    provider = LiteLLMProvider(process, access_for=access)
    asked = request(model=model, system="be brief")
    try:
        first = await hear(provider, asked)
        assert first.message.text == "Good day"
        usage = first.message.usage
        assert (usage.input, usage.cache_read, usage.output) == (60, 40, 7)
        sent = server.requests[0]
        assert sent.headers["authorization"] == "Bearer the-key"
        assert sent.headers["x-team"] == "blue"
        assert sent.body["model"] == "m"
        assert sent.body["messages"][0] == {"role": "system", "content": "be brief"}

        second = await hear(provider, asked)
        assert [c.arguments["path"] for c in second.message.tool_calls] == ["a", "b"]
        assert second.stop_reason == "toolUse"

        with pytest.raises(ProviderError) as caught:
            await hear(provider, asked)
        assert caught.value.retryable  # an answer without an end is none

        async with aclosing(provider.stream(asked)) as stream:  # type: ignore[type-var]
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        assert len(server.requests) == 4  # no attempts that we did not ask for
        await server.requests[3].wait_closed()  # the connection in the child ended too
    finally:
        await process.close()


# ---------------------------------------------------------------- words on the wire


def params(**fields: object) -> dict[str, object]:
    asked = request(**fields)
    return completion_params(asked, api_key="k", headers={}, timeout_s=5)


def test_a_request_in_litellms_keywords() -> None:
    tool = ToolDeclaration("read", "Read.", {"type": "object"})
    made = params(system="be brief", tools=(tool,), thinking_level="xhigh", max_tokens=99)
    assert made["model"] == "cohere_chat/command-x"
    assert made["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "hi"},
    ]
    assert made["max_tokens"] == 99
    assert made["reasoning_effort"] == "max"
    assert made["api_key"] == "k"
    assert "api_base" not in made
    assert made["tools"] == [
        {
            "type": "function",
            "function": {"name": "read", "description": "Read.", "parameters": {"type": "object"}},
        }
    ]
    json.dumps(made)


@pytest.mark.parametrize(
    ("level", "effort"),
    [("off", None), ("minimal", None), ("low", "low"), ("high", "high"), ("max", "high")],
)
def test_thinking_levels(level: str, effort: str | None) -> None:
    assert params(thinking_level=level).get("reasoning_effort") == effort


def assistant(*content: object, model: str = "command-x") -> AssistantMessage:
    return AssistantMessage(
        tuple(content),  # type: ignore[arg-type]
        "litellm",
        "cohere",
        model,
        Usage(),
        "toolUse",
        2,
    )


def sent_messages(*messages: object) -> list[dict[str, object]]:
    made = params(messages=messages)["messages"]
    assert isinstance(made, list)
    return made


def test_signed_thinking_goes_back_whole_and_only_to_its_model() -> None:
    content = (
        ThinkingContent("hm", "sig=="),
        ThinkingContent("no signature"),
        ThinkingContent("", "secret-block", True),
        TextContent("answer"),
        ToolCall("c1", "read", {"path": "ä"}, "thought"),
    )
    own = sent_messages(assistant(*content))[0]
    assert own["thinking_blocks"] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "secret-block"},
    ]
    assert own["tool_calls"] == [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "read", "arguments": '{"path": "ä"}'},
            "provider_specific_fields": {"thought_signature": "thought"},
        }
    ]
    other = sent_messages(assistant(*content, model="another"))[0]
    assert "thinking_blocks" not in other
    assert "provider_specific_fields" not in json.dumps(other)


def test_an_answer_of_thinking_alone_is_not_sent() -> None:
    assert sent_messages(assistant(ThinkingContent("hm", "s")), UserMessage("go", 3)) == [
        {"role": "user", "content": "go"}
    ]


def test_pictures_follow_the_results_they_belong_to() -> None:
    picture = ImageContent("QUJD", "image/png")
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}
    made = sent_messages(
        UserMessage((TextContent("look"), picture), 1),
        assistant(ToolCall("a", "read", {}), ToolCall("b", "read", {})),
        ToolResultMessage("a", "read", (picture,), False, 3),
        ToolResultMessage("b", "read", (), False, 4),
        UserMessage("go on", 5),
    )
    assert made[0]["content"] == [{"type": "text", "text": "look"}, url]
    assert [m["role"] for m in made] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert [m["content"] for m in made[2:]] == ["(image)", "(no output)", [url], "go on"]


def test_claude_gets_cache_marks_and_a_summary_request_none() -> None:
    claude = Model("bedrock", "anthropic.claude-x", "litellm")
    marks = params(model=claude, system="s")["cache_control_injection_points"]
    assert marks == [
        {"location": "message", "role": "system"},
        {"location": "message", "index": -1},
    ]
    assert "cache_control_injection_points" not in params(model=claude, cache=False)
    assert "cache_control_injection_points" not in params()


def read(*chunks: dict[str, object]) -> list[StreamEvent]:
    reader = ChunkReader(request())
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.finish()]


def delta(finish: str | None = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"delta": fields, "finish_reason": finish}]}


def test_thinking_blocks_and_their_whole_signature() -> None:
    def block(**fields: object) -> dict[str, object]:
        return delta(thinking_blocks=[{"type": "thinking", **fields}])

    events = read(
        delta(reasoning_content="hm ", thinking_blocks=[{"type": "thinking", "thinking": "hm "}]),
        block(thinking="so"),
        block(thinking="", signature="ab"),
        block(thinking="", signature="cd"),
        delta(content="done"),
        delta("stop"),
    )
    assert events == [
        ResponseStarted(),
        ThinkingDelta(0, "hm "),
        ThinkingDelta(0, "so"),
        ThinkingSigned(0, "abcd"),
        TextDelta(1, "done"),
        Stopped("stop"),
    ]


def test_a_signature_that_nothing_follows_is_not_whole() -> None:
    reader = ChunkReader(request())
    chunk = delta(thinking_blocks=[{"type": "thinking", "thinking": "hm", "signature": "ab"}])
    assert not any(isinstance(event, ThinkingSigned) for event in reader.feed(chunk))
    with pytest.raises(ProviderError, match="incomplete"):
        list(reader.finish())


def test_redacted_thinking_is_a_block_of_its_own() -> None:
    events = read(
        delta(thinking_blocks=[{"type": "redacted_thinking", "data": "xx"}]),
        delta("stop", content="text"),
    )
    assert ThinkingSigned(0, "xx", redacted=True) in events
    assert TextDelta(1, "text") in events


def test_thought_signatures_are_taken_out_of_call_ids() -> None:
    call = {"index": 0, "id": "call_1__thought__c2ln", "function": {"name": "ls", "arguments": ""}}
    more = {"index": 0, "function": {"arguments": "{}"}}
    events = read(delta(tool_calls=[call]), delta("tool_calls", tool_calls=[more]))
    (done,) = [event for event in events if isinstance(event, ToolCallDone)]
    assert "thought" not in done.call.id
    assert done.call.thought_signature == "c2ln"
    assert events[-1] == Stopped("toolUse")


def test_ends() -> None:
    assert read(delta("length", content="x"))[-1] == Stopped("length")
    assert read(delta("eos", content="x"))[-1] == Stopped("stop")
    for reason, kind in [
        ("model_context_window_exceeded", ErrorKind.OVERFLOW),
        ("content_filter", ErrorKind.REFUSED),
    ]:
        with pytest.raises(ProviderError) as caught:
            read(delta(reason))
        assert caught.value.kind is kind


def test_usage_counts_the_cache_once() -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "cache_read_input_tokens": 700,
        "cache_creation_input_tokens": 200,
        "completion_tokens_details": {"reasoning_tokens": 30},
    }
    events = read(delta("stop"), {"choices": [], "usage": usage})
    (report,) = [event for event in events if isinstance(event, UsageReport)]
    made = report.usage
    assert (made.input, made.cache_read, made.cache_write, made.output) == (100, 700, 200, 50)
    assert (made.total_tokens, made.reasoning) == (1050, 30)
    assert not any(
        isinstance(e, UsageReport) for e in read({"usage": {"prompt_tokens": 0}}, delta("stop"))
    )


@pytest.mark.parametrize(
    ("status", "classes", "message", "kind"),
    [
        (400, ["ContextWindowExceededError"], "it does not fit", ErrorKind.OVERFLOW),
        (
            400,
            ["BadRequestError"],
            'litellm.BadRequestError: AnthropicException - {"error": {"message":'
            ' "prompt is too long: 203977 tokens > 200000 maximum"}}',
            ErrorKind.OVERFLOW,
        ),
        (
            400,
            ["ContextWindowExceededError"],
            "litellm.ContextWindowExceededError: BedrockException - ThrottlingException: Too many"
            " tokens, please wait before trying again.",
            ErrorKind.RATE_LIMIT,
        ),
        (400, ["BadRequestError"], "tool_use ids must be unique", ErrorKind.BAD_REQUEST),
        (401, ["AuthenticationError"], "bad key", ErrorKind.AUTH),
        (500, ["APIConnectionError"], "Cannot connect to host h:1", ErrorKind.NETWORK),
        (408, ["Timeout"], "timed out", ErrorKind.TIMEOUT),
        (529, ["InternalServerError"], "Overloaded", ErrorKind.OVERLOADED),
        (400, ["ContentPolicyViolationError"], "no", ErrorKind.REFUSED),
    ],
)
def test_litellms_errors_get_the_right_class(
    status: int, classes: list[str], message: str, kind: ErrorKind
) -> None:
    data = {"status": status, "classes": classes, "message": message, "headers": {}}
    error = classify_litellm(data, "cohere")
    assert error.kind is kind
    assert "{" not in error.message
