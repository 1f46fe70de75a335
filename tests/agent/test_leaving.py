"""Leaving a session: nothing new begins in it, nothing blocks the loop, nothing is lost unsaid."""

from __future__ import annotations

import asyncio
import threading

import pytest
from msgspec import structs

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.agent.leaving import BEING_LEFT
from pi_tui.agent.navigator import NavigateRequest
from pi_tui.agent.queues import Draft
from pi_tui.core.entries import head_of
from pi_tui.core.errors import StorageError, UsageError
from pi_tui.core.events import ActivityChanged, AgentSettled, BranchSummaryStart, Notice
from pi_tui.core.messages import ImageContent
from pi_tui.core.protocols import OpenedSession
from pi_tui.providers.scripted import Gate, reply

CAT = ImageContent("Y2F0", "image/png")


def empty(rig):
    return OpenedSession(type(rig.store)(), ())


class ThreadedStore:
    """Marks in which thread each blocking thing was done; `hold` keeps `sync` waiting."""

    def __init__(self, store):
        self._store = store
        self.where = {}
        self.hold = threading.Event()
        self.hold.set()
        self.syncing = threading.Event()

    def __getattr__(self, name):
        return getattr(self._store, name)

    def load(self, entry_id):
        self.where["load"] = threading.current_thread()
        return self._store.load(entry_id)

    def sync(self):
        self.where["sync"] = threading.current_thread()
        self.syncing.set()
        assert self.hold.wait(10)

    def close(self):
        self.where["close"] = threading.current_thread()
        self._store.close()


# ---------------------------------------------------------------- nothing new begins


@pytest.mark.parametrize("way", ["new", "adopt", "settle", "close"])
@pytest.mark.parametrize("moment", [AgentSettled, ActivityChanged])
async def test_what_is_submitted_as_the_stopped_run_ends_is_refused(rig, way, moment):
    gate, never = Gate(), Gate()
    rig.provider.add(reply("half", gate), reply("a whole new run", never))
    session = rig.session()
    old = session.store
    session.submit("go")
    await gate.reached.wait()
    answers = []

    def again(event):
        if isinstance(event, moment) and session.store is old and session.activity == "idle":
            answers.append(session.submit("more"))
            asyncio.get_running_loop().call_soon(lambda: answers.append(session.submit("later")))

    session.subscribe(again)
    leave = {
        "new": session.new_session,
        "adopt": lambda: session.adopt(empty(rig), "resume"),
        "settle": session.settle,
        "close": session.close,
    }[way]
    await asyncio.wait_for(leave(), 5)
    assert answers and set(answers) == {"refused"}
    assert not session.tree or session.store is old
    assert len(rig.provider.requests) == 1 and not never.reached.is_set()
    assert any(BEING_LEFT in n.text for n in rig.of(Notice))


async def test_everything_that_would_begin_is_refused_with_one_line(rig):
    rig.provider.add("one")
    session = rig.session()
    await session.prompt("a")
    (first, *_), before = session.tree.ids(), len(rig.store.entries)
    async with session.leaving():
        assert session.submit("x") == "refused"
        assert session.start_shell("ls", excluded=False) is False
        assert len([n for n in rig.of(Notice) if BEING_LEFT in n.text]) == 2
        for refused in (
            lambda: session.prompt("x"),
            lambda: session.compact(CompactRequest("manual")),
        ):
            with pytest.raises(UsageError, match="being left"):
                await refused()
        for refused in (
            session.undo_compaction,
            session.pin,
            lambda: session.set_name("x"),
            lambda: session.set_label(first, "x"),
            lambda: session.branches.hide(first),
        ):
            with pytest.raises(UsageError, match="being left"):
                refused()
        for moving in (session.navigate(NavigateRequest(None)), session.undo_navigation()):
            assert (await moving).kind == "failed"
        session.set_thinking_level("high")
    assert len(rig.store.entries) == before
    rig.provider.add("two")
    assert session.submit("b") == "started"
    await session.wait_idle()
    assert session.last_answer.text == "two"


async def test_two_cannot_leave_at_once(rig):
    session = rig.session()
    async with session.leaving():
        other = asyncio.ensure_future(session.new_session())
        with pytest.raises(UsageError, match="already"):
            await other
        await session.adopt(empty(rig), "fork")  # the one that leaves may go on
    new = session.store
    await session.new_session()
    assert session.store is not new


async def test_the_next_session_takes_prompts_as_soon_as_it_is_held(rig):
    session = rig.session()
    rig.provider.add("here")
    async with session.leaving():
        await session.adopt(empty(rig), "fork")
        assert session.submit("hello") == "started"
    await session.wait_idle()
    assert session.last_answer.text == "here"


async def test_a_compaction_looks_again_after_its_preview(rig, until, monkeypatch):
    rig.store_talk(15)
    gate = Gate()
    rig.provider.add(reply("half", gate))
    session = rig.session()
    session.submit("go")
    await gate.reached.wait()
    held, asked = asyncio.Event(), asyncio.Event()

    async def slow(work, *args):
        asked.set()
        await held.wait()
        return work(*args)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "to_thread", slow)
        compacting = asyncio.ensure_future(session.compact(CompactRequest("manual")))
        await asked.wait()
    await session.new_session()
    held.set()
    with pytest.raises(UsageError, match="another session"):
        await compacting
    assert not rig.summary_requests and session.activity == "idle"


async def test_a_compaction_is_not_begun_in_a_session_that_is_being_left(rig, monkeypatch):
    rig.store_talk(15)
    gate = Gate()
    rig.provider.add(reply("half", gate))
    session = rig.session()
    session.submit("go")
    await gate.reached.wait()
    held, asked = asyncio.Event(), asyncio.Event()

    async def slow(work, *args):
        asked.set()
        await held.wait()
        return work(*args)

    with monkeypatch.context() as patch:
        patch.setattr(asyncio, "to_thread", slow)
        compacting = asyncio.ensure_future(session.compact(CompactRequest("manual")))
        await asked.wait()
    async with session.leaving():
        held.set()
        with pytest.raises(UsageError, match="being left"):
            await compacting
    assert not rig.summary_requests


# ---------------------------------------------------------------- threads


async def test_reading_and_closing_are_done_in_threads(rig):
    store, old = type(rig.store)(), ThreadedStore(rig.store)
    rig.store = old
    session = rig.session(OpenedSession(old, ()))
    rig.store = store
    rig.store_talk(2)
    session_info = rig.store.entries
    new = ThreadedStore(store)
    heads = tuple(head_of(e) for e in session_info)
    main = threading.current_thread()
    old.hold.clear()
    switching = asyncio.ensure_future(session.adopt(OpenedSession(new, heads), "resume"))
    while not old.syncing.is_set():  # the loop goes on meanwhile
        await asyncio.sleep(0.001)
    assert session.store is old and session.submit("x") == "refused"
    old.hold.set()
    await switching
    assert session.store is new and old.closed
    assert main not in old.where.values() and set(old.where) == {"sync", "close"}


async def test_a_switch_is_whole_when_its_caller_is_cancelled(rig):
    old = ThreadedStore(rig.store)
    session = rig.session(OpenedSession(old, ()))
    opened = empty(rig)
    old.hold.clear()
    switching = asyncio.ensure_future(session.adopt(opened, "resume"))
    while not old.syncing.is_set():
        await asyncio.sleep(0.001)
    switching.cancel()
    closing = asyncio.ensure_future(session.close())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not switching.done()  # who closes what was not adopted must not be too early
    old.hold.set()
    with pytest.raises(asyncio.CancelledError):
        await switching
    await closing
    assert session.store is opened.store
    assert old.closed and opened.store.closed


async def test_a_session_that_cannot_be_read_changes_nothing(rig):
    rig.provider.add("one")
    session = rig.session()
    await session.prompt("a")
    broken = type(rig.store)()
    source = type(rig)()
    source.store_talk(1)
    heads = [head_of(e) for e in source.store.entries]
    marker = type(heads[0])("m", heads[-1].id, "custom", heads[-1].timestamp, "")
    with pytest.raises(StorageError):
        await session.adopt(OpenedSession(broken, (*heads, marker)), "resume")
    assert session.store is rig.store and not rig.store.closed
    rig.provider.add("two")
    await session.prompt("b")


# ---------------------------------------------------------------- what waits is told


async def test_what_waits_is_told_with_its_images(rig):
    gate = Gate()
    rig.provider.add(reply("half", gate))
    session = rig.session()
    session.submit("go")
    await gate.reached.wait()
    session.submit("look", images=(CAT,))
    session.submit("then")
    told = await session.close()
    assert [line for line in told if "not sent" in line] == [
        "not sent, it was still waiting: look (with an image)",
        "not sent, it was still waiting: then",
    ]


async def test_what_a_stopped_move_took_out_of_the_queue_is_told(rig, until):
    """The program ends while a move makes its summary: who asked for it is gone already."""
    rig.provider.add("1")
    session = rig.session()
    await session.prompt("one")
    place = session.tree.leaf_id
    turn, summary = Gate(), Gate()
    rig.provider.add(reply("half", turn), reply("sum", summary))
    session.submit("two")
    await turn.reached.wait()
    session.submit("precious")
    moving = asyncio.ensure_future(session.navigate(NavigateRequest(place, summarize=True)))
    await summary.reached.wait()
    moving.cancel()
    told = await session.close()
    assert "not sent, it was still waiting: precious" in told


async def test_a_stopped_move_gives_its_messages_to_one_only(rig):
    rig.provider.add("1")
    session = rig.session()
    await session.prompt("one")
    place = session.tree.leaf_id
    turn, summary = Gate(), Gate()
    rig.provider.add(reply("half", turn), reply("sum", summary))
    session.submit("two")
    await turn.reached.wait()
    session.submit("precious")
    moving = asyncio.ensure_future(session.navigate(NavigateRequest(place, summarize=True)))
    await summary.reached.wait()
    await session.settle()
    assert (await moving).taken_back == ()
    assert [n.text for n in rig.of(Notice)] == ["not sent, it was still waiting: precious"]


async def test_hints_are_told_where_a_session_cannot_be_saved(rig):
    rig.provider.add("1")
    session = rig.session()
    rig.store.refuse = True
    await session.prompt("one")
    (notice,) = (n.text for n in rig.of(Notice) if "NOT SAVED" in n.text)
    assert "the disk is full. free some space." in notice

    def refuse():
        raise StorageError("it is gone", hint="Look for it.")

    rig.store.flush = refuse
    rig.store.sync = refuse
    rig.store.close = refuse
    told = await session.close()
    assert [line for line in told if "Look for it." in line] == list(told) and len(told) == 3


# ---------------------------------------------------------------- during a move


async def test_no_command_appends_while_a_summary_is_made(rig):
    """What is shown to be summarised is all of it."""
    rig.provider.add("1")
    session = rig.session()
    await session.prompt("one")
    place = session.tree.leaf_id
    rig.provider.add("2")
    await session.prompt("two")
    gate = Gate()
    rig.provider.add(reply("sum", gate))
    moving = asyncio.ensure_future(session.navigate(NavigateRequest(place, summarize=True)))
    await gate.reached.wait()
    before = len(rig.store.entries)
    for refused in (
        session.pin,
        lambda: session.set_name("x"),
        lambda: session.set_label(place, "x"),
        lambda: session.branches.unhide(),
        lambda: session.branches.leave_out(place),
        session.undo_compaction,
    ):
        with pytest.raises(UsageError, match="not finished yet"):
            refused()
    session.set_thinking_level("high")
    assert len(rig.store.entries) == before and session.name is None
    gate.open()
    assert (await moving).kind == "moved"
    assert rig.of(BranchSummaryStart)


async def test_drafts_a_move_takes_back_keep_their_images(rig):
    rig.provider.add("1")
    session = rig.session()
    await session.prompt("one")
    place = session.tree.leaf_id
    gate = Gate()
    rig.provider.add(reply("half", gate))
    session.submit("two")
    await gate.reached.wait()
    session.submit("look", images=(CAT,))
    outcome = await session.navigate(NavigateRequest(place))
    assert outcome.taken_back == (Draft("look", (CAT,)),)


# ---------------------------------------------------------------- numbers


async def test_stored_numbers_are_counted_by_everybody_who_asks(rig):
    rig.provider.add("1", "2")
    session = rig.session()
    await session.prompt("one")
    await session.prompt("two")
    used = session.stats().usage.output
    again = rig.session(OpenedSession(rig.store, tuple(map(head_of, rig.store.entries))))
    first = asyncio.ensure_future(again.count_stored())
    await asyncio.sleep(0)
    await again.count_stored()  # a second one waits for the first
    assert again.stats().usage.output == used > 0
    await first
    await again.count_stored()
    assert again.stats().usage.output == used


async def test_entries_that_cannot_be_read_do_not_stop_the_count(rig):
    rig.provider.add("1", "2")
    session = rig.session()
    await session.prompt("one")
    await session.prompt("two")
    heads = tuple(map(head_of, rig.store.entries))
    lost = next(head for head in heads if head.role == "assistant")
    rig.store.entries = [e for e in rig.store.entries if e.id != lost.id]
    again = rig.session(OpenedSession(rig.store, heads))
    with pytest.raises(StorageError):
        await again.count_stored()
    assert again.stats().usage.output == session.stats().usage.output // 2
    await again.count_stored()


async def test_a_count_of_a_session_that_was_left_tells_nothing(rig):
    rig.store_talk(1)
    heads = tuple(map(head_of, rig.store.entries))
    closed = threading.Event()

    def load(entry_id):
        assert closed.wait(10)
        raise StorageError("The session is closed.")

    session = rig.session(OpenedSession(rig.store, heads))
    rig.store.load = load
    counting = asyncio.ensure_future(session.count_stored())
    await asyncio.sleep(0)
    await session.new_session()
    closed.set()
    await counting
    with pytest.raises(StorageError):  # of the session that is held it is told
        await rig.session(OpenedSession(rig.store, heads)).count_stored()


async def test_a_gentle_count_is_hurried_by_whoever_waits_for_it(rig):
    rig.store_talk(300)
    session = rig.session()
    gentle = asyncio.ensure_future(session.count_stored(gently=True))
    await asyncio.sleep(0)
    await session.count_stored()
    await asyncio.wait_for(gentle, 5)
    assert session._held.numbers._uncounted == []
    again = rig.session()
    await again.count_stored(gently=True)
    assert again._held.numbers._uncounted == []
    assert again.stats() == session.stats()


def test_an_end_that_waits_for_nobody_saves_elsewhere(rig):
    session = rig.session()
    session._world = structs.replace(session._world, rescue_directory="/elsewhere")
    session.set_name("kept")
    assert session.rescue() == ()
    rig.store.refuse = True
    session.set_name("only in memory")
    (line,) = session.rescue()
    assert "the disk is full" in line and "saved to /elsewhere/moved.jsonl" in line
    assert rig.store.entries[-1].name == "only in memory"
