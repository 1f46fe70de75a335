"""Long runs whose tool results are nearly as large as the reserve: no request passes the window.

The provider counts what it is sent. Each turn brings a result that alone fills most of the room a
compaction makes, so one is due nearly every turn, and each of them does its work.
"""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs
from request_size import request_chars

from pi_tui.core.compaction.prompts import SUMMARISER_SYSTEM
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import CompactionEnd, CompactionStart, Notice
from pi_tui.core.messages import ToolDeclaration, Usage, text_content
from pi_tui.core.protocols import ToolOutput
from pi_tui.providers.scripted import Call, ScriptedProvider, reply

TURNS = 30


def request_tokens(request) -> int:
    """A quarter token a character, as the estimator of these tests counts."""
    return request_chars(request) // 4


class Output:
    """A tool that returns as many characters as it is asked for."""

    prompt_line = "works"
    declaration = ToolDeclaration("bash", "runs a command", {"type": "object"})

    def check(self, arguments):
        return None

    def written_path(self, arguments, cwd):
        return None

    async def run(self, arguments, context):
        await asyncio.sleep(0)
        return ToolOutput(text_content("r" * arguments["chars"]))


class Run:
    """One run of many turns; `sizes` are the tokens of its ordinary requests."""

    def __init__(self, rig, window, chars, *, reports):
        self.window, self.chars, self.reports = window, chars, reports
        self.left = TURNS
        self.sizes = []
        rig.model = structs.replace(rig.model, context_window=window, max_tokens=2048)
        rig.tools = (Output(),)
        rig.system = "Rules of the house. " * (window // 80)
        rig.provider = ScriptedProvider(fallback=self.answer)

    def answer(self, request):
        tokens = request_tokens(request)
        if request.system == SUMMARISER_SYSTEM:
            assert tokens + request.max_tokens <= self.window
            return "## Goal\nnotes " + "of the work " * 30
        self.sizes.append(tokens)
        usage = Usage(input=tokens, output=50, total_tokens=tokens + 50) if self.reports else None
        self.left -= 1
        if self.left < 0:
            return reply("done", usage=usage)
        return reply("next step", Call("bash", {"chars": self.chars}), usage=usage)


@pytest.mark.parametrize("reports", [True, False])
@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("window", [8_192, 32_768, 65_536])
async def test_no_request_passes_the_window(rig, window, share, reports):
    reserve = 16_384 if window > 16_384 else window // 2
    run = Run(rig, window, int(reserve * share) * 4, reports=reports)
    await rig.session().prompt("go")
    assert len(run.sizes) == TURNS + 1
    assert max(run.sizes) <= window
    done = [e for e in rig.of(CompactionEnd) if e.result]
    failed = [e.error_message for e in rig.of(CompactionEnd) if not e.result]
    assert len(done) >= 3 and failed == []
    alone = run.sizes[0] + run.chars // 4  # what no compaction can take away from a turn
    if alone < window - reserve:
        # What worked is not called useless, so nothing rests.
        assert [n.text for n in rig.of(Notice)] == []


async def test_the_figures_of_a_small_window(rig):
    """Results of 30 kB in a window of 32,000 tokens: every compaction brings it under the limit."""
    run = Run(rig, 32_000, 30_000, reports=True)
    await rig.session().prompt("go")
    assert max(run.sizes) <= 32_000 and len(run.sizes) == TURNS + 1
    assert not any("rests" in n.text for n in rig.of(Notice))


async def test_where_nothing_helps_the_run_ends_before_the_request(rig):
    """A result larger than the window can be kept by no compaction, and is asked about by none."""
    run = Run(rig, 8_192, 40_000, reports=True)
    session = rig.session()
    outcome = await session.prompt("go")
    assert len(run.sizes) == 1 and max(run.sizes) <= 8_192
    assert outcome.not_sent and outcome.last_answer.stop_reason == "error"
    words = outcome.last_answer.error_message
    for part in ("compaction cannot make room", "8,192", "system prompt and tools", "larger model"):
        assert words.count(part) == 1
    assert "10,0" in words  # what the messages take
    assert session.activity == "idle"
    # The result can be summarised once something follows it, so the next prompt goes through.
    run.chars = 400
    outcome = await session.prompt("look at the end of it only")
    assert outcome.error is None and max(run.sizes) <= 8_192


async def test_after_a_compaction_that_failed_no_request_passes_the_window_either(rig):
    run = Run(rig, 8_192, 3_600 * 4, reports=True)
    answer = run.answer
    down = ProviderError("no", kind=ErrorKind.AUTH)
    working = []
    rig.provider = ScriptedProvider(
        fallback=lambda r: down if r.system == SUMMARISER_SYSTEM and not working else answer(r)
    )
    session = rig.session()
    outcome = await session.prompt("go")
    assert outcome.not_sent and max(run.sizes) <= 8_192
    words = outcome.last_answer.error_message
    for part in ("the compaction failed", "8,192", "/compact", "`go on`", "Nothing is lost"):
        assert words.count(part) == 1
    # One that failed is not made again before something came in.
    assert len(rig.of(CompactionEnd)) == len(run.sizes) - 1
    working.append(True)
    outcome = await session.prompt("go on")
    assert outcome.last_answer.text == "done" and max(run.sizes) <= 8_192


async def test_who_cancels_the_compaction_wants_the_request(rig):
    run = Run(rig, 8_192, 3_600 * 4, reports=True)
    session = rig.session()

    def cancel(event):
        if isinstance(event, CompactionStart):
            session.abort()

    session.subscribe(cancel)
    run.left = 3
    outcome = await session.prompt("go")
    assert outcome.last_answer.text == "done"
    assert all(e.aborted for e in rig.of(CompactionEnd))
