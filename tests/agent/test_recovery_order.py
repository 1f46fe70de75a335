"""What follows an answer that was refused as too long or cut: order, once, and clear words."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.entries import CompactionEntry, ContextEditEntry, MessageEntry
from pi_tui.core.errors import ErrorKind, ModelError, ProviderError
from pi_tui.core.events import (
    AgentEnd,
    AgentStart,
    CompactionEnd,
    CompactionStart,
    EntryAppended,
    MessageEnd,
    Notice,
    TurnEnd,
)
from pi_tui.core.messages import AssistantMessage, Usage, UserMessage, text_of
from pi_tui.core.pairing import check_pairing
from pi_tui.core.transcript import blocks_of
from pi_tui.providers.scripted import Call, Gate, reply

TOO_LONG = ProviderError(
    "prompt is too long: 203977 tokens > 200000 maximum", kind=ErrorKind.OVERFLOW
)
CUT = reply("half an ans", stop_reason="length", usage=Usage(input=100, output=50))


@pytest.fixture
def talked(rig):
    rig.store_talk(15)
    rig.compaction = lambda model: CompactionSettings(keep_recent_tokens=400)
    return rig


def play(rig, *answers):
    """Ordinary requests get these answers in order; every summary is "notes"."""
    left = list(answers)

    def answer(request):
        return "notes" if request in rig.summary_requests else left.pop(0)

    rig.provider = type(rig.provider)(fallback=answer)


def users(rig):
    return [
        text_of(e.message.content)
        for e in rig.store.entries
        if isinstance(e, MessageEntry) and isinstance(e.message, UserMessage)
    ]


@pytest.mark.parametrize("failure", [TOO_LONG, CUT])
async def test_the_order_of_section_6(talked, failure):
    talked.provider.add(failure, "notes", "fine")
    session = talked.session()
    seen = []
    session.hooks.on("session_before_compact", lambda payload: seen.append("hook"))

    def note(event):
        if isinstance(event, EntryAppended):
            entry = event.entry
            if isinstance(entry, ContextEditEntry | CompactionEntry):
                seen.append(type(entry).__name__)
            elif isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                seen.append("answer stored")
        elif isinstance(event, TurnEnd | AgentEnd | AgentStart | CompactionStart | CompactionEnd):
            seen.append(type(event).__name__)

    session.subscribe(note)
    outcome = await session.prompt("go")
    assert seen == [
        "AgentStart",
        "answer stored",
        "TurnEnd",
        "AgentEnd",
        "ContextEditEntry",
        "CompactionStart",
        "hook",
        "CompactionEntry",
        "CompactionEnd",
        "AgentStart",
        "answer stored",
        "TurnEnd",
        "AgentEnd",
    ]
    assert [e.will_retry for e in talked.of(AgentEnd)] == [True, False]
    assert talked.of(CompactionStart)[0].reason == "overflow"
    assert talked.of(CompactionEnd)[0].will_retry is True
    assert outcome.last_answer.text == "fine"
    # The attempt stays for people and totals, and is not sent.
    answers = [b for b in blocks_of(session.tree.path()) if "half an ans" in str(b)]
    assert bool(answers) == (failure is CUT)
    last = talked.ordinary_requests[-1]
    assert not any("half an ans" in text_of(m.content) for m in last.messages)
    assert text_of(last.messages[-1].content) == "go"
    assert check_pairing(last.messages) == []
    assert users(talked).count("go") == 1


async def test_cmp_04_overflow_again_and_again_ends(talked):
    def answer(request):
        return "notes" if request in talked.summary_requests else TOO_LONG

    talked.provider = type(talked.provider)(fallback=answer)
    session = talked.session()
    outcome = await session.prompt("go")
    assert len(talked.ordinary_requests) == 2 and len(talked.compactions) == 1
    assert outcome.error.kind == ErrorKind.OVERFLOW
    errors = [n.text for n in talked.of(Notice) if n.level == "error"]
    assert len(errors) == 1 and "larger model" in errors[0] and "Reduce" in errors[0]
    assert session.activity == "idle"
    talked.provider = type(talked.provider)(fallback="fine")
    session.models.provider = talked.provider
    assert (await session.prompt("again")).error is None


async def test_each_prompt_may_compact_once_also_queued_ones(talked):
    big = "x" * 4000
    play(talked, TOO_LONG, "one", TOO_LONG, "two")
    session = talked.session()
    session.submit(f"first {big}")
    session.submit(f"second {big}", "followUp")
    await session.wait_idle()
    assert len(talked.compactions) == 2
    assert [e.message.text for e in talked.store.entries[-1:]] == ["two"]


@pytest.mark.parametrize("how", ["fails", "cancelled"])
async def test_without_the_compaction_there_is_no_retry_and_the_queue_goes_on(talked, how):
    gate = Gate()
    talked.provider.add(TOO_LONG, reply(gate, " "), "about the queued one")
    session = talked.session()
    session.submit("go")
    await gate.reached.wait()
    session.submit("queued")
    if how == "fails":
        gate.open()
    else:
        assert session.abort()
    await session.wait_idle()
    assert talked.compactions == []
    assert len(talked.ordinary_requests) == 2
    edits = [e for e in talked.store.entries if isinstance(e, ContextEditEntry)]
    assert len(edits) == 1  # the omission stays
    assert users(talked)[-2:] == ["go", "queued"]
    assert talked.of(CompactionEnd)[0].aborted == (how == "cancelled")


@pytest.mark.parametrize(
    "kind",
    [ErrorKind.RATE_LIMIT, ErrorKind.PAYLOAD_TOO_LARGE, ErrorKind.QUOTA, ErrorKind.BAD_REQUEST],
)
async def test_other_refusals_are_no_overflow(talked, kind):
    talked.clock.sleep = lambda seconds: asyncio.sleep(0)
    talked.provider.add(*[ProviderError("no", kind=kind)] * 5)
    session = talked.session()
    await session.prompt("go")
    assert not talked.of(CompactionStart)


async def test_the_models_own_limit_is_no_reason(talked):
    full = reply("all of it", stop_reason="length", usage=Usage(input=100, output=16_384))
    talked.provider.add(full)
    await talked.session().prompt("go")
    assert not talked.of(CompactionStart) and len(talked.provider.requests) == 1


async def test_a_limit_the_server_named_is_no_reason_either(talked):
    limit = ProviderError("max_tokens", kind=ErrorKind.BAD_REQUEST, limit_tokens=4000)
    full = reply("all of it", stop_reason="length", usage=Usage(input=100, output=4000))
    talked.provider.add(limit, full)
    session = talked.session()
    await session.prompt("go")
    await session.prompt("go")
    assert not talked.of(CompactionStart)


async def test_length_with_tool_calls_goes_the_ordinary_way(talked, gated_tool):
    tool = gated_tool("work")
    talked.tools = (tool,)
    talked.provider.add(reply(Call("work", {"n": "a"}), stop_reason="length"), "on")
    session = talked.session()
    outcome = await session.prompt("go")
    assert tool.log == [] and not talked.of(CompactionStart)
    assert outcome.last_answer.text == "on"
    assert not any(isinstance(e, ContextEditEntry) for e in talked.store.entries)


async def test_nothing_to_compact_says_so_with_the_sizes(rig):
    rig.provider.add(TOO_LONG)
    rig.system = "s" * 400
    session = rig.session()
    outcome = await session.prompt("go")
    assert outcome.error is not None and len(rig.provider.requests) == 1
    text = [n.text for n in rig.of(Notice) if n.level == "error"][-1]
    assert "compaction cannot make room" in text and "128,000" in text and "larger model" in text


async def test_no_retry_when_what_is_kept_cannot_fit(talked):
    talked.system = "s" * 60_000
    talked.model = structs.replace(talked.model, context_window=20_000)
    talked.compaction = lambda model: CompactionSettings(keep_recent_tokens=400, reserve_tokens=0)
    play(talked, ProviderError("too long", kind=ErrorKind.OVERFLOW, limit_tokens=16_000))
    pinned = talked.store_message(UserMessage("p" * 4800, 1))
    session = talked.session()
    session.pin(pinned)
    outcome = await session.prompt("go")
    assert outcome.error is not None
    assert len(talked.ordinary_requests) == 1 and len(talked.compactions) == 1
    assert "16,000" in [n.text for n in talked.of(Notice) if n.level == "error"][-1]


async def test_a_persistent_529_does_not_keep_it_from_compacting(talked):
    busy = ProviderError("overloaded", kind=ErrorKind.OVERLOADED)
    talked.clock.sleep = lambda seconds: asyncio.sleep(0)
    play(talked, reply("ok", usage=Usage(input=120_000, output=10)), *[busy] * 4)
    session = talked.session()
    await session.prompt("a")
    await session.prompt("b")  # compacts first, and fails at its own request
    assert talked.of(CompactionStart)[0].reason == "threshold"
    end = talked.of(CompactionEnd)[0]
    assert end.tokens_before >= 120_000


async def test_a_second_answer_of_the_same_run_is_the_one_left_out(talked, gated_tool):
    talked.tools = (gated_tool("work"),)
    play(talked, reply(Call("work", {"n": "a"})), TOO_LONG, "fine")
    session = talked.session()
    await session.prompt("go")
    edit = next(e for e in talked.store.entries if isinstance(e, ContextEditEntry))
    left_out = session.tree.entry(edit.target_id)
    assert left_out.message.stop_reason == "error"
    assert [e.message for e in talked.of(MessageEnd)][-1].text == "fine"
    assert check_pairing(talked.ordinary_requests[-1].messages) == []


async def test_undo_and_compact_after_recovery(talked):
    talked.provider.add(TOO_LONG, "notes", "fine")
    session = talked.session()
    await session.prompt("go")
    session.undo_compaction()
    preview = await session.preview_compaction(CompactRequest("manual"))
    assert preview.summarised_messages > 20


# ---------------------------------------------------------------- one clear message


REFUSED = ProviderError(
    "the server did not accept the request (400)", kind=ErrorKind.BAD_REQUEST, hint="Check it."
)


def told(rig):
    """Everything people read of a run besides answers, in order."""
    lines = []
    for event in rig.events:
        if isinstance(event, Notice):
            lines.append(event.text)
        elif isinstance(event, CompactionEnd) and event.error_message:
            lines.append(event.error_message)
    return lines


@pytest.mark.parametrize("failure", [TOO_LONG, CUT])
async def test_a_failed_recovery_is_told_once_and_says_what_to_do(talked, failure):
    talked.provider.add(failure, REFUSED)
    session = talked.session()
    await session.prompt("go")
    beginning, message = told(talked)
    assert beginning.endswith("; compacting, then trying once more")
    why = beginning.partition(";")[0]
    assert why in (
        "The conversation is too long for scripted/model",
        "The answer was cut before the model's own limit",
    )
    assert message.startswith(f"{why}, and compacting to make room failed. The summary could not")
    for words in (REFUSED.message, "Nothing is lost", "/compact", "(/model", "/tree", "`go on`"):
        assert message.count(words) == 1
    # The provider's words about the request stand at the end of the answer, and only there.
    assert not any("203977" in line for line in told(talked))
    answers = [m for m in map(message_of, talked.store.entries) if isinstance(m, AssistantMessage)]
    if failure is TOO_LONG:
        assert answers[-1].error_message == TOO_LONG.message
    # What went wrong with the summary is kept in the session for later.
    (record,) = session.compactions()
    assert REFUSED.text in record.message and "and compacting to make room" not in record.message


def message_of(entry):
    return entry.message if isinstance(entry, MessageEntry) else None


async def test_what_to_do_about_a_full_window_is_said_by_the_recovery_alone(talked):
    overflow = ProviderError("too long (400)", kind=ErrorKind.OVERFLOW, hint="Compact it.")
    play(talked, overflow, overflow)
    await talked.session().prompt("go")
    answers = [m for m in map(message_of, talked.store.entries) if isinstance(m, AssistantMessage)]
    assert [a.error_message for a in answers[-2:]] == ["too long (400)"] * 2
    assert "nothing is lost" in told(talked)[-1] and len(told(talked)) == 2


async def test_a_summary_model_that_cannot_be_used_is_told_the_same_way(talked):
    talked.summary_model = "scripted/gone"
    session = talked.session()

    def resolve(reference):
        raise ModelError("there is no model 'scripted/gone'", hint="--list-models names them.")

    session.models.resolve = resolve
    talked.provider.add(TOO_LONG)
    await session.prompt("go")
    _, message = told(talked)
    assert "failed. There is no model 'scripted/gone'. Nothing is lost" in message


async def test_no_room_does_not_repeat_the_providers_words(rig):
    rig.provider.add(TOO_LONG)
    await rig.session().prompt("go")
    assert len(told(rig)) == 2
    assert "203977" not in told(rig)[-1] and "Nothing is lost" in told(rig)[-1]
