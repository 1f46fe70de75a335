"""What terminals, shells and hurried people do to a full-screen program."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]

ON_LINUX = Path("/proc/self/stat").exists()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie that nobody has collected yet is dead.
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state not in ("Z", "X")


# ---------------------------------------------------------------- the end


@pytest.mark.parametrize("second", [signal.SIGHUP, signal.SIGTERM, signal.SIGINT])
def test_signals_that_come_together_are_one(start: Start, tmp_path: Path, second: int) -> None:
    terminal = start("closing")
    terminal.signal(signal.SIGHUP)
    terminal.wait_for((tmp_path / "closing").exists, "the orderly end")
    terminal.signal(second)
    assert terminal.wait_exit() == 129
    assert b"ended in the background: sleep" in terminal.written
    assert terminal.attributes == terminal.before


@pytest.mark.skipif(not ON_LINUX, reason="children are found in /proc")
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGQUIT])
def test_a_forced_end_leaves_no_process_behind(start: Start, tmp_path: Path, signum: int) -> None:
    terminal = start("stuck")
    child = tmp_path / "child"
    terminal.wait_for(lambda: child.exists() and child.read_text() != "", "the child")
    terminal.signal(signum)
    if signum == signal.SIGTERM:
        time.sleep(0.2)  # longer than signals that belong together
        terminal.signal(signum)
    assert terminal.wait_exit() == 128 + signum
    terminal.wait_for(lambda: not is_alive(int(child.read_text())), "the end of the child")
    assert terminal.attributes == terminal.before
    normal_screen = terminal.written.rpartition(b"\x1b[?1049l")[2]
    assert b"pi-tui: what was not written is in: elsewhere" in normal_screen


def test_ctrl_c_while_leaving_changes_nothing(start: Start, tmp_path: Path) -> None:
    terminal = start("closing")
    terminal.send(b"\x04")
    terminal.wait_for((tmp_path / "closing").exists, "the orderly end")
    terminal.send(b"\x03")  # the terminal is cooked again: a signal
    assert terminal.wait_exit() == 0
    assert b"ended in the background: sleep" in terminal.written


def test_ctrl_c_after_the_end_does_not_spoil_the_exit_code(start: Start, tmp_path: Path) -> None:
    terminal = start("lingering")
    terminal.send(b"\x03\x03")
    terminal.wait_for((tmp_path / "closing").exists, "the end of the front end")
    terminal.send(b"\x03")
    assert terminal.wait_exit() == 130


# ---------------------------------------------------------------- the beginning


def test_enter_before_the_start_sends(start: Start) -> None:
    terminal = start(early=b"hello\r", ready="")
    terminal.wait_text("you said: hello")
    terminal.send(b"one\ntwo\r")  # a line feed of later on is Ctrl+J
    terminal.wait_text("you said: one")
    terminal.wait_text("two")


@pytest.mark.parametrize("filters", ["", "dim"])
def test_no_color(start: Start, filters: str) -> None:
    terminal = start(NO_COLOR="1", TEXTUAL_FILTERS=filters)
    terminal.send(b"/help\r")
    terminal.wait_text("closes")
    terminal.send(b"\x1b")
    terminal.send(b"/mo")
    terminal.wait_text("/model")
    numbers = re.findall(rb"\x1b\[([\d;]*)m", terminal.written)
    parts = {int(part) for sequence in numbers for part in sequence.split(b";") if part}
    assert not parts & {*range(30, 50), *range(90, 108)}, "colours"
    assert 7 in parts  # the cursor is still seen
    terminal.send(b"\x03\x03\x03")
    assert terminal.wait_exit() == 130


@pytest.mark.parametrize(
    "name", ["TEXTUAL_FILTERS", "TEXTUAL_PRESS", "TEXTUAL_COLOR_SYSTEM", "TEXTUAL_ALLOW_SIGNALS"]
)
def test_settings_for_textual_developers_are_ignored(start: Start, name: str) -> None:
    values = {"TEXTUAL_FILTERS": "dim", "TEXTUAL_PRESS": "z,z", "TEXTUAL_COLOR_SYSTEM": "nonsense"}
    terminal = start(**{name: values.get(name, "1")})
    terminal.send(b"\x03")
    terminal.wait_text("twice quickly")
    assert "zz" not in terminal.text
    terminal.send(b"x\x03\x03\x03")
    assert terminal.wait_exit() == 130


def test_the_size_is_the_terminals_own(start: Start) -> None:
    terminal = start(COLUMNS="40", LINES="10")
    assert terminal.text.split("\n")[23].endswith("fake-model • thinking off")
    assert len(terminal.text.split("\n")[21]) == 80  # the editor's rule
    terminal.resize(100, 30)
    terminal.wait_for(
        lambda: (
            terminal.text.split("\n")[29].endswith("fake-model • thinking off")
            and len(terminal.text.split("\n")[27]) == 100
        ),
        "the new size",
    )


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize("cut", [2, 4, 5])
def test_a_start_mark_that_falls_apart_is_one(start: Start, cut: int) -> None:
    terminal = start()
    stream = b"\x1b[200~LONG\rsecond line\x1b[201~"
    terminal.send(stream[:cut])
    time.sleep(0.08)  # longer than the Escape key waits
    terminal.send(stream[cut:])
    terminal.wait_text("second line")
    assert "you said" not in terminal.text
    terminal.send(b"!")
    terminal.wait_text("second line!")


def test_a_long_line_without_brackets_is_quick_and_ctrl_c_does_not_wait(start: Start) -> None:
    terminal = start()
    began = time.monotonic()
    terminal.send(b"A" * 10_000)
    terminal.wait_text("↑")
    terminal.send(b"\x03end")
    terminal.wait_for(lambda: "AAAA" not in terminal.text and "end" in terminal.text, "'end'")
    assert time.monotonic() - began < 2  # a tenth of that on a quiet machine


def test_keys_after_a_closing_escape_reach_the_editor(start: Start) -> None:
    terminal = start()
    terminal.send(b"/help\r")
    terminal.wait_text("closes")
    terminal.send(b"\x1b[27uhello\r")
    terminal.wait_text("you said: hello")


def test_keys_after_an_opening_enter_reach_the_panel(start: Start) -> None:
    terminal = start()
    terminal.send(b"/model\rzzz")
    terminal.wait_text("nothing fits")
    assert "> zzz" in terminal.text
    terminal.send(b"\x03\x03hello\r")  # clear the search, close, write
    terminal.wait_text("you said: hello")


@pytest.mark.parametrize(
    ("command", "title"), [(b"/help\r", "closes"), (b"/model\r", "type to search")]
)
def test_many_ctrl_c_at_a_panel_leave(start: Start, command: bytes, title: str) -> None:
    terminal = start()
    terminal.send(command)
    terminal.wait_text(title)
    terminal.send(b"\x03" * 50)
    assert terminal.wait_exit() == 130
