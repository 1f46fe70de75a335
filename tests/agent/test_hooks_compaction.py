"""What extensions are asked and told around a compaction, and how their own ones are checked."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

import pi_tui
from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.files import FileLists
from pi_tui.core.compaction.prepare import CompactionPreparation, CompactionSettings
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import CompactionEnd, EntryAppended, Notice
from pi_tui.core.messages import UserMessage, text_of
from pi_tui.providers.scripted import Gate, reply

MANUAL = CompactRequest("manual", instructions="FOCUS")


@pytest.fixture
def talked(rig):
    rig.store_talk(15)
    rig.compaction = lambda model: CompactionSettings(keep_recent_tokens=400)
    return rig


def listen(session):
    """Record every hook and the events between them."""
    seen = []
    for name in ("session_before_compact", "session_compact", "session_compact_failed"):
        session.hooks.on(name, lambda payload, name=name: seen.append((name, payload)))

    def note(event):
        if isinstance(event, EntryAppended | CompactionEnd):
            seen.append((type(event).__name__, event))

    session.subscribe(note)
    return seen


async def test_the_order_and_the_payloads_of_success(talked):
    talked.provider.add("notes")
    session = talked.session()
    seen = listen(session)
    await session.compact(MANUAL)
    assert [name for name, _ in seen] == [
        "session_before_compact", "EntryAppended", "session_compact", "CompactionEnd",
    ]  # fmt: skip
    asked = seen[0][1]
    assert asked.reason == "manual" and asked.custom_instructions == "FOCUS"
    assert asked.will_retry is False and asked.signal.is_set is False
    assert [e.id for e in asked.branch_entries] == [e.id for e in talked.store.entries[:30]]
    preparation = asked.preparation
    assert isinstance(preparation, CompactionPreparation)
    assert len(preparation.messages_to_summarize) == 26
    assert preparation.turn_prefix_messages == () and not preparation.is_split_turn
    assert preparation.settings.keep_recent_tokens == 400
    assert preparation.file_ops == preparation.files
    told = seen[2][1]
    assert told.compaction_entry == talked.compactions[0]
    assert told.from_extension is False and told.reason == "manual"


async def test_the_order_and_the_payload_of_failure(talked):
    talked.provider.add("")
    session = talked.session()
    seen = listen(session)
    await session.compact(MANUAL)
    assert [name for name, _ in seen] == [
        "session_before_compact", "EntryAppended", "CompactionEnd", "session_compact_failed",
    ]  # fmt: skip
    failed = seen[-1][1]
    assert "without any text" in failed.error_message
    assert (failed.aborted, failed.from_extension, failed.will_retry) == (False, False, False)


async def test_a_hook_cancels(talked):
    session = talked.session()
    seen = listen(session)
    session.hooks.on("session_before_compact", lambda payload: {"cancel": True})
    outcome = await session.compact(MANUAL)
    assert outcome.kind == "cancelled" and "extension" in outcome.message
    assert not talked.provider.requests and talked.compactions == []
    assert seen[-1][1].aborted and seen[-1][1].from_extension


@pytest.mark.parametrize("camel", [False, True])
async def test_a_hook_gives_a_compaction_of_its_own(talked, camel):
    session = talked.session()
    kept = talked.store.entries[10].id

    async def own(payload):
        await asyncio.sleep(0)
        made = {"summary": "of my own", "first_kept_entry_id": kept, "details": {"x": [1]}}
        if camel:
            made = {"summary": "of my own", "firstKeptEntryId": kept, "details": {"x": [1]}}
        return {"compaction": made}

    session.hooks.on("session_before_compact", own)
    outcome = await session.compact(MANUAL)
    assert outcome.kind == "done" and not talked.provider.requests
    entry = talked.compactions[0]
    assert entry.from_hook and entry.summary == "of my own" and entry.details == {"x": [1]}
    assert entry.first_kept_entry_id == kept
    assert outcome.result.estimated_tokens_after == session.context_usage().tokens
    assert session.compactions()[0].from_hook


UNSOUND = {
    "no object": "words",
    "no summary": {"first_kept_entry_id": "t0000010"},
    "blank summary": {"summary": "  ", "first_kept_entry_id": "t0000010"},
    "number as summary": {"summary": 7, "first_kept_entry_id": "t0000010"},
    "no kept id": {"summary": "s"},
    "unknown kept id": {"summary": "s", "first_kept_entry_id": "nowhere"},
    "details that are no JSON": {
        "summary": "s", "first_kept_entry_id": "t0000010", "details": {"x": object()},
    },
}  # fmt: skip


@pytest.mark.parametrize("case", UNSOUND)
async def test_an_unsound_compaction_of_a_hook_is_refused(talked, case):
    session = talked.session()
    session.hooks.on("session_before_compact", lambda payload: {"compaction": UNSOUND[case]})
    outcome = await session.compact(MANUAL)
    assert outcome.kind == "failed" and "refused" in outcome.message
    assert talked.compactions == [] and not talked.provider.requests
    assert talked.of(CompactionEnd)[0].error_message == outcome.message


async def test_a_kept_id_in_the_middle_of_calls_is_refused(rig):
    from pi_tui.core.messages import ToolCall, ToolResultMessage, text_content
    from pi_tui.core.streaming import MessageBuilder, ToolCallDone

    rig.store_talk(3)
    builder = MessageBuilder(api="a", provider="p", model="m", timestamp=1)
    builder.add(ToolCallDone(0, ToolCall("k", "read", {})))
    rig.store_message(builder.message("toolUse"))
    result = rig.store_message(ToolResultMessage("k", "read", text_content("x"), False, 1))
    session = rig.session()
    session.hooks.on(
        "session_before_compact",
        lambda payload: {"compaction": {"summary": "s", "first_kept_entry_id": result}},
    )
    outcome = await session.compact(CompactRequest("manual", keep_tokens=1))
    assert outcome.kind == "failed" and "tool result" in outcome.message


@pytest.mark.parametrize("name", ["session_before_compact", "session_compact"])
async def test_a_hook_that_raises_counts_as_no_answer(talked, name):
    talked.provider.add("notes")
    session = talked.session()

    async def bad(payload):
        raise ZeroDivisionError("my fault")

    session.hooks.on(name, bad)
    outcome = await session.compact(MANUAL)
    assert outcome.kind == "done"
    notices = [n.text for n in talked.of(Notice)]
    assert len(notices) == 1 and name in notices[0] and "my fault" in notices[0]


async def test_an_answer_that_is_no_object_is_reported(talked):
    talked.provider.add("notes")
    session = talked.session()
    session.hooks.on("session_before_compact", lambda payload: 5)
    session.hooks.on("session_compact", lambda payload: "whatever")
    assert (await session.compact(MANUAL)).kind == "done"
    assert [n.text for n in talked.of(Notice)] == [
        "an extension's session_before_compact handler failed (it answered int instead of an "
        "object); ignored"
    ]


async def test_escape_leaves_a_hook_that_hangs(talked):
    session = talked.session()
    started = asyncio.Event()

    async def hang(payload):
        started.set()
        await asyncio.Event().wait()

    session.hooks.on("session_before_compact", hang)
    session.hooks.on("session_compact_failed", hang)
    work = asyncio.ensure_future(session.compact(MANUAL))
    await started.wait()
    started.clear()
    assert session.abort()  # the compaction
    await started.wait()
    assert talked.of(CompactionEnd)[0].aborted
    assert session.abort()  # the one that is told of it
    assert (await work).kind == "cancelled"
    assert session.activity == "idle"


async def test_a_hook_that_hangs_after_success_changes_nothing_about_it(talked):
    talked.provider.add("notes", "fine")
    session = talked.session()
    started = asyncio.Event()

    async def hang(payload):
        started.set()
        await asyncio.Event().wait()

    session.hooks.on("session_compact", hang)
    work = asyncio.ensure_future(session.compact(MANUAL))
    await started.wait()
    session.abort()
    session.abort()
    assert (await work).kind == "done"
    assert len(talked.compactions) == 1


async def test_handlers_can_be_taken_away_twice_and_names_are_checked(talked):
    session = talked.session()
    remove = session.hooks.on("session_compact", lambda payload: None)
    remove()
    remove()
    with pytest.raises(ValueError, match="no hook called"):
        session.hooks.on("session_befor_compact", print)


# ---------------------------------------------------------------- the names of section 9


def test_every_public_name_is_there():
    for name in (
        "convert_to_llm", "serialize_conversation", "estimate_tokens", "prepare_compaction",
        "compact", "generate_summary", "generate_summary_with_usage",
        "collect_entries_for_branch_summary", "prepare_branch_entries", "generate_branch_summary",
    ):  # fmt: skip
        assert callable(getattr(pi_tui, name)) and name in pi_tui.__all__
    with pytest.raises(AttributeError):
        pi_tui.nothing_of_the_kind  # noqa: B018


async def test_a_hook_makes_its_compaction_with_the_public_functions(talked):
    talked.provider.add("made by the extension")
    session = talked.session()

    async def own(payload):
        by = pi_tui.SummaryModel(session.models, session.model)
        made = await pi_tui.compact(payload.preparation, by, custom_instructions="short")
        return {"compaction": made}

    session.hooks.on("session_before_compact", own)
    assert (await session.compact(MANUAL)).kind == "done"
    entry = talked.compactions[0]
    assert entry.from_hook and entry.summary == "made by the extension"
    assert entry.usage.total_tokens == 15
    assert "short" in str(talked.provider.requests[0].messages[0].content)


async def test_the_public_summary_functions(talked):
    busy = ProviderError("no key", kind=ErrorKind.AUTH)
    talked.provider.add("one", "two", busy, reply("three"))
    session = talked.session()
    by = pi_tui.SummaryModel(session.models, session.model)
    messages = [UserMessage("hello", 1)]
    assert await pi_tui.generate_summary(messages, by, previous_summary="EARLIER") == "one"
    assert "EARLIER" in str(talked.provider.requests[0].messages)
    text, usage = await pi_tui.generate_summary_with_usage(messages, by)
    assert (text, usage.total_tokens) == ("two", 15)
    from pi_tui.core.errors import CompactionError

    with pytest.raises(CompactionError, match="no key"):
        await pi_tui.generate_summary(messages, by)
    branch = pi_tui.collect_entries_for_branch_summary(
        session.tree, session.tree.leaf_id, talked.store.entries[9].id
    )
    entries = [session.tree.entry(entry_id) for entry_id in branch.entry_ids]
    prepared = pi_tui.prepare_branch_entries(entries, 0, session.estimator)
    made = await pi_tui.generate_branch_summary(prepared, by)
    assert made["summary"] == "three" and made["details"] == {"readFiles": [], "modifiedFiles": []}
    assert pi_tui.estimate_tokens(UserMessage("12345678", 1)) == 2


async def test_an_abort_signal_ends_a_summary(talked):
    from pi_tui.agent.signals import Aborted, AbortSignal

    gate = Gate()
    talked.provider.add(reply(gate, "x"))
    session = talked.session()
    signal = AbortSignal()
    by = pi_tui.SummaryModel(session.models, session.model)
    work = asyncio.ensure_future(
        pi_tui.generate_summary([UserMessage("hello", 1)], by, signal=signal)
    )
    await gate.reached.wait()
    signal.set()
    with pytest.raises(Aborted):
        await work
    assert talked.provider.active == 0


@pytest.mark.parametrize("known", [True, False])
async def test_an_extensions_summary_treats_file_lists_as_the_product_does(rig, known):
    """Lists that are in the details are appended anew; an extension's own stay in its text."""
    rig.store_talk(15)
    made = []

    async def own(payload):
        lists = "\n\n<read-files>\nold.py\n</read-files>"
        preparation = structs.replace(
            payload.preparation,
            previous_summary=f"before{lists}",
            lists_in_details=known,
            files=FileLists(("old.py",), ()),
        )
        by = pi_tui.SummaryModel(session.models, session.model)
        made.append(await pi_tui.compact(preparation, by))
        return {"cancel": True}

    session = rig.session()
    session.hooks.on("session_before_compact", own)
    rig.provider.add("notes")
    await session.compact(CompactRequest("manual", keep_tokens=400))
    (request,) = rig.summary_requests
    asked = text_of(request.messages[0].content)
    assert "before" in asked and ("<read-files>" in asked) is not known
    assert made[0]["summary"].count("<read-files>") == 1
