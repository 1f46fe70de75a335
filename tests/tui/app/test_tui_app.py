"""The app as a person uses it, driven by a pilot over a session double."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from textual import events
from textual.geometry import Size

from pi_tui.commands.builtin import builtin_registry
from pi_tui.core.events import (
    ActivityChanged,
    AutoRetryEnd,
    AutoRetryStart,
    CompactionEnd,
    CompactionStart,
    Notice,
    QueueUpdate,
    SessionReplaced,
)
from pi_tui.core.messages import Cost, Usage, UserMessage
from pi_tui.core.tree import tree_of

Make = Callable[..., Any]

LONG = "\r\n".join(f"\tline {n} é 👨‍👩‍👧 [paste #1 +25 lines] " + "x" * 30 for n in range(25))
LONG_LF = LONG.replace("\r\n", "\n")

BRACKETS = [
    "[00] foo bar",
    "[/]",
    "[/",
    "[bold",
    "for (k of m[/* all */]) {}  ]  }",
    "[phase] rows = {n}",
    "[data: /items?ref=77f0c1-20-]",
    "interval [a, b) and an open one [c + ",
    "[@click=app.quit]press[/]",
    "[link=file:///etc/passwd]x[/link]",
    "$100 {value} \\[escaped]",
]


async def paste(pilot: Any, text: str) -> None:
    pilot.app.post_message(events.Paste(text))
    await pilot.pause()


async def keys(pilot: Any, text: str) -> None:
    """Type a text, all keys in one go."""
    for character in text:
        pilot.app.post_message(events.Key(character, character))
    await pilot.pause()


# ---------------------------------------------------------------- screen


async def test_first_screen(bench: Make) -> None:
    b = bench(home="/nowhere")
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        lines = b.lines()
        assert lines[-1].endswith("fake-model • thinking off")
        assert lines[-2].startswith("~/project")
        assert "12.3%/100k" in lines[-1]
        assert lines[-3].startswith("────") and lines[-5].startswith("────")


@pytest.mark.parametrize("size", [(40, 15), (60, 20), (120, 40), (20, 8), (10, 5)])
async def test_small_terminals_lose_parts_but_never_wrap(bench: Make, size: Any) -> None:
    b = bench(home="/nowhere")
    b.session.usage = Usage(123_456, 7890, 55_000, 1000, 0, Cost(total=1.5))
    b.session.name = "a session with a rather long name"
    b.app.footer_source.branch = "feature/branch"
    async with b.app.run_test(size=size) as pilot:
        await pilot.pause()
        lines = b.lines()
        assert len(lines) == size[1]
        if size[0] >= 40:
            assert "fake-model" in lines[-1]
            assert "12.3%" in lines[-1]


async def test_footer_follows_the_session(bench: Make, double: ModuleType) -> None:
    session = double.SessionDouble(models=(double.MODEL, double.OTHER_MODEL))
    b = bench(session, home="/nowhere")
    async with b.app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        assert "fake/fake-model" in b.lines()[-1]  # two providers: the name says which
        session.set_name("refactor [bold")
        session.usage = Usage(1500, 20, 0, 0, 0, Cost(total=0.25))
        session.set_model(double.OTHER_MODEL)
        await pilot.pause(0.05)
        assert "• refactor [bold" in b.lines()[-2]
        assert "↑1.5k ↓20 $0.250 6.2%/200k" in b.lines()[-1]
        assert b.lines()[-1].endswith("other/other-model")


# ---------------------------------------------------------------- sending


async def test_enter_sends_and_the_answer_appears(bench: Make, double: ModuleType) -> None:
    session = double.SessionDouble(answers=True)
    b = bench(session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(pilot, "hello")
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert session.submitted == [("hello", "steer")]
        assert "you said: hello" in b.screen
        assert b.app.editor.buffer.text == ""


@pytest.mark.parametrize("text", BRACKETS)
async def test_square_brackets_are_text_everywhere(
    bench: Make, double: ModuleType, text: str
) -> None:
    session = double.SessionDouble(answers=True)
    b = bench(session, startup=())
    async with b.app.run_test(size=(100, 40)) as pilot:
        await paste(pilot, text)
        assert text.rstrip() in b.screen
        await pilot.press("enter")
        session.emit(Notice("error", text))
        session.set_name(text)
        session.emit(QueueUpdate((text,), ()))
        await pilot.pause(0.1)
        assert sum(text.rstrip() in line for line in b.lines()) >= 4
        b.app.ui.show(text, text)
        await pilot.pause()
        await pilot.pause()
        assert sum(text.rstrip() in line for line in b.lines()) >= 4


async def test_a_burst_is_handled_in_order(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        for key in ("a", "b", "backspace", "c", "d", "left", "x", "ctrl+a", "y", "ctrl+e", "z"):
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await pilot.pause()
        assert b.app.editor.buffer.text == "yacxdz"


async def test_follow_up_newline_and_backslash(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        await keys(pilot, "one")
        await pilot.press("shift+enter")
        await keys(pilot, "two")
        await pilot.press("ctrl+j")
        await keys(pilot, "three\\")
        await pilot.press("enter")
        await keys(pilot, "four")
        assert b.app.editor.buffer.text == "one\ntwo\nthree\nfour"
        await pilot.press("alt+enter")
        assert b.session.submitted == [("one\ntwo\nthree\nfour", "followUp")]


async def test_shell_commands(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(pilot, "!ls -l")
        colour = b.app.palette.ink("bashMode")
        assert colour in b.styles_at("────")
        await pilot.press("enter")
        await keys(pilot, "!!pwd")
        await pilot.press("enter")
        await keys(pilot, "!")
        await pilot.press("enter")
        assert b.session.shells == [("ls -l", False), ("pwd", True)]
        assert b.session.submitted == []


async def test_unknown_commands_are_refused(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 24)) as pilot:
        await keys(pilot, "/modle x")
        await pilot.press("enter")
        await pilot.pause(0.05)
        assert b.session.submitted == []
        assert "Did you mean /model?" in b.screen


async def test_a_path_is_a_message(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        await keys(pilot, "/etc/hosts is odd")
        await pilot.press("enter")
        assert b.session.submitted == [("/etc/hosts is odd", "steer")]


# ---------------------------------------------------------------- pastes


async def test_long_paste_everywhere(bench: Make) -> None:
    b = bench()
    editor = b.app.editor
    async with b.app.run_test(size=(80, 24)) as pilot:
        await paste(pilot, LONG)
        assert "[paste #1 +25 lines]" in b.screen
        await pilot.press("enter")
        assert b.session.submitted[-1] == (LONG_LF, "steer")

        b.session.emit(ActivityChanged("running"))
        await paste(pilot, LONG)
        await pilot.press("alt+enter")
        assert b.session.submitted[-1] == (LONG_LF, "followUp")
        await keys(pilot, "draft")
        await pilot.press("alt+up")
        assert editor.buffer.expanded() == f"{LONG_LF}\n\ndraft"
        b.session.emit(ActivityChanged("idle"))

        b.app.editor.set_text("")
        await paste(pilot, LONG)
        await pilot.press("home", "up", "up", "down", "down")
        await pilot.press("enter")
        assert b.session.submitted[-1] == (LONG_LF, "steer")

        await paste(pilot, LONG)
        await pilot.press("backspace")
        assert editor.buffer.text == ""

        await paste(pilot, LONG)
        await paste(pilot, "z" * 1500)
        await pilot.press("home", "delete", "enter")
        assert b.session.submitted[-1] == ("z" * 1500, "steer")


async def test_nothing_is_executed_while_pasting(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        await paste(pilot, "/quit\r\n!rm\r\n")
        assert b.session.submitted == [] and b.session.shells == []
        assert not b.app.editor.menu.is_open
        assert b.app.editor.buffer.text == "/quit\n!rm\n"


async def test_a_collapsed_paste_is_no_command(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        await paste(pilot, "!echo\n" * 30)
        await pilot.press("enter")
        assert b.session.shells == [] and b.session.submitted == [("!echo\n" * 30, "steer")]


# ---------------------------------------------------------------- queue, escape, ctrl+c


async def test_queued_messages_are_listed_and_escape_brings_them_back(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 30)) as pilot:
        b.session.emit(ActivityChanged("running"))
        await pilot.pause(0.05)
        assert "Working" in b.screen and "esc to interrupt" in b.screen
        for text, key in (("first", "enter"), ("second", "alt+enter")):
            await keys(pilot, text)
            await pilot.press(key)
        await keys(pilot, "draft text")
        await pilot.pause(0.05)
        assert "Steering: first" in b.screen and "Follow-up: second" in b.screen
        await pilot.press("escape")
        await pilot.pause(0.05)
        assert b.session.aborts == 1
        assert b.app.editor.buffer.text == "first\n\nsecond\n\ndraft text"
        assert "2 queued messages are back" in b.screen
        assert "Steering" not in b.screen


async def test_ctrl_c_clears_and_does_not_abort(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.session.emit(ActivityChanged("running"))
        await keys(pilot, "draft")
        await pilot.press("ctrl+c")
        assert b.app.editor.buffer.text == "" and b.session.aborts == 0
        await pilot.press("up")
        assert b.app.editor.buffer.text == "draft"


async def test_ctrl_c_twice_exits_with_130(bench: Make) -> None:
    b = bench()
    b.app.actions._clock = lambda: 0.0
    async with b.app.run_test() as pilot:
        await pilot.press("ctrl+c", "ctrl+c")
    assert b.app.return_code == 130


async def test_ctrl_c_slowly_does_not_exit(bench: Make) -> None:
    b = bench()
    times = iter([0.0, 0.6, 1.0])
    b.app.actions._clock = lambda: next(times)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+c", "ctrl+c")
        await pilot.pause()
        assert b.app.is_running and "to leave" in b.screen
        await pilot.press("ctrl+c")
    assert b.app.return_code == 130


async def test_ctrl_d_exits_only_when_empty(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        await keys(pilot, "ab")
        await pilot.press("home", "ctrl+d")
        assert b.app.editor.buffer.text == "b"
        await pilot.press("ctrl+d", "ctrl+d")
    assert b.app.return_code == 0


async def test_escape_twice_opens_the_tree(bench: Make) -> None:
    b = bench()
    b.app.actions._clock = lambda: 0.0
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("escape", "escape")
        await pilot.pause(0.05)
        assert b.app.navigator.is_open
        await pilot.press("escape")
        await pilot.pause(0.05)
        assert not b.app.navigator.is_open
        await keys(pilot, "text")
        await pilot.press("escape", "escape")
        assert b.app.editor.buffer.text == "text"
        assert not b.app.navigator.is_open


async def test_quit_command(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        await keys(pilot, "/quit")
        await pilot.press("enter")
        await pilot.pause(0.05)
    assert b.app.return_code == 0


# ---------------------------------------------------------------- completion


async def test_command_menu(bench: Make) -> None:
    b = bench()
    editor = b.app.editor
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(pilot, "/")
        count = len(builtin_registry().commands())
        assert editor.menu.is_open and f"(1/{count})" in b.screen
        assert sum(line.startswith(("› /", "  /")) for line in b.lines()) == 5
        await keys(pilot, "th")
        assert "/thinking [level]" in b.screen
        await pilot.press("tab")
        assert editor.buffer.text == "/thinking " and not editor.menu.is_open
        editor.set_text("")
        await keys(pilot, "/he")
        await pilot.press("escape")
        assert editor.buffer.text == "/he" and not editor.menu.is_open
        await keys(pilot, "l")
        assert not editor.menu.is_open
        editor.set_text("")
        await keys(pilot, "/he")
        await pilot.press("enter")
        await pilot.pause()
        await pilot.pause()
        assert "── Commands" in b.screen and "closes" in b.screen


# ---------------------------------------------------------------- panels


async def test_model_picker(bench: Make, double: ModuleType) -> None:
    session = double.SessionDouble(models=(double.MODEL, double.OTHER_MODEL))
    b = bench(session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(pilot, "draft")
        await pilot.press("ctrl+l")
        await pilot.pause(0.05)
        assert "Model" in b.screen and "(1/2)" in b.screen and "fake-model" in b.screen
        assert not b.app.editor.display
        await keys(pilot, "oth")
        assert "(1/1)" in b.screen
        await pilot.press("enter")
        await pilot.pause(0.05)
        assert session.model.id == "other-model"
        assert b.app.editor.display and b.app.editor.buffer.text == "draft"
        await pilot.press("ctrl+l")
        await pilot.pause(0.05)
        await pilot.press("escape")
        await pilot.pause(0.05)
        assert session.model.id == "other-model" and b.app.editor.display


async def test_keys_after_the_one_that_closes_a_panel_go_to_the_editor(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app.ui.show("Title", "\n".join(f"row {n}" for n in range(100)))
        await pilot.pause(0.05)
        assert "row 0" in b.screen and "of 100" in b.screen
        await pilot.press("end")
        assert "row 99" in b.screen
        await pilot.press("escape")
        await pilot.pause(0.05)
        await keys(pilot, "q")
        assert b.app.editor.buffer.text == "q"


async def test_yes_or_no(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        for key, answer in (("y", True), ("n", False), ("escape", False), ("enter", False)):
            asked = b.app.spawn(b.app.ui.confirm("Run it?", "rm -rf [/] \x1b[2J"))
            await pilot.pause(0.05)
            assert "rm -rf [/] ␛[2J" in b.screen
            await pilot.press(key)
            assert await asked is answer
        asked = b.app.spawn(b.app.ui.confirm("Run it?", "true\n" * 50 + "rm -rf hidden"))
        await pilot.pause(0.05)
        assert "rm -rf hidden" not in b.screen and "more lines below" in b.screen
        for _ in range(10):
            await pilot.press("pagedown")
        assert "rm -rf hidden" in b.screen and "more lines below" not in b.screen
        await pilot.press("right", "enter")
        assert await asked is True


async def test_set_editor_text_keeps_a_draft(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        b.app.ui.set_editor_text("fix the parser")
        assert b.app.editor.buffer.text == "fix the parser"
        b.app.editor.set_text("  ")
        b.app.ui.set_editor_text("fix the parser")
        assert b.app.editor.buffer.text == "fix the parser"
        b.app.editor.set_text("wait, also")
        b.app.ui.set_editor_text("fix the parser")
        assert b.app.editor.buffer.text == "wait, also"
        await pilot.press("up")
        assert b.app.editor.buffer.text == "fix the parser"


# ---------------------------------------------------------------- events


async def test_retry_and_compaction_on_the_status_line(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.session.emit(ActivityChanged("retrying"), AutoRetryStart(1, 3, 60_000, "overloaded"))
        await pilot.pause(0.05)
        assert "retrying (1/3) in 60s · esc to cancel" in b.screen
        b.session.emit(AutoRetryEnd(False, 1, "x"), ActivityChanged("idle"))
        await pilot.pause(0.05)
        assert "retrying" not in b.screen and "the retry was cancelled" in b.screen
        b.session.emit(ActivityChanged("compacting"), CompactionStart("manual"))
        await pilot.pause(0.05)
        assert "compacting" in b.screen and "esc to cancel" in b.screen
        failed = CompactionEnd("manual", None, error_message="nothing to compact")
        b.session.emit(failed, ActivityChanged("idle"))
        await pilot.pause(0.05)
        assert "compacting the" not in b.screen and "nothing to compact" in b.screen


async def test_no_timer_runs_while_idle(bench: Make) -> None:
    b = bench()
    async with b.app.run_test() as pilot:
        b.session.emit(ActivityChanged("running"))
        await pilot.pause(0.05)
        bridge = b.app._bridge
        assert bridge._tick is not None
        b.session.emit(ActivityChanged("idle"))
        await pilot.pause(0.3)
        assert bridge._tick is None and bridge._flush is None


async def test_another_session_replaces_the_transcript(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.session.append(UserMessage("in the old one", 0))
        await pilot.pause(0.05)
        assert "in the old one" in b.screen
        b.session.tree = tree_of(())
        b.session.emit(SessionReplaced("new"))
        b.session.append(UserMessage("in the new one", 0))
        await pilot.pause(0.1)
        assert "in the old one" not in b.screen and "in the new one" in b.screen


async def test_a_long_session_shows_its_end_and_reads_the_rest_when_it_is_looked_at(
    bench: Make, double: ModuleType
) -> None:
    source = double.SessionDouble()
    for number in range(300):
        source.append(UserMessage(f"message {number}", 0))
    session = double.SessionDouble(source.tree.path())
    b = bench(session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.2)
        assert "message 299" in b.screen
        assert b.app.transcript.block(session.tree.path_ids()[0]) is None
        await pilot.press("ctrl+home")
        await pilot.pause(0.1)
        assert "message 0" in b.screen
        for _ in range(300):
            pilot.app.post_message(events.Key("up", None))
        await pilot.pause()
        assert b.app.editor.buffer.text == "message 0"


async def test_a_fault_in_the_background_is_a_line(bench: Make) -> None:
    async def faulty() -> None:
        raise RuntimeError("[/] token=SECRETSECRET1")

    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        with pytest.raises(RuntimeError):
            await b.app.spawn(faulty())
        await pilot.pause(0.05)
        assert "internal error: RuntimeError: [/]" in b.screen
        assert "SECRETSECRET1" not in b.screen


async def test_after_paint_runs_once(bench: Make) -> None:
    ran = asyncio.Event()

    async def after_paint(ui: object) -> None:
        assert not ran.is_set()
        ran.set()

    b = bench(after_paint=after_paint)
    async with b.app.run_test():
        await asyncio.wait_for(ran.wait(), 5)


async def test_the_end_stays_in_sight_when_the_window_shrinks_before_text_is_drawn(
    bench: Any,
) -> None:
    desk = bench()
    async with desk.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        for number in range(60):
            desk.app.live.notice("info", f"line {number}")
        await pilot.pause(0.1)
        assert desk.app.transcript.following
        for number in range(60):  # not drawn yet when the queue takes room
            desk.app.live.notice("info", f"more {number}")
        desk.app.queue_changed(("one", "two", "three"), ())
        desk.app.transcript._size_updated(
            Size(80, 12), desk.app.transcript.virtual_size, Size(80, 12)
        )
        desk.app.transcript._size_updated(
            Size(80, 20), desk.app.transcript.virtual_size, Size(80, 20)
        )
        await pilot.pause(0.1)
        assert desk.app.transcript.following
        assert "more 59" in desk.screen
