"""What the screen says for a moment, what it cuts, and where sending leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import pytest
from rich.style import Style
from textual import events
from textual.geometry import Offset
from textual.selection import Selection

from pi_tui.commands.ui import Choice
from pi_tui.core.events import ActivityChanged
from pi_tui.core.messages import UserMessage
from pi_tui.tui.actions import TOLD_S
from pi_tui.tui.dialogs.panel import fitting_hint
from pi_tui.tui.editor.completion import Completion, CompletionItem, CompletionList
from pi_tui.tui.editor.menu_rows import menu_row

Make = Callable[..., Any]


def rule(b: Any) -> str:
    """The editor's upper rule."""
    return str(next(line for line in b.lines() if line.startswith("──")))


async def test_that_a_second_ctrl_c_leaves_is_said_and_goes_again(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 20)) as pilot:
        above = b.lines()[:18]
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "── ctrl+c twice quickly to leave ──" in rule(b)
        b.app.status.drop_hint()  # what the timer does
        await pilot.pause()
        assert b.lines()[:18] == above
        await pilot.press("a", "b", "ctrl+c")
        await pilot.pause()
        assert "twice quickly" in rule(b) and b.app.editor.buffer.text == ""
        await pilot.press("x")
        await pilot.pause()
        assert "twice quickly" not in b.screen
        assert b.app.is_running


async def test_while_it_works_ctrl_c_names_the_key_that_interrupts(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 20)) as pilot:
        b.session.emit(ActivityChanged("running"))
        await pilot.pause(0.05)
        assert "Working" in rule(b)
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "esc interrupts · ctrl+c twice quickly to leave" in rule(b)
        b.app.status.show()  # the spinner's next step does not take it away
        assert "twice quickly" in rule(b)
        b.app.status.drop_hint()
        await pilot.pause()
        assert "Working" in rule(b)


async def test_a_hint_takes_the_wording_that_fits(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(40, 12)) as pilot:
        b.session.emit(ActivityChanged("running"))
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert rule(b) == "── ctrl+c twice quickly to leave ───────"


async def test_toggles_say_what_they_did(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 20)) as pilot:
        for key, words in (
            ("ctrl+o", "tool output: opened"),
            ("ctrl+o", "tool output: closed"),
            ("ctrl+t", "thinking: hidden"),
            ("ctrl+t", "thinking: shown"),
        ):
            await pilot.press(key)
            await pilot.pause()
            assert f"── {words} ──" in rule(b)


async def test_a_new_hint_has_its_whole_time(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 20)) as pilot:
        b.app.status.hint(TOLD_S, "one")
        first = b.app.status._timer
        b.app.status.hint(TOLD_S, "two")
        await pilot.pause()
        assert first._task is None or first._task.cancelling() or first._task.done()
        assert "two" in rule(b)


async def test_copying_a_selection_is_said_without_a_line_in_the_conversation(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 20)) as pilot:
        b.session.append(UserMessage("words to copy", 0))
        await pilot.pause(0.05)
        transcript = b.app.transcript
        b.app.screen.selections = {transcript: Selection(Offset(0, 0), None)}
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert "── copied 1" in rule(b)
        b.app.status.drop_hint()
        await pilot.pause()
        assert "copied" not in b.screen and "words to copy" in b.screen


async def test_sending_goes_to_the_end_and_queueing_does_not(
    bench: Make, double: ModuleType
) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 20)) as pilot:
        for number in range(20):
            b.session.append(UserMessage(f"message {number}", 0))
        await pilot.pause(0.05)
        for line, follows in (("/copy", False), ("hello", True), ("!ls", True)):
            b.app.transcript.scroll_top()
            b.app.editor.set_text(line)
            await pilot.press("enter")
            assert b.app.transcript.following is follows, line
        b.session.emit(ActivityChanged("running"))
        b.app.transcript.scroll_top()
        b.app.editor.set_text("steer")
        await pilot.press("enter")
        assert not b.app.transcript.following


# ---------------------------------------------------------------- what does not fit


async def test_the_smallest_screen_has_no_scrollbar_of_its_own(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(10, 4)) as pilot:
        await pilot.press("h", "i")
        await pilot.pause()
        assert b.app.screen.scrollbars_enabled == (False, False)
        assert [line for line in b.lines() if line == "─" * 10]
        assert "hi" in b.lines()


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (60, "esc closes · enter next · up previous"),
        (36, "esc closes · enter next"),
        (23, "esc closes · enter next"),
        (22, "esc closes"),
        (8, "esc clo…"),
    ],
)
def test_hints_are_cut_between_their_parts(room: int, shown: str) -> None:
    assert fitting_hint("esc closes · enter next · up previous", room) == shown


async def test_a_narrow_picker_names_the_way_out(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(40, 12)) as pilot:
        choices = [Choice("a", "a-rather-long-label-that-is-cut", "and a detail that is cut")]
        b.app.spawn(b.app.ui.choose("A title that is too long for the rule above", choices))
        await pilot.pause(0.05)
        assert "── esc cancels · enter chooses ──" in b.screen
        assert "  A title that is too long for the\n  rule above\n" in b.screen
        assert "› a-rather-long-label-that-i…      and…"[:26] in b.screen


@pytest.mark.parametrize("width", [80, 40])
async def test_a_list_keeps_its_columns_when_it_wraps(bench: Make, width: int) -> None:
    b = bench()
    text = "name            " + "words " * 20 + "\nend"
    async with b.app.run_test(size=(width, 24)) as pilot:
        b.app.ui.show("List", text)
        await pilot.pause(0.05)
        rows = [line for line in b.lines() if "words" in line]
        assert rows[0].startswith("  name            words")
        assert all(row.startswith(" " * 18 + "words") for row in rows[1:])


async def test_a_list_too_narrow_for_columns_is_indented(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(40, 24)) as pilot:
        b.app.ui.show("List", "a name that is long      " + "words " * 8)
        await pilot.pause(0.05)
        lines = b.lines()
        at = next(n for n, line in enumerate(lines) if "a name" in line)
        assert lines[at] == "  a name that is long"
        assert lines[at + 1].startswith("      words words")


def rows_of(items: Sequence[CompletionItem], width: int) -> list[str]:
    menu = CompletionList(5)
    menu.update(Completion(0, tuple(items)), "/")
    return [menu_row(menu, y, width, lambda name: Style()).text for y in range(len(items) + 1)]


def test_the_menu_shows_what_it_cuts() -> None:
    items = [
        CompletionItem("/model ", "/model", "[provider/model]", "choose the model"),
        CompletionItem("/new ", "/new", "", "start a new session in this directory"),
    ]
    assert rows_of(items, 70) == [
        "› /model [provider/model]  choose the model".ljust(70),
        "  /new                     start a new session in this directory".ljust(70),
        "  (1/2)".ljust(70),
    ]
    assert rows_of(items, 40) == [
        "› /model [provider/mo…  choose the model",
        "  /new                  start a new ses…",
        "  (1/2)".ljust(40),
    ]
    assert rows_of(items, 18)[:2] == ["› /model     choo…", "  /new       star…"]


async def test_typing_in_one_read_takes_a_hint_away_too(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 20)) as pilot:
        await pilot.press("ctrl+c")
        b.app.post_message(events.Paste("text"))
        await pilot.pause()
        assert "twice quickly" not in b.screen
