"""Input as terminals really deliver it: in bursts, in pieces, with ends that never come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from textual import constants, events
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.message import Message

from pi_tui.commands.ui import Choice
from pi_tui.tui.dialogs.text_panel import TextPanel
from pi_tui.tui.driver import map_alt_keys
from pi_tui.tui.input_queue import InputQueue
from pi_tui.tui.terminal_input import (
    PASTE_SILENCE_S,
    InputItem,
    PasteSplitter,
    TerminalInput,
    TypedText,
)

Make = Callable[..., Any]


class Line:
    """A terminal line whose clock is moved by hand."""

    def __init__(self) -> None:
        map_alt_keys()
        self.later_s = 0.0
        self.splitter = PasteSplitter(XTermParser(), lambda: get_time() + self.later_s)

    def feed(self, *pieces: str) -> list[str]:
        return [name for piece in pieces for name in named(self.splitter.feed(piece))]

    def wait(self, seconds: float) -> list[str]:
        self.later_s += seconds
        return named(self.splitter.tick())


def named(messages: Iterable[Message]) -> list[str]:
    names = []
    for message in messages:
        if isinstance(message, events.Paste):
            names.append(f"paste:{message.text}")
        elif isinstance(message, TypedText):
            names.append(f"typed:{message.text}")
        elif isinstance(message, events.Key):
            names.append(message.key)
    return names


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    monkeypatch.setattr(constants, "ESCAPE_DELAY", 0.0)
    return Line()


# ---------------------------------------------------------------- pieces


def test_nobody_types_the_beginning_of_a_sequence_so_it_may_take_long(line: Line) -> None:
    assert line.feed("\x1b[1;") + line.wait(0.2) + line.feed("5A") == ["ctrl+up"]
    assert line.feed("\x1b[20") + line.wait(0.2) == []
    assert line.feed("0~LONG", " text\x1b[201~x") == ["paste:LONG text", "x"]


def test_a_lone_escape_is_a_key_at_once(line: Line) -> None:
    assert line.feed("\x1b") == []
    assert line.wait(0.0) == ["escape"]
    assert line.feed("x") == ["x"]


@pytest.mark.parametrize("cut", [1, 2])
def test_a_start_mark_whose_beginning_was_taken_for_keys_still_starts(line: Line, cut: int) -> None:
    mark = "\x1b[200~"
    line.feed(mark[:cut])
    assert len(line.wait(0.0)) == 1
    assert line.feed(mark[cut:] + "a\rb\x1b[201~") == ["paste:a\rb"]


def test_an_escape_long_ago_starts_nothing(line: Line) -> None:
    line.feed("\x1b")
    line.wait(0.0)
    line.later_s += 60
    assert line.feed("[200~") == ["typed:[200~"]


def test_a_paste_without_an_end_is_over_after_a_silence(line: Line) -> None:
    assert line.feed("\x1b[200~half a pas") == []
    assert line.wait(PASTE_SILENCE_S - 1) == []
    assert line.feed("te") == []
    assert line.wait(PASTE_SILENCE_S - 1) == []
    assert line.wait(1.1) == ["paste:half a paste"]
    assert line.feed("\x03") == ["ctrl+c"]
    assert line.feed("\x1b") + line.wait(0.0) == ["escape"]
    assert line.feed("\x1b[200~b\x1b[201~") == ["paste:b"]


def test_the_late_rest_of_a_paste_is_not_typed(line: Line) -> None:
    line.feed("\x1b[200~first\r")
    assert line.wait(PASTE_SILENCE_S + 0.1) == ["paste:first\r"]
    assert line.feed("rm -rf build\rmake everything\r", "ok\x1b[201~y") == [
        "paste:rm -rf build\rmake everything\rok",
        "y",
    ]


def test_unknown_sequences_take_no_key_with_them(line: Line) -> None:
    assert line.feed("\x1b[?62;4;22cyes\x1b[99;3Xb") == ["typed:yes", "b"]


def test_typed_text_comes_whole(line: Line) -> None:
    assert line.feed("日本 語\x7fab\x1b[Dc\td") == [
        "typed:日本 語", "backspace", "typed:ab", "left", "c", "tab", "d",
    ]  # fmt: skip


# ---------------------------------------------------------------- the queue


async def test_a_hold_ends_with_what_it_waits_for_or_with_its_time() -> None:
    got: list[str] = []

    def deliver(item: InputItem) -> list[InputItem]:
        assert isinstance(item, TypedText)
        got.append(item.text)
        if item.text == "open":
            queue.hold(future)
        return [TypedText("a"), TypedText("b")] if item.text == "ab" else []

    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()
    queue = InputQueue(deliver)
    queue.add([TypedText("ab"), TypedText("open"), TypedText("next")])
    queue.add([TypedText("last")])
    for _ in range(10):
        await asyncio.sleep(0)
    assert got == ["ab", "a", "b", "open"]
    future.set_result(None)
    for _ in range(10):
        await asyncio.sleep(0)
    assert got[4:] == ["next", "last"]
    queue.hold(loop.create_future(), at_most_s=0.01)
    queue.add([TypedText("held")])
    assert got[6:] == []
    await asyncio.wait_for(until(lambda: got[6:] == ["held"]), 5)


async def until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.005)


# ---------------------------------------------------------------- the app


def one_read(app: Any, *items: InputItem | str) -> None:
    """Text is typed, a name in angle brackets is a key: one read of the terminal."""
    made: list[InputItem] = []
    for item in items:
        if isinstance(item, str) and item.startswith("<"):
            made.append(events.Key(item[1:-1], None))
        else:
            made.append(TypedText(item) if isinstance(item, str) else item)
    app.post_message(TerminalInput(tuple(made)))


async def test_ten_thousand_keys_are_laid_out_a_few_times(
    bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        layouts = []
        lay_out = b.app.editor._layout_of.rows
        monkeypatch.setattr(
            b.app.editor._layout_of,
            "rows",
            lambda text, width: layouts.append(len(text)) or lay_out(text, width),
        )
        b.app.post_message(TerminalInput(tuple(events.Key("a", "a") for _ in range(5_000))))
        for _ in range(5_000):  # as without a driver that puts them together
            b.app.post_message(events.Key("a", "a"))
        await pilot.pause()
        assert len(b.app.editor.buffer.text) == 10_000
        assert len(layouts) < 100


async def test_completion_is_up_to_date_for_the_next_key(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        one_read(b.app, "/hotk", "<tab>", "!")
        await pilot.pause()
        assert b.app.editor.buffer.text == "/hotkeys !"
        one_read(b.app, "<ctrl+u>", "/he", "<escape>", "<enter>")  # Escape closes the list only
        await pilot.pause(0.05)
        assert b.app.editor.buffer.text == "/he" and "Did you mean /help?" in b.screen


async def test_typed_text_keeps_wide_blanks_and_joiners(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        text = "全角\u3000\u00a0👩\u200d💻"
        one_read(b.app, text, events.Key("ideographic_space", "\u3000"))
        one_read(b.app, "x\u202ey")  # a bidi control nobody can see is not typed
        await pilot.pause()
        assert b.app.editor.buffer.text == text + "\u3000xy"


async def test_a_letter_bound_to_an_action_acts_in_a_burst(bench: Make) -> None:
    b = bench(keybindings={"tui.editor.deleteCharBackward": ["backspace", "#"]})
    async with b.app.run_test(size=(80, 24)) as pilot:
        one_read(b.app, "ab#c")
        await pilot.pause()
        assert b.app.editor.buffer.text == "ac"


async def test_a_jump_takes_one_character_of_a_burst(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        one_read(b.app, "one two", "<ctrl+a>", "<ctrl+right_square_bracket>", "txy")
        await pilot.pause()
        assert b.app.editor.buffer.text == "one xytwo"


@pytest.mark.parametrize("command", ["/help", "/hotkeys"])
async def test_writing_in_a_text_to_read_closes_it(bench: Make, command: str) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        one_read(b.app, command, "<enter>")
        await pilot.pause(0.05)
        assert isinstance(b.app._panel, TextPanel) and not b.app.editor.display
        one_read(b.app, events.Key("h", "h"))
        await pilot.pause(0.05)
        one_read(b.app, "ello", "<enter>")
        await pilot.pause(0.05)
        assert b.session.submitted == [("hello", "steer")] and b.app.editor.display


async def test_a_paste_into_a_text_to_read_reaches_the_editor(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app.ui.show("Title", "text")
        await pilot.pause(0.05)
        one_read(b.app, events.Paste("pasted"))
        await pilot.pause(0.05)
        assert b.app.editor.buffer.text == "pasted" and not b.app._panels


async def test_a_text_above_another_panel_keeps_the_keyboard(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app.spawn(b.app.ui.choose("Choose", [Choice("a", "a")]))
        await pilot.pause(0.05)
        b.app.ui.show("Help", "text")
        await pilot.pause(0.05)
        one_read(b.app, "xy")
        await pilot.pause(0.05)
        assert len(b.app._panels) == 2 and b.app.editor.buffer.text == ""


async def test_keys_of_one_read_go_through_panels_in_order(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        one_read(b.app, "/help", "<enter>", "<escape>", "mid", "<ctrl+u>", "/model", "<enter>")
        one_read(b.app, "zzz", "<escape>", "<escape>", "after")
        await pilot.pause(0.3)
        assert b.app.editor.buffer.text == "after" and not b.app._panels


async def test_the_answer_of_one_panel_may_open_the_next(bench: Make) -> None:
    b = bench()
    answers = []

    async def ask() -> None:
        answers.append(await b.app.ui.choose("First", [Choice("a", "a"), Choice("b", "b")]))
        await asyncio.sleep(0)
        answers.append(await b.app.ui.confirm("Second", "sure?"))

    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app.spawn(ask())
        await pilot.pause(0.05)
        one_read(b.app, "<down>", "<enter>", events.Key("y", "y"), "then")
        await pilot.pause(0.1)
        assert answers == ["b", True] and b.app.editor.buffer.text == "then"


async def test_a_command_that_takes_long_does_not_keep_the_keys(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app._start_command(asyncio.sleep(60))
        one_read(b.app, "typed")
        await pilot.pause()
        assert b.app.editor.buffer.text == ""
        await asyncio.wait_for(until(lambda: b.app.editor.buffer.text == "typed"), 5)


async def test_no_color_draws_without_colours(bench: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert b.app.theme_source.appearance is None
        for strip in b.app.screen._compositor.render_strips():
            for segment in strip:
                style = segment.style
                assert style is None or (style.color is None and style.bgcolor is None)
        assert b.app.screen.get_component_rich_style("screen--selection").reverse


async def test_a_long_question_and_a_long_list_are_measured_once(
    bench: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    b = bench()
    measured = []
    monkeypatch.setattr(
        "pi_tui.tui.dialogs.picker.sanitise_line", lambda text: measured.append(text) or text
    )
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app.spawn(b.app.ui.choose("Choose", [Choice(f"v{n}", f"l{n}") for n in range(3_000)]))
        await pilot.pause(0.05)
        one_read(b.app, "<down>", "<down>")
        await pilot.pause(0.05)
        assert "› l2" in b.screen and len(measured) < 2 * 3_000
        one_read(b.app, "<escape>")
        await pilot.pause(0.05)
        b.app.spawn(b.app.ui.confirm("Sure?", "line\n" * 3_000))
        await pilot.pause(0.05)
        layouts = []
        layout = b.app._panel._layout_of
        lay_out = layout.rows
        monkeypatch.setattr(
            layout, "rows", lambda text, width: layouts.append(1) or lay_out(text, width)
        )
        one_read(b.app, "<down>", "<pagedown>")
        await pilot.pause(0.05)
        assert "more lines below" in b.screen and not layouts
