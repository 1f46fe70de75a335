"""`/tree` and its companions as people type them, with and without a tree panel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import pytest
from clock_and_ids import FakeClock, SpreadIds

from pi_tui.agent.assembly import AgentSettings, AgentWorld
from pi_tui.agent.navigator import NavigateRequest, NavigationOutcome
from pi_tui.agent.queues import Draft
from pi_tui.agent.session import AgentSession
from pi_tui.commands.builtin import builtin_registry
from pi_tui.commands.tree import parse_tree, tell_navigation
from pi_tui.commands.ui import Choice
from pi_tui.core.compaction.prompts import SUMMARISER_SYSTEM
from pi_tui.core.entries import BranchSummaryEntry, SessionHeader
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import ImageContent, text_of
from pi_tui.core.models import Model, ModelChoice
from pi_tui.core.protocols import OpenedSession, ShellOutcome, Tool
from pi_tui.core.tokens import CharsEstimator
from pi_tui.providers.scripted import SCRIPTED_MODEL, Gate, ScriptedProvider, reply
from pi_tui.storage.memory import MemoryStore


class Screen:
    """A front end without a panel: remembers what it was told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []
        self.editor: list[str] = []

    def notify(self, level: str, text: str) -> None:
        self.said.append((level, text))

    def show(self, title: str, text: str) -> None:
        self.said.append((title, text))

    async def choose(
        self, title: str, options: Sequence[Choice], current: str | None = None
    ) -> str | None:
        raise AssertionError("nothing is asked here")

    def set_editor_text(self, text: str) -> None:
        self.editor.append(text)

    def copy(self, text: str) -> None:
        raise AssertionError("nothing is copied here")

    def key_rows(self) -> Sequence[tuple[str, str]]:
        return ()

    def quit(self) -> None:
        raise AssertionError("nobody quits here")

    @property
    def last(self) -> tuple[str, str]:
        return self.said[-1]


class PanelScreen(Screen):
    """A front end with a tree panel, which may be unable to open."""

    def __init__(self, *, opens: bool) -> None:
        super().__init__()
        self.opens = opens
        self.opened = 0

    def open_tree(self) -> bool:
        self.opened += 1
        return self.opens


class NoShell:
    async def run(self, command: str, cwd: str, on_output: Callable[[str], None]) -> ShellOutcome:
        raise AssertionError("no commands here")

    def close(self) -> Sequence[str]:
        return ()


class OneModel:
    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider

    def find(self, full_name: str) -> Model | None:
        return SCRIPTED_MODEL

    def available(self) -> Sequence[Model]:
        return (SCRIPTED_MODEL,)

    def resolve(self, reference: str) -> ModelChoice:
        return ModelChoice(SCRIPTED_MODEL)

    def provider_for(self, model: Model) -> ScriptedProvider:
        return self.provider


def sections(tools: Sequence[Tool]) -> Mapping[str, str]:
    return {"preamble": "You are a test."}


class MemorySessions:
    def create(self, parent: str | None = None) -> OpenedSession:
        header = SessionHeader(id="s", timestamp="2026-01-02T03:04:05.000Z", cwd="/work")
        return OpenedSession(MemoryStore(header), ())


class Desk:
    """A session, a screen and the commands."""

    def __init__(self) -> None:
        self.provider = ScriptedProvider()
        self.screen = Screen()
        self.registry = builtin_registry()
        sessions = MemorySessions()
        world = AgentWorld(
            models=OneModel(self.provider),
            tools=(),
            shell=NoShell(),
            sections=sections,
            clock=FakeClock(),
            ids=SpreadIds(),
            estimator=CharsEstimator(),
            sessions=sessions,
            cwd="/work",
        )
        settings = AgentSettings(model=SCRIPTED_MODEL)
        self.session = AgentSession(world, sessions.create(), settings)

    async def say(self, text: str, answer: str) -> str:
        self.provider.add(answer)
        await self.session.prompt(text)
        leaf = self.session.tree.leaf_id
        assert leaf is not None
        return leaf

    async def type(self, line: str) -> tuple[str, str]:
        assert await self.registry.run(line, self.session, self.screen)
        return self.screen.last


@pytest.fixture
def desk():
    return Desk()


# ---------------------------------------------------------------- reading the line


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {}),
        ("ab12", {"target": "ab12"}),
        ("ab12 --summarize", {"target": "ab12", "summarize": True}),
        ("--summarise ab12", {"target": "ab12", "summarize": True}),
        (
            'ab12 --summarize="only the parser, don\'t guess" --replace',
            {
                "target": "ab12",
                "summarize": True,
                "instructions": "only the parser, don't guess",
                "replace": True,
            },
        ),
        ('ab12 --label "first try"', {"target": "ab12", "label": "first try"}),
        ("ab12 --label=x", {"target": "ab12", "label": "x"}),
        ('"two words"', {"target": "two words"}),
        ("--undo", {"undo": True}),
        ("--dump", {"dump": True}),
    ],
)
def test_what_is_typed_after_tree(line, expected):
    options = parse_tree(line)
    found = {name: getattr(options, name) for name in options.__struct_fields__}
    assert {name: value for name, value in found.items() if value} == expected


@pytest.mark.parametrize(
    "line",
    [
        "--frob",
        "a b",
        "--summarize",
        "--label x",
        "a --label",
        'a --label "  "',
        "a --undo",
        "--undo --dump",
        "a --dump",
        "a --replace",
        "a --summarize --replace",
        'a --label "open',
    ],
)
def test_a_wrong_line_is_refused_in_words(line):
    with pytest.raises(UsageError) as refused:
        parse_tree(line)
    assert refused.value.message


# ---------------------------------------------------------------- /tree


async def test_a_panel_is_opened_where_there_is_one(desk):
    await desk.say("one", "1")
    desk.screen = PanelScreen(opens=True)
    assert await desk.registry.run("/tree", desk.session, desk.screen)
    assert desk.screen.opened == 1 and desk.screen.said == []
    desk.screen = PanelScreen(opens=False)
    assert (await desk.type("/tree"))[0] == "Session Tree"
    opened = desk.screen.opened
    await desk.type("/tree --dump")
    assert desk.screen.opened == opened


async def test_the_tree_is_printed_elsewhere(desk):
    assert await desk.type("/tree") == ("Session Tree", "The session is empty.")
    place = await desk.say("one", "1")
    other = await desk.say("two", "2")
    desk.session.set_label(place, "start")
    await desk.type(f"/tree {place}")
    leaf = await desk.say("three \x1b[2J", "3")
    title, text = await desk.type("/tree")
    assert title == "Session Tree"
    lines = text.splitlines()
    assert f"• {place}  [start] assistant: 1" in lines
    assert f"  {other}     assistant: 2" in lines
    assert f"› {leaf}     assistant: 3" in lines
    assert any(line.endswith("user: three") for line in lines)
    assert "pi-tui.leaf" not in text and "model:" not in text
    _, everything = await desk.type("/tree --dump")
    assert "[pi-tui.leaf]" in everything and "[model: scripted/model]" in everything
    assert len(everything.splitlines()) == len(desk.session.tree)


async def test_going_somewhere_puts_the_message_into_the_editor(desk):
    place = await desk.say("one", "1")
    await desk.say("two", "2")
    asked = desk.session.tree.path_ids()[-2]
    level, text = await desk.type(f"/tree {asked[:6]}")
    assert (level, desk.screen.editor) == ("info", ["two"])
    assert desk.session.tree.leaf_id == place and "moved" in text
    assert await desk.type(f"/tree {place}") == ("info", "already at this point")
    level, text = await desk.type("/tree --undo")
    assert level == "info" and desk.session.tree.leaf_id != place
    assert (await desk.type("/tree --undo"))[0] == "error"
    assert (await desk.type("/tree nowhere"))[0] == "error"


async def test_a_summary_with_instructions_and_a_label(desk):
    place = await desk.say("one", "1")
    await desk.say("two", "2")
    desk.provider.add("learnt")
    await desk.type(f'/tree {place} --summarize="mind the parser" --label "second try"')
    request = desk.provider.requests[-1]
    assert request.system == SUMMARISER_SYSTEM
    assert "mind the parser" in text_of(request.messages[0].content)
    (summary,) = (
        entry for entry in desk.session.tree.path() if isinstance(entry, BranchSummaryEntry)
    )
    assert desk.session.tree.label(summary.id) == "second try"


async def test_a_failed_summary_is_one_error_line(desk):
    place = await desk.say("one", "1")
    leaf = await desk.say("two", "2")
    desk.provider.add("")
    level, text = await desk.type(f"/tree {place} --summarize")
    assert level == "error" and "\n" not in text and "you are where you were" in text
    assert desk.session.tree.leaf_id == leaf


async def test_messages_of_a_stopped_turn_go_to_the_editor(desk):
    place = await desk.say("one", "1")
    gate = Gate()
    desk.provider.add(reply("half", gate))
    desk.session.submit("two")
    await gate.reached.wait()
    desk.session.submit("steer")
    desk.session.submit("later", "followUp")
    level, text = await desk.type(f"/tree {place}")
    assert level == "info" and "the running turn was stopped" in text
    assert desk.screen.editor == ["steer\n\nlater"]


# ---------------------------------------------------------------- /label


async def test_labels_from_the_command_line(desk):
    assert (await desk.type("/label x"))[0] == "error"
    place = await desk.say("one", "1")
    newest = await desk.say("two", "2")
    label = desk.session.tree.label
    assert await desk.type(f"/label {place} a good \x07 place") == (
        "info",
        f"label of {place}: a good ␇ place",
    )
    assert label(place) == "a good \x07 place"
    await desk.type("/label the newest one")
    assert label(newest) == "the newest one"
    await desk.type("/label")  # without a text it is taken away
    assert label(newest) is None
    title, text = await desk.type("/label")
    assert (title, text) == ("Labels", f"{place}  [a good ␇ place] assistant: 1")
    await desk.type(f"/label {place}")
    assert label(place) is None
    assert (await desk.type(f"/label {place}"))[0] == "error"
    assert (await desk.type("/label 0000beef x"))[0] == "error"  # looks like an id, but is none
    assert label(newest) is None
    assert (await desk.type("/label"))[1].startswith("There are no labels")


# ---------------------------------------------------------------- /compare, /hide, /omit


async def test_two_branches_are_compared(desk):
    place = await desk.say("one", "1")
    a_id = await desk.say("try A \x1b[5m", "A is done")
    await desk.type(f"/tree {place}")
    b_id = await desk.say("try B", "B is done")
    title, text = await desk.type(f"/compare {a_id}")
    assert title == "Two branches"
    assert f"Both come from {place}" in text and "assistant: 1" in text
    assert f"A: up to {a_id}" in text and f"B: up to {b_id}" in text
    assert "- try A" in text and "last answer: B is done" in text and "\x1b" not in text
    _, text = await desk.type(f"/compare {place} {a_id}")
    assert "nothing of its own" in text
    assert (await desk.type("/compare"))[0] == "error"
    assert (await desk.type("/compare a b c"))[0] == "error"


async def test_a_dead_branch_is_hidden_from_the_printed_tree(desk):
    place = await desk.say("one", "1")
    dead = await desk.say("two", "2")
    top = desk.session.tree.parent(dead)
    assert (await desk.type(f"/hide {top}"))[0] == "error"  # one stands on it
    await desk.type(f"/tree {place}")
    await desk.say("three", "3")
    await desk.type(f"/hide {top}")
    _, text = await desk.type("/tree")
    assert dead not in text and "entries are on hidden branches" in text
    assert dead in (await desk.type("/tree --dump"))[1]
    assert (await desk.type(f"/unhide {dead}")) == ("info", f"shown again: {top}")
    assert dead in (await desk.type("/tree"))[1]
    assert (await desk.type("/unhide"))[0] == "error"
    assert (await desk.type("/hide"))[0] == "error"


async def test_a_message_is_left_out_and_taken_back(desk):
    await desk.say("one", "1")
    await desk.say("two", "2")
    asked = desk.session.tree.path_ids()[-2]
    level, text = await desk.type(f"/omit {asked}")
    assert level == "info" and f"/restore {asked}" in text
    assert "(left out of the context)" in (await desk.type("/tree"))[1]
    await desk.say("three", "3")
    assert [text_of(m.content) for m in desk.provider.requests[-1].messages] == [
        "one",
        "1",
        "2",
        "three",
    ]
    assert await desk.type(f"/restore {asked}") == ("info", f"back in the context: {asked}")
    assert (await desk.type(f"/restore {asked}"))[0] == "error"
    assert (await desk.type("/omit"))[0] == "error"


# ---------------------------------------------------------------- what waited comes back


class EditorScreen(Screen):
    """A front end whose editor holds images."""

    def __init__(self) -> None:
        super().__init__()
        self.drafts: list[Draft] = []
        self.again: list[Draft] = []

    def put_back(self, drafts: Sequence[Draft]) -> None:
        self.drafts.extend(drafts)

    def set_editor_draft(self, draft: Draft) -> None:
        self.again.append(draft)


CAT = ImageContent("Y2F0", "image/png")
WAITED = (Draft("first", (CAT, CAT)), Draft("second"))


def test_drafts_go_where_images_can_be_kept():
    screen = EditorScreen()
    tell_navigation(screen, NavigationOutcome("moved", None, None, message="m", taken_back=WAITED))
    assert tuple(screen.drafts) == WAITED and screen.editor == []
    assert screen.said == [("info", "m")]


def test_elsewhere_their_text_is_kept_and_the_loss_is_told():
    screen = Screen()
    outcome = NavigationOutcome("failed", None, None, "chosen", message="m", taken_back=WAITED)
    tell_navigation(screen, outcome)
    assert screen.editor == ["first\n\nsecond", "chosen"]
    assert screen.said == [
        ("warning", "2 images of messages that were not sent cannot be kept here"),
        ("error", "m"),
    ]


@pytest.mark.parametrize("text", ["chosen", ""])
def test_a_chosen_message_keeps_its_images_where_that_can_be(text):
    outcome = NavigationOutcome("moved", None, None, text, message="m", editor_images=(CAT,))
    screen = EditorScreen()
    tell_navigation(screen, outcome)
    assert screen.again == [Draft(text, (CAT,))] and screen.said == [("info", "m")]
    plain = Screen()
    tell_navigation(plain, outcome)
    assert plain.editor == [text] * bool(text)
    assert plain.said == [
        ("warning", "an image of the message cannot be kept here"),
        ("info", "m"),
    ]


@pytest.mark.parametrize("line", ["/tree --undo", "/tree PLACE"])
async def test_messages_that_waited_for_the_stopped_turn_come_back(desk, line):
    first = await desk.say("one", "1")
    await desk.say("two", "2")
    await desk.session.navigate(NavigateRequest(first))
    gate = Gate()
    desk.provider.add(reply("half", gate))
    desk.session.submit("three")
    await gate.reached.wait()
    desk.session.submit("precious", images=(CAT,))
    desk.screen = EditorScreen()
    await desk.type(line.replace("PLACE", first))
    assert desk.screen.drafts == [Draft("precious", (CAT,))]


async def test_labels_and_comparisons_are_read_in_a_thread(desk, monkeypatch):
    first = await desk.say("one", "1")
    second = await desk.say("two", "2")
    desk.session.set_label(first, "place")
    readers = set()
    load = desk.session.store.load

    def note(entry_id):
        readers.add(threading.current_thread())
        return load(entry_id)

    monkeypatch.setattr(desk.session.store, "load", note)
    for line in ("/tree --dump", "/label", f"/compare {first} {second}"):
        readers.clear()
        # What a tree has decoded already is not read again; a session that was resumed has nothing.
        desk.session.tree._decoded.clear()
        await desk.type(line)
        if line.startswith("/compare"):  # the line about the entry both come from is one entry
            readers.discard(threading.current_thread())
        assert readers and threading.current_thread() not in readers
