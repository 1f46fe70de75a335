"""A fault of the program in a run: told without keys, and nothing that was typed is lost."""

from __future__ import annotations

import pytest

from pi_tui.core.entries import MessageEntry
from pi_tui.core.errors import StorageError
from pi_tui.core.events import AgentSettled, MessageUpdate, Notice, stream_event_to_data
from pi_tui.core.messages import AssistantMessage, UserMessage, text_of
from pi_tui.core.streaming import TextDelta

KEY = "plain words that are a key 4711"


class FaultyProvider:
    """Says half a sentence, then breaks."""

    async def stream(self, request):
        yield TextDelta(0, "half ")
        raise RuntimeError(f"cannot use {KEY} nor sk-abcdefghijklmnopqrstuvwx0123")


def broken(*args):
    raise RuntimeError(f"it broke over {KEY}")


def stored(rig, kind):
    return [
        entry.message
        for entry in rig.store.entries
        if isinstance(entry, MessageEntry) and isinstance(entry.message, kind)
    ]


async def test_a_fault_of_a_provider_ends_the_answer_and_shows_no_key(rig):
    rig.provider, rig.secrets = FaultyProvider(), (KEY,)
    outcome = await rig.session().prompt("hi")
    assert outcome.error is not None
    [answer] = stored(rig, AssistantMessage)
    assert answer.text == "half "
    assert answer.stop_reason == "error"
    assert "internal error: RuntimeError: cannot use <hidden> nor" in answer.error_message
    assert not [e for e in rig.events if KEY in repr(e) or "sk-abc" in repr(e)]
    steps = [stream_event_to_data(e.event)["type"] for e in rig.of(MessageUpdate)]
    assert steps == ["start", "text_start", "text_delta", "text_end", "error"]
    assert rig.of(AgentSettled) == [AgentSettled(False)]


async def test_what_was_not_stored_waits_in_the_queue(rig):
    rig.secrets = (KEY,)
    session = rig.session()
    session._context.store_system_message = broken
    with pytest.raises(RuntimeError):
        await session.prompt("do not lose this")
    assert not stored(rig, UserMessage)
    assert session.queued == (("do not lose this",), ())
    [notice] = rig.of(Notice)
    assert notice.text.startswith("internal error: ")
    assert KEY not in notice.text
    assert session.activity == "idle"


async def test_what_was_stored_is_not_queued_again(rig):
    session = rig.session()
    session._context.prepare = broken
    with pytest.raises(RuntimeError):
        await session.prompt("once")
    assert [text_of(m.content) for m in stored(rig, UserMessage)] == ["once"]
    assert session.queued == ((), ())


@pytest.mark.parametrize("size", [5, 300_000])
async def test_a_session_file_that_was_damaged_is_told_and_the_message_kept(rig, size):
    """A short message is looked at no closer before the run, a long one is."""
    rig.store_talk(3)
    session = rig.session()

    def gone(entry_id):
        raise StorageError("an entry is not where it was", path="x", hint="Open it again.")

    rig.store.load = gone
    became = session.submit("x" * size)
    await session.wait_idle()
    assert became == "refused" or session.queued == (("x" * size,), ())
    assert any("an entry is not where it was" in n.text for n in rig.of(Notice))
    assert not any("internal error" in n.text for n in rig.of(Notice))
    assert session.activity == "idle"
