"""`--debug-log`: a file that cannot be opened is told at the start."""

from __future__ import annotations

import stat
from typing import Any


def test_a_log_that_cannot_be_opened_is_a_mistake_of_the_command_line(program: Any) -> None:
    run = program.run("--debug-log", "missing/log.jsonl", "-p", "hi")
    assert run.returncode == 2
    assert b"missing/log.jsonl cannot be opened: No such file" in run.stderr
    assert b"directory that is there" in run.stderr
    assert run.stdout == b""


def test_the_log_is_for_its_owner_alone(program: Any) -> None:
    run = program.run("--debug-log", "log.jsonl", "-p", "/session")
    assert run.returncode == 0, run.stderr
    assert stat.S_IMODE((program.project / "log.jsonl").stat().st_mode) == 0o600
