"""The demo model: the tour with real results, its words, its summaries, its honesty."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pi_tui.core.compaction.prompts import instructions, request_text
from pi_tui.core.compaction.serialize import serialize_conversation
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolDeclaration,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_tui.core.protocols import ModelRequest, RequestMessage
from pi_tui.core.streaming import (
    MessageBuilder,
    Stopped,
    TextDelta,
    ThinkingDelta,
    UsageReport,
)
from pi_tui.providers.demo import DEMO_MODEL, DemoProvider
from pi_tui.providers.demo_texts import FILE_TEXT, NEW_LINE, OLD_LINE
from pi_tui.providers.demo_tour import DemoAnswer, fit_arguments, next_answer, word_in


def declare(name: str, *properties: str) -> ToolDeclaration:
    schema: dict[str, JSON] = {"type": "object", "properties": {p: {} for p in properties}}
    return ToolDeclaration(name, f"the {name} tool", schema)


LS = declare("ls", "path")
BASH = declare("bash", "command", "timeout")
READ = declare("read", "path", "offset", "limit")
WRITE = declare("write", "path", "content")
EDIT = declare("edit", "path", "oldText", "newText")
ALL = (LS, BASH, READ, WRITE, EDIT)


class Talk:
    """A conversation with the demo, with a folder in memory that its calls really change."""

    def __init__(
        self, tools: Sequence[ToolDeclaration] = ALL, files: dict[str, str] | None = None
    ) -> None:
        self.tools = tuple(tools)
        self.files = (
            {"src/": "", "README.md": "# The project\n\ntext\n"} if files is None else files
        )
        self.messages: list[RequestMessage] = []
        self.fail: set[str] = set()
        self._time = 0

    def stamp(self) -> int:
        self._time += 1
        return self._time

    def request(self) -> ModelRequest:
        return ModelRequest(DEMO_MODEL, "system", tuple(self.messages), self.tools)

    def step(self) -> DemoAnswer:
        """One answer of the demo, and the result of its call."""
        answer = next_answer(self.request())
        content = (TextContent(answer.text), *([answer.call] if answer.call else []))
        self.messages.append(
            AssistantMessage(content, "demo", "demo", "tour", Usage(), "stop", self.stamp())
        )
        if answer.call is not None:
            self.messages.append(self.run(answer.call))
        return answer

    def user(self, text: str) -> None:
        self.messages.append(UserMessage(text, self.stamp()))

    def say(self, text: str) -> list[DemoAnswer]:
        """Send a message and let the demo work until it stops calling tools."""
        self.user(text)
        answers = [self.step()]
        while answers[-1].call is not None:
            assert len(answers) < 10
            answers.append(self.step())
        return answers

    def run(self, call: ToolCall) -> ToolResultMessage:
        a = call.arguments
        error = call.name in self.fail
        if error:
            text = "permission denied"
        elif call.name == "ls" or (call.name == "bash" and a["command"] == "ls -1p"):
            text = "\n".join(sorted(self.files))
        elif call.name == "bash":
            text = self.files[a["command"].removeprefix("cat ")]
        elif call.name == "read":
            text = self.files[a["path"]]
        elif call.name == "write":
            self.files[a["path"]] = a["content"]
            text = "written"
        else:
            before = self.files[a["path"]]
            assert before.count(a["oldText"]) == 1
            self.files[a["path"]] = before.replace(a["oldText"], a["newText"])
            text = "edited"
        return ToolResultMessage(call.id, call.name, (TextContent(text),), error, self.stamp())


def calls(answers: Sequence[DemoAnswer]) -> list[str]:
    return [answer.call.name for answer in answers if answer.call is not None]


def test_the_whole_tour() -> None:
    talk = Talk()
    first = talk.say("hello there")
    assert "scripted" in first[0].text.split(".")[1]  # the sentence after the greeting
    assert calls(first) == ["ls", "read"]
    assert "3 lines" in first[-1].text
    assert "The project" in first[-1].text
    assert "pi-tui-demo.txt" in first[-1].text
    assert set(talk.files) == {"src/", "README.md"}  # nothing written before the yes

    second = talk.say("yes")
    assert calls(second) == ["write"]
    assert talk.files["pi-tui-demo.txt"] == FILE_TEXT
    assert "May I?" in second[-1].text

    third = talk.say("Yes!")
    assert calls(third) == ["edit", "bash"]
    assert NEW_LINE in talk.files["pi-tui-demo.txt"]
    assert OLD_LINE not in talk.files["pi-tui-demo.txt"]
    assert "/tree" in third[-1].text
    assert "/compact" in third[-1].text
    assert talk.say("yes")[-1].call is None  # the tour is over; nothing happens twice

    ids = [m.tool_call_id for m in talk.messages if isinstance(m, ToolResultMessage)]
    assert len(set(ids)) == len(ids) == 5


def test_lines_of_a_file_are_counted_without_the_words_of_the_tool() -> None:
    numbered = "".join(f"{number:>2}\tline\n" for number in range(1, 41))
    note = "\n[Lines 1-40 of 90. Go on with offset=41.]"
    assert "40 lines of" in Talk(files={"README.md": numbered + note}).say("hi")[-1].text
    empty = Talk(files={"README.md": "README.md is empty."}).say("hi")[-1].text
    assert "Of `README.md` the tool said: “README.md is empty.”." in empty


def test_the_same_request_gets_the_same_answer() -> None:
    talk = Talk()
    talk.say("hi")
    talk.user("yes")
    assert next_answer(talk.request()) == next_answer(talk.request())


def test_no_is_taken_for_no_and_can_be_taken_back() -> None:
    talk = Talk()
    talk.say("hi")
    refused = talk.say("no, thanks")
    assert calls(talk.say("no")) == calls(refused) == []
    assert "pi-tui-demo.txt" not in talk.files
    assert calls(talk.say("yes")) == ["write"]


def test_an_existing_file_is_not_overwritten() -> None:
    talk = Talk(files={"pi-tui-demo.txt": "mine", "README.md": "x"})
    talk.say("hi")
    talk.say("yes")
    talk.say("yes")
    assert talk.files["pi-tui-demo.txt"] == "mine"
    assert NEW_LINE in talk.files["pi-tui-demo-2.txt"]


def test_only_harmless_text_files_are_read() -> None:
    talk = Talk(files={".env": "KEY=1", "id_rsa": "secret", "data.bin": "", "-rf.md": "x"})
    assert calls(talk.say("hi")) == ["ls"]
    talk = Talk(files={".env": "KEY=1", "notes.txt": "hello"})
    answers = talk.say("hi")
    assert answers[0].call is not None
    assert "notes.txt" in answers[1].text


def test_bash_lists_where_there_is_no_ls() -> None:
    talk = Talk(tools=(BASH, READ, WRITE, EDIT))
    assert calls(talk.say("hi")) == ["bash", "read"]


@pytest.mark.parametrize(
    ("tools", "expected"),
    [((), []), ((LS,), ["ls"]), ((LS, READ), ["ls", "read"])],
)
def test_missing_tools_are_said_to_be_missing(
    tools: tuple[ToolDeclaration, ...], expected: list[str]
) -> None:
    answers = Talk(tools=tools).say("hi")
    assert calls(answers) == expected
    assert "switched on" in answers[-1].text


def test_an_empty_folder_is_fine() -> None:
    talk = Talk(files={})
    answers = talk.say("hi")
    assert calls(answers) == ["ls"]
    assert "listed nothing" in answers[-1].text
    assert calls(talk.say("yes")) == ["write"]


@pytest.mark.parametrize("broken", ["ls", "read", "write", "edit", "bash"])
def test_failing_tools_are_reported_and_the_tour_goes_on(broken: str) -> None:
    talk = Talk()
    talk.fail = {broken}
    said = [talk.say("hi"), talk.say("yes"), talk.say("yes")]
    assert any("permission denied" in answer.text for answers in said for answer in answers)
    assert all(answer.text.strip() for answers in said for answer in answers)


def test_a_failed_write_is_tried_again_on_yes() -> None:
    talk = Talk()
    talk.say("hi")
    talk.fail = {"write"}
    talk.say("yes")
    talk.fail = set()
    assert calls(talk.say("yes")) == ["write"]
    assert "pi-tui-demo.txt" in talk.files


def test_steering_between_two_steps_is_answered_and_the_tour_goes_on() -> None:
    talk = Talk()
    talk.user("hi")
    talk.step()
    talk.user("look at `src` instead")
    answers = [talk.step()]
    assert "look at src instead" in answers[0].text
    assert "steering" in answers[0].text
    assert answers[0].call is not None
    assert answers[0].call.name == "read"


def test_words_are_understood_in_any_dress() -> None:
    assert word_in(" YES! ") == "yes"
    assert word_in("/help") == word_in("?") == word_in("Help?") == "help"
    assert word_in("models") == "connect"
    assert word_in("no thanks.") == "no"
    assert word_in("what is this?") == word_in("") == ""


def test_help_connect_and_long_answer_without_starting_the_tour() -> None:
    talk = Talk()
    assert "connect" in talk.say("help")[-1].text
    connect = next_answer(
        ModelRequest(DEMO_MODEL, "", (UserMessage("connect", 1),), ALL), "/etc/pi/models.json"
    )
    assert "/etc/pi/models.json" in connect.text
    assert "ANTHROPIC_API_KEY" in connect.text
    assert '"providers"' in connect.text
    assert len(talk.say("long")[-1].text) > 3500
    assert calls(talk.say("hello")) == ["ls", "read"]


def test_unknown_words_get_an_honest_answer() -> None:
    talk = Talk()
    talk.say("hi")
    answer = talk.say("please refactor the parser")[-1]
    assert answer.call is None
    assert "scripted" in answer.text


def test_foreign_text_cannot_act_in_the_answer() -> None:
    talk = Talk(files={"README.md": "# \x1b[31m[bold]`x`<b>\u202e evil" + "y" * 500})
    text = talk.say("hi")[-1].text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "<b>" not in text
    assert "y" * 100 not in text


def summary_request(conversation: str, previous: str = "", critical: bool = True) -> ModelRequest:
    earlier = f"<previous-summary>\n{previous}\n</previous-summary>\n" if previous else ""
    headings = "Goal, Progress, Critical Context" if critical else "Goal, Progress"
    text = f"<conversation>\n{conversation}\n</conversation>\n{earlier}Use these: {headings}"
    return ModelRequest(DEMO_MODEL, "You summarise.", (UserMessage(text, 1),))


CONVERSATION = """\
[User]: hello there

[Assistant]: Hello. I am a scripted demo.

[Assistant tool calls]: ls(path=".")

[Tool result]: README.md

[Assistant tool calls]: read(path="README.md"), write(path="pi-tui-demo-2.txt", content="x")

[User]: yes"""


def test_a_summary_is_made_of_the_conversation() -> None:
    text = next_answer(summary_request(CONVERSATION)).text
    assert "hello there" in text
    assert "ls(path=" in text
    for heading in ("## Goal", "## Progress", "### Done", "## Next Steps", "## Critical Context"):
        assert heading in text
    assert len(text) < 3000
    branch = next_answer(summary_request(CONVERSATION, critical=False)).text
    assert "Critical Context" not in branch


def test_a_second_summary_keeps_the_first() -> None:
    first = next_answer(summary_request(CONVERSATION)).text
    second = next_answer(summary_request("[User]: something else", first)).text
    assert "hello there" in second
    assert "README.md" in second
    third = next_answer(summary_request("[User]: a third", second)).text
    assert len(third) < len(first) + 800


def test_a_summary_of_nothing_is_still_a_summary() -> None:
    text = next_answer(summary_request("")).text
    assert "## Goal" in text


def test_a_huge_conversation_gives_a_bounded_summary() -> None:
    turns = "\n\n".join(f"[User]: question {n} {'z' * 900}" for n in range(300))
    assert len(next_answer(summary_request(turns)).text) < 6000


def test_the_tour_goes_on_after_a_compaction() -> None:
    summary = next_answer(summary_request(CONVERSATION)).text
    talk = Talk(files={"README.md": "x", "pi-tui-demo-2.txt": FILE_TEXT})
    talk.user(f"The history was compacted.\n<summary>\n{summary}\n</summary>")
    answers = talk.say("yes")
    assert calls(answers) == ["edit", "bash"]  # the write was done before
    assert NEW_LINE in talk.files["pi-tui-demo-2.txt"]


def test_a_finished_tour_stays_finished_after_a_compaction() -> None:
    """Whatever the listing was made with, and with the text of the real serialisation."""
    for tools in (ALL, (READ, BASH, EDIT, WRITE)):
        talk = Talk(tools=tools)
        for said in ("hi", "yes", "yes"):
            talk.say(said)
        conversation = serialize_conversation(talk.messages)
        prompt = request_text(conversation, instructions("compaction", has_previous=False))
        summary = next_answer(ModelRequest(DEMO_MODEL, "", (UserMessage(prompt, 1),))).text
        after = Talk(tools=tools, files=talk.files)
        after.user(f"<summary>\n{summary}\n</summary>")
        before = dict(after.files)
        assert calls(after.say("yes")) == []
        assert calls(after.say("go")) == []
        assert after.files == before


def test_after_a_compaction_before_the_write_names_are_looked_up_again() -> None:
    conversation = '[User]: hi\n\n[Assistant tool calls]: ls(path=".")\n\n'
    conversation += '[Assistant tool calls]: read(path="README.md")'
    summary = next_answer(summary_request(conversation)).text
    talk = Talk(files={"README.md": "x", "pi-tui-demo.txt": "mine"})
    talk.user(f"<summary>\n{summary}\n</summary>")
    assert calls(talk.say("yes")) == ["ls", "write"]
    assert talk.files["pi-tui-demo.txt"] == "mine"


def test_arguments_are_fitted_to_what_a_tool_declares() -> None:
    tool = ToolDeclaration(
        "edit",
        "",
        {
            "properties": {
                "path": {},
                "edits": {
                    "type": "array",
                    "items": {"properties": {"oldText": {}, "newText": {}}},
                },
            }
        },
    )
    wanted = {"path": "a", "oldText": "x", "newText": "y"}
    assert fit_arguments(tool, wanted) == {
        "path": "a",
        "edits": [{"oldText": "x", "newText": "y"}],
    }
    old = ToolDeclaration("edit", "", {"properties": {"file_path": {}, "old_string": {}}})
    assert fit_arguments(old, wanted) == {"file_path": "a", "old_string": "x"}
    assert fit_arguments(ToolDeclaration("x", "", {}), wanted) == wanted


# ---------------------------------------------------------------- the stream


class Pace:
    """Counts waits instead of waiting."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        await asyncio.sleep(0)


async def test_streams_word_by_word_and_reports_usage() -> None:
    pace = Pace()
    provider = DemoProvider(sleep=pace.sleep)
    request = ModelRequest(DEMO_MODEL, "s" * 400, (UserMessage("hi", 1),), ALL, "high")
    builder = MessageBuilder(api="demo", provider="demo", model="tour", timestamp=1)
    events = []
    async for event in provider.stream(request):
        events.append(event)
        builder.add(event)
    answer = next_answer(request)
    message = builder.message("toolUse")
    assert message.text == answer.text
    assert message.tool_calls == (answer.call,)
    assert any(isinstance(event, ThinkingDelta) for event in events)
    assert sum(isinstance(event, TextDelta) for event in events) > 50
    assert len(pace.waits) > 50
    assert 0 < max(pace.waits) < 0.1
    assert events[-1] == Stopped("toolUse")
    usage = next(event.usage for event in events if isinstance(event, UsageReport))
    assert (usage.input or 0) > 100
    assert usage.output == usage.sum_tokens - (usage.input or 0)
    assert usage.cost.total == 0


async def test_can_be_stopped_in_the_middle() -> None:
    held = asyncio.Event()
    words = 0

    async def sleep(_: float) -> None:
        nonlocal words
        words += 1
        if words == 30:
            held.set()
            await asyncio.Event().wait()

    provider = DemoProvider(sleep=sleep)
    seen: list[object] = []

    async def consume() -> None:
        async for event in provider.stream(
            ModelRequest(DEMO_MODEL, "", (UserMessage("long", 1),), ALL)
        ):
            seen.append(event)  # noqa: PERF401  (what came before the end counts)

    task = asyncio.create_task(consume())
    await held.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(isinstance(event, Stopped) for event in seen)
