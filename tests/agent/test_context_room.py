"""What counts as the context before it is stored, what never fits, and windows servers name."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.entries import ContextEditEntry, MessageEntry
from pi_tui.core.errors import ErrorKind, ModelError, ProviderError, SettingsError, UsageError
from pi_tui.core.events import CompactionEnd, CompactionStart, Notice
from pi_tui.core.messages import SystemMessage, Usage, UserMessage, text_of
from pi_tui.core.models import ModelCost
from pi_tui.providers.scripted import Call, Gate, reply

MANUAL = CompactRequest("manual")
TOO_LONG = ProviderError("too long", kind=ErrorKind.OVERFLOW)
CUT = reply("half an ans", stop_reason="length", usage=Usage(input=100, output=50))


def settings(**values):
    return lambda model: CompactionSettings(**values)


def window(rig, tokens):
    rig.model = structs.replace(rig.model, context_window=tokens, max_tokens=min(tokens, 1000))


def notices(rig, level):
    return [n.text for n in rig.of(Notice) if n.level == level]


# ---------------------------------------------------------------- turned off


@pytest.mark.parametrize("failure", [TOO_LONG, CUT])
async def test_turned_off_nothing_is_compacted_after_a_refusal_either(rig, failure):
    rig.compaction = settings(enabled=False, keep_recent_tokens=400)
    rig.store_talk(15)
    rig.provider.add(failure, "notes", "fine")
    session = rig.session()
    await session.prompt("go")
    assert not rig.of(CompactionStart) and len(rig.provider.requests) == 1
    assert not any(isinstance(e, ContextEditEntry) for e in rig.store.entries)
    (told,) = [n.text for n in rig.of(Notice)]
    for words in ("is off (compaction.enabled)", "Nothing is lost", "/compact", "`go on`"):
        assert told.count(words) == 1
    assert (await session.compact(MANUAL)).kind == "done"


# ---------------------------------------------------------------- a system prompt not yet stored


async def test_a_system_prompt_not_yet_stored_counts_before_the_first_prompt(rig):
    window(rig, 10_000)
    rig.system = "s" * 16_000
    rig.compaction = settings(reserve_tokens=4_000, keep_recent_tokens=200)
    rig.store_talk(15)  # 3,000 tokens: under the limit of 6,000 by themselves
    rig.provider.add("notes", "fine")
    session = rig.session()
    assert 7_000 < session.context_usage().tokens < 7_300
    await session.prompt("go")
    assert [e.reason for e in rig.of(CompactionStart)] == ["threshold"]
    end = rig.of(CompactionEnd)[0]
    assert 7_000 < end.tokens_before < 7_300
    assert 4_000 < end.result.estimated_tokens_after < 4_700
    assert rig.compactions[0].details["estimatedTokensAfter"] == end.result.estimated_tokens_after


async def test_a_grown_system_prompt_counts_and_what_is_stored_counts_once(rig):
    window(rig, 10_000)
    rig.system = "s" * 4_000
    rig.compaction = settings(reserve_tokens=4_000, keep_recent_tokens=200)
    rig.store_talk(15)
    rig.provider.add(reply("fine", usage=Usage(input=4_000, output=10, total_tokens=4_010)))
    session = rig.session()
    await session.prompt("go")
    assert session.context_usage().tokens == 4_010
    rig.system = "s" * 13_000  # AGENTS.md grew by 2,250 tokens
    again = rig.session()
    rig.provider.add("notes", "fine")
    await again.prompt("go")
    assert [e.reason for e in rig.of(CompactionStart)] == ["threshold"]
    assert 6_200 < rig.of(CompactionEnd)[0].tokens_before < 6_400


async def test_the_count_of_another_program_covers_its_own_system_prompt(rig):
    rig.system = "s" * 16_000
    rig.store_message(UserMessage("start", 1))
    rig.provider.add(reply("fine", usage=Usage(input=5_000, output=10, total_tokens=5_010)))
    await rig.session().prompt("go")
    rig.store.entries = [
        e
        for e in rig.store.entries
        if not (isinstance(e, MessageEntry) and isinstance(e.message, SystemMessage))
    ]
    for i, entry in enumerate(rig.store.entries[1:], start=1):
        rig.store.entries[i] = structs.replace(entry, parent_id=rig.store.entries[i - 1].id)
    assert rig.session().context_usage().tokens == 5_010


# ---------------------------------------------------------------- no room at all


@pytest.mark.parametrize("enabled", [True, False])
async def test_a_message_no_request_has_room_for_is_not_taken(rig, enabled):
    window(rig, 32_000)
    rig.system = "s" * 8_000
    rig.compaction = settings(enabled=enabled)
    rig.store_talk(5)
    session = rig.session()
    before = len(rig.store.entries)
    text = "x" * 200_000
    assert session.submit(text) == "refused"
    (told,) = notices(rig, "error")
    for words in ("about 50,000 tokens", "about 2,0", "32,000 tokens", "not sent", "larger model"):
        assert told.count(words) == 1
    with pytest.raises(UsageError, match="no room for this message"):
        await session.prompt(text)
    assert session.activity == "idle" and session.queued == ((), ())
    assert len(rig.store.entries) == before and not rig.provider.requests


async def test_above_the_limit_alone_is_no_reason_to_refuse(rig):
    window(rig, 32_000)
    rig.provider.add("fine")
    outcome = await rig.session().prompt("x" * 100_000)  # 25,000 tokens, above 15,616
    assert outcome.last_answer.text == "fine"


async def test_a_large_message_makes_room_for_itself_once_it_is_there(rig, gated_tool):
    """The last turn can only be summarised after the prompt that follows it."""
    window(rig, 8_000)
    rig.tools = (gated_tool("work"),)
    rig.store_talk(1, chars=24_000)  # 6,000 tokens of which the newest half is always kept
    rig.provider = type(rig.provider)(
        fallback=lambda r: "notes" if r in rig.summary_requests else "fine"
    )
    outcome = await rig.session().prompt("y" * 22_000)
    assert outcome.last_answer.text == "fine"
    (request,) = rig.ordinary_requests
    assert text_of(request.messages[-1].content) == "y" * 22_000
    assert sum(len(text_of(m.content)) for m in request.messages) // 4 < 8_000


# ---------------------------------------------------------------- what is kept


async def test_settings_somebody_made_hold_for_compact(rig):
    window(rig, 32_000)
    rig.store_talk(100, chars=1_000)  # 25,000 tokens
    kept = []
    for asked in (15_000, 16_000, 18_000):
        rig.compaction = settings(keep_recent_tokens=asked)
        preview = await rig.session().preview_compaction(MANUAL)
        kept.append(preview.tokens_kept)
    assert [abs(k - a) < 600 for k, a in zip(kept, (15_000, 16_000, 18_000), strict=True)] == [
        True
    ] * 3
    rig.compaction = settings()  # nobody chose the built-in 20,000
    preview = await rig.session().preview_compaction(MANUAL)
    assert 7_000 < preview.tokens_kept < 8_500
    preview = await rig.session().preview_compaction(CompactRequest("manual", keep_tokens=20_000))
    assert 20_000 <= preview.tokens_kept < 20_600


@pytest.mark.parametrize(("asked", "told"), [(14_000, False), (16_000, True)])
async def test_automatic_ones_keep_less_only_where_the_setting_cannot_help(rig, asked, told):
    window(rig, 32_000)
    rig.store_talk(70, chars=1_000)  # 17,500 tokens, above 15,616
    rig.compaction = settings(keep_recent_tokens=asked)
    rig.provider = type(rig.provider)(
        fallback=lambda r: "notes" if r in rig.summary_requests else "fine"
    )
    session = rig.session()
    seen = []
    session.hooks.on(
        "session_before_compact",
        lambda payload: seen.append(payload.preparation.settings.keep_recent_tokens),
    )
    await session.prompt("go")
    assert len(rig.compactions) == 1
    assert (seen[0] == asked) is not told
    words = [n for n in notices(rig, "info") if "compaction.keepRecentTokens" in n]
    assert len(words) == told
    if told:
        assert f"about {seen[0]:,} tokens" in words[0] and "16,000" in words[0]
        assert rig.of(CompactionEnd)[0].result.estimated_tokens_after < 15_616


@pytest.mark.parametrize("keep", [10, 1])
async def test_a_retry_holds_the_prompt_it_is_made_for(rig, keep):
    """The system message of a session that had none stands right before the prompt."""
    rig.system = "s" * 5_200
    rig.compaction = settings(keep_recent_tokens=keep)
    rig.store_talk(15)
    rig.provider.add(TOO_LONG, "notes", "fine")
    outcome = await rig.session().prompt("what is the name of it?")
    assert outcome.last_answer.text == "fine"
    texts = [text_of(m.content) for m in rig.ordinary_requests[-1].messages]
    assert texts[-1] == "what is the name of it?" and "notes" in texts[0]


# ---------------------------------------------------------------- windows that servers name


async def test_a_window_a_refusal_names_is_kept_to_and_told_once(rig):
    named = ProviderError("too long", kind=ErrorKind.OVERFLOW, limit_tokens=8_000)
    rig.compaction = settings(keep_recent_tokens=400, reserve_tokens=2_000)
    rig.store_talk(45)  # 9,000 tokens

    def answer(request):
        if request in rig.summary_requests:
            return "notes"
        size = sum(len(text_of(m.content)) for m in request.messages) // 4
        used = Usage(input=size, output=1, total_tokens=size + 1)
        return named if size > 8_000 else reply("fine", usage=used)

    rig.provider = type(rig.provider)(fallback=answer)
    session = rig.session()
    await session.prompt("one")
    assert len(rig.ordinary_requests) == 2  # refused once
    assert session.context_usage().window == 8_000
    for number in range(8):
        await session.prompt(f"{number} " + "x" * 4_000)
    assert [e.reason for e in rig.of(CompactionStart)].count("overflow") == 1
    assert {"threshold"} == {e.reason for e in rig.of(CompactionStart)[1:]}
    (told,) = notices(rig, "warning")
    assert "8,000 tokens" in told and "128,000" in told and "models.json" in told
    # It belongs to the session and to that model.
    await session.new_session()
    assert session.context_usage().window == 128_000


async def test_a_smaller_output_limit_may_be_all_it_needs(rig):
    """Question and output limit together exceed the window; the conversation alone fits."""
    named = ProviderError("too long", kind=ErrorKind.OVERFLOW, limit_tokens=8_192)
    rig.store_talk(3)
    rig.provider.add(named, "fine")
    outcome = await rig.session().prompt("go")
    assert outcome.last_answer.text == "fine" and not rig.of(CompactionStart)
    request = rig.ordinary_requests[-1]
    assert request.max_tokens == 2_048 and request.model.context_window == 8_192


@pytest.mark.parametrize("limit", [100, 4_000, 128_000, 500_000])
async def test_numbers_that_cannot_be_the_window_are_not_believed(rig, limit):
    named = ProviderError("too long", kind=ErrorKind.OVERFLOW, limit_tokens=limit)
    rig.compaction = settings(keep_recent_tokens=400)
    rig.store_talk(15)
    rig.provider.add(
        reply("fine", usage=Usage(input=5_000, output=10, total_tokens=5_010)), named, "notes", "ok"
    )
    session = rig.session()
    await session.prompt("one")
    await session.prompt("two")
    assert session.context_usage().window == 128_000 and not notices(rig, "warning")


# ---------------------------------------------------------------- words and totals of failures


async def test_every_failure_says_what_is_safe_and_what_to_do(rig):
    rig.store_talk(15)
    rig.compaction = settings(keep_recent_tokens=400)
    session = rig.session()
    broken = ProviderError(
        "The connection broke before the answer was complete.",
        kind=ErrorKind.NETWORK,
        hint="The conversation is safe; try again.",
    )
    rig.retry = structs.replace(rig.retry, enabled=False)
    told = []
    for failure in (broken, reply(" "), RuntimeError("boom")):
        again = rig.session()
        rig.provider._replies = [failure]
        told.append((await again.compact(MANUAL)).message)
    rig.provider._replies = []

    def gone(model):
        raise SettingsError("settings.json: reserveTokens must be a number", file="settings.json")

    rig.compaction = gone
    told.append((await rig.session().compact(MANUAL)).message)
    rig.compaction = settings(keep_recent_tokens=400)
    rig.summary_model = "scripted/gone"
    session = rig.session()

    def resolve(reference):
        raise ModelError("There is no model called 'scripted/gone'.")

    session.models.resolve = resolve
    told.append((await session.compact(MANUAL)).message)
    for text in told:
        assert text.count("Nothing was changed") == 1, text
        assert text.lower().count("try again") == 1, text
    assert "fault of the program" in told[2] and "internal error: " in told[2]
    assert "compaction.model" in told[4] and "/model" in told[4]


async def test_what_failed_and_cancelled_summaries_cost_is_in_the_totals(rig):
    rig.model = structs.replace(rig.model, cost=ModelCost(input=1, output=5))
    rig.store_talk(15)
    rig.compaction = settings(keep_recent_tokens=400)
    used = Usage(input=3_000, output=100, total_tokens=3_100)
    rig.provider.add(reply(" ", usage=used))
    session = rig.session()
    await session.count_stored()
    assert session.stats().usage.cost.total == 0
    await session.compact(MANUAL)
    cost = session.stats().usage.cost.total
    assert cost == pytest.approx(0.0035)
    assert session.stats().cost_by_model["summaries"] == pytest.approx(0.0035)
    end = rig.of(CompactionEnd)[-1]
    assert end.usage.cost.total == pytest.approx(0.0035) and end.usage.input == 3_000
    # The same after reopening.
    again = rig.session()
    await again.count_stored()
    assert again.stats().usage.cost.total == pytest.approx(0.0035)
    # One that was cancelled is in no entry, but was billed as well.
    gate = Gate()
    rig.compaction = settings(keep_recent_tokens=300)  # splits a turn: two requests
    session = rig.session()
    await session.count_stored()
    rig.provider.add(reply("notes", usage=used), reply(gate, "late"))
    work = asyncio.ensure_future(session.compact(MANUAL))
    await gate.reached.wait()
    assert session.abort()
    assert (await work).kind == "cancelled"
    assert session.stats().usage.cost.total == pytest.approx(0.007)


async def test_a_tool_result_is_no_prompt(rig, gated_tool):
    """In the middle of a turn the ordinary cut holds."""
    rig.tools = (gated_tool("work"),)
    rig.compaction = settings(keep_recent_tokens=50)
    rig.store_talk(5)
    big = Usage(input=119_990, output=10, total_tokens=120_000)
    rig.provider.add(reply(Call("work", {"n": "a"}), usage=big), "notes", "prefix", "done")
    outcome = await rig.session().prompt("go")
    assert outcome.last_answer.text == "done" and len(rig.compactions) == 1
