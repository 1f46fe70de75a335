"""However the program ends, the terminal is as it was before."""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]

MODES = {
    b"1000", b"1002", b"1003", b"1006", b"1015", b"1016", b"2004", b"1004", b"2048", b"2026",
    b"1049", b"25", b"7",
}  # fmt: skip
ON_AT_START = {b"25", b"7"}


def modes_left_on(written: bytes) -> set[bytes]:
    """Private modes that differ from a fresh terminal's after these bytes."""
    state = {mode: mode in ON_AT_START for mode in MODES}
    for numbers, switch in re.findall(rb"\x1b\[\?([\d;]+)([hl])", written):
        for number in numbers.split(b";"):
            if number in state:
                state[number] = switch == b"h"
    return {mode for mode, on in state.items() if on != (mode in ON_AT_START)}


def keyboard_stack(written: bytes) -> int:
    pushed = len(re.findall(rb"\x1b\[>\d+u", written))
    popped = len(re.findall(rb"\x1b\[<\d*u", written))
    return pushed - popped


def assert_clean(terminal: Any) -> None:
    written = bytes(terminal.written)
    assert modes_left_on(written) == set()
    assert keyboard_stack(written) <= 0
    after_screen = written.rpartition(b"\x1b[?1049l")[2]
    assert b"\x1b[?25h" in after_screen and b"\x1b[0m" in after_screen
    assert not re.search(rb"\x1b\[[\d;]*[1-9][\d;]*m", after_screen), "colours after the end"
    assert terminal.attributes == terminal.before
    assert terminal.unread_input() == b""


@pytest.mark.parametrize(
    ("keys", "code"),
    [(b"/quit\r", 0), (b"\x03\x03", 130), (b"\x04", 0)],
    ids=["quit command", "ctrl+c twice", "ctrl+d"],
)
def test_leaving_by_key(start: Start, keys: bytes, code: int) -> None:
    terminal = start()
    terminal.send(keys)
    assert terminal.wait_exit() == code
    assert_clean(terminal)
    assert "pi-tui --session 0199-session" in terminal.text
    assert "ended in the background: sleep" in terminal.text


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
@pytest.mark.parametrize("kind", ["", "busy"])
def test_leaving_by_signal(start: Start, signum: int, code: int, kind: str) -> None:
    terminal = start(kind)
    if kind:
        terminal.wait_text("streamed text")
    terminal.signal(signum)
    assert terminal.wait_exit() == code
    assert_clean(terminal)


def test_a_signal_before_anything_is_on_screen(start: Start) -> None:
    terminal = start(ready="")
    before = terminal.before
    terminal.wait_for(lambda: terminal.attributes != before, "the held terminal")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert terminal.attributes == before


def test_a_second_signal_ends_a_program_that_is_stuck(start: Start) -> None:
    terminal = start("stuck")
    terminal.signal(signal.SIGTERM)
    terminal.pump(0.2)
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert_clean(terminal)


def test_an_exception_in_the_screen(start: Start) -> None:
    terminal = start("screen", ready="")
    assert terminal.wait_exit() == 1
    assert_clean(terminal)
    report = bytes(terminal.written).rpartition(b"\x1b[?1049l")[2].decode()
    assert "RuntimeError: drawing failed with api_key=<hidden>" in report
    assert "run_double.py" in report and "Traceback" in report
    assert b"sk-live" not in terminal.written
    assert "pi-tui --session" in report


def test_an_exception_in_a_background_task(start: Start) -> None:
    terminal = start("task")
    terminal.wait_text("internal error: RuntimeError: task failed")
    assert b"sk-live" not in terminal.written
    terminal.send(b"\x04")
    assert terminal.wait_exit() == 0
    assert_clean(terminal)


def stop_and_go_on(terminal: Any) -> None:
    terminal.send(b"\x1a")
    terminal.wait_stopped()
    mark = len(terminal.written)
    assert modes_left_on(bytes(terminal.written)) == set()
    assert terminal.attributes == terminal.before
    terminal.signal(signal.SIGCONT)
    terminal.wait_for(
        lambda: b"draft" in terminal.written[mark:].partition(b"\x1b[?1049h")[2],
        "the screen after the stop",
    )


def test_suspend_and_resume(start: Start) -> None:
    terminal = start()
    terminal.send(b"draft")
    terminal.wait_text("draft")
    stop_and_go_on(terminal)
    stop_and_go_on(terminal)
    terminal.send(b"!")
    terminal.wait_text("draft!")
    terminal.send(b"\x03\x03")
    assert terminal.wait_exit() == 130
    assert_clean(terminal)


def editor_script(path: Path, body: str) -> str:
    script = path / "editor.sh"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def test_external_editor(start: Start, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    command = editor_script(tmp_path, f'cat "$1" > {seen}\nprintf "edited [/]" > "$1"')
    terminal = start(TEST_EDITOR=command)
    terminal.send(b"draft\x07")
    terminal.wait_text("edited [/]")
    assert seen.read_text() == "draft"
    terminal.send(b"!\r")
    terminal.wait_text("you said: edited [/]!")
    terminal.send(b"\x04")
    assert terminal.wait_exit() == 0
    assert_clean(terminal)
    assert not list(tmp_path.glob("pi-tui-*"))


def test_the_end_while_an_external_editor_is_open(start: Start, tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = editor_script(
        tmp_path,
        f"stty -echo\nprintf '\\033[?1049h\\033[?2004h'\necho $$ > {started}\nexec sleep 60",
    )
    terminal = start(TEST_EDITOR=command)
    terminal.send(b"\x07")
    terminal.wait_for(lambda: started.exists() and started.read_text() != "", "the editor")
    terminal.signal(signal.SIGTERM)
    assert terminal.wait_exit() == 143
    assert_clean(terminal)
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_unread_mouse_reports_are_drained(start: Start) -> None:
    terminal = start()
    terminal.send(b"\x04" + b"\x1b[<35;10;10M" * 50)
    assert terminal.wait_exit() == 0
    assert_clean(terminal)


def test_no_echo_before_the_first_screen(start: Start) -> None:
    terminal = start(ready="")
    before = terminal.before
    terminal.wait_for(lambda: terminal.attributes != before, "the held terminal")
    terminal.send(b"typed early")
    terminal.wait_text("fake-model")
    terminal.wait_text("typed early")
    first_screen = bytes(terminal.written).index(b"\x1b[?1049h")
    assert b"typed" not in terminal.written[:first_screen]
