"""Moves in the tree: where they lead, what happens when, what Escape and faults leave behind."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest

from pi_tui.agent.branch_summary import budget_tokens
from pi_tui.agent.compactor import CompactRequest
from pi_tui.agent.navigator import (
    ALREADY_MOVING,
    CANCELLED,
    COMPACTING,
    NOTHING_TO_UNDO,
    NavigateRequest,
)
from pi_tui.agent.queues import Draft
from pi_tui.agent.session_switch import READ_ONLY
from pi_tui.core.compaction.prompts import BRANCH_PREAMBLE, SUMMARISER_SYSTEM
from pi_tui.core.entries import (
    BranchSummaryEntry,
    CustomEntry,
    LabelEntry,
    MessageEntry,
    SessionHeader,
    entry_to_data,
)
from pi_tui.core.errors import CompactionError, ErrorKind, ProviderError, UsageError
from pi_tui.core.events import (
    ActivityChanged,
    BranchSummaryEnd,
    BranchSummaryProgress,
    BranchSummaryStart,
    EntryAppended,
    LeafMoved,
    event_to_data,
    event_type,
)
from pi_tui.core.messages import ImageContent, ToolResultMessage, UserMessage, role_of, text_of
from pi_tui.core.models import Model
from pi_tui.core.pairing import check_pairing
from pi_tui.core.projection import convert_to_llm, project
from pi_tui.core.protocols import OpenedSession
from pi_tui.core.transcript import blocks_of
from pi_tui.providers.scripted import Call, Gate, Text, Thinking, reply
from pi_tui.storage.jsonl import create_session, open_session


def to(entry_id, **more):
    return NavigateRequest(entry_id, **more)


def with_summary(entry_id, **more):
    return NavigateRequest(entry_id, summarize=True, **more)


def lines(rig):
    return [json.dumps(entry_to_data(entry)) for entry in rig.store.entries]


def request_texts(request):
    return [text_of(m.content) for m in request.messages]


def summaries(rig):
    return [e for e in rig.store.entries if isinstance(e, BranchSummaryEntry)]


async def talk(rig, *turns):
    """A session with these finished exchanges; every summariser answers "what was learnt"."""
    session = rig.session()
    for question, answer in turns:
        rig.provider.add(answer)
        await session.prompt(question)
    rig.events.clear()
    return session


def entry_of(session, text):
    for entry_id in session.tree.ids():
        entry = session.tree.entry(entry_id)
        if (
            isinstance(entry, MessageEntry)
            and hasattr(entry.message, "content")
            and text_of(entry.message.content) == text
        ):
            return entry_id
    raise AssertionError(f"no entry says {text!r}")


# ---------------------------------------------------------------- where one lands


async def test_a_user_message_is_taken_back_for_editing(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    outcome = await session.navigate(to(entry_of(session, "two")))
    assert outcome.kind == "moved"
    assert outcome.editor_text == "two"
    assert outcome.new_leaf_id == session.tree.leaf_id == entry_of(session, "1")
    assert outcome.old_leaf_id == entry_of(session, "2")
    rig.provider.add("2b")
    await session.prompt("two b")
    assert request_texts(rig.provider.requests[-1]) == ["one", "1", "two b"]
    assert not rig.summary_requests


async def test_the_images_of_the_message_come_with_its_text(rig):
    session = await talk(rig, ("one", "1"))
    image = ImageContent("Y2F0", "image/png")
    rig.provider.add("a cat")
    await session.prompt("look", images=(image,))
    outcome = await session.navigate(to(entry_of(session, "look")))
    assert (outcome.editor_text, outcome.editor_images) == ("look", (image,))


async def test_the_first_user_message_leads_to_the_system_entry(rig):
    session = await talk(rig, ("one", "1"))
    outcome = await session.navigate(to(entry_of(session, "one")))
    assert session.tree.head(outcome.new_leaf_id).role == "system"
    assert blocks_of(session.tree.path()) == []
    rig.provider.add("1b")
    await session.prompt("other")
    assert request_texts(rig.provider.requests[-1]) == ["other"]
    first, second = entry_of(session, "one"), entry_of(session, "other")
    assert session.tree.parent(first) == session.tree.parent(second)


async def test_anything_else_becomes_the_leaf_and_the_editor_is_left_alone(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    outcome = await session.navigate(to(entry_of(session, "1")))
    assert (outcome.kind, outcome.editor_text) == ("moved", None)
    assert session.tree.leaf_id == entry_of(session, "1")
    (moved,) = rig.of(LeafMoved)
    assert moved == LeafMoved(entry_of(session, "1"), entry_of(session, "2"))


async def test_the_place_before_the_first_entry(rig):
    session = await talk(rig, ("one", "1"))
    outcome = await session.navigate(to(None))
    assert (outcome.kind, session.tree.leaf_id) == ("moved", None)
    rig.provider.add("fresh")
    await session.prompt("again")
    assert request_texts(rig.provider.requests[-1]) == ["again"]
    assert len(session.tree.roots) > 1


async def test_the_current_leaf_changes_nothing(rig):
    session = await talk(rig, ("one", "1"))
    before = lines(rig)
    outcome = await session.navigate(with_summary(session.tree.leaf_id))
    assert (outcome.kind, outcome.message) == ("already-there", "already at this point")
    assert lines(rig) == before and not rig.events


async def test_what_nobody_sees_does_not_lead_away(rig):
    """A label, a pin or an edit is noted at the leaf, and that is no other place."""
    session = await talk(rig, ("one", "1"), ("two", "2"))
    answer, question = session.tree.leaf_id, entry_of(session, "two")
    await session.navigate(to(entry_of(session, "1")))
    session.branches.hide(question)
    await session.navigate(to(answer))
    session.set_label(answer, "here")
    session.pin(answer)
    session.branches.leave_out(entry_of(session, "one"))
    session.set_name("a name")
    before, leaf = lines(rig), session.tree.leaf_id
    assert leaf != answer
    preview = await session.preview_navigation(answer)
    assert (preview.entries, preview.summarizable, preview.already_there) == (0, False, True)
    outcome = await session.navigate(with_summary(answer))
    assert (outcome.kind, outcome.message) == ("already-there", "already at this point")
    assert lines(rig) == before and session.tree.leaf_id == leaf
    outcome = await session.navigate(NavigateRequest(answer, label="named"))
    assert outcome.kind == "already-there" and session.tree.label(answer) == "named"


@pytest.mark.parametrize("labelled", [False, True])
async def test_the_next_message_here_only_comes_into_the_editor(rig, labelled):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    await session.navigate(to(entry_of(session, "1")))
    if labelled:
        session.set_label(session.tree.leaf_id, "fork")
    before, leaf = lines(rig), session.tree.leaf_id
    outcome = await session.navigate(to(entry_of(session, "two")))
    assert (outcome.kind, outcome.editor_text) == ("already-there", "two")
    assert outcome.message == "already at this point; the message can be edited and sent again"
    assert outcome.new_leaf_id == outcome.old_leaf_id == session.tree.leaf_id == leaf
    assert lines(rig) == before


async def test_an_unknown_entry_is_told(rig):
    session = await talk(rig, ("one", "1"))
    outcome = await session.navigate(to("ffffffff"))
    assert outcome.kind == "failed" and "ffffffff" in outcome.message
    with pytest.raises(UsageError):
        await session.preview_navigation("ffffffff")


async def test_the_place_is_there_again_after_reopening(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    place = entry_of(session, "1")
    await session.navigate(to(place))
    reopened = rig.session()
    assert reopened.tree.leaf_id == place
    marker = rig.store.entries[-1]
    outcome = await reopened.navigate(to(marker.id))  # what marks a place stands for it
    assert outcome.kind == "already-there"


# ---------------------------------------------------------------- the summary


async def test_a_summary_is_the_first_entry_of_the_new_place(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    place, old = entry_of(session, "1"), session.tree.leaf_id
    rig.provider.add("what was learnt")
    outcome = await session.navigate(with_summary(place, custom_instructions="only the parser"))
    (entry,) = summaries(rig)
    assert rig.store.entries[-1] is entry
    assert entry.id == session.tree.leaf_id == outcome.new_leaf_id == outcome.summary_entry_id
    assert (entry.parent_id, entry.from_id) == (place, old)
    assert entry.summary == f"{BRANCH_PREAMBLE}\n\nwhat was learnt"
    assert entry.usage.total_tokens == 15
    assert entry.details["parts"] == 1
    assert entry.details["durationMs"] == 0
    assert entry.details["readFiles"] == entry.details["modifiedFiles"] == []
    assert entry.details["estimatedTokens"] == 2  # "two" and "2"
    assert not entry.from_hook
    (request,) = rig.summary_requests
    (said,) = request_texts(request)
    assert "two" in said and "one" not in said.split("</conversation>")[0]
    assert "only the parser" in said and "## Key Decisions" in said
    assert "## Critical Context" not in said
    assert request.tools == () and not request.cache
    assert request.session_id != session.session_id
    rig.provider.add("fine")
    await session.prompt("go on")
    texts = request_texts(rig.provider.requests[-1])
    assert texts[:2] == ["one", "1"] and texts[3:] == ["go on"]
    assert "what was learnt" in texts[2] and "<summary>" in texts[2]


async def test_own_instructions_can_stand_alone(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    rig.provider.add("done")
    await session.navigate(
        with_summary(
            entry_of(session, "1"), custom_instructions="a haiku", replace_instructions=True
        )
    )
    (said,) = request_texts(rig.summary_requests[0])
    assert "a haiku" in said and "## Goal" not in said


async def test_files_of_the_branch_are_listed_by_the_program(rig, gated_tool):
    rig.tools = (gated_tool("read"), gated_tool("edit"))
    rig.provider.add("1")
    session = rig.session()
    await session.prompt("one")
    rig.provider.add(reply(Call("read", {"path": "a.py"}), Call("edit", {"path": "b.py"})), "2")
    await session.prompt("two")
    rig.provider.add("learnt\n\n<read-files>\ninvented.py\n</read-files>")
    await session.navigate(with_summary(entry_of(session, "1")))
    (entry,) = summaries(rig)
    assert entry.details["readFiles"] == ["a.py"]
    assert entry.details["modifiedFiles"] == ["b.py"]
    assert "<read-files>\na.py\n</read-files>" in entry.summary
    assert "<modified-files>\nb.py\n</modified-files>" in entry.summary
    assert "invented.py" not in entry.summary
    (said,) = request_texts(rig.summary_requests[0])
    assert "result" not in said.split("</conversation>")[0]  # results are not repeated

    # A branch that holds this summary hands the files on.
    rig.provider.add("3", "learnt more")
    await session.prompt("three")
    await session.navigate(with_summary(entry_of(session, "1")))
    assert summaries(rig)[1].details["modifiedFiles"] == ["b.py"]


async def test_only_the_newest_messages_within_the_budget_are_summarised(rig):
    rig.model = Model(provider="scripted", id="m", api="scripted", context_window=20_000)
    rig.store_talk(1)
    place = rig.store.entries[-1].id
    rig.store_talk(40, chars=2_000)
    session = rig.session()
    preview = await session.preview_navigation(place)
    assert preview.left_out_messages > 0
    rig.provider = session.models.provider
    rig.provider.add(*["part"] * 20)
    await session.navigate(with_summary(place))
    sent = "".join(text for r in rig.summary_requests for text in request_texts(r))
    assert "question of turn 39" in sent
    assert "question of turn 1 " not in sent
    # Half the window is the budget where the reserve is nearly all of it; see below.
    assert summaries(rig)[0].details["estimatedTokens"] <= 20_000 - 16_384


def test_a_reserve_larger_than_the_window_leaves_half_of_it():
    assert budget_tokens(100_000, 16_384) == 83_616
    assert budget_tokens(16_384, 16_384) == 8_192
    assert budget_tokens(8_000, 50_000) == 4_000


async def test_nothing_in_between_means_no_summary_and_no_entry(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    further = session.tree.leaf_id
    await session.navigate(to(entry_of(session, "1")))
    session.set_label(session.tree.leaf_id, "here")
    outcome = await session.navigate(with_summary(further))  # only a label is left
    assert outcome.kind == "moved" and session.tree.leaf_id == further
    assert not summaries(rig) and not rig.summary_requests
    assert "nothing to summarise" in outcome.message
    assert not rig.of(BranchSummaryStart)
    assert session.activity == "idle"


async def test_events_of_a_summary_in_order_and_in_json(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    rig.provider.add(reply(Text.of("what was ", "learnt ", "here, in many words")))
    leaves = []
    session.subscribe(
        lambda e: leaves.append(session.tree.leaf_id) if isinstance(e, LeafMoved) else None
    )
    await session.navigate(with_summary(entry_of(session, "1")))
    types = [event_type(e) for e in rig.events]
    assert list(dict.fromkeys(types)) == [
        "activity_changed",
        "branch_summary_start",
        "branch_summary_progress",
        "session_tree",
        "entry_appended",
        "branch_summary_end",
    ]
    assert leaves == [entry_of(session, "1")]  # a listener that rebuilds sees no entry twice
    start, end = rig.of(BranchSummaryStart)[0], rig.of(BranchSummaryEnd)[0]
    assert (start.entries, start.estimated_tokens) == (2, 2)
    assert end.entry_id == session.tree.leaf_id and end.usage.total_tokens == 15
    assert [e.activity for e in rig.of(ActivityChanged)] == ["summarising_branch", "idle"]
    data = [event_to_data(e) for e in rig.events]
    json.dumps(data)
    assert event_to_data(end) == {
        "type": "branch_summary_end",
        "entryId": end.entry_id,
        "aborted": False,
        "usage": event_to_data(end)["usage"],
        "durationMs": 0,
        "parts": 1,
        "retries": 0,
    }
    assert max(e.received_tokens for e in rig.of(BranchSummaryProgress)) > 0


async def test_the_usage_of_summaries_counts(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    before = session.stats().usage.total_tokens
    rig.provider.add(" ")
    failed = await session.navigate(with_summary(entry_of(session, "1")))
    assert failed.kind == "failed" and session.stats().usage.total_tokens == before + 15
    rig.provider.add("learnt")
    await session.navigate(with_summary(entry_of(session, "1")))
    assert session.stats().usage.total_tokens == before + 30


# ---------------------------------------------------------------- labels


async def test_a_label_names_the_summary_else_the_target(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    place = entry_of(session, "1")
    await session.navigate(to(place, label="  start \n here"))
    assert session.tree.label(place) == "start here"
    rig.provider.add("3", "learnt")
    await session.prompt("three")
    outcome = await session.navigate(with_summary(place, label="second try"))
    assert session.tree.label(outcome.summary_entry_id) == "second try"
    assert session.tree.label(place) == "start here"
    label = rig.store.entries[-1]
    assert isinstance(label, LabelEntry) and label.parent_id == outcome.summary_entry_id
    assert rig.session().tree.leaf_id == session.tree.leaf_id == label.id


# ---------------------------------------------------------------- while a turn runs (TREE-01)


def check_old_branch(session, old_leaf):
    path = session.tree.path(old_leaf)
    messages = [e.message for e in path if isinstance(e, MessageEntry)]
    assert check_pairing([m for m in messages if role_of(m) != "system"]) == []
    return messages


@pytest.mark.parametrize("wanted", ["1", "one"])
@pytest.mark.parametrize("waiting", ["all", "one has answered"])
async def test_tool_calls_get_their_answers_on_the_old_branch(
    rig, gated_tool, until, wanted, waiting
):
    tool = gated_tool()
    rig.tools = (tool,)
    session = await talk(rig, ("one", "1"))
    rig.provider.add(reply(*(Call("work", {"n": n, "wait": 1}) for n in "abc")))
    session.submit("again, slowly")
    await until(lambda: len(tool.log) == 3)
    if waiting != "all":
        tool.gate("b").set()
        await until(lambda: "end b" in tool.log)
    calling = session.tree.leaf_id
    outcome = await session.navigate(to(entry_of(session, wanted)))
    assert outcome.kind == "moved"
    assert "the running turn was stopped" in outcome.message
    results = [
        e
        for e in rig.store.entries
        if isinstance(e, MessageEntry) and isinstance(e.message, ToolResultMessage)
    ]
    assert len(results) == 3
    assert results[0].parent_id == calling
    assert outcome.old_leaf_id == results[-1].id
    check_old_branch(session, outcome.old_leaf_id)
    assert ["result b" in text_of(r.message.content) for r in results] == [
        False,
        waiting != "all",
        False,
    ]
    before = lines(rig)
    for gate in "abc":
        tool.gate(gate).set()  # a late finish adds nothing
    for _ in range(20):
        await asyncio.sleep(0)
    assert lines(rig) == before
    rig.provider.add("else")
    await session.prompt("something else")
    assert check_pairing(rig.provider.requests[-1].messages) == []
    assert "again, slowly" not in request_texts(rig.provider.requests[-1])


async def test_a_reply_that_is_still_streaming_is_stored_as_aborted(rig, until):
    session = await talk(rig, ("one", "1"))
    gate = Gate()
    rig.provider.add(reply(Thinking("hm"), "half a", gate, "never seen"))
    session.submit("two")
    await gate.reached.wait()
    outcome = await session.navigate(to(entry_of(session, "1")))
    messages = [e.message for e in session.tree.path(outcome.old_leaf_id)[-1:]]
    assert messages[-1].stop_reason == "aborted" and messages[-1].text == "half a"
    assert rig.provider.active == 0
    assert session.tree.leaf_id == entry_of(session, "1")
    assert session.activity == "idle"


async def test_a_turn_goes_on_when_there_is_nowhere_to_go(rig, until):
    session = await talk(rig, ("one", "1"))
    gate = Gate()
    rig.provider.add(reply("half", gate, " whole"))
    session.submit("two")
    await gate.reached.wait()
    assert (await session.navigate(to(session.tree.leaf_id))).kind == "already-there"
    assert (await session.navigate(to("nowhere"))).kind == "failed"
    session.hooks.on("session_before_tree", lambda _: {"cancel": True})
    refused = await session.navigate(to(entry_of(session, "1")))
    assert refused.kind == "cancelled" and "extension" in refused.message
    assert "stopped" not in refused.message
    assert session.activity == "running"
    gate.open()
    await session.wait_idle()
    assert session.last_answer.text == "half\n whole"


async def test_what_waited_for_the_stopped_turn_goes_back_to_the_editor(rig, until):
    session = await talk(rig, ("one", "1"))
    gate = Gate()
    rig.provider.add(reply("half", gate))
    session.submit("two")
    await gate.reached.wait()
    session.submit("steer it")
    session.submit("then this", "followUp")
    outcome = await session.navigate(to(entry_of(session, "1")))
    assert outcome.taken_back == (Draft("steer it"), Draft("then this"))
    assert session.queued == ((), ())
    assert session.activity == "idle" and len(rig.ordinary_requests) == 2


async def test_a_summary_covers_the_turn_that_was_stopped(rig, gated_tool, until):
    tool = gated_tool()
    rig.tools = (tool,)
    session = await talk(rig, ("one", "1"))
    rig.provider.add(reply("I try", Call("work", {"n": "a", "wait": 1})), "learnt")
    session.submit("two")
    await until(lambda: tool.log == ["start a"])
    outcome = await session.navigate(with_summary(entry_of(session, "1")))
    (said,) = request_texts(rig.summary_requests[0])
    assert "I try" in said
    (entry,) = summaries(rig)
    assert entry.from_id == outcome.old_leaf_id
    assert session.tree.head(entry.from_id).role == "toolResult"


# ---------------------------------------------------------------- messages meanwhile (TREE-03)


async def start_summary(rig, session, target, *more, **request):
    gate = Gate()
    rig.provider.add(reply("what was ", gate, "learnt"), *more)
    moving = asyncio.ensure_future(session.navigate(with_summary(target, **request)))
    await gate.reached.wait()
    return gate, moving


async def test_messages_submitted_meanwhile_follow_the_move_in_order(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    place, old = entry_of(session, "1"), session.tree.leaf_id
    gate, moving = await start_summary(rig, session, place, "tabs", "no semicolons")
    assert session.activity == "summarising_branch"
    assert session.submit("use tabs") == "queued"
    assert session.submit("and no semicolons", "followUp") == "queued"
    with pytest.raises(UsageError):
        await session.prompt("not now")
    gate.open()
    outcome = await moving
    await session.wait_idle()
    assert outcome.taken_back == ()
    at = next(i for i, e in enumerate(rig.store.entries) if isinstance(e, BranchSummaryEntry))
    new = rig.store.entries[at:]
    assert [text_of(e.message.content) for e in new[1:]] == [
        "use tabs",
        "tabs",
        "and no semicolons",
        "no semicolons",
    ]
    for before, after in pairwise(new):
        assert after.parent_id == before.id
    assert session.tree.children(old) == ()
    first, second = rig.ordinary_requests[-2:]
    assert "what was \nlearnt" in request_texts(first)[2]
    assert request_texts(first)[3:] == ["use tabs"]
    assert sum(text == "use tabs" for text in request_texts(second)) == 1
    assert session.activity == "idle"


async def test_a_failed_summary_keeps_the_place_and_the_queue(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    before, old = lines(rig), session.tree.leaf_id
    gate = Gate()
    error = ProviderError("quota exceeded", kind=ErrorKind.QUOTA)
    rig.provider.add(lambda request: reply(gate, stop_reason="length"))
    moving = asyncio.ensure_future(session.navigate(with_summary(entry_of(session, "1"))))
    await gate.reached.wait()
    session.submit("use tabs")
    gate.open()
    outcome = await moving
    assert outcome.kind == "failed"
    assert (outcome.new_leaf_id, session.tree.leaf_id) == (old, old)
    assert "you are where you were" in outcome.message
    assert session.queued == (("use tabs",), ())
    assert lines(rig) == before
    assert session.activity == "idle"
    (end,) = rig.of(BranchSummaryEnd)
    assert end.entry_id is None and not end.aborted and "output limit" in end.error_message
    rig.provider.add(error)
    again = await session.navigate(with_summary(entry_of(session, "1")))
    assert again.kind == "failed" and "quota exceeded" in again.message
    rig.provider.add("tabs")
    assert session.queued == (("use tabs",), ())
    assert session.submit("and go") == "started"  # what was written first is sent first
    await session.wait_idle()
    assert request_texts(rig.ordinary_requests[-2])[-1] == "use tabs"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        " \n\t",
        reply(Thinking("only this"), stop_reason="length"),
        reply(Call("read", {"path": "x"})),
        reply("half a sente", stop_reason="length"),
        ProviderError("no key", kind=ErrorKind.AUTH),
    ],
)
async def test_useless_answers_of_the_summariser_change_nothing(rig, answer):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    before = lines(rig)
    rig.provider.add(answer)
    outcome = await session.navigate(with_summary(entry_of(session, "1"), label="x"))
    assert outcome.kind == "failed" and outcome.message
    assert "go back to an earlier point with /tree" not in outcome.message
    assert lines(rig) == before and session.activity == "idle"


async def test_a_full_disk_keeps_the_place(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    before, old = lines(rig), session.tree.leaf_id
    rig.provider.add("learnt")
    rig.store.refuse = True
    outcome = await session.navigate(with_summary(entry_of(session, "1")))
    assert outcome.kind == "failed" and "the disk is full" in outcome.message
    assert session.tree.leaf_id == old and lines(rig) == before and not rig.store.pending
    rig.store.refuse = False
    rig.provider.add("learnt")
    assert (await session.navigate(with_summary(entry_of(session, "1")))).kind == "moved"


async def test_a_summary_is_tried_again_as_any_request(rig, until):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    rig.provider.add(ProviderError("busy", kind=ErrorKind.OVERLOADED), "learnt")
    moving = asyncio.ensure_future(session.navigate(with_summary(entry_of(session, "1"))))
    await until(lambda: rig.clock.sleeps)
    rig.clock.advance(60)
    assert (await moving).kind == "moved"
    assert summaries(rig)[0].details["retries"] == 1
    retried = [e for e in rig.events if event_type(e).startswith("summarization_retry")]
    assert {e.source for e in retried[:2]} == {"branchSummary"}


@pytest.mark.parametrize("running", [False, True])
async def test_a_message_submitted_at_any_moment_is_there_exactly_once(
    rig, gated_tool, no_threads, running
):
    delivered = []
    for k in range(1, 400):  # at 0 the move was not asked for yet
        new = type(rig)()
        new.tools = (gated_tool(),)
        session = await talk(new, ("one", "1"), ("two", "2"))
        if running:
            new.provider.add(reply(Call("work", {"n": "a", "wait": 1})))
            session.submit("three")
            while not new.tools[0].log:
                await asyncio.sleep(0)
        place = entry_of(session, "1")
        new.provider.add(reply(Text.of("what ", "was ", "learnt")), "tabs")
        moving = asyncio.ensure_future(session.navigate(with_summary(place)))
        for _ in range(k):
            await asyncio.sleep(0)
        over = moving.done()
        session.submit("use tabs")
        outcome = await asyncio.wait_for(moving, 5)
        await asyncio.wait_for(session.wait_idle(), 5)
        said = [
            e
            for e in new.store.entries
            if isinstance(e, MessageEntry)
            and isinstance(e.message, UserMessage)
            and text_of(e.message.content) == "use tabs"
        ]
        assert len(said) + outcome.taken_back.count(Draft("use tabs")) == 1
        assert session.queued == ((), ())
        assert outcome.kind == "moved" and session.activity == "idle"
        (summary,) = summaries(new)
        if said:
            assert said[0].parent_id == summary.id
            assert session.last_answer.text == "tabs"
            assert check_pairing(new.provider.requests[-1].messages) == []
        delivered.append(bool(said))
        if over:
            break
    assert delivered[-1] and sum(delivered) > 8


async def test_waiting_for_a_retry_ends_with_the_move(rig, until):
    session = await talk(rig, ("one", "1"))
    rig.provider.add(ProviderError("busy", kind=ErrorKind.OVERLOADED))
    session.submit("two")
    await until(lambda: session.activity == "retrying")
    outcome = await session.navigate(to(entry_of(session, "1")))
    assert outcome.kind == "moved" and session.tree.leaf_id == entry_of(session, "1")
    rig.clock.advance(600)
    for _ in range(20):
        await asyncio.sleep(0)
    assert session.activity == "idle" and len(rig.provider.requests) == 2


# ---------------------------------------------------------------- one thing at a time


async def test_a_second_move_and_a_compaction_are_refused_with_one_line(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    gate, moving = await start_summary(rig, session, entry_of(session, "1"))
    count = len(rig.provider.requests)
    second = await session.navigate(with_summary(entry_of(session, "one")))
    assert (second.kind, second.message) == ("failed", ALREADY_MOVING)
    assert (await session.undo_navigation()).kind == "failed"
    with pytest.raises((UsageError, CompactionError)) as refused:
        await session.compact(CompactRequest("manual"))
    assert refused.value.message == ALREADY_MOVING
    for change in (
        lambda: session.set_label(entry_of(session, "1"), "no"),
        lambda: session.branches.leave_out(entry_of(session, "1")),
        lambda: session.branches.unhide(),
        lambda: session.undo_compaction(),
    ):
        with pytest.raises(UsageError):
            change()
    assert len(rig.provider.requests) == count
    gate.open()
    assert (await moving).kind == "moved"
    assert len(summaries(rig)) == 1


async def test_no_move_while_a_compaction_runs(rig):
    rig.store_talk(60, chars=4_000)
    session = rig.session()
    gate = Gate()
    rig.provider.add(reply(gate, "notes"), "notes")
    compacting = asyncio.ensure_future(session.compact(CompactRequest("manual")))
    await gate.reached.wait()
    outcome = await session.navigate(to(rig.store.entries[0].id))
    assert (outcome.kind, outcome.message) == ("failed", COMPACTING)
    gate.open()
    done = await compacting
    assert done.kind == "done", done.message


async def test_a_caller_that_goes_away_does_not_break_the_move(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    gate, moving = await start_summary(rig, session, entry_of(session, "1"))
    moving.cancel()
    await asyncio.wait([moving])
    gate.open()
    await session.wait_idle()
    assert session.tree.leaf_id == summaries(rig)[0].id


async def test_leaving_the_session_ends_the_move_and_delivers_nothing(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    before = lines(rig)
    _, moving = await start_summary(rig, session, entry_of(session, "1"))
    session.submit("never sent")
    await session.new_session()
    assert (await moving).kind == "cancelled"
    assert lines(rig) == before
    assert rig.provider.active == 0 and session.queued == ((), ())


async def test_output_of_a_shell_command_follows_the_summary(rig, until):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    gate, moving = await start_summary(rig, session, entry_of(session, "1"))
    session.start_shell("ls", excluded=False)
    rig.shell.gate.set()
    for _ in range(10):
        await asyncio.sleep(0)
    gate.open()
    await moving
    await session.wait_idle()
    shell = rig.store.entries[-1]
    assert role_of(shell.message) == "bashExecution"
    assert shell.parent_id == summaries(rig)[0].id


# ---------------------------------------------------------------- Escape (TREE-04)


async def test_escape_during_the_summary_leaves_everything_as_it_was(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    before, old = lines(rig), session.tree.leaf_id
    _, moving = await start_summary(rig, session, entry_of(session, "1"), label="never")
    assert session.abort()
    outcome = await moving
    assert (outcome.kind, outcome.message) == ("cancelled", CANCELLED)
    assert lines(rig) == before and session.tree.leaf_id == old
    assert session.activity == "idle"
    assert rig.provider.active == 0 and rig.provider.cancelled == 1
    assert rig.of(BranchSummaryEnd)[0].aborted
    assert not session.abort()
    rig.provider.add("3", "learnt")
    await session.prompt("hello")
    assert request_texts(rig.ordinary_requests[-1])[-3:] == ["two", "2", "hello"]
    assert (await session.navigate(with_summary(entry_of(session, "1")))).kind == "moved"


async def test_the_file_itself_is_untouched_by_escape(rig, tmp_path):
    header = SessionHeader(id="s1", timestamp="2026-01-02T03:04:05.000Z", cwd="/work")
    store = create_session(tmp_path, header)
    session = rig.session(OpenedSession(store, ()))
    rig.provider.add("1", "2")
    await session.prompt("one")
    await session.prompt("two")
    before = Path(store.path).read_bytes()
    old = session.tree.leaf_id
    _, moving = await start_summary(rig, session, entry_of(session, "1"))
    session.abort()
    await moving
    assert Path(store.path).read_bytes() == before
    await session.navigate(to(entry_of(session, "one")))
    place = session.tree.leaf_id
    assert Path(store.path).read_bytes().startswith(before)
    await session.close()
    again = rig.session(open_session(store.path))
    assert again.tree.leaf_id == place
    await again.undo_navigation()
    assert again.tree.leaf_id == old
    await again.close()


async def test_escape_keeps_messages_where_they_can_be_seen(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    _, moving = await start_summary(rig, session, entry_of(session, "1"))
    session.submit("use tabs")
    session.abort()
    await moving
    assert session.take_back_queue() == ["use tabs"]


@pytest.fixture
def no_threads(monkeypatch):
    """Threads replaced by the loop itself, so that the k-th moment is the same each time."""

    async def inline(work, *args):
        await asyncio.sleep(0)
        return work(*args)

    monkeypatch.setattr(asyncio, "to_thread", inline)


@pytest.mark.parametrize("running", [False, True])
async def test_escape_at_every_moment_moves_wholly_or_not_at_all(
    rig, gated_tool, no_threads, running
):
    kinds = []
    for k in range(400):
        new = type(rig)()
        new.tools = (gated_tool(),)
        session = await talk(new, ("one", "1"), ("two", "2"))
        if running:
            new.provider.add(reply(Call("work", {"n": "a", "wait": 1})))
            session.submit("three")
            while not new.tools[0].log:
                await asyncio.sleep(0)
        place, old = entry_of(session, "1"), session.tree.leaf_id
        before = lines(new)
        new.provider.add(reply(Text.of("what ", "was ", "learnt")))
        moving = asyncio.ensure_future(session.navigate(with_summary(place, label="tried")))
        for _ in range(k):
            await asyncio.sleep(0)
        over = moving.done()
        session.abort()
        outcome = await asyncio.wait_for(moving, 5)
        await session.wait_idle()
        kinds.append(outcome.kind)
        assert session.activity == "idle" and new.provider.active == 0
        ends = new.of(BranchSummaryEnd)
        assert len(ends) == len(new.of(BranchSummaryStart))
        if outcome.kind == "moved":
            (entry,) = summaries(new)
            assert entry.parent_id == place and ends[0].entry_id == entry.id
            assert session.tree.label(entry.id) == "tried"
            assert entry.id in session.tree.path_ids()
            assert new.session().tree.leaf_id == session.tree.leaf_id
        else:
            assert outcome.kind == "cancelled"
            assert not summaries(new) and not new.of(LeafMoved)
            if running and k > 1:
                assert check_old_branch(session, session.tree.leaf_id)
            else:
                assert session.tree.leaf_id in (old, *session.tree.children(old))
            if not running:
                assert lines(new) == before
        new.provider.add("fine")
        if new.provider.remaining == 2:  # the summariser was never asked
            new.provider._replies.pop(0)
        await session.prompt("hello")
        assert check_pairing(new.provider.requests[-1].messages) == []
        if over:
            break
    else:
        raise AssertionError("the move never ended")
    assert set(kinds) == {"cancelled", "moved"}
    before_it_began, *kinds = kinds
    assert before_it_began == "moved" and len(kinds) > 8
    assert kinds == sorted(kinds)  # cancelled up to one moment, moved from it on


async def test_escape_while_an_extension_thinks_stops_the_move_and_not_the_turn(rig, until):
    session = await talk(rig, ("one", "1"))
    gate = Gate()
    rig.provider.add(reply("half", gate, " whole"))
    session.submit("two")
    await gate.reached.wait()
    asked = asyncio.Event()

    async def slow(payload):
        asked.set()
        await asyncio.Event().wait()

    session.hooks.on("session_before_tree", slow)
    moving = asyncio.ensure_future(session.navigate(to(entry_of(session, "1"))))
    await asked.wait()
    assert session.abort()
    assert (await moving).kind == "cancelled"
    assert session.activity == "running"
    gate.open()
    await session.wait_idle()
    assert session.last_answer.text == "half\n whole"


async def test_escape_while_extensions_are_told_does_not_undo_the_move(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    told = asyncio.Event()

    async def slow(payload):
        told.set()
        await asyncio.Event().wait()

    session.hooks.on("session_tree", slow)
    rig.provider.add("learnt")
    moving = asyncio.ensure_future(session.navigate(with_summary(entry_of(session, "1"))))
    await told.wait()
    assert session.submit("queued") == "queued"
    rig.provider.add("delivered")
    assert session.abort()
    outcome = await moving
    await session.wait_idle()
    assert outcome.kind == "moved" and session.tree.parent(outcome.summary_entry_id)
    assert session.last_answer.text == "delivered"


# ---------------------------------------------------------------- extensions


async def test_extensions_are_asked_on_every_move_and_told_of_it(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    asked, told = [], []
    session.hooks.on("session_before_tree", lambda p: asked.append(p.preparation))
    session.hooks.on("session_tree", told.append)
    place, old = entry_of(session, "1"), session.tree.leaf_id
    await session.navigate(to(place, label="a"))
    (preparation,) = asked
    assert preparation.target_id == preparation.common_ancestor_id == place
    assert preparation.old_leaf_id == old
    assert [e.id for e in preparation.entries_to_summarize] == [entry_of(session, "two"), old]
    assert not preparation.user_wants_summary and preparation.label == "a"
    assert told[0].old_leaf_id == old and told[0].new_leaf_id == session.tree.leaf_id
    assert told[0].summary_entry is None and not told[0].from_extension
    await session.undo_navigation()
    assert (len(asked), len(told)) == (2, 2)


async def test_an_extension_can_change_what_is_asked_for(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    session.hooks.on(
        "session_before_tree",
        lambda p: {"customInstructions": "a haiku", "replaceInstructions": True, "label": "theirs"},
    )
    rig.provider.add("learnt")
    outcome = await session.navigate(with_summary(entry_of(session, "1"), label="mine"))
    (said,) = request_texts(rig.summary_requests[0])
    assert "a haiku" in said and "## Goal" not in said
    assert session.tree.label(outcome.summary_entry_id) == "theirs"


async def test_a_summary_of_an_extension_is_used_only_when_one_is_wanted(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    made = {"summary": "by hand", "details": {"readFiles": ["x"]}, "usage": {"input": 7}}
    session.hooks.on("session_before_tree", lambda p: {"summary": made})
    told = []
    session.hooks.on("session_tree", told.append)
    await session.navigate(to(entry_of(session, "1")))
    assert not summaries(rig) and not told[0].from_extension
    await session.undo_navigation()
    outcome = await session.navigate(with_summary(entry_of(session, "1")))
    (entry,) = summaries(rig)
    assert entry.summary == "by hand" and entry.from_hook
    assert entry.details == {"readFiles": ["x"]} and entry.usage.input == 7
    assert entry.id == outcome.summary_entry_id
    assert told[-1].summary_entry == entry and told[-1].from_extension
    assert not rig.summary_requests


@pytest.mark.parametrize("bad", ["text", {"summary": " "}, {"summary": "x", "details": object()}])
async def test_an_unsound_summary_of_an_extension_is_refused(rig, bad):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    session.hooks.on("session_before_tree", lambda p: {"summary": bad})
    before = lines(rig)
    outcome = await session.navigate(with_summary(entry_of(session, "1")))
    assert outcome.kind == "failed" and "extension" in outcome.message
    assert lines(rig) == before and session.activity == "idle"


async def test_an_extension_that_raises_counts_as_no_answer(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))

    def bad(payload):
        raise RuntimeError("boom")

    session.hooks.on("session_before_tree", bad)
    session.hooks.on("session_tree", bad)
    assert (await session.navigate(to(entry_of(session, "1")))).kind == "moved"


async def test_an_extension_may_not_move_while_it_is_asked(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    inner = []

    async def again(payload):
        inner.append(await session.navigate(to(entry_of(session, "one"))))

    session.hooks.on("session_before_tree", again)
    assert (await session.navigate(to(entry_of(session, "1")))).kind == "moved"
    assert inner[0].message == ALREADY_MOVING


# ---------------------------------------------------------------- undo


async def test_undo_goes_back_move_by_move_also_after_reopening(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    first, second = entry_of(session, "1"), entry_of(session, "2")
    await session.navigate(to(first))
    rig.provider.add("3")
    await session.prompt("three")
    third = session.tree.leaf_id
    rig.provider.add("learnt")
    await session.navigate(with_summary(second))
    summary = session.tree.leaf_id
    assert session.tree.parent(summary) == second

    session = rig.session()
    outcome = await session.undo_navigation()
    assert (outcome.kind, outcome.editor_text) == ("moved", None)
    assert session.tree.leaf_id == third
    session = rig.session()
    await session.undo_navigation()
    assert session.tree.leaf_id == second
    outcome = await session.undo_navigation()
    assert (outcome.kind, outcome.message) == ("failed", NOTHING_TO_UNDO)
    await session.navigate(to(summary))
    await session.undo_navigation()
    assert session.tree.leaf_id == second


async def test_undo_leads_to_a_user_message_itself(rig):
    rig.store_talk(1)
    asked = rig.store_message(UserMessage("unanswered", 0))
    session = rig.session()
    await session.navigate(to(rig.store.entries[0].id))
    assert session.tree.leaf_id is None
    outcome = await session.undo_navigation()
    assert session.tree.leaf_id == asked and outcome.editor_text is None


async def test_moves_of_programs_without_markers_can_be_undone(rig):
    rig.store_talk(2)
    root, old = rig.store.entries[1].id, rig.store.entries[-1].id
    other = MessageEntry(
        id="aaaaaaaa",
        parent_id=root,
        timestamp=rig.store.entries[-1].timestamp,
        message=UserMessage("elsewhere", 0),
    )
    rig.store.entries.append(other)
    session = rig.session()
    await session.undo_navigation()
    assert session.tree.leaf_id == old


async def test_an_empty_session_has_nothing_to_undo(rig):
    outcome = await rig.session().undo_navigation()
    assert (outcome.kind, outcome.message) == ("failed", NOTHING_TO_UNDO)


# ---------------------------------------------------------------- read only, preview


async def test_a_session_for_reading_only_can_be_looked_through(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    old = session.tree.leaf_id
    rig.store.read_only = True
    before = lines(rig)
    assert (await session.navigate(to(entry_of(session, "1")))).kind == "moved"
    assert (await session.navigate(to(entry_of(session, "one")))).kind == "moved"
    refused = await session.navigate(with_summary(old))
    assert refused.kind == "failed" and refused.message.startswith(READ_ONLY)
    assert (await session.navigate(to(old, label="x"))).kind == "failed"
    await session.undo_navigation()
    assert session.tree.leaf_id == entry_of(session, "1")
    await session.undo_navigation()
    assert session.tree.leaf_id == old
    assert (await session.undo_navigation()).kind == "failed"
    assert lines(rig) == before


async def test_a_preview_says_what_would_be_left(rig, gated_tool):
    rig.tools = (gated_tool("edit"),)
    session = await talk(rig, ("one", "1"))
    rig.provider.add(reply(Call("edit", {"path": "b.py"})), "2")
    await session.prompt("two")
    before = lines(rig)
    preview = await session.preview_navigation(entry_of(session, "1"))
    assert (preview.entries, preview.summarizable, preview.already_there) == (3, True, False)
    assert preview.estimated_tokens > 0 and preview.left_out_messages == 0
    assert preview.modified_files == ("b.py",)
    assert preview.common_ancestor_id == entry_of(session, "1")
    here = await session.preview_navigation(session.tree.leaf_id)
    assert (here.entries, here.summarizable, here.already_there) == (0, False, True)
    everything = await session.preview_navigation(None)
    # The setting of the thinking level and the answer with nothing but a call are not counted.
    assert everything.entries == len(session.tree.path_ids()) - 2 and everything.summarizable
    assert lines(rig) == before and not rig.summary_requests


async def test_the_model_of_the_setting_is_asked(rig):
    other = Model(provider="scripted", id="cheap", api="scripted")
    rig.other_models = (other,)
    rig.summary_model = other.full_name
    session = await talk(rig, ("one", "1"), ("two", "2"))
    rig.provider.add("learnt")
    await session.navigate(with_summary(entry_of(session, "1")))
    assert rig.summary_requests[0].model == other
    assert rig.summary_requests[0].system == SUMMARISER_SYSTEM
    assert summaries(rig)[0].details["model"] == other.full_name


async def test_memory_and_file_tell_the_same_conversation(rig):
    session = await talk(rig, ("one", "1"), ("two", "2"))
    rig.provider.add("learnt")
    await session.navigate(with_summary(entry_of(session, "1")))
    await session.navigate(to(entry_of(session, "two")))

    def context(one):
        return convert_to_llm(p.message for p in project(one.tree.context_path()).messages)

    reopened = rig.session()
    assert context(session) == context(reopened)
    assert [e.entry.id for e in rig.of(EntryAppended)] == [
        e.id for e in rig.store.entries[-len(rig.of(EntryAppended)) :]
    ]
    assert isinstance(rig.store.entries[-1], CustomEntry)
