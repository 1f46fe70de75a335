"""What Enter takes from the list of commands, and which presses of a key leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual import events

from pi_tui.core.events import ActivityChanged
from pi_tui.tui.terminal_input import InputItem, TerminalInput, TypedText

Make = Callable[..., Any]


def one_read(app: Any, *pieces: str) -> None:
    """Input that comes in one read: `<name>` is a key, everything else typed text."""
    items: list[InputItem] = []
    for piece in pieces:
        if piece.startswith("<"):
            items.append(events.Key(piece[1:-1], None))
        else:
            items.append(TypedText(piece) if len(piece) > 1 else events.Key(piece, piece))
    app.post_message(TerminalInput(tuple(items)))


def ran(b: Any) -> list[str]:
    """Has the command lines that are run recorded, instead of carried out."""
    lines: list[str] = []
    registry = b.app.desk._registry

    async def run(text: str, session: object, ui: object) -> bool:
        lines.append(text.strip())
        return True

    registry.run = run
    return lines


# ---------------------------------------------------------------- Enter and the command list


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("/nw", "/new"),
        ("/qit", "/quit"),
        ("/x", "/context"),
        ("/ewn", "/new"),
        ("/n", "/new or /name"),
        ("/odel", "/model"),
        ("/", ""),
        ("/zzz", ""),
    ],
)
@pytest.mark.parametrize("key", ["enter", "alt+enter"])
async def test_a_mistyped_command_does_nothing(
    bench: Make, typed: str, near: str, key: str
) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        lines = ran(b)
        b.session.emit(ActivityChanged("running"))
        one_read(b.app, typed, f"<{key}>")
        await pilot.pause()
        assert lines == [] and b.session.submitted == [] and b.session.aborts == 0
        assert b.app.editor.buffer.text == typed
        assert f"{typed} is not a command." in b.screen and "Nothing was sent" in b.screen
        assert (f"Did you mean {near}?" in b.screen) == bool(near)


@pytest.mark.parametrize(
    ("typed", "line"),
    [("/new", "/new"), ("/ne", "/new"), ("/q", "/quit"), ("/QUIT", "/quit"), ("/name", "/name")],
)
async def test_a_whole_name_and_an_only_beginning_are_meant(
    bench: Make, typed: str, line: str
) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        lines = ran(b)
        one_read(b.app, typed, "<enter>")
        await pilot.pause()
        assert [line.lower() for line in lines] == [line]
        assert b.app.editor.buffer.text == ""


async def test_an_only_beginning_of_a_command_with_an_argument_is_completed(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        lines = ran(b)
        one_read(b.app, "/thi", "<enter>")
        await pilot.pause()
        assert b.app.editor.buffer.text == "/thinking " and lines == []
        one_read(b.app, "<enter>")
        await pilot.pause()
        assert lines == ["/thinking"]


async def test_a_row_that_was_moved_to_is_taken(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        lines = ran(b)
        one_read(b.app, "/nw")
        await pilot.pause()
        assert "  /new" in b.screen and "› /" not in b.screen  # Enter would take none
        await pilot.press("down")
        assert "› /new" in b.screen
        await pilot.press("enter")
        assert lines == ["/new"]


async def test_a_row_that_has_left_the_list_is_not_taken(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        lines = ran(b)
        one_read(b.app, "/q", "<down>", "<backspace>", "x", "<enter>")
        await pilot.pause()
        assert lines == [] and b.app.editor.buffer.text == "/x"


async def test_a_row_is_marked_where_enter_takes_it(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        one_read(b.app, "/q")
        await pilot.pause()
        assert "› /quit" in b.screen


@pytest.mark.parametrize("gone", ["<ctrl+c>", "<ctrl+u>", "<backspace>"])
async def test_a_list_closed_for_one_word_opens_for_the_next(bench: Make, gone: str) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        one_read(b.app, "/th", "<escape>")
        await pilot.pause()
        assert not b.app.editor.menu.is_open
        one_read(b.app, *([gone] * (3 if gone == "<backspace>" else 1)), "/")
        await pilot.pause()
        assert b.app.editor.menu.is_open
        one_read(b.app, "<escape>", "t")
        await pilot.pause()
        assert not b.app.editor.menu.is_open  # for the word it was closed for it stays closed


# ---------------------------------------------------------------- two presses of a key


@pytest.mark.parametrize("between", ["x", "left", "escape", "enter", "up", "ctrl+o", "alt+enter"])
async def test_only_two_neighbouring_ctrl_c_leave(bench: Make, between: str) -> None:
    b = bench()
    b.app.actions._clock = lambda: 0.0
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+c", between, "ctrl+c")
        await pilot.pause()
        assert b.app.is_running and b.app.return_code is None
        await pilot.press("ctrl+c")
    assert b.app.return_code == 130


async def test_a_paste_or_typed_text_between_counts(bench: Make) -> None:
    b = bench()
    b.app.actions._clock = lambda: 0.0
    async with b.app.run_test(size=(80, 24)) as pilot:
        one_read(b.app, "<ctrl+c>", "typed", "<ctrl+c>")
        await pilot.pause()
        assert b.app.is_running and b.app.return_code is None
        b.app.actions.input_came()
        await pilot.press("ctrl+c")
        b.app.post_message(events.Paste(""))
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert b.app.return_code is None


async def test_a_key_for_a_panel_between_counts(bench: Make) -> None:
    b = bench()
    b.app.actions._clock = lambda: 0.0
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+c")
        b.app.desk.run_command("/help")
        await pilot.pause(0.05)
        await pilot.press("escape")
        await pilot.pause(0.05)
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert b.app.is_running and b.app.return_code is None


@pytest.mark.parametrize("between", [("x", "backspace"), ("left",), ("ctrl+c",)])
async def test_only_two_neighbouring_escapes_open_the_tree(
    bench: Make, between: tuple[str, ...]
) -> None:
    b = bench()
    b.app.actions._clock = lambda: 0.0
    async with b.app.run_test(size=(80, 24)) as pilot:
        lines = ran(b)
        await pilot.press("escape", *between, "escape")
        assert lines == []
        await pilot.press("escape")
        await pilot.pause()
        assert lines == ["/tree"]
