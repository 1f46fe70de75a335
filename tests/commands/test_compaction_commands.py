"""`/compact`, `/context`, `/pin`, `/unpin` and rows of `/session`, as any front end runs them."""

from __future__ import annotations

from itertools import count

import pytest
from clock_and_ids import FakeClock, SequentialIds
from msgspec import structs

from pi_tui.agent.assembly import AgentSettings, AgentWorld
from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.agent.compaction_record import CompactionRecord
from pi_tui.agent.session import AgentSession
from pi_tui.commands.builtin import builtin_registry, session_text
from pi_tui.commands.compaction import (
    CompactOptions,
    command_without_preview,
    parse_compact,
    record_text,
)
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.compaction.prompts import SUMMARISER_SYSTEM
from pi_tui.core.entries import SessionHeader
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import ToolDeclaration, Usage, text_content, text_of
from pi_tui.core.models import ModelChoice
from pi_tui.core.numbers import counted_tokens
from pi_tui.core.protocols import OpenedSession, ToolOutput
from pi_tui.core.tokens import CharsEstimator
from pi_tui.providers.scripted import SCRIPTED_MODEL, Call, ScriptedProvider, reply
from pi_tui.storage.memory import MemoryStore


class FakeUI:
    """Writes down what it is asked to show."""

    def __init__(self):
        self.notices = []
        self.shown = []

    def notify(self, level, text):
        self.notices.append((level, text))

    def show(self, title, text):
        self.shown.append((title, text))


class FakeModels:
    def __init__(self, provider):
        self.provider = provider

    def find(self, full_name):
        return SCRIPTED_MODEL

    def available(self):
        return (SCRIPTED_MODEL,)

    def resolve(self, reference):
        return ModelChoice(SCRIPTED_MODEL)

    def provider_for(self, model):
        return self.provider


class ReadTool:
    declaration = ToolDeclaration("read", "reads a file", {"type": "object"})
    prompt_line = "reads"

    def check(self, arguments):
        return None

    def written_path(self, arguments, cwd):
        return None

    async def run(self, arguments, context):
        return ToolOutput(text_content("line\n" * 100))


FILE = (
    '<project_instructions path="/home/me/A &amp; B.md" source="project">\n'
    + "Use tabs. " * 40
    + "\n</project_instructions>"
)


class Desk:
    """A session, its commands and what they showed."""

    def __init__(self):
        self.answers = []
        self.numbers = count()
        self.summary = "notes"
        self.provider = ScriptedProvider(fallback=self._answer)
        self.ui = FakeUI()
        header = SessionHeader(id="s1", timestamp="2026-01-02T03:04:05.000Z", cwd="/work")
        self.store = MemoryStore(header)
        world = AgentWorld(
            models=FakeModels(self.provider),
            tools=(ReadTool(),),
            shell=None,
            sections=lambda tools: {"preamble": "You are a test.", "project_context": FILE},
            clock=FakeClock(),
            ids=SequentialIds(),
            estimator=CharsEstimator(),
            sessions=None,
            cwd="/work",
        )
        settings = AgentSettings(
            model=SCRIPTED_MODEL,
            compaction=lambda model: CompactionSettings(keep_recent_tokens=100),
        )
        self.session = AgentSession(world, OpenedSession(self.store, ()), settings)
        self.registry = builtin_registry()

    def _answer(self, request):
        return self.summary if request.system == SUMMARISER_SYSTEM else self.answers.pop(0)

    async def talk(self, turns=4, words="of the matter " * 20):
        for _ in range(turns):
            number = next(self.numbers)
            self.answers.append(reply(f"answer {number} {words}", usage=None))
            await self.session.prompt(f"question {number} {words}")

    async def run(self, line):
        self.ui.notices.clear()
        self.ui.shown.clear()
        assert await self.registry.run(line, self.session, self.ui)

    @property
    def notice(self):
        assert len(self.ui.notices) == 1
        return self.ui.notices[0]

    @property
    def context(self):
        """What the next request would say."""
        from pi_tui.core.projection import convert_to_llm, project

        path = self.session.tree.context_path()
        sent = convert_to_llm(p.message for p in project(path).messages)
        return [text_of(m.content) for m in sent]


@pytest.fixture
def desk():
    return Desk()


@pytest.mark.parametrize(
    ("argument", "options"),
    [
        ("", CompactOptions()),
        ("keep the paths", CompactOptions(instructions="keep the paths")),
        ("--preview", CompactOptions(preview=True)),
        ("--undo", CompactOptions(undo=True)),
        ("--keep 800", CompactOptions(keep_tokens=800)),
        ("--keep=8k  mind\nit", CompactOptions(keep_tokens=8000, instructions="mind\nit")),
        ("--keep 1_000 --preview", CompactOptions(preview=True, keep_tokens=1000)),
        ("-- --keep", CompactOptions(instructions="--keep")),
        ("keep --undo", CompactOptions(instructions="keep --undo")),
    ],
)  # fmt: skip
def test_options_stand_before_the_instructions(argument, options):
    assert parse_compact(argument) == options


@pytest.mark.parametrize(
    "argument",
    ["--keep", "--keep many", "--keep -5", "--keep=", "--what", "--undo x", "--undo --preview"],
)
async def test_wrong_use_is_told_and_does_nothing(desk, argument):
    with pytest.raises(UsageError):
        parse_compact(argument)
    await desk.talk()
    await desk.run(f"/compact {argument}")
    assert desk.notice[0] == "error"
    assert len(desk.provider.requests) == 4


async def test_compact_with_instructions(desk):
    await desk.talk()
    desk.summary = "the notes"
    await desk.run("/compact mind the tests")
    assert desk.ui.notices == []  # the entry itself tells it
    assert "mind the tests" in text_of(desk.provider.requests[-1].messages[0].content)
    assert "the notes" in desk.context[0]


async def test_nothing_to_compact_names_the_way(desk):
    desk.answers.append("short")
    await desk.session.prompt("short")
    await desk.run("/compact")
    assert desk.notice[0] == "info" and "--keep" in desk.notice[1]
    assert len(desk.provider.requests) == 1


async def test_preview_sends_nothing_and_says_what_would_happen(desk):
    await desk.talk()
    desk.answers += [reply(Call("read", {"path": "a.py"}), usage=None), reply("ok", usage=None)]
    await desk.session.prompt("read it")
    await desk.talk(2)
    requests = len(desk.provider.requests)
    await desk.run("/compact --preview --keep 50")
    title, text = desk.ui.shown[0]
    assert title == "Compaction preview"
    for words in ("would be summarised", "would be kept", "context now", "context after", "a.py"):
        assert words in text
    assert len(desk.provider.requests) == requests
    assert not desk.session.compactions()


async def test_undo(desk):
    await desk.talk()
    before = desk.context
    await desk.run("/compact --undo")
    assert desk.notice == ("error", "there is no compaction on this branch")
    await desk.run("/compact")
    await desk.talk(1)
    await desk.run("/compact --undo")
    assert "back to before the last compaction; 2 later messages stay" in desk.notice[1]
    assert desk.context == before


async def test_pin_and_unpin(desk):
    await desk.talk()
    ids = [i for i in desk.session.tree.path_ids() if desk.session.tree.head(i).role == "user"]
    await desk.run(f"/pin {ids[0]}")
    assert desk.notice[0] == "info" and "user: question 0" in desk.notice[1]
    await desk.run("/pin")
    assert "assistant: answer 3" in desk.notice[1]
    assert len(desk.session.pins) == 2
    pinned = text_of(desk.session.tree.entry(ids[0]).message.content)
    for _ in range(3):
        await desk.run("/compact")
        assert pinned in desk.context
        await desk.talk(2)
    await desk.run(f"/unpin {ids[0]}")
    assert desk.notice[1].startswith(f"no longer pinned: {ids[0]}")
    assert pinned not in desk.context
    await desk.run("/unpin")
    assert not desk.session.pins
    await desk.run("/unpin")
    assert desk.notice == ("error", "nothing is pinned here")


@pytest.mark.parametrize("line", ["/pin", "/pin nowhere", "/unpin nowhere"])
async def test_pins_that_cannot_be(desk, line):
    await desk.run(line)
    assert desk.notice[0] == "error"


async def test_only_messages_can_be_pinned(desk):
    await desk.talk(1)
    tree = desk.session.tree
    other = next(i for i in tree.path_ids() if tree.head(i).type != "message")
    await desk.run(f"/pin {other}")
    assert desk.notice[0] == "error" and "no message" in desk.notice[1]
    message = next(i for i in tree.path_ids() if tree.head(i).role == "user")
    await desk.run(f"/unpin {message}")
    assert "not pinned" in desk.notice[1]


async def test_the_preview_names_the_pins_that_stay(desk):
    await desk.talk(2)
    desk.answers += [reply(Call("read", {"path": "a.py"}), usage=None), reply("ok", usage=None)]
    await desk.session.prompt("read it")
    await desk.talk(3)
    tree = desk.session.tree
    users = [i for i in tree.path_ids() if tree.head(i).role == "user"]
    call = next(i for i in tree.path_ids() if tree.head(tree.parent(i) or i).id == users[2])
    await desk.run("/compact --preview")
    assert "Pinned" not in desk.ui.shown[0][1]
    for entry_id in (users[0], call, users[-1], users[1]):
        await desk.run(f"/pin {entry_id}")
    await desk.run(f"/unpin {users[1]}")
    await desk.run("/compact --preview")
    lines = desk.ui.shown[0][1].splitlines()
    at = lines.index("Pinned, kept word for word:")
    block = lines[at + 1 : lines.index("", at)]
    assert [line.split()[0] for line in block] == [users[0], call, users[-1]]
    assert "user: question 0 of the matter" in block[0] and "tokens)" in block[0]
    assert block[1].endswith("tokens, with 1 message that belongs to it)")
    # What was promised holds.
    promised = [text_of(tree.entry(i).message.content) for i in (users[0], users[-1])]
    await desk.run("/compact")
    assert set(promised) <= set(desk.context)
    assert any("line\nline" in text for text in desk.context)


async def test_a_pin_that_was_left_out_of_the_context_is_not_promised(desk):
    await desk.talk()
    tree = desk.session.tree
    first = next(i for i in tree.path_ids() if tree.head(i).role == "user")
    await desk.run(f"/pin {first}")
    desk.session._journal.omit(first)
    await desk.run("/compact --preview")
    assert "Pinned" not in desk.ui.shown[0][1]


async def test_context_names_everything(desk):
    await desk.talk()
    desk.answers += [reply(Call("read", {"path": "a.py"}), usage=None), reply("ok", usage=None)]
    await desk.session.prompt("read it")
    await desk.run("/pin")
    desk.answers.append(reply("more", usage=None))
    await desk.session.prompt("more")
    await desk.run("/compact --keep 30")
    desk.answers.append(reply("half", stop_reason="error", usage=None))
    await desk.session.prompt("again")
    await desk.run("/context")
    title, text = desk.ui.shown[0]
    assert title == "Context"
    for words in (
        "of 128,000 tokens", "system prompt", "/home/me/A & B.md", "tool declarations",
        "summary of earlier messages", "pinned messages", "your messages",
        "answers, thinking and tool calls", "On the screen, but not sent:", "summarised by",
        "failed or was aborted",
    ):  # fmt: skip
        assert words in text, words
    assert "█" in text and "%" in text


async def test_context_tells_results_by_tool_and_what_would_be_freed(desk):
    desk.answers += [reply(Call("read", {"path": "a.py"}), usage=None), reply("ok", usage=None)]
    await desk.session.prompt("read it")
    await desk.talk(3)
    await desk.run("/context")
    text = desk.ui.shown[0][1]
    assert "results of read" in text
    assert "A compaction now would free up to about" in text
    assert "about" in text.splitlines()[0]


async def test_context_of_an_empty_session_is_what_the_first_prompt_comes_with(desk):
    await desk.run("/context")
    text = desk.ui.shown[0][1]
    assert "system prompt" in text and "tool declarations" in text
    before = desk.session.context_usage().tokens
    assert f"about {before:,} of" in text and before > 50
    desk.answers.append(reply("yes", usage=Usage()))
    await desk.session.prompt("hi")
    assert before < desk.session.context_usage().tokens < before + 20


async def test_session_lists_the_compactions(desk):
    assert "compactions" in session_text(desk.session) and "none" in session_text(desk.session)
    await desk.talk()
    await desk.run("/compact")
    await desk.talk(2)
    desk.summary = " "
    await desk.run("/compact")
    text = session_text(desk.session)
    assert "1 done, 1 failed" in text
    assert "manual" in text and "→" in text and "not usable" in text
    # The same facts are there after the session was opened again.
    heads = [desk.session.tree.head(i) for i in desk.session.tree.ids()]
    again = AgentSession(
        desk.session._world,
        OpenedSession(desk.store, tuple(heads)),
        AgentSettings(model=structs.replace(SCRIPTED_MODEL)),
    )
    assert [r.ending for r in again.compactions()] == ["done", "failed"]
    assert again.compactions()[0].tokens_before > again.compactions()[0].tokens_after > 0


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("--preview", "/compact carries"),
        ("--preview --keep 200", "/compact --keep 200 carries"),
        ("--keep=8k --preview mind the files", "/compact --keep 8000 mind the files carries"),
        ("--preview -- --odd words", "/compact -- --odd words carries"),
    ],
)
async def test_the_preview_names_the_command_that_does_the_same(desk, line, command):
    options = parse_compact(line)
    named = command_without_preview(options)
    assert f"{named} carries" == command
    assert parse_compact(named.removeprefix("/compact")) == structs.replace(options, preview=False)
    await desk.talk(8)
    await desk.run(f"/compact {line if '8k' not in line else '--preview --keep 300'}")
    assert "carries it out." in desk.ui.shown[0][1].splitlines()[-1]


async def test_what_a_compaction_would_free_is_what_the_preview_would_summarise(desk):
    """Also where a provider's count of the whole is far from the estimates."""
    await desk.talk(6)
    desk.answers.append(reply("counted", usage=Usage(input=9_000, output=9, total_tokens=9_009)))
    await desk.session.prompt("once more")
    preview = await desk.session.preview_compaction(CompactRequest("manual"))
    await desk.run("/context")
    text = desk.ui.shown[0][1]
    assert "9,009 of" in text
    assert f"free up to about {preview.summarised_tokens:,} tokens" in text


async def test_one_token_is_one_token(desk):
    assert record_text(CompactionRecord("", "done", tokens_before=9, tokens_after=1)).startswith(
        "9 → 1 token ·"
    )
    assert counted_tokens(1) == "1 token" and counted_tokens(1_000) == "1,000 tokens"
