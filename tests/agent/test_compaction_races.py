"""Whatever happens at any moment of a compaction: the state is the one before or the one after.

The event loop is stepped one turn at a time, and the disturbance comes after the k-th turn, for
every k until the compaction is over. Threads are replaced by the loop itself, so that k means the
same each time.
"""

from __future__ import annotations

import asyncio

import pytest

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.entries import CompactionEntry, CustomEntry, MessageEntry, entry_to_data
from pi_tui.core.errors import CompactionError, ErrorKind, ProviderError
from pi_tui.core.events import AgentSettled, CompactionEnd, CompactionStart
from pi_tui.core.messages import Usage, UserMessage, text_of
from pi_tui.core.models import Model
from pi_tui.core.pairing import check_pairing
from pi_tui.core.projection import convert_to_llm, project
from pi_tui.core.tree import tree_of
from pi_tui.providers.scripted import Call, ScriptedProvider, Text, reply

MANUAL = CompactRequest("manual")
MOST_STEPS = 400


@pytest.fixture(autouse=True)
def no_threads(monkeypatch):
    async def inline(work, *args):
        await asyncio.sleep(0)
        return work(*args)

    monkeypatch.setattr(asyncio, "to_thread", inline)


@pytest.fixture
def make(rig, gated_tool):
    """A fresh agent, each time with the same script; `kind` says what makes it compact."""

    def made(kind):
        new = type(rig)()
        new.tools = (gated_tool("work"),)
        new.compaction = lambda model: CompactionSettings(keep_recent_tokens=400)
        new.other_models = (Model(provider="scripted", id="other", api="scripted"),)
        new.store_talk(8, chars=300)

        def answer(request):
            if request in new.summary_requests:
                return reply(Text.of("no", "tes"))
            number = len(new.ordinary_requests)
            if kind == "overflow" and number == 1:
                return ProviderError("too long", kind=ErrorKind.OVERFLOW)
            if kind == "threshold" and number == 1:
                return reply(Call("work", {"n": "a"}), usage=Usage(input=120_000, output=1))
            return "fine"

        new.provider = ScriptedProvider(fallback=answer)
        return new

    return made


def begin(session, kind):
    if kind == "manual":
        return asyncio.ensure_future(session.compact(MANUAL))
    session.submit("go")
    return asyncio.ensure_future(session.wait_idle())


async def step(turns):
    for _ in range(turns):
        await asyncio.sleep(0)


def check_state(rig, session, kind):
    """Memory and disk agree, and the next request is valid and is that of before or after."""
    assert [e.id for e in rig.store.entries] == session.tree.ids()
    assert not rig.store.pending
    reopened = tree_of(rig.store.entries)
    assert reopened.path_ids()[-1] in session.tree
    sent = convert_to_llm(p.message for p in project(session.tree.context_path()).messages)
    assert sent == convert_to_llm(
        p.message for p in project(reopened.context_path(session.tree.leaf_id)).messages
    )
    compactions = rig.compactions
    assert len(compactions) <= 1
    first = text_of(sent[0].content)
    if compactions and compactions[0].id in session.tree.path_ids():
        assert "notes" in first
        assert compactions[0].details["estimatedTokensAfter"] > 0
        assert not any("question of turn 0" in text_of(m.content) for m in sent)
    else:
        assert "question of turn 0" in first
        assert not any("notes" in text_of(m.content) for m in sent)
    ends = rig.of(CompactionEnd)
    assert len(ends) == len(rig.of(CompactionStart))
    assert sum(e.result is not None for e in ends) == len(compactions)
    assert not any(isinstance(e, CustomEntry) for e in rig.store.entries)
    assert session.activity == "idle"
    assert rig.provider.active == 0
    assert kind == "manual" or rig.of(AgentSettled)


async def go_on(rig, session):
    """The session works as ever afterwards."""
    before = len(rig.ordinary_requests)
    await session.prompt("and now")
    assert len(rig.ordinary_requests) > before
    request = rig.ordinary_requests[-1]
    assert check_pairing(request.messages) == []
    assert sum(text_of(m.content) == "and now" for m in request.messages) == 1
    assert session.last_answer.text == "fine"


async def every_step(make, kind, disturb, check):
    """Run the scenario once for each moment; returns how many ended with a compaction."""
    endings = []
    for k in range(MOST_STEPS):
        rig = make(kind)
        session = rig.session()
        work = begin(session, kind)
        await step(k)
        over = work.done()
        result = disturb(session)
        if asyncio.iscoroutine(result):
            await asyncio.wait_for(result, 5)
        await asyncio.wait_for(asyncio.wait([work]), 5)
        await asyncio.wait_for(session.wait_idle(), 5)
        await check(rig, session, k)
        endings.append(len(rig.compactions))
        if over:
            break
    else:
        raise AssertionError("the compaction never ended")
    assert len(endings) > 15
    return endings


KINDS = ["manual", "threshold", "overflow"]


@pytest.mark.parametrize("kind", KINDS)
async def test_escape_at_every_moment(make, kind):
    async def check(rig, session, k):
        session.take_back_queue()
        check_state(rig, session, kind)
        await go_on(rig, session)

    endings = await every_step(make, kind, lambda session: session.abort(), check)
    assert set(endings) == {0, 1}
    if kind == "manual":  # cancelled up to a moment, done from there on; at first nothing runs yet
        assert sorted(endings[1:]) == endings[1:]


@pytest.mark.parametrize("kind", KINDS)
async def test_submit_at_every_moment(make, kind):
    async def check(rig, session, k):
        check_state(rig, session, kind)
        users = [
            text_of(e.message.content)
            for e in rig.store.entries
            if isinstance(e, MessageEntry) and isinstance(e.message, UserMessage)
        ]
        assert users.count("extra") == 1
        assert session.queued == ((), ())
        assert all(check_pairing(r.messages) == [] for r in rig.ordinary_requests)

    endings = await every_step(make, kind, lambda session: session.submit("extra") and None, check)
    assert set(endings) == {1}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_switch_of_model_at_every_moment(make, kind):
    async def check(rig, session, k):
        check_state(rig, session, kind)
        assert session.model.id == "other"
        for compaction in rig.compactions:
            asked = {r.model.id for r in rig.summary_requests}
            assert asked == {compaction.details["model"].rpartition("/")[2]}  # never two of them

    def switch(session):
        session.set_model(session.models.find("scripted/other"))

    await every_step(make, kind, switch, check)


@pytest.mark.parametrize("kind", KINDS)
async def test_quit_at_every_moment(make, kind):
    async def check(rig, session, k):
        assert rig.store.closed
        check_state(rig, session, kind)

    endings = await every_step(make, kind, lambda session: session.close(), check)
    assert set(endings) == {0, 1}


async def test_a_second_compact_at_every_moment(make):
    async def check(rig, session, k):
        check_state(rig, session, "manual")

    async def again(session):
        try:
            outcome = await session.compact(MANUAL)
            assert outcome.kind == "already"
        except CompactionError as error:
            assert "already running" in error.message

    assert set(await every_step(make, "manual", again, check)) == {1}


async def test_a_pin_a_name_and_a_label_at_every_moment(make):
    async def check(rig, session, k):
        assert len(rig.compactions) == 1
        sent = convert_to_llm(p.message for p in project(session.tree.context_path()).messages)
        assert any("question of turn 0" in text_of(m.content) for m in sent)  # the pin
        assert session.name == "named"

    def pin(session):
        session.pin("t0000000")
        session.set_name("named")

    await every_step(make, "manual", pin, check)


async def test_a_move_to_another_branch_at_every_moment(make):
    """The front ends do not offer it while work goes on; it must do no harm all the same."""

    async def check(rig, session, k):
        ids = session.tree.path_ids()
        for compaction in rig.compactions:
            kept = compaction.first_kept_entry_id
            on_path = session.tree.path_ids(compaction.id)
            assert kept in on_path
            assert on_path[: on_path.index(kept)]
        sent = convert_to_llm(p.message for p in project(session.tree.context_path()).messages)
        assert check_pairing(sent) == []
        assert ids

    def move(session):
        if session.tree.leaf_id != "t0000003":
            session._journal.move_leaf("t0000003")

    endings = await every_step(make, "manual", move, check)
    assert set(endings) == {0, 1}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_disk_that_fills_at_every_moment(make, kind):
    """The summary is on disk and in memory, or in neither."""

    async def check(rig, session, k):
        in_memory = [i for i in session.tree.ids() if session.tree.head(i).type == "compaction"]
        assert in_memory == [e.id for e in rig.compactions]
        rig.store.refuse = False
        await session.prompt("and now")
        assert [e.id for e in rig.store.entries] == session.tree.ids()

    def fill(session):
        session.store.refuse = True

    endings = await every_step(make, kind, fill, check)
    assert set(endings) == {0, 1}


async def test_a_kill_after_every_entry_leaves_a_session_that_opens(make):
    """What was appended before a kill is all there is: each prefix of the file is sound."""
    rig = make("threshold")
    session = rig.session()
    await session.prompt("go")
    entries = list(rig.store.entries)
    for end in range(1, len(entries) + 1):
        again = make("manual")
        again.store.entries = entries[:end]
        reopened = again.session()
        if not isinstance(entries[end - 1], CompactionEntry):
            assert reopened.tree.leaf_id == entries[end - 1].id
        await go_on(again, reopened)


async def test_every_append_may_fail_once(make):
    """The n-th append fails, for every n; nothing is lost or doubled in the end."""
    for n in range(1, 40):
        rig = make("threshold")
        session = rig.session()
        plain = type(rig.store).append
        count = [0]

        def append(entry, *, keep_on_failure=True, rig=rig, count=count, plain=plain, n=n):
            count[0] += 1
            rig.store.refuse = count[0] == n
            plain(rig.store, entry, keep_on_failure=keep_on_failure)

        rig.store.append = append
        await session.prompt("go")
        rig.store.refuse = False
        rig.store.append = lambda entry, *, keep_on_failure=True, rig=rig, plain=plain: plain(
            rig.store, entry, keep_on_failure=keep_on_failure
        )
        await session.prompt("and now")
        assert [e.id for e in rig.store.entries] == session.tree.ids()
        assert [entry_to_data(e) for e in rig.store.entries] == [
            entry_to_data(session.tree.entry(i)) for i in session.tree.ids()
        ]
        assert check_pairing(rig.ordinary_requests[-1].messages) == []
        if count[0] < n:
            break
    else:
        raise AssertionError("it never ran through")
