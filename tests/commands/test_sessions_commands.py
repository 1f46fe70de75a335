"""The commands about stored sessions, on real files, with a person who answers from a list."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from clock_and_ids import FakeClock, SpreadIds

from pi_tui.agent.assembly import AgentSettings, AgentWorld
from pi_tui.agent.queues import Draft
from pi_tui.agent.session import AgentSession
from pi_tui.commands.registry import CommandRegistry
from pi_tui.commands.sessions import age_text, session_commands, user_messages
from pi_tui.commands.ui import Choice
from pi_tui.core.entries import SessionHeader
from pi_tui.core.errors import StorageError
from pi_tui.core.events import Event, Notice
from pi_tui.core.messages import ImageContent
from pi_tui.core.models import Model, ModelChoice
from pi_tui.core.protocols import OpenedSession, ShellOutcome
from pi_tui.core.tokens import CharsEstimator
from pi_tui.export.exporter import FileExporter
from pi_tui.providers.scripted import SCRIPTED_MODEL, ScriptedProvider
from pi_tui.storage.jsonl import create_session, open_session
from pi_tui.storage.library import FileLibrary
from pi_tui.storage.memory import MemoryStore


class Person:
    """Answers questions from a list: a value, or the beginning of a label; None cancels."""

    def __init__(self) -> None:
        self.answers: list[str | None] = []
        self.questions: list[tuple[str, list[Choice], str | None]] = []
        self.said: list[tuple[str, str]] = []
        self.editor = ""

    def notify(self, level: str, text: str) -> None:
        self.said.append((level, text))

    def show(self, title: str, text: str) -> None:
        self.said.append((title, text))

    async def choose(
        self, title: str, options: Sequence[Choice], current: str | None = None
    ) -> str | None:
        self.questions.append((title, list(options), current))
        answer = self.answers.pop(0) if self.answers else None
        if answer is None:
            return None
        return next(o.value for o in options if o.value == answer or o.label.startswith(answer))

    def set_editor_text(self, text: str) -> None:
        self.editor = text

    def copy(self, text: str) -> None:
        raise AssertionError("nothing is copied here")

    def key_rows(self) -> Sequence[tuple[str, str]]:
        return ()

    def quit(self) -> None:
        raise AssertionError("nobody quits")

    @property
    def errors(self) -> list[str]:
        return [text for level, text in self.said if level == "error"]

    @property
    def last(self) -> str:
        return self.said[-1][1]


class Models:
    def __init__(self, provider: ScriptedProvider) -> None:
        self.provider = provider

    def find(self, full_name: str) -> Model | None:
        return SCRIPTED_MODEL if full_name == SCRIPTED_MODEL.full_name else None

    def available(self) -> Sequence[Model]:
        return (SCRIPTED_MODEL,)

    def resolve(self, reference: str) -> ModelChoice:
        return ModelChoice(SCRIPTED_MODEL)

    def provider_for(self, model: Model) -> ScriptedProvider:
        return self.provider


class NoShell:
    async def run(self, command: str, cwd: str, on_output: Callable[[str], None]) -> ShellOutcome:
        return ShellOutcome("", 0)

    def close(self) -> Sequence[str]:
        return ()


class Desk:
    """A session on files, the commands, and a person."""

    def __init__(self, directory: Path) -> None:
        self.sessions = directory / "sessions"
        self.here = directory / "here"
        self.here.mkdir()
        self.person = Person()
        self.ids = SpreadIds()
        self.provider = ScriptedProvider(fallback="an answer")
        self.library = FileLibrary(
            self.sessions, str(self.here), expand=lambda path: str(self.here / path)
        )
        self.registry = CommandRegistry(session_commands(self.library, FileExporter()))
        self.session = self.start(self.create())
        self.told: list[tuple[str, str]] = []
        self.session.subscribe(self._listen)

    def _listen(self, event: Event) -> None:
        if isinstance(event, Notice):
            self.told.append((event.level, event.text))

    def create(self, parent: str | None = None) -> OpenedSession:
        return OpenedSession(create_session(self.sessions, self.header(str(self.here))), ())

    def header(self, cwd: str) -> SessionHeader:
        return SessionHeader(self.ids.session_id(), "2026-01-01T00:00:00.000Z", cwd)

    def start(self, opened: OpenedSession) -> AgentSession:
        world = AgentWorld(
            models=Models(self.provider),
            tools=(),
            shell=NoShell(),
            sections=lambda tools: {"preamble": "You are a test."},
            clock=FakeClock(),
            ids=self.ids,
            estimator=CharsEstimator(),
            sessions=self,
            cwd=str(self.here),
        )
        return AgentSession(world, opened, AgentSettings(model=SCRIPTED_MODEL))

    async def stored(self, *prompts: str, cwd: str = "", name: str = "") -> Path:
        """Another session on disk, closed."""
        header = self.header(cwd or str(self.here))
        session = self.start(OpenedSession(create_session(self.sessions, header), ()))
        for prompt in prompts:
            await session.prompt(prompt)
        if name:
            session.set_name(name)
        path = session.store.path
        await session.close()
        assert path is not None
        return Path(path)

    async def run(self, line: str, *answers: str | None) -> None:
        self.person.answers = list(answers)
        assert await self.registry.run(line, self.session, self.person)


@pytest.fixture
async def desk(tmp_path: Path) -> Any:
    desk = Desk(tmp_path)
    yield desk
    await desk.session.close()


def spoken(desk: Desk) -> list[str]:
    on_path = set(desk.session.tree.path_ids())
    return [m.text for m in user_messages(desk.session.tree) if m.entry_id in on_path]


# ---------------------------------------------------------------- fork, clone


async def test_fork_goes_back_before_a_message(desk: Desk) -> None:
    for text in ("one", "two", "three"):
        await desk.session.prompt(text)
    desk.session.set_name("garden")
    old = Path(desk.session.store.path or "")
    before = old.read_bytes()
    await desk.run("/fork", "two")
    assert spoken(desk) == ["one"]
    assert desk.person.editor == "two"
    assert desk.session.name == "garden"
    assert old.read_bytes() == before
    assert desk.session.store.path != str(old)
    header = json.loads(Path(desk.session.store.path or "").read_text().splitlines()[0])
    assert header["parentSession"] == str(old)
    assert header["cwd"] == str(desk.here)
    _, options, current = desk.person.questions[0]
    assert [o.label for o in options] == ["one", "two", "three"]
    assert current == options[-1].value
    await desk.session.prompt("four")
    assert spoken(desk) == ["one", "four"]


async def test_a_fork_takes_the_images_along_where_the_editor_holds_them(desk: Desk) -> None:
    class Holder(Person):
        drafts: list[Draft]

        def put_back(self, drafts: Sequence[Draft]) -> None:
            raise AssertionError("nothing waited")

        def set_editor_draft(self, draft: Draft) -> None:
            self.drafts.append(draft)

    image = ImageContent("Y2F0", "image/png")
    await desk.session.prompt("look", images=(image,))
    desk.person = holder = Holder()
    holder.drafts = []
    await desk.run("/fork 1")
    assert holder.drafts == [Draft("look", (image,))]
    assert [level for level, _ in holder.said] == ["info"]


@pytest.mark.parametrize("way", ["number", "id", "beginning"])
async def test_fork_by_number_and_id(desk: Desk, way: str) -> None:
    for text in ("one", "two"):
        await desk.session.prompt(text)
    entry_id = user_messages(desk.session.tree)[1].entry_id
    references = {"number": "2", "id": entry_id, "beginning": entry_id[:7]}
    await desk.run(f"/fork {references[way]}")
    assert spoken(desk) == ["one"]
    assert desk.person.questions == []


async def test_fork_before_the_first_message(desk: Desk) -> None:
    await desk.session.prompt("one")
    await desk.run("/fork 1")
    assert spoken(desk) == []
    assert desk.person.editor == "one"
    await desk.session.prompt("other")
    assert spoken(desk) == ["other"]


async def test_fork_can_be_cancelled_and_refused(desk: Desk) -> None:
    await desk.run("/fork")
    assert "no message of yours" in desk.person.errors[0]
    await desk.session.prompt("one")
    path = desk.session.store.path
    await desk.run("/fork", None)
    await desk.run("/fork 7")
    assert "from 1 to 1" in desk.person.errors[1]
    assert desk.session.store.path == path


@pytest.mark.parametrize("digits", [1, 3, 4])
async def test_a_number_out_of_range_is_never_the_beginning_of_an_id(
    desk: Desk, digits: int
) -> None:
    await desk.session.prompt("one")
    await desk.session.prompt("two")
    path = desk.session.store.path
    entry_id = user_messages(desk.session.tree)[1].entry_id
    number = entry_id[:digits]
    assert int(number) > 2
    await desk.run(f"/fork {number}")
    assert "from 1 to 2" in "".join(desk.person.errors)
    assert desk.session.store.path == path


async def test_clone_copies_the_branch_with_its_labels(desk: Desk) -> None:
    await desk.session.prompt("one")
    await desk.session.prompt("two")
    old_path, old_ids = desk.session.store.path, desk.session.tree.path_ids()
    await desk.run("/clone")
    assert desk.session.store.path != old_path
    assert desk.session.tree.path_ids() == old_ids
    assert spoken(desk) == ["one", "two"]


async def test_unsaved_sessions_are_not_copied(desk: Desk) -> None:
    await desk.session.close()
    desk.session = desk.start(OpenedSession(MemoryStore(desk.header("/x")), ()))
    await desk.session.prompt("one")
    for line in ("/clone", "/fork 1"):
        await desk.run(line)
    assert len(desk.person.errors) == 2
    assert all("not saved" in text for text in desk.person.errors)


# ---------------------------------------------------------------- resume


async def test_resume_from_the_list(desk: Desk) -> None:
    await desk.stored("about roses", name="garden")
    await desk.run("/resume", "garden")
    assert desk.session.name == "garden"
    assert spoken(desk) == ["about roses"]
    _, options, _ = desk.person.questions[0]
    assert "2 messages" in options[0].detail or "3 messages" in options[0].detail
    assert options[-1].label.startswith("other directories")


@pytest.mark.parametrize("query", ["rses", '"about roses"', r"re:r\wses", "garden roses"])
async def test_resume_by_words(desk: Desk, query: str) -> None:
    path = await desk.stored("tell me", "about roses", name="garden")
    await desk.stored("tell me about cars")
    await desk.run(f"/resume {query}")
    assert desk.session.store.path == str(path)


async def test_resume_by_id_and_by_path(desk: Desk) -> None:
    first, second = await desk.stored("first"), await desk.stored("second")
    await desk.run(f"/resume {first}")
    assert spoken(desk) == ["first"]
    await desk.run(f"/resume {second.stem.partition('_')[2]}")
    assert spoken(desk) == ["second"]


async def test_resume_says_what_is_wrong(desk: Desk) -> None:
    await desk.run("/resume")
    await desk.run("/resume absent")
    await desk.stored("x")
    await desk.run("/resume re:(")
    await desk.run("/resume absent")
    await desk.run("/resume 0123456789")
    texts = desk.person.errors
    assert ["no stored sessions" in texts[0], "no session fits" in texts[1]] == [True, True]
    assert "not closed" in texts[2]
    assert "no session fits" in texts[3]
    assert "no session" in texts[4]


async def test_resume_of_a_session_somebody_else_has(desk: Desk) -> None:
    path = await desk.stored("one", "two")
    other = open_session(path)
    before = path.read_bytes()
    try:
        await desk.run(f"/resume {path}", None)
        assert desk.session.store.path != str(path)
        await desk.run(f"/resume {path}", "open it read-only")
        assert desk.session.read_only
        assert spoken(desk) == ["one", "two"]
        assert desk.session.submit("more") == "refused"
        await desk.run("/clone")
        assert not desk.session.read_only
        assert spoken(desk) == ["one", "two"]
        await desk.run(f"/resume {path}", "fork it")
        assert spoken(desk) == ["one", "two"]
        assert not desk.session.read_only
        _, options, _ = desk.person.questions[-1]
        assert "take it over" not in [o.label for o in options]
    finally:
        other.store.close()
    assert path.read_bytes() == before


async def test_resume_of_a_session_whose_directory_is_gone(desk: Desk) -> None:
    path = await desk.stored("one", cwd="/nowhere/proj-a")
    await desk.run(f"/resume {path}", "cancel")
    assert spoken(desk) == []
    assert "does not exist any more" in desk.person.questions[0][0]
    await desk.run(f"/resume {path}", "fork")
    assert spoken(desk) == ["one"]
    assert desk.session.store.header.cwd == str(desk.here)
    await desk.run(f"/resume {path}", "here")
    assert desk.session.store.path == str(path)
    assert desk.session.cwd == str(desk.here)
    assert not Path("/nowhere").exists()


async def test_the_list_of_all_marks_what_is_gone(desk: Desk) -> None:
    await desk.stored("one", cwd="/nowhere/proj-a")
    await desk.run("/resume", None)
    assert "no session belongs to" in desk.person.said[0][1]
    _, options, _ = desk.person.questions[0]
    assert "/nowhere/proj-a (does not exist any more)" in options[0].detail


async def test_a_cancelled_question_lets_the_session_go(desk: Desk) -> None:
    path = await desk.stored("one", cwd="/nowhere/proj-a")
    await desk.run(f"/resume {path}", None)
    again = open_session(path)  # it would be locked
    assert not again.store.read_only
    again.store.close()


async def test_a_question_is_asked_before_the_file_is_changed(desk: Desk) -> None:
    path = await desk.stored("one", cwd="/nowhere/proj-a")
    with path.open("ab") as file:
        file.write(b'{"type":"mess')
    torn, files = path.read_bytes(), set(path.parent.iterdir())
    for answer in (None, "cancel"):
        await desk.run(f"/resume {path}", answer)
        assert (path.read_bytes(), set(path.parent.iterdir())) == (torn, files)
    await desk.run(f"/resume {path}", "fork")
    assert path.read_bytes() == torn
    assert "incomplete" in "".join(t for level, t in desk.told if level == "warning")
    desk.told.clear()
    await desk.run(f"/resume {path}", "here")
    assert path.read_bytes().startswith(torn + b"\n")
    assert "incomplete" in "".join(t for level, t in desk.told if level == "warning")


async def test_an_old_version_is_not_upgraded_before_the_question(desk: Desk) -> None:
    path = desk.here / "v1.jsonl"
    head = {"type": "session", "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/gone"}
    message = {"type": "message", "timestamp": "x", "message": {"role": "user", "content": "one"}}
    path.write_text(f"{json.dumps(head)}\n{json.dumps(message)}\n")
    old = path.read_bytes()
    await desk.run(f"/resume {path}", "cancel")
    assert path.read_bytes() == old
    assert list(desk.here.iterdir()) == [path]
    await desk.run(f"/resume {path}", "here")
    assert spoken(desk) == ["one"]
    assert (desk.here / "v1.jsonl.v1.bak").read_bytes() == old


async def test_a_session_of_this_directory_under_another_name_is_not_asked_about(
    desk: Desk, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(desk.here)
    path = await desk.stored("one", cwd=str(link))
    await desk.run(f"/resume {path}")
    assert (desk.person.questions, desk.session.store.path) == ([], str(path))


@pytest.mark.parametrize(("name", "told"), [("leaf", "a copy of leaf"), ("", "the one you chose")])
async def test_a_fork_is_not_called_resumed(desk: Desk, name: str, told: str) -> None:
    path = await desk.stored("one", name=name)
    other = open_session(path)
    await desk.run(f"/resume {path}", "fork it")
    other.store.close()
    assert (
        desk.person.last.startswith("forked: this is a new session, ") and told in desk.person.last
    )
    assert desk.session.store.path != str(path)
    await desk.run(f"/resume {path}")
    assert desk.person.last.startswith("resumed: ")


async def test_resume_of_the_present_session_changes_nothing(desk: Desk) -> None:
    await desk.session.prompt("one")
    await desk.run(f"/resume {desk.session.store.path}")
    assert "the session you are in" in desk.person.last


# ---------------------------------------------------------------- import, export


async def test_import_copies_and_opens(desk: Desk, tmp_path: Path) -> None:
    source = await desk.stored("one", cwd="/nowhere/proj-a")
    moved = tmp_path / "a file.jsonl"
    source.rename(moved)
    before = moved.read_bytes()
    await desk.run(f"/import '{moved}'")
    assert desk.person.errors == []
    assert spoken(desk) == ["one"]
    assert moved.read_bytes() == before
    copy = Path(desk.session.store.path or "").read_bytes()
    assert copy.split(b"\n")[1:] == before.split(b"\n")[1:]
    assert desk.session.store.header.cwd == str(desk.here)
    await desk.run("/import")
    await desk.run("/import missing.jsonl")
    assert len(desk.person.errors) == 2


@pytest.mark.parametrize("name", ["out.html", "out.md", "out.jsonl"])
async def test_export_writes_what_the_name_says(desk: Desk, name: str) -> None:
    await desk.session.prompt("one two three")
    await desk.run(f"/export {name}")
    assert "one two three" in (desk.here / name).read_text()
    said = [text for _, text in desk.person.said]
    assert "whole conversation" in said[0]
    assert said[1].startswith("exported: ")


async def test_export_names_the_file_after_the_session(desk: Desk) -> None:
    await desk.session.prompt("one")
    await desk.run("/export")
    desk.session.set_name("Garden: plan/2")
    await desk.run("/export")
    names = sorted(path.name for path in desk.here.iterdir())
    assert names[0] == "Garden-plan-2.html"
    assert names[1].startswith("session-")


async def test_export_asks_before_it_writes_over(desk: Desk) -> None:
    await desk.session.prompt("one")
    target = desk.here / "out.md"
    target.write_text("mine")
    await desk.run("/export out.md", None)
    assert "--force" in desk.person.errors[0]
    await desk.run("/export out.md", "keep it")
    assert target.read_text() == "mine"
    await desk.run("/export out.md", "write over it")
    assert "one" in target.read_text()
    target.write_text("mine")
    await desk.run("/export --force out.md")
    assert "one" in target.read_text()


async def test_export_says_what_is_wrong(desk: Desk) -> None:
    await desk.run("/export out.html")
    await desk.session.prompt("one")
    await desk.run("/export out.pdf")
    await desk.run("/export --frce out.md")
    assert [
        "nothing to export" in desk.person.errors[0],
        "format" in desk.person.errors[1],
        "--frce" in desk.person.errors[2],
    ] == [True] * 3


async def test_export_masks_unless_told(desk: Desk) -> None:
    key = "ghp_" + "a1B2" * 10
    await desk.session.prompt(f"the key is {key}")
    await desk.run("/export a.md")
    await desk.run("/export --unmasked b.md")
    assert key not in (desk.here / "a.md").read_text()
    assert key in (desk.here / "b.md").read_text()
    assert "1 key was masked" in [text for _, text in desk.person.said][1]


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [(0, "now"), (59_999, "now"), (300_000, "5 min"), (7_200_000, "2 h"), (10**9, "11 d")],
)
def test_ages(age_ms: int, text: str) -> None:
    assert age_text(age_ms) == text


# ---------------------------------------------------------------- while a copy is written


@pytest.mark.parametrize("line", ["/fork 2", "/clone"])
async def test_a_prompt_sent_while_a_copy_is_written_is_refused(
    desk: Desk, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would run in the session that is left, and be stopped."""
    await desk.session.prompt("one")
    await desk.session.prompt("two")
    writing, written = threading.Event(), threading.Event()
    fork = desk.library.fork

    def slow(*arguments: Any) -> OpenedSession:
        writing.set()
        assert written.wait(10)
        return fork(*arguments)

    monkeypatch.setattr(desk.library, "fork", slow)
    copying = asyncio.ensure_future(desk.run(line))
    while not writing.is_set():
        await asyncio.sleep(0.001)
    asked = len(desk.provider.requests)
    assert desk.session.submit("lost?") == "refused"
    other = Person()
    await desk.registry.run("/clone", desk.session, other)
    assert "already" in other.errors[0]
    written.set()
    await copying
    assert len(desk.provider.requests) == asked
    await desk.session.prompt("three")
    assert spoken(desk)[-1] == "three"


async def test_a_copy_that_fails_gives_the_session_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await desk.session.prompt("one")
    path = desk.session.store.path

    def full(*arguments: Any) -> OpenedSession:
        raise StorageError("the disk is full", hint="Free some space.")

    monkeypatch.setattr(desk.library, "fork", full)
    await desk.run("/clone")
    assert desk.person.errors == ["the disk is full. Free some space."]
    await desk.session.prompt("two")
    assert desk.session.store.path == path and spoken(desk) == ["one", "two"]


async def test_a_session_that_cannot_be_gone_to_is_closed_in_a_thread(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await desk.stored("about roses")
    opened = desk.library.open(str(path))
    closed: list[threading.Thread] = []
    close = opened.store.close

    def note() -> None:
        closed.append(threading.current_thread())
        close()

    def broken(entry_id: str) -> Any:
        raise StorageError("it cannot be read", hint="Look at the disk.")

    monkeypatch.setattr(opened.store, "close", note)
    monkeypatch.setattr(opened.store, "load", broken)
    monkeypatch.setattr(desk.library, "open", lambda path: opened)
    before = desk.session.store
    await desk.run(f"/resume {path}")
    assert desk.person.errors == ["it cannot be read. Look at the disk."]
    assert desk.session.store is before
    assert len(closed) == 1 and closed[0] is not threading.current_thread()


async def test_another_session_opened_while_a_fork_is_chosen_ends_it(desk: Desk) -> None:
    await desk.session.prompt("one")
    choose = desk.person.choose

    async def meanwhile(*arguments: Any) -> str | None:
        await desk.session.new_session()
        return await choose(*arguments)

    desk.person.choose = meanwhile  # type: ignore[method-assign]
    await desk.run("/fork", "one")
    assert "another session was opened" in desk.person.errors[0]


async def test_messages_to_fork_from_are_read_in_a_thread(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await desk.stored("one", "two")
    await desk.run(f"/resume {path}")
    readers: set[threading.Thread] = set()
    load = desk.session.store.load

    def note(entry_id: str) -> Any:
        readers.add(threading.current_thread())
        return load(entry_id)

    monkeypatch.setattr(desk.session.store, "load", note)
    await desk.run("/fork", None)
    assert readers and threading.current_thread() not in readers
