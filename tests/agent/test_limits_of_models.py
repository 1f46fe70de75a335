"""What a server refused is learnt for that model in that session, and for nothing else."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.entries import head_of
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import AutoRetryEnd, Notice
from pi_tui.core.messages import AssistantMessage, ImageContent, ThinkingContent
from pi_tui.core.models import Model
from pi_tui.core.protocols import OpenedSession
from pi_tui.providers.scripted import SCRIPTED_MODEL, Fail, Gate, Thinking, reply

CAT = ImageContent("Y2F0", "image/png")
OTHER = Model(provider="scripted", id="other", api="scripted", max_tokens=64_000)
LIMIT = ProviderError("max_tokens", kind=ErrorKind.BAD_REQUEST, limit_tokens=4000)
REFUSED = {
    "images": ProviderError("too large", kind=ErrorKind.PAYLOAD_TOO_LARGE),
    "thinking": ProviderError("bad signature", kind=ErrorKind.BAD_SIGNATURE),
    "output": LIMIT,
}


def sent(request):
    """What of the three is in a request."""
    found = set()
    for message in request.messages:
        content = () if isinstance(message.content, str) else message.content
        if any(isinstance(block, ImageContent) for block in content):
            found.add("images")
        if isinstance(message, AssistantMessage) and any(
            isinstance(block, ThinkingContent) for block in content
        ):
            found.add("thinking")
    if request.max_tokens is None:
        found.add("output")
    return found


async def go(session, rig, answer="fine"):
    rig.provider.add(answer)
    await session.prompt("look", images=(CAT,))
    return sent(rig.provider.requests[-1])


@pytest.fixture
def thoughtful(rig):
    """A session in which there are thoughts and images."""
    rig.other_models = (OTHER,)
    return rig


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("change", ["model", "new", "resume"])
async def test_another_model_and_another_session_start_with_nothing(thoughtful, what, change):
    rig = thoughtful
    session = rig.session()
    everything = {"images", "thinking", "output"}
    await go(session, rig, reply(Thinking("hm", signature="s"), "seen"))
    rig.provider.add(REFUSED[what])
    if what == "output":
        await session.prompt("hello")  # not made again by itself: the next request keeps to it
    assert await go(session, rig, reply(Thinking("hm", signature="s"), "x")) == everything - {what}
    assert await go(session, rig) == everything - {what}
    if change == "model":
        session.set_model(OTHER)
        assert await go(session, rig) == everything
        session.set_model(SCRIPTED_MODEL)
        assert await go(session, rig) == everything - {what}
        return
    if change == "new":
        await session.new_session()
    else:
        await session.adopt(OpenedSession(type(rig.store)(), ()), "resume")
    await go(session, rig, reply(Thinking("hm", signature="s"), "seen"))
    assert await go(session, rig) == everything


@pytest.mark.parametrize("replaced", [False, True])
async def test_summaries_keep_to_the_output_limit_of_their_session(rig, replaced):
    rig.compaction = lambda model: CompactionSettings(keep_recent_tokens=400)
    rig.store_talk(15)
    session = rig.session()
    rig.provider.add(LIMIT)
    await session.prompt("go")
    if replaced:
        other = type(rig)()
        other.store_talk(15)
        heads = tuple(map(head_of, other.store.entries))
        await session.adopt(OpenedSession(other.store, heads), "resume")
    rig.provider.add("notes")
    assert (await session.compact(CompactRequest("manual"))).kind == "done"
    (asked,) = rig.summary_requests
    assert (asked.max_tokens == 4000) is not replaced


async def test_the_limit_belongs_to_the_model_that_was_asked(rig):
    """The model is switched while its request fails."""
    rig.other_models = (OTHER,)
    gate = Gate()
    rig.provider.add(reply(gate, Fail(LIMIT)))
    session = rig.session()
    running = asyncio.ensure_future(session.prompt("go"))
    await gate.reached.wait()
    session.set_model(OTHER)
    gate.open()
    outcome = await running
    assert outcome.model == SCRIPTED_MODEL
    rig.provider.add("fine", "fine")
    await session.prompt("again")
    session.set_model(SCRIPTED_MODEL)
    await session.prompt("again")
    assert [r.max_tokens for r in rig.provider.requests[-2:]] == [None, 4000]


async def test_what_was_refused_belongs_to_the_model_that_was_asked(rig):
    rig.other_models = (OTHER,)
    gate = Gate()
    rig.provider.add(reply(gate, Fail(REFUSED["images"])), "fine", "fine")
    session = rig.session()
    running = asyncio.ensure_future(session.prompt("go", images=(CAT,)))
    await gate.reached.wait()
    session.set_model(OTHER)
    gate.open()
    await running
    assert "images" in sent(rig.provider.requests[-1])
    (notice,) = rig.of(Notice)
    assert SCRIPTED_MODEL.full_name in notice.text
    session.set_model(SCRIPTED_MODEL)
    await session.prompt("again")
    assert "images" not in sent(rig.provider.requests[-1])


async def test_an_answer_is_judged_by_the_model_that_gave_it(rig):
    """Cut at its own limit by a small model: a larger one chosen meanwhile is no reason to act."""
    small = structs.replace(SCRIPTED_MODEL, max_tokens=5)
    rig.model, rig.other_models = small, (OTHER,)
    gate = Gate()
    rig.provider.add(reply("half", gate, stop_reason="length"))
    session = rig.session()
    running = asyncio.ensure_future(session.prompt("go"))
    await gate.reached.wait()
    session.set_model(OTHER)
    gate.open()
    await running
    assert len(rig.provider.requests) == 1 and not rig.compactions


async def test_giving_up_tells_the_hint(rig):
    rig.retry = structs.replace(rig.retry, max_retries=1)
    error = ProviderError("overloaded", kind=ErrorKind.OVERLOADED, hint="Try another model.")
    rig.provider.add(error, error)
    session = rig.session()
    running = asyncio.ensure_future(session.prompt("go"))
    while not rig.clock.sleeps:
        await asyncio.sleep(0)
    rig.clock.advance(60)
    await running
    assert rig.of(AutoRetryEnd)[-1].final_error == "overloaded. Try another model."
    assert session.last_answer.error_message == "overloaded. Try another model."
