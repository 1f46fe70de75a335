"""What is counted or read in a thread: keys go on meanwhile, Escape ends the wait and the count."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.agent.compactor import CANCELLED
from pi_tui.agent.counting import LentEstimator, count_in_thread
from pi_tui.agent.navigator import NavigateRequest
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.events import CompactionEnd
from pi_tui.core.messages import UserMessage
from pi_tui.core.tokens import CharsEstimator

MESSAGE = UserMessage("hello", 0)


class HeldEstimator:
    """Counts only when it may; remembers what it was asked, and where."""

    def __init__(self):
        self.asked = threading.Event()
        self.may = threading.Event()
        self.threads = []
        self.messages = []

    def message_tokens(self, message):
        self.messages.append(message)
        self.threads.append(threading.current_thread())
        self.asked.set()
        assert self.may.wait(10)
        return CharsEstimator().message_tokens(message)


async def asked(estimator):
    while not estimator.asked.is_set():
        await asyncio.sleep(0.001)


async def test_a_count_nobody_waits_for_ends():
    estimator = HeldEstimator()
    ended = threading.Event()

    def count(lent):
        try:
            return [lent.message_tokens(UserMessage(str(n), 0)) for n in range(100)]
        finally:
            ended.set()

    counting = asyncio.ensure_future(count_in_thread(estimator, count))
    await asked(estimator)
    counting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await counting
    estimator.may.set()
    assert await asyncio.to_thread(ended.wait, 5)
    assert len(estimator.messages) == 1


def test_a_message_is_counted_once():
    estimator = HeldEstimator()
    estimator.may.set()
    lent = LentEstimator(estimator)
    assert lent.message_tokens(MESSAGE) == lent.message_tokens(MESSAGE)
    assert estimator.messages == [MESSAGE]


@pytest.fixture
async def slow(rig):
    """A session whose estimator is held; it is talked in already."""
    rig.store_talk(15)
    rig.compaction = lambda model: CompactionSettings(keep_recent_tokens=400)
    session = rig.session()
    estimator = HeldEstimator()
    for part in (session._compaction._compactor, session._navigator._summaries):
        part._estimator = estimator
    session._parts.branches._estimator = estimator
    yield session, estimator
    estimator.may.set()


async def test_escape_does_not_wait_for_the_count_of_a_compaction(rig, slow):
    session, estimator = slow
    compacting = asyncio.ensure_future(session.compact(CompactRequest("manual")))
    await asked(estimator)
    assert session.abort()
    outcome = await asyncio.wait_for(compacting, 5)
    assert (outcome.kind, outcome.message) == ("cancelled", CANCELLED)
    assert [e.aborted for e in rig.of(CompactionEnd)] == [True]
    assert session.activity == "idle" and not rig.summary_requests


@pytest.mark.parametrize("way", ["close", "new"])
async def test_leaving_does_not_wait_for_it_either(slow, way):
    session, estimator = slow
    compacting = asyncio.ensure_future(session.compact(CompactRequest("manual")))
    await asked(estimator)
    await asyncio.wait_for(session.close() if way == "close" else session.new_session(), 5)
    assert (await compacting).kind == "cancelled"


async def test_escape_does_not_wait_for_the_count_of_a_branch(rig, slow):
    session, estimator = slow
    place = session.tree.ids()[1]
    moving = asyncio.ensure_future(session.navigate(NavigateRequest(place, summarize=True)))
    await asked(estimator)
    assert session.abort()
    assert (await asyncio.wait_for(moving, 5)).kind == "cancelled"
    assert session.tree.leaf_id == session.tree.ids()[-1]


@pytest.mark.parametrize("what", ["preview", "compare", "dump", "hook"])
async def test_reading_many_entries_is_left_to_a_thread(rig, slow, what):
    session, estimator = slow
    estimator.may.set()
    readers = set()
    load = rig.store.load

    def note(entry_id):
        readers.add(threading.current_thread())
        return load(entry_id)

    rig.store.load = note
    first, last = session.tree.ids()[1], session.tree.ids()[-1]
    session.tree._decoded.clear()
    if what == "preview":
        assert (await session.preview_navigation(first)).entries == 28
    elif what == "compare":
        assert (await session.branches.compare(first, last)).b.entries == 28
    elif what == "dump":
        assert len((await session.tree_dump())["nodes"]) == 30
    else:
        seen = []
        session.hooks.on("session_before_tree", lambda p: seen.append(p.preparation))
        assert (await session.navigate(NavigateRequest(first))).kind == "moved"
        assert len(seen[0].entries_to_summarize) == 28
        # the place itself is looked at on the way
        readers.discard(threading.current_thread())
    assert readers and threading.current_thread() not in {*readers, *estimator.threads}


async def test_a_preview_counts_each_message_once(rig, slow):
    """Also where not all of the branch fits a summary."""
    session, estimator = slow
    estimator.may.set()
    rig.model = session.model
    rig.branch_reserve_tokens = session.model.context_window - 500
    preview = await session.preview_navigation(session.tree.ids()[0])
    assert preview.left_out_messages > 0
    assert len(estimator.messages) == len({id(m) for m in estimator.messages}) == 29
