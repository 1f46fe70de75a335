"""When a compaction begins by itself, and what happens to messages meanwhile (CMP-03, 04, 08)."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from pi_tui.agent.auto_compaction import AutoCompaction
from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.parts import fitting_keep_tokens
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.entries import CompactionEntry, CustomMessageEntry, MessageEntry
from pi_tui.core.errors import CompactionError, ErrorKind, ProviderError, SettingsError
from pi_tui.core.events import (
    CompactionEnd,
    CompactionStart,
    EntryAppended,
    Notice,
    QueueUpdate,
    TurnStart,
    event_type,
)
from pi_tui.core.messages import (
    AssistantMessage,
    TextContent,
    ToolCall,
    Usage,
    UserMessage,
    text_of,
)
from pi_tui.core.pairing import check_pairing
from pi_tui.providers.scripted import Call, Gate, reply

MANUAL = CompactRequest("manual")


def used(total):
    return Usage(input=total - 10, output=10, total_tokens=total)


def settings(**values):
    return lambda model: CompactionSettings(**values)


def user_texts(rig):
    return [
        text_of(e.message.content)
        for e in rig.store.entries
        if isinstance(e, MessageEntry) and isinstance(e.message, UserMessage)
    ]


# ---------------------------------------------------------------- CMP-03


@pytest.fixture
def compacted(rig):
    """A big answer inside the kept range of a compaction, then a message of an extension."""
    rig.model = structs.replace(rig.model, context_window=200_000)
    rig.store_message(UserMessage("start", 1))
    answer = AssistantMessage(
        content=(TextContent("ok"),), api="a", provider="scripted", model="model",
        usage=used(185_000), stop_reason="stop", timestamp=1,
    )  # fmt: skip
    kept = rig.store_message(answer)
    at = "2026-01-02T03:04:05.000Z"
    rig.store.entries += [
        CompactionEntry(
            id="e21", parent_id=kept, timestamp=at, summary="S", first_kept_entry_id=kept,
            tokens_before=185_000,
        ),
        CustomMessageEntry(
            id="e22", parent_id="e21", timestamp=at, custom_type="x", content="hi", display=True
        ),
    ]  # fmt: skip
    return rig


async def test_cmp_03_an_old_count_starts_no_compaction(compacted):
    rig = compacted
    rig.compaction = settings(keep_recent_tokens=1)
    rig.provider.add(
        reply("a" * 400, usage=used(30_000)), reply("b", usage=used(184_500)), "S2", "S3", "c"
    )
    session = rig.session()
    usage = session.context_usage()
    assert usage.estimated and usage.tokens < 1000
    await session.prompt("continue")
    assert len(rig.provider.requests) == 1
    assert session.context_usage().tokens == 30_000 and not session.context_usage().estimated
    await session.prompt("more")
    assert not rig.of(CompactionStart)
    await session.prompt("once more")  # 184,500 > 200,000 - 16,384
    assert [e.reason for e in rig.of(CompactionStart)] == ["threshold"]
    assert len(rig.compactions) == 2 and len(rig.ordinary_requests) == 3


async def test_a_failed_answer_leaves_the_count_alone(compacted):
    rig = compacted
    down = ProviderError("down", kind=ErrorKind.AUTH)
    rig.provider.add(reply("a", usage=used(30_000)), down)
    session = rig.session()
    await session.prompt("one")
    await session.prompt("two")
    tokens = session.context_usage().tokens
    assert 30_000 <= tokens < 30_010


# ---------------------------------------------------------------- the check places


async def test_inside_a_run_after_the_results_and_before_the_poll(rig, gated_tool):
    rig.tools = (gated_tool("work"),)
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    rig.provider.add(
        reply(Call("work", {"n": "a"}), usage=used(120_000)), "notes", "prefix notes", "done"
    )
    session = rig.session()

    def steer(event):
        if isinstance(event, CompactionStart):
            session.submit("steered")

    session.subscribe(steer)
    await session.prompt("go")
    names = [event_type(e) for e in rig.events]
    start = names.index("compaction_start")
    assert names[start - 1] == "activity_changed" and names[start - 2] == "turn_end"
    after = names[names.index("compaction_end") :]
    assert after.index("queue_update") < after.index("turn_start")
    assert len(rig.of(TurnStart)) == 2
    request = rig.ordinary_requests[-1]
    assert text_of(request.messages[-1].content) == "steered"
    assert check_pairing(request.messages) == []
    assert "notes" in text_of(request.messages[0].content)


async def test_before_a_prompt_the_prompt_waits_in_sight(rig):
    rig.compaction = settings(keep_recent_tokens=50, reserve_tokens=127_000)
    rig.store_talk(15)
    gate = Gate()
    rig.provider.add(reply(gate, "notes"), "prefix", "fine")
    session = rig.session()
    session.submit("the prompt")
    await gate.reached.wait()
    assert session.queued == (("the prompt",), ())
    assert session.activity == "compacting"
    gate.open()
    await session.wait_idle()
    assert session.queued == ((), ())
    assert rig.of(QueueUpdate) == [
        QueueUpdate(("the prompt",), ()),
        QueueUpdate((), ()),
    ]
    assert user_texts(rig)[-1] == "the prompt"
    compaction = next(e for e in rig.store.entries if isinstance(e, CompactionEntry))
    prompt = next(
        e
        for e in rig.store.entries
        if isinstance(e, MessageEntry) and text_of(e.message.content) == "the prompt"
    )
    assert rig.store.entries.index(compaction) < rig.store.entries.index(prompt)


async def test_before_a_queued_prompt_of_the_same_run(rig):
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    first, gate = Gate(), Gate()
    rig.provider.add(
        reply(first, "one", usage=used(120_000)), reply(gate, "notes"), "prefix", "two"
    )
    session = rig.session()
    session.submit("go")
    await first.reached.wait()
    session.submit("queued", "followUp")
    first.open()
    await gate.reached.wait()
    assert session.queued == ((), ("queued",))
    gate.open()
    await session.wait_idle()
    assert "notes" in text_of(rig.ordinary_requests[1].messages[0].content)
    assert text_of(rig.ordinary_requests[1].messages[-1].content) == "queued"


async def test_a_prompt_taken_back_meanwhile_is_not_sent(rig):
    rig.compaction = settings(keep_recent_tokens=50, reserve_tokens=127_000)
    rig.store_talk(15)
    gate = Gate()
    rig.provider.add(reply(gate, "notes"), "prefix")
    session = rig.session()
    session.submit("the prompt")
    await gate.reached.wait()
    assert session.abort()
    assert session.take_back_queue() == ["the prompt"]
    await session.wait_idle()
    assert rig.of(CompactionEnd)[0].aborted
    assert not rig.ordinary_requests and "the prompt" not in user_texts(rig)


async def test_escape_cancels_the_compaction_and_the_run_goes_on(rig, gated_tool):
    rig.tools = (gated_tool("work"),)
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    gate = Gate()
    call = reply(Call("work", {"n": "a"}), usage=used(120_000))
    rig.provider.add(call, reply(gate), call, "done")
    session = rig.session()
    session.submit("go")
    await gate.reached.wait()
    assert session.abort()
    await session.wait_idle()
    assert rig.of(CompactionEnd)[0].aborted and len(rig.of(CompactionEnd)) == 1
    assert len(rig.ordinary_requests) == 3  # and it was not asked again in this run


async def test_turned_off_only_automatic_compaction_rests(rig):
    rig.compaction = settings(enabled=False, keep_recent_tokens=50, reserve_tokens=127_000)
    rig.store_talk(15)
    rig.provider.add("fine", "notes", "prefix")
    session = rig.session()
    await session.prompt("go")
    assert not rig.summary_requests
    assert (await session.compact(MANUAL)).kind == "done"


async def test_a_wrong_setting_is_told_once_and_stops_nothing(rig):
    def wrong(model):
        raise SettingsError(
            "settings.json: compaction.reserveTokens must be a number", file="settings.json"
        )

    rig.compaction = wrong
    rig.provider.add("one", "two")
    session = rig.session()
    await session.prompt("a")
    await session.prompt("b")
    assert len(rig.of(Notice)) == 1 and "reserveTokens" in rig.of(Notice)[0].text
    with pytest.raises(SettingsError):
        await session.preview_compaction(MANUAL)
    outcome = await session.compact(MANUAL)
    assert outcome.kind == "failed" and "reserveTokens" in outcome.message


# ---------------------------------------------------------------- CMP-04


async def test_cmp_04_a_compaction_that_cannot_help_is_not_repeated(rig, gated_tool):
    rig.tools = (gated_tool("work"),)
    rig.system = "s" * 56_000
    rig.model = structs.replace(rig.model, context_window=32_768, max_tokens=8192)
    calls = [reply(Call("work", {"n": str(n)}), usage=used(17_500)) for n in range(20)]

    def answer(request):
        if request in rig.summary_requests:
            return "short notes"
        return calls.pop(0) if calls else reply("done", usage=used(17_500))

    rig.provider = type(rig.provider)(fallback=answer)
    session = rig.session()
    await session.prompt("go")
    assert len(rig.ordinary_requests) == 21  # the tool loop goes on
    assert len(rig.of(CompactionStart)) <= 1
    notices = rig.of(Notice)
    assert len(notices) == 1
    for part in ("16,384", "14,0", "system prompt and tools", "messages about", "larger model"):
        assert part in notices[0].text
    before = len(rig.summary_requests)
    rig.events.clear()
    for text in ("b", "c"):
        await session.prompt(text)
    assert len(rig.summary_requests) - before <= 1


async def test_cmp_04_growing_contexts_are_tried_twice_then_it_rests(rig, gated_tool):
    rig.tools = (gated_tool("work"),)
    rig.system = "s" * 56_000
    rig.model = structs.replace(rig.model, context_window=32_768, max_tokens=8192)
    totals = iter(range(17_500, 40_000, 200))
    left = [20]

    def answer(request):
        if request in rig.summary_requests:
            return "short"
        left[0] -= 1
        if left[0] < 0:
            return reply("done", usage=used(next(totals)))
        return reply(Call("work", {"n": "x" * 600}), usage=used(next(totals)))

    rig.provider = type(rig.provider)(fallback=answer)
    session = rig.session()
    await session.prompt("go")
    assert len([e for e in rig.of(CompactionEnd) if e.result]) == 2
    assert sum("rests until the next prompt" in n.text for n in rig.of(Notice)) == 1
    assert len(rig.ordinary_requests) == 21


def decider():
    auto = AutoCompaction()

    def decide(tokens, enabled=True, reply=None):
        return auto.decide(
            tokens, 32_768, reserve_tokens=16_384, enabled=enabled, reply_tokens=reply
        )

    return auto, decide


def test_the_decision_rests_and_wakes():
    auto, decide = decider()
    assert decide(16_384) == "no"  # strictly above
    assert decide(17_000, enabled=False) == "no"
    assert decide(17_000) == "compact"
    auto.tried(17_000, 16_500)
    assert [decide(17_000), decide(17_000), decide(17_010)] == ["no-help", "no", "no"]
    assert decide(17_100) == "compact"
    auto.tried(17_100, 16_500)
    assert [decide(17_500), decide(18_000)] == ["rest", "no"]
    auto.wake()
    assert [decide(17_100), decide(18_000)] == ["no", "compact"]
    auto.tried(18_000, 16_500)
    assert decide(10_000) == "no"  # it helped: all is forgotten
    assert decide(17_000) == "compact"
    auto.failed(17_000)
    assert [decide(17_000), decide(17_200)] == ["no", "compact"]
    auto.failed(17_200)
    assert auto.resting and decide(20_000) == "no"
    auto.reset()
    auto.rest(17_000)
    assert decide(20_000) == "no"


def test_an_attempt_is_judged_by_the_next_reply_not_by_what_came_in_after_it():
    auto, decide = decider()
    for _ in range(5):
        assert decide(16_492) == "compact"
        auto.tried(16_492, 9_066)
        assert decide(24_000, reply=9_291) == "compact"  # it worked; this is new
        auto.tried(24_000, 9_066)
        assert decide(17_000) == "compact"  # without a report its own estimate counts
        auto.tried(17_000, 9_000)
    assert decide(25_000, reply=17_000) == "compact"  # by the reply it did not work, once
    auto.tried(25_000, 9_000)
    assert decide(26_000, reply=17_000) == "rest"


def test_nothing_rests_above_the_window_itself():
    auto, decide = decider()
    auto.rest(20_000)
    assert [decide(32_768), decide(32_769)] == ["no", "compact"]
    auto.failed(33_000)
    auto.failed(33_000)
    assert [decide(33_000), decide(33_200)] == ["no", "compact"]
    assert decide(40_000, enabled=False) == "no"


def test_small_windows_keep_what_can_help():
    assert fitting_keep_tokens(20_000, 16_384, 200_000, 5_000) == 20_000
    assert fitting_keep_tokens(20_000, 16_384, 32_768, 4_384) == 6_000
    assert fitting_keep_tokens(20_000, 16_384, 16_000, 4_000) == 3_000
    assert fitting_keep_tokens(20_000, 16_384, 8_000, 9_000) == 0
    assert fitting_keep_tokens(100, 16_384, 32_768, 4_384) == 100


async def test_changed_settings_take_effect_at_the_next_check(rig):
    values = {"keep_recent_tokens": 50}
    rig.compaction = lambda model: CompactionSettings(**values)
    rig.store_talk(15)
    rig.provider.add("fine", "notes", "prefix", "fine")
    session = rig.session()
    await session.prompt("a")
    assert not rig.of(CompactionStart)
    values["reserve_tokens"] = 127_000
    rig.provider._replies = ["notes", "prefix", "fine"]
    await session.prompt("b" * 8000)
    assert [e.reason for e in rig.of(CompactionStart)] == ["threshold"]


# ---------------------------------------------------------------- CMP-08


async def cmp_08(rig, gated_tool, ending):
    """Automatic compaction in a run; three messages while it runs. Returns the session."""
    rig.tools = (gated_tool("work"),)
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    gate = Gate()
    rig.provider.add(reply(Call("work", {"n": "a"}), usage=used(120_000)), reply(gate, *ending))
    if ending == ("notes",):
        rig.provider.add("prefix")
    rig.provider.add("one", "two", "three", "four")
    session = rig.session()

    def at_once(event):
        if isinstance(event, CompactionStart):
            session.submit("first")

    session.subscribe(at_once)
    session.submit("go")
    await gate.reached.wait()
    assert session.submit("second") == "queued"
    assert session.submit("third", "followUp") == "queued"
    return session, gate


@pytest.mark.parametrize("ending", [("notes",), (" ",)])
async def test_cmp_08_messages_are_delivered_once_and_in_order(rig, gated_tool, ending):
    session, gate = await cmp_08(rig, gated_tool, ending)
    gate.open()
    await session.wait_idle()
    assert user_texts(rig)[-4:] == ["go", "first", "second", "third"]
    assert session.queued == ((), ()) and session.activity == "idle"
    kinds = [type(e).__name__ for e in rig.store.entries]
    end = "CompactionEntry" if ending == ("notes",) else "CustomEntry"
    at = kinds.index(end)
    first = next(
        i
        for i, e in enumerate(rig.store.entries)
        if isinstance(e, MessageEntry) and text_of(e.message.content) == "first"
    )
    assert at < first


async def test_cmp_08_escape_leaves_the_messages_in_the_queue(rig, gated_tool):
    session, _ = await cmp_08(rig, gated_tool, ("notes",))
    assert session.abort()
    assert session.take_back_queue() == ["first", "second", "third"]
    rig.provider._replies = ["one"]
    await session.wait_idle()
    assert user_texts(rig)[-1] == "go"


async def test_cmp_08_compact_twice_is_one_compaction_and_one_line(rig):
    rig.compaction = settings(keep_recent_tokens=400)
    rig.store_talk(15)
    rig.provider.add("notes")
    session = rig.session()
    first = asyncio.ensure_future(session.compact(MANUAL))
    second = asyncio.ensure_future(session.compact(MANUAL))
    done = await asyncio.gather(first, second, return_exceptions=True)
    assert done[0].kind == "done"
    assert isinstance(done[1], CompactionError) and "already running" in done[1].message
    assert len(rig.summary_requests) == 1


async def test_messages_during_a_manual_compaction_start_a_run_by_themselves(rig):
    rig.compaction = settings(keep_recent_tokens=400)
    rig.store_talk(15)
    gate = Gate()
    rig.provider.add(reply(gate, "notes"), "one", "two")
    session = rig.session()
    work = asyncio.ensure_future(session.compact(MANUAL))
    await gate.reached.wait()
    session.submit("first")
    session.submit("later", "followUp")
    gate.open()
    await work
    await session.wait_idle()
    assert user_texts(rig)[-2:] == ["first", "later"]
    texts = [text_of(m.content) for m in rig.ordinary_requests[0].messages]
    assert "notes" in texts[0]


# ---------------------------------------------------------------- /compact in a run


async def test_in_a_run_it_waits_for_the_results_and_the_run_goes_on(rig, gated_tool, until):
    tool = gated_tool("work")
    rig.tools = (tool,)
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    rig.provider.add(reply(Call("work", {"n": "a", "wait": 1})), "notes", "prefix", "done")
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(tool.log))
    work = asyncio.ensure_future(session.compact(MANUAL))
    while not any("when this turn has its results" in n.text for n in rig.of(Notice)):
        await asyncio.sleep(0.001)
    with pytest.raises(CompactionError, match="already waits"):
        await session.compact(MANUAL)
    assert not rig.summary_requests
    tool.gate("a").set()
    assert (await work).kind == "done"
    await session.wait_idle()
    assert [e.reason for e in rig.of(CompactionStart)] == ["manual"]
    assert tool.log == ["start a", "end a"]  # the turn was not cut
    answers = [e.message for e in rig.store.entries if isinstance(e, MessageEntry)]
    assert answers[-1].text == "done"


async def test_in_a_run_with_nothing_to_compact_the_turn_is_left_alone(rig, gated_tool, until):
    tool = gated_tool("work")
    rig.tools = (tool,)
    rig.provider.add(reply(Call("work", {"n": "a", "wait": 1})), "done")
    session = rig.session()
    session.submit("go")
    await until(lambda: bool(tool.log))
    assert (await session.compact(MANUAL)).kind == "nothing"
    assert session.activity == "running"
    tool.gate("a").set()
    await session.wait_idle()
    assert not rig.of(CompactionStart)


async def test_without_another_safe_point_it_happens_at_the_end(rig):
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    gate = Gate()
    rig.provider.add(reply(gate, "done"), "notes", "prefix")
    session = rig.session()
    session.submit("go")
    await gate.reached.wait()
    work = asyncio.ensure_future(session.compact(MANUAL))
    while not rig.of(Notice):
        await asyncio.sleep(0.001)
    gate.open()
    assert (await work).kind == "done"
    await session.wait_idle()
    assert isinstance(rig.store.entries[-1], CompactionEntry)


async def test_escape_on_the_turn_drops_a_compaction_that_waits_for_it(rig):
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    gate = Gate()
    rig.provider.add(reply(gate, "done"))
    session = rig.session()
    session.submit("go")
    await gate.reached.wait()
    work = asyncio.ensure_future(session.compact(MANUAL))
    while not rig.of(Notice):
        await asyncio.sleep(0.001)
    assert session.abort()
    outcome = await work
    assert outcome.kind == "cancelled" and "turn was stopped" in outcome.message
    await session.wait_idle()
    assert not rig.summary_requests


async def test_a_stopped_answer_is_left_out_without_a_word(rig):
    rig.store_talk(1)
    rig.store_message(UserMessage("x", 1))
    rig.store_message(
        AssistantMessage(
            content=(TextContent("half"),), api="a", provider="p", model="m", usage=None,
            stop_reason="aborted", timestamp=1,
        )
    )  # fmt: skip
    rig.provider.add("one", "two")
    session = rig.session()
    await session.prompt("a")
    await session.prompt("b")
    assert rig.of(Notice) == []  # that a stopped answer is left out is no news


async def test_an_unanswered_call_is_told_once_in_a_session(rig):
    rig.store_talk(1)
    rig.store_message(UserMessage("x", 1))
    rig.store_message(
        AssistantMessage(
            content=(ToolCall("c1", "bash", {}),), api="a", provider="p", model="m", usage=None,
            stop_reason="toolUse", timestamp=1,
        )
    )  # fmt: skip
    rig.provider.add("one", "two")
    session = rig.session()
    await session.prompt("a")
    await session.prompt("b")
    (told,) = rig.of(Notice)
    assert told.text.startswith("what is sent to the model was mended: ")


async def test_appended_entries_stay_in_order_of_time(rig):
    rig.compaction = settings(keep_recent_tokens=400)
    rig.store_talk(15)
    rig.provider.add("notes")
    session = rig.session()
    await session.compact(MANUAL)
    kinds = [type(e.entry).__name__ for e in rig.of(EntryAppended)]
    assert kinds == ["CompactionEntry"]
