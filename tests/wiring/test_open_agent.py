"""The agent for Python programs: prompt, go elsewhere in the tree, label, compact, open again."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import pi_tui
from pi_tui.core.errors import PiTuiError, UsageError
from pi_tui.core.events import EntryAppended, Event


@pytest.fixture
async def model(desk: Any, serve: Any, models_file: Any) -> str:
    server = await serve("one", "two", "## Goal\n- what was tried", "three")
    desk.write("models.json", models_file(server.url, apiKey="k-12345678"))
    return "mine/big"


async def test_a_session_is_prompted_and_walked(model: str) -> None:
    events: list[Event] = []
    async with pi_tui.open_agent(model=model, name="walk", tools="", listener=events.append) as a:
        first = await a.prompt("first")
        second = await a.prompt("second")
        assert first is not None and second is not None
        assert (first.text, second.text) == ("one", "two")
        nodes = (await a.tree_dump())["nodes"]
        answer = next(n["id"] for n in nodes if n["text"] == "one")
        outcome = await a.navigate(answer, summarize=True, custom_instructions="be short")
        assert outcome.kind == "moved"
        assert outcome.summary_entry_id is not None
        assert a.label(answer, "here") == "here"
        assert (await a.navigate("here", label="again")).kind == "moved"
        assert (await a.compact()).kind == "nothing"
        session_id = a.session.session_id
    entries = [event.entry for event in events if isinstance(event, EntryAppended)]
    assert entries[0].type == "session_info"
    async with pi_tui.open_agent(session_id, model=model) as again:
        dump = await again.tree_dump()
        assert dump["name"] == "walk"
        on_path = [n["text"] for n in dump["nodes"] if n["onPath"]]
        assert "one" in on_path
        assert "two" not in on_path
        third = await again.prompt("third")
        assert third is not None and third.text == "three"


async def test_without_a_file(model: str) -> None:
    async with pi_tui.open_agent(model=model, save=False) as agent:
        await agent.prompt("hi")
        assert agent.session.store.path is None
        with pytest.raises(UsageError):
            await agent.navigate("nowhere")


async def test_wrong_wishes_are_refused(model: str) -> None:
    for wish in ({"thinking": "deep"}, {"tools": "hammer"}, {"session": "nothing-like-it"}):
        with pytest.raises(PiTuiError):
            async with pi_tui.open_agent(model=model, **wish):  # type: ignore[arg-type]
                pytest.fail("it was opened")


async def test_a_session_that_cannot_be_prepared_is_free_again(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with pi_tui.open_agent(model=model) as agent:
        await agent.prompt("hi")
        session_id = agent.session.session_id

    def no_prompt(*given: object) -> None:
        raise OSError("the prompt files are gone")

    with monkeypatch.context() as broken:
        broken.setattr("pi_tui.wiring.agent.load_prompt_files", no_prompt)
        with pytest.raises(OSError, match="are gone"):
            async with pi_tui.open_agent(session_id, model=model):
                pytest.fail("it was opened")
    async with pi_tui.open_agent(session_id, model=model) as agent:
        assert not agent.session.store.read_only


def test_nothing_is_loaded_before_it_is_used() -> None:
    code = "import sys, pi_tui; sys.exit(any(n.startswith('pi_tui.') for n in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
