"""Print and JSON mode around a whole agent: real session, file, shell; only the model is played."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clock_and_ids import FakeClock, SequentialIds

from pi_tui.agent.session import AgentSession, AgentSettings, AgentWorld
from pi_tui.commands.builtin import builtin_registry
from pi_tui.commands.registry import Command, CommandCall, CommandRegistry
from pi_tui.core.entries import SessionHeader, header_to_data, iso_timestamp
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.models import Model
from pi_tui.core.protocols import OpenedSession, Provider
from pi_tui.core.tokens import CharsEstimator
from pi_tui.headless.commands import HeadlessCommands
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.json_mode import run_json
from pi_tui.headless.print_mode import run_print
from pi_tui.providers.scripted import SCRIPTED_MODEL, Call, ScriptedProvider, reply
from pi_tui.storage.jsonl import create_session, open_session
from pi_tui.tools.builtin import builtin_tools
from pi_tui.tools.local_shell import LocalShell
from pi_tui.tools.options import ToolOptions


class OneModel:
    def __init__(self, provider: Provider) -> None:
        self.provider = provider

    def find(self, full_name: str) -> Model | None:
        return SCRIPTED_MODEL if full_name == SCRIPTED_MODEL.full_name else None

    def available(self) -> tuple[Model, ...]:
        return (SCRIPTED_MODEL,)

    def resolve(self, reference: str) -> tuple[Model, None]:
        return SCRIPTED_MODEL, None

    def provider_for(self, model: Model) -> Provider:
        return self.provider


class Sessions:
    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def create(self, parent: str | None = None) -> OpenedSession:
        header = SessionHeader("s-1", iso_timestamp(0), str(self.directory))
        return OpenedSession(create_session(self.directory, header), ())


Make = Callable[..., AgentSession]


@pytest.fixture
def agent(tmp_path: Path) -> Make:
    """Makes a session in `tmp_path` whose model plays the given replies."""

    def make(*replies: Any) -> AgentSession:
        options = ToolOptions(
            environment={"PATH": os.environ["PATH"]}, spill_dir=str(tmp_path / "spill")
        )
        shell = LocalShell(options)
        sessions = Sessions(tmp_path / "sessions")
        world = AgentWorld(
            models=OneModel(ScriptedProvider(replies)),
            tools=(builtin_tools(options, shell.runner)["bash"],),
            shell=shell,
            sections=lambda tools: {"preamble": "You are a test."},
            clock=FakeClock(),
            ids=SequentialIds(),
            estimator=CharsEstimator(),
            sessions=sessions,
            cwd=str(tmp_path),
        )
        return AgentSession(world, sessions.create(), AgentSettings(model=SCRIPTED_MODEL))

    return make


async def test_a_tool_and_an_answer(agent: Make) -> None:
    session = agent(reply("looking", Call("bash", {"command": "echo hi"})), "all is well")
    out, err = io.StringIO(), io.StringIO()
    assert await run_print(session, [Prompt("hi")], out, err) == 0
    await session.close()
    assert (out.getvalue(), err.getvalue()) == ("all is well\n", "")


async def test_json_tells_all_that_is_in_the_file(agent: Make) -> None:
    session = agent(reply("looking", Call("bash", {"command": "echo hi"})), "done")
    out = io.StringIO()
    assert await run_json(session, [Prompt("hi")], out, io.StringIO()) == 0
    path, header = session.store.path, session.store.header
    await session.close()
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert path is not None
    stored = [json.loads(line) for line in Path(path).read_text().splitlines()]
    appended = [line["entry"] for line in lines if line["type"] == "entry_appended"]
    assert [header_to_data(header), *appended] == [lines[0], *stored[1:]]
    assert lines[-1] == {"type": "agent_settled", "aborted": False}


async def test_a_failed_request(agent: Make) -> None:
    session = agent(ProviderError("the key is wrong", kind=ErrorKind.AUTH))
    out, err = io.StringIO(), io.StringIO()
    assert await run_print(session, [Prompt("hi")], out, err) == 1
    await session.close()
    assert out.getvalue() == ""
    assert "the key is wrong" in err.getvalue()


@pytest.mark.parametrize("run", [run_print, run_json])
async def test_a_signal_kills_the_tool_and_leaves_the_session_whole(
    agent: Make, tmp_path: Path, run: Any
) -> None:
    command = f"echo $$ > {tmp_path}/pid; kill -TERM {os.getpid()}; exec sleep 600"
    session = agent(reply(Call("bash", {"command": command})), "never")
    out, err = io.StringIO(), io.StringIO()
    assert await run(session, [Prompt("hi")], out, err) == 128 + signal.SIGTERM
    path = session.store.path
    await session.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
    assert path is not None
    reopened = open_session(path)
    assert reopened.notices == ()
    roles = [head.role for head in reopened.heads if head.role]
    assert roles == ["system", "user", "assistant", "toolResult"]
    reopened.store.close()


# ---------------------------------------------------------------- commands


async def run_command(session: AgentSession, run: Any, line: str) -> tuple[int, str, str]:
    """Give a command line as the prompt; exit code and both streams."""
    registry = builtin_registry()
    out, err = io.StringIO(), io.StringIO()
    code = await run(
        session, [Prompt(line)], out, err, lambda ui: HeadlessCommands(registry, session, ui)
    )
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("run", [run_print, run_json])
async def test_a_compaction_that_failed_is_a_failed_command(agent: Make, run: Any) -> None:
    session = agent("a long answer " * 50, "another answer " * 50, "", "")
    await session.prompt("one")
    await session.prompt("two")
    code, _, err = await run_command(session, run, "/compact --keep 1")
    await session.close()
    assert code == 1
    assert "error: compaction failed: " in err and "Nothing was changed." in err


@pytest.mark.parametrize("run", [run_print, run_json])
async def test_a_compaction_tells_what_it_did_in_one_line(agent: Make, run: Any) -> None:
    session = agent("a long answer " * 50, "another answer " * 50, *["what was said " * 10] * 2)
    await session.prompt("one")
    await session.prompt("two")
    code, _, err = await run_command(session, run, "/compact --keep 1")
    await session.close()
    assert code == 0
    assert err.startswith("pi-tui: compacted: ") and err.count("\n") == 1


@pytest.mark.parametrize("run", [run_print, run_json])
async def test_a_question_is_a_failed_command(agent: Make, run: Any) -> None:
    session = agent()
    code, out, err = await run_command(session, run, "/model")
    await session.close()
    assert code == 1
    assert SCRIPTED_MODEL.full_name in out
    assert "Nobody can be asked here, so nothing was changed." in err


async def test_an_error_somebody_else_tells_of_makes_the_command_fail(agent: Make) -> None:
    session = agent()
    registry = CommandRegistry()

    async def lose(call: CommandCall) -> None:
        call.session.tell("error", "the disk is full")

    registry.add(Command("lose", "", lose))
    out, err = io.StringIO(), io.StringIO()
    prompts = [Prompt("/lose")]
    code = await run_print(
        session, prompts, out, err, lambda ui: HeadlessCommands(registry, session, ui)
    )
    await session.close()
    assert (code, out.getvalue(), err.getvalue()) == (1, "", "pi-tui: error: the disk is full\n")


async def test_nothing_to_show_is_said(agent: Make) -> None:
    session = agent()
    code, out, err = await run_command(session, run_print, "/hotkeys")
    await session.close()
    assert (code, out) == (0, "") and "nothing to show here" in err
