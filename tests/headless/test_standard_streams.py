"""Standard streams that are closed, full or left alone, in a real process."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pi_tui.headless.inputs import Prompt
from pi_tui.headless.print_mode import run_print
from pi_tui.headless.standard_streams import ClosedStream

PROGRAM = """
import sys
from pi_tui.headless.standard_streams import end_streams, hold_streams
hold_streams()
opened = open(sys.argv[1], "w")
try:
    sys.stdout.write("answer\\n" * int(sys.argv[2]))
except OSError:
    pass
opened.write(f"{opened.fileno()} {sys.stdin.read(1)!r}")
opened.close()
try:
    sys.stderr.write("note\\n")
except OSError:
    pass
sys.exit(end_streams(int(sys.argv[3])))
"""


def run(tmp_path: Path, redirection: str, *, lines: int = 1, code: int = 0) -> tuple[int, str, str]:
    """Run the program under a shell; returns its status, standard error, and what it saw."""
    command = f'"$0" -c "$1" "$2" {lines} {code} {redirection}'
    seen = tmp_path / "seen"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}", sys.executable, PROGRAM, str(seen)],
        # Without PYTHONUNBUFFERED: output has to wait, as it does for everybody else.
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stderr, seen.read_text()


def test_ordinary_output(tmp_path: Path) -> None:
    assert run(tmp_path, "") == (0, "note\n", "3 ''")
    assert run(tmp_path, "", code=130)[0] == 130


def test_closed_output_is_told_and_no_file_takes_its_place(tmp_path: Path) -> None:
    code, said, seen = run(tmp_path, ">&-")
    assert code == 1
    assert said == "note\npi-tui: error: the output could not be written: bad file descriptor\n"
    assert seen == "3 ''"


def test_closed_output_nobody_wanted_is_no_error(tmp_path: Path) -> None:
    assert run(tmp_path, ">&-", lines=0)[:2] == (0, "note\n")


def test_everything_closed(tmp_path: Path) -> None:
    assert run(tmp_path, "<&- >&- 2>&-") == (1, "", "3 ''")
    assert run(tmp_path, "<&-") == (0, "note\n", "3 ''")
    assert run(tmp_path, "2>&-") == (0, "", "3 ''")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
@pytest.mark.parametrize("code", [0, 1, 130])
def test_a_full_disk_is_told_once(tmp_path: Path, code: int) -> None:
    got, said, _ = run(tmp_path, ">/dev/full", code=code)
    assert got == (code or 1)
    assert said == "note\npi-tui: error: the output could not be written: no space left on device\n"


def test_a_full_disk_for_errors_too(tmp_path: Path) -> None:
    assert run(tmp_path, ">/dev/full 2>/dev/full")[:2] == (1, "")
    assert run(tmp_path, "2>/dev/full")[:2] == (0, "")


@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_reader_that_left_is_no_error(tmp_path: Path, lines: int) -> None:
    assert run(tmp_path, "| true", lines=lines)[:2] == (0, "note\n")


async def test_print_mode_over_closed_output(played: Any, answering: Any) -> None:
    errors = io.StringIO()
    code = await run_print(played(answering("hello")), [Prompt("hi")], ClosedStream(), errors)  # type: ignore[arg-type]
    assert code == 1
    assert "the output could not be written: bad file descriptor" in errors.getvalue()
