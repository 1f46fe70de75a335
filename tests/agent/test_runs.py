"""Order, cancellation and durability of runs."""

from __future__ import annotations

import asyncio

from pi_tui.core.entries import MessageEntry
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import (
    AgentEnd,
    AgentSettled,
    AutoRetryEnd,
    AutoRetryStart,
    BashExecutionEnd,
    EntryAppended,
    MessageEnd,
    Notice,
    QueueUpdate,
    SessionReplaced,
    event_to_data,
    event_type,
)
from pi_tui.core.messages import (
    AssistantMessage,
    ImageContent,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
    role_of,
    text_content,
    text_of,
)
from pi_tui.core.models import Model, ModelCost
from pi_tui.core.pairing import check_pairing
from pi_tui.core.protocols import ToolOutput
from pi_tui.core.transcript import blocks_of
from pi_tui.providers.scripted import Call, Fail, Gate, Text, Thinking, reply


def roles(store) -> list[str]:
    return [
        role_of(entry.message) if isinstance(entry, MessageEntry) else entry.type
        for entry in store.entries
    ]


def messages(store, kind):
    return [
        entry.message
        for entry in store.entries
        if isinstance(entry, MessageEntry) and isinstance(entry.message, kind)
    ]


async def test_a_prompt_is_answered_and_stored(rig):
    rig.provider.add(reply(Text.of("Hel", "lo")))
    session = rig.session()
    outcome = await session.prompt("hi")
    assert outcome.last_answer.stop_reason == "stop"
    assert roles(rig.store) == ["model_change", "system", "user", "assistant"]
    assert messages(rig.store, AssistantMessage)[0].text == "Hello"
    request = rig.provider.requests[0]
    assert request.system == "You are a test.\n\n0"
    assert [text_of(m.content) for m in request.messages] == ["hi"]
    assert [event_type(e) for e in rig.events if event_type(e) != "entry_appended"] == [
        "activity_changed",
        "message_start",  # the system message
        "message_end",
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        *["message_update"] * 6,
        "message_end",
        "turn_end",
        "agent_end",
        "activity_changed",
        "agent_settled",
    ]


async def test_an_entry_is_stored_before_anybody_hears_of_it(rig):
    rig.provider.add("ok")
    session = rig.session()

    def check(event):
        if isinstance(event, EntryAppended):
            assert rig.store.entries[-1] is event.entry
            assert session.tree.leaf_id == event.entry.id

    session.subscribe(check)
    await session.prompt("hi")


async def test_every_event_has_a_json_form(rig, gated_tool):
    tool = gated_tool()
    rig.tools = (tool,)
    rig.provider.add(reply(Thinking("hm", "sig"), "text", Call("work", {"n": "a"})), "done")
    await rig.session().prompt("go")
    import json

    for event in rig.events:
        data = event_to_data(event)
        assert data["type"] == event_type(event)
        json.dumps(data)


async def test_tools_run_in_parallel_and_results_are_stored_in_call_order(rig, gated_tool, until):
    tool = gated_tool()
    rig.tools = (tool,)
    rig.provider.add(
        reply(Call("work", {"n": "a", "wait": 1}), Call("work", {"n": "b", "wait": 1})), "done"
    )
    session = rig.session()
    session.submit("go")
    await until(lambda: tool.log == ["start a", "start b"])
    tool.gate("b").set()
    await until(lambda: "end b" in tool.log)
    assert not messages(rig.store, ToolResultMessage)  # b waits for a
    tool.gate("a").set()
    await session.wait_idle()
    assert [text_of(m.content) for m in messages(rig.store, ToolResultMessage)] == [
        "result a",
        "result b",
    ]
    assert check_pairing(rig.provider.requests[1].messages) == []


async def test_writers_of_one_path_run_in_call_order(rig, gated_tool, until):
    tool = gated_tool(writes=True)
    rig.tools = (tool,)
    rig.provider.add(
        reply(
            Call("work", {"n": "a", "wait": 1, "path": "x"}),
            Call("work", {"n": "b", "path": "x"}),
            Call("work", {"n": "c", "path": "y"}),
        ),
        "done",
    )
    session = rig.session()
    session.submit("go")
    await until(lambda: "end c" in tool.log)
    assert "start b" not in tool.log
    tool.gate("a").set()
    await session.wait_idle()
    assert tool.log.index("end a") < tool.log.index("start b")


async def test_bad_calls_become_error_results(rig, gated_tool):
    rig.tools = (gated_tool(),)
    rig.provider.add(
        reply(
            Call("wrok", {}),
            Call("work", {"bad": 1}),
            Call("work", {"__invalid_json__": '{"n":'}),
            Call("work", {"n": "x", "raise": 1}),
        ),
        "done",
    )
    await rig.session().prompt("go")
    results = messages(rig.store, ToolResultMessage)
    assert [m.is_error for m in results] == [True] * 4
    texts = [text_of(m.content) for m in results]
    assert "Did you mean work?" in texts[0]
    assert texts[1] == "bad: not allowed"
    assert "not one JSON object" in texts[2]
    assert "RuntimeError: boom" in texts[3]


async def test_a_cut_answer_with_calls_runs_none_of_them(rig, gated_tool):
    tool = gated_tool()
    rig.tools = (tool,)
    rig.provider.add(reply(Call("work", {"n": "a"}), stop_reason="length"), "done")
    await rig.session().prompt("go")
    assert tool.log == []
    assert messages(rig.store, ToolResultMessage)[0].is_error
    assert len(rig.provider.requests) == 2


async def test_escape_during_a_stream_keeps_the_partial_answer(rig, until):
    gate = Gate()
    rig.provider.add(reply("partial", Thinking("half a thou"), gate, "never"), "second")
    session = rig.session()
    session.submit("go")
    await asyncio.wait_for(gate.reached.wait(), 5)
    assert session.abort()
    assert not session.abort()  # one Escape, one abort
    await session.wait_idle()
    answer = messages(rig.store, AssistantMessage)[0]
    assert (answer.stop_reason, answer.text) == ("aborted", "partial")
    assert rig.of(AgentSettled)[0].aborted
    assert rig.provider.cancelled == 1 and rig.provider.active == 0
    await session.prompt("again")
    texts = [text_of(m.content) for m in rig.provider.requests[1].messages]
    assert texts == ["go", "again"]  # the aborted answer is not sent


async def test_escape_during_tools_answers_every_call(rig, gated_tool, until):
    tool = gated_tool()
    rig.tools = (tool,)
    rig.provider.add(reply(Call("work", {"n": "a"}), Call("work", {"n": "b", "wait": 1})), "after")
    session = rig.session()
    session.submit("go")
    await until(lambda: "start b" in tool.log and "end a" in tool.log)
    session.abort()
    await session.wait_idle()
    assert tool.log[-1] == "cancelled b"
    results = messages(rig.store, ToolResultMessage)
    assert [m.is_error for m in results] == [False, True]
    assert "Aborted" in text_of(results[1].content)
    assert len(rig.provider.requests) == 1
    await session.prompt("on")
    assert check_pairing(rig.provider.requests[1].messages) == []


async def test_escape_before_the_first_byte(rig, until):
    gate = Gate()
    rig.provider.add(reply(gate, "x"))
    session = rig.session()
    session.submit("go")
    session.abort()  # before the task even started
    await session.wait_idle()
    assert messages(rig.store, AssistantMessage)[0].stop_reason == "aborted"


async def test_steering_comes_after_the_batch_and_follow_ups_at_the_end(rig, gated_tool, until):
    tool = gated_tool()
    rig.tools = (tool,)
    rig.provider.add(reply(Call("work", {"n": "a", "wait": 1})), "one", "two", "three")
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(tool.log))
    assert session.submit("later", "followUp") == "queued"
    assert session.submit("steer 1") == "queued"
    assert session.submit("steer 2") == "queued"
    assert session.queued == (("steer 1", "steer 2"), ("later",))
    tool.gate("a").set()
    await session.wait_idle()
    assert [text_of(m.content) for m in messages(rig.store, UserMessage)] == [
        "go",
        "steer 1",
        "steer 2",
        "later",
    ]
    assert roles(rig.store)[2:] == [
        "user", "assistant", "toolResult", "user", "assistant", "user", "assistant", "user",
        "assistant",
    ]  # fmt: skip
    assert rig.of(QueueUpdate)[-1] == QueueUpdate((), ())


async def test_all_steering_at_once_when_so_set(rig, gated_tool, until):
    tool = gated_tool()
    rig.tools = (tool,)
    rig.steering_mode = "all"
    rig.provider.add(reply(Call("work", {"n": "a", "wait": 1})), "one")
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(tool.log))
    session.submit("x")
    session.submit("y")
    tool.gate("a").set()
    await session.wait_idle()
    assert len(rig.provider.requests) == 2


async def test_queue_can_be_taken_back(rig, until):
    gate = Gate()
    rig.provider.add(reply(gate, "x"))
    session = rig.session()
    session.submit("go")
    session.submit("follow", "followUp")
    session.submit("steer")
    assert session.take_back_queue() == ["steer", "follow"]
    gate.open()
    await session.wait_idle()
    assert len(rig.provider.requests) == 1


def overloaded(retry_after_s: float | None = None) -> ProviderError:
    return ProviderError(
        "The server is overloaded.", kind=ErrorKind.OVERLOADED, retry_after_s=retry_after_s
    )


async def test_transient_errors_are_retried_2_4_8(rig, until):
    rig.provider.add(overloaded(), overloaded(), overloaded(), "fine")
    session = rig.session()
    session.submit("go")
    for number, delay in enumerate((2, 4, 8), 1):
        await until(lambda n=number: len(rig.clock.sleeps) == n)
        assert session.activity == "retrying"
        rig.clock.advance(delay)
    await session.wait_idle()
    assert rig.clock.sleeps == [2, 4, 8]
    assert [e.attempt for e in rig.of(AutoRetryStart)] == [1, 2, 3]
    assert rig.of(AutoRetryEnd) == [AutoRetryEnd(True, 3)]
    assert [m.stop_reason for m in messages(rig.store, AssistantMessage)] == [
        "error", "error", "error", "stop",
    ]  # fmt: skip
    assert [e.will_retry for e in rig.of(AgentEnd)] == [True, True, True, False]
    assert [text_of(m.content) for m in rig.provider.requests[3].messages] == ["go"]


async def test_retries_end_after_three(rig, until):
    rig.provider.add(*[overloaded()] * 4)
    session = rig.session()
    session.submit("go")
    for number in range(1, 4):
        await until(lambda n=number: len(rig.clock.sleeps) == n)
        rig.clock.advance(60)
    await session.wait_idle()
    assert len(rig.provider.requests) == 4
    assert rig.of(AutoRetryEnd)[0].success is False


async def test_a_longer_retry_after_wins(rig, until):
    rig.provider.add(overloaded(retry_after_s=30), "fine")
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(rig.clock.sleeps))
    assert rig.clock.sleeps == [30]
    rig.clock.advance(30)
    await session.wait_idle()


async def test_escape_cancels_the_countdown(rig, until):
    rig.provider.add(overloaded())
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(rig.clock.sleeps))
    assert session.abort()
    await session.wait_idle()
    assert session.activity == "idle"
    assert len(rig.provider.requests) == 1
    assert "cancelled" in rig.of(AutoRetryEnd)[0].final_error


async def test_auth_errors_are_not_retried_and_say_what_to_do(rig):
    rig.provider.add(
        ProviderError("The key was refused.", kind=ErrorKind.AUTH, hint="Set X_API_KEY.")
    )
    outcome = await rig.session().prompt("go")
    assert outcome.error.kind == ErrorKind.AUTH
    assert len(rig.provider.requests) == 1
    answer = messages(rig.store, AssistantMessage)[0]
    assert answer.error_message == "The key was refused. Set X_API_KEY."


async def test_a_refused_signature_is_retried_once_without_thinking(rig):
    bad = ProviderError("Invalid signature.", kind=ErrorKind.BAD_SIGNATURE)
    rig.provider.add(reply(Thinking("t", "sig"), "one"), bad, "two", bad)
    session = rig.session()
    await session.prompt("a")
    await session.prompt("b")
    assert len(rig.provider.requests) == 3
    kinds = [type(b).__name__ for m in rig.provider.requests[1].messages for b in m.content]
    assert "ThinkingContent" in kinds
    kinds = [type(b).__name__ for m in rig.provider.requests[2].messages for b in m.content]
    assert "ThinkingContent" not in kinds
    outcome = await session.prompt("c")  # refused again: told, not repeated
    assert outcome.error.kind == ErrorKind.BAD_SIGNATURE
    assert len(rig.provider.requests) == 4


async def test_a_request_too_large_is_retried_without_images(rig):
    rig.provider.add(ProviderError("Too large.", kind=ErrorKind.PAYLOAD_TOO_LARGE), "ok")
    session = rig.session()
    await session.prompt("look", [ImageContent("aGk=", "image/png")])
    blocks = rig.provider.requests[1].messages[0].content
    assert [type(b).__name__ for b in blocks] == ["TextContent", "TextContent"]
    assert "image left out" in blocks[1].text


async def test_a_request_too_large_without_images_is_not_made_again(rig):
    rig.provider.add(ProviderError("Too large.", kind=ErrorKind.PAYLOAD_TOO_LARGE), "seen")
    session = rig.session()
    await session.prompt("only words")
    assert len(rig.provider.requests) == 1
    assert any("no images to leave out" in n.text for n in rig.of(Notice))
    await session.prompt("look", [ImageContent("aGk=", "image/png")])
    blocks = rig.provider.requests[-1].messages[-1].content
    assert [type(b).__name__ for b in blocks] == ["TextContent", "ImageContent"]


async def test_usage_is_priced(rig):
    rig.model = Model(
        provider="scripted", id="model", api="scripted", cost=ModelCost(input=1, output=2)
    )
    rig.provider.add("ok")
    session = rig.session()
    await session.prompt("go")
    usage = messages(rig.store, AssistantMessage)[0].usage
    assert abs(usage.cost.total - (10 * 1 + 5 * 2) / 1e6) < 1e-12
    assert session.stats().usage.output == 5
    assert session.context_usage().tokens == 15


async def test_a_full_disk_is_told_once_and_the_conversation_goes_on(rig):
    rig.provider.add("one", "two")
    session = rig.session()
    rig.store.refuse = True
    await session.prompt("a")
    assert [n.level for n in rig.of(Notice)] == ["error"]
    assert "NOT SAVED" in rig.of(Notice)[0].text
    assert not rig.store.entries
    rig.store.refuse = False
    await session.prompt("b")
    assert roles(rig.store) == [
        "model_change", "system", "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    assert "saved again" in rig.of(Notice)[1].text


async def test_shell_output_is_stored_after_the_turn(rig, gated_tool, until):
    tool = gated_tool()
    rig.tools = (tool,)
    rig.provider.add(reply(Call("work", {"n": "a", "wait": 1})), "one")
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(tool.log))
    session.start_shell("ls", excluded=False)
    rig.shell.gate.set()
    await until(lambda: not session._shell.running)
    assert "bashExecution" not in roles(rig.store)
    tool.gate("a").set()
    await session.wait_idle()
    assert roles(rig.store)[-3:] == ["toolResult", "bashExecution", "assistant"]
    assert check_pairing(rig.provider.requests[1].messages) == []


async def test_escape_stops_the_users_command_first(rig, until):
    session = rig.session()
    session.start_shell("sleep 100", excluded=True)
    await until(lambda: bool(rig.shell.commands))
    assert session.abort()
    await session.wait_idle()
    block = blocks_of(rig.store.entries)[0]
    assert (block.cancelled, block.excluded) == (True, True)


async def test_new_session_replaces_the_tree(rig):
    rig.provider.add("one", "two")
    session = rig.session()
    await session.prompt("a")
    await session.new_session()
    assert len(session.tree) == 0 and rig.store.closed
    await session.prompt("b")
    assert [text_of(m.content) for m in rig.provider.requests[1].messages] == ["b"]


async def test_close_during_a_run_stores_what_was_cut(rig):
    gate = Gate()
    rig.provider.add(reply("partial", gate))
    session = rig.session()
    session.submit("go")
    await asyncio.wait_for(gate.reached.wait(), 5)
    await session.close()
    assert messages(rig.store, AssistantMessage)[0].stop_reason == "aborted"
    assert rig.store.closed


async def test_a_listener_that_raises_does_not_end_the_run(rig):
    rig.provider.add("ok")
    session = rig.session()
    seen = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: seen.append(context))

    def bad(event):
        if isinstance(event, MessageEnd):
            raise ZeroDivisionError("front end fault")

    session.subscribe(bad)
    outcome = await session.prompt("hi")
    assert outcome.last_answer.stop_reason == "stop"
    assert seen and isinstance(seen[0]["exception"], ZeroDivisionError)


async def test_a_changed_prompt_is_stored_as_a_patch(rig, gated_tool):
    rig.provider.add("one", "two")
    first = rig.session()
    await first.prompt("a")
    rig.tools = (gated_tool(),)
    from pi_tui.agent.context import plan_system_patch
    from pi_tui.core.messages import ToolDeclaration

    stored = messages(rig.store, SystemMessage)[0]
    declaration = ToolDeclaration("work", "does work", {"type": "object", "properties": {}})
    patch = plan_system_patch(stored, {"preamble": "You are a test."}, (declaration,), 1)
    assert patch.sections == {"tools": None}
    assert [t["name"] for t in patch.tools_added] == ["work"]
    assert plan_system_patch(stored, {"preamble": "You are a test.", "tools": "0"}, (), 1) is None


async def test_a_failure_part_way_keeps_what_came(rig):
    broken = ProviderError("The connection broke.", kind=ErrorKind.BAD_REQUEST)
    rig.provider.add(reply("half", Fail(broken)))
    await rig.session().prompt("go")
    answer = messages(rig.store, AssistantMessage)[0]
    assert (answer.text, answer.stop_reason) == ("half", "error")


async def test_what_was_left_waiting_after_a_failure_is_sent_first(rig):
    refused = ProviderError("The key was refused.", kind=ErrorKind.AUTH)
    gate = Gate()
    rig.provider.add(reply(gate, Fail(refused)), "one", "two", "three")
    session = rig.session()
    session.submit("go")
    await asyncio.wait_for(gate.reached.wait(), 5)
    session.submit("first")
    session.submit("second")
    gate.open()
    await session.wait_idle()
    assert session.queued == (("first", "second"), ())
    assert session.submit("third") == "started"
    await session.wait_idle()
    texts = [text_of(m.content) for m in messages(rig.store, UserMessage)]
    assert texts == ["go", "first", "second", "third"]


async def test_leaving_tells_what_was_not_sent(rig):
    gate = Gate()
    rig.provider.add(reply(gate))
    session = rig.session()
    session.submit("go")
    session.submit("do not lose me")
    assert any("do not lose me" in line for line in await session.close())


async def test_a_stopped_tool_keeps_what_it_had_put_out(rig, gated_tool, until):
    tool = gated_tool()
    started = tool.run

    async def run(arguments, context):
        context.on_update(ToolOutput(text_content("tick 1")))
        return await started(arguments, context)

    tool.run = run
    rig.tools = (tool,)
    rig.provider.add(reply(Call("work", {"n": "a", "wait": 1})))
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(tool.log))
    session.abort()
    await session.wait_idle()
    text = text_of(messages(rig.store, ToolResultMessage)[0].content)
    assert "tick 1" in text and "Aborted" in text


async def test_a_message_written_while_a_run_is_stopping_starts_the_next_one(rig, until):
    gate = Gate()
    rig.provider.add(reply("partial", gate), "answer", "answer")
    session = rig.session()
    session.submit("go")
    await asyncio.wait_for(gate.reached.wait(), 5)
    session.submit("before")
    session.abort()
    assert session.submit("after") == "queued"
    await session.wait_idle()
    texts = [text_of(m.content) for m in messages(rig.store, UserMessage)]
    assert texts == ["go", "before", "after"]
    assert session.queued == ((), ())


async def test_a_message_written_while_stopping_can_be_taken_back(rig):
    gate = Gate()
    rig.provider.add(reply(gate))
    session = rig.session()
    session.submit("go")
    await asyncio.wait_for(gate.reached.wait(), 5)
    session.abort()
    session.submit("after")
    assert session.take_back_queue() == ["after"]
    await session.wait_idle()
    assert len(rig.provider.requests) == 1


async def test_a_command_that_breaks_is_ended_and_told(rig):
    """A fault in the shell itself: its block must not run for ever, and the next one must work."""
    run = rig.shell.run

    async def broken(command, cwd, on_output):
        raise RuntimeError("boom")

    rig.shell.run = broken
    session = rig.session()
    assert session.start_shell("ls", excluded=False)
    await session.wait_idle()
    assert len(rig.of(BashExecutionEnd)) == 1
    message = rig.store.entries[-1].message
    assert (message.command, message.exit_code, message.cancelled) == ("ls", None, False)
    assert "RuntimeError: boom" in message.output
    assert [n.level for n in rig.of(Notice)] == ["error"]
    rig.shell.run = run
    rig.shell.gate.set()
    assert session.start_shell("ls", excluded=False)
    await session.wait_idle()
    assert rig.store.entries[-1].message.output == "done"


async def test_what_leaving_has_to_say_comes_after_the_new_session(rig):
    gate = Gate()
    rig.provider.add(reply(gate))
    session = rig.session()
    session.submit("go")
    session.submit("still waiting")
    rig.store.refuse = True
    await session.new_session()
    replaced = next(i for i, e in enumerate(rig.events) if isinstance(e, SessionReplaced))
    later = [e.text for e in rig.events[replaced:] if isinstance(e, Notice)]
    assert any("still waiting" in text for text in later)
