"""Commands on a system without /proc, as macOS is: the process group is all that is known."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pi_tui.tools import processes
from pi_tui.tools.processes import CommandProcesses


@pytest.fixture(autouse=True)
def no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = tmp_path / "proc"
    empty.mkdir()
    monkeypatch.setattr(processes, "PROC_ROOT", empty)


def group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


async def test_an_ordinary_command(bench: Any, read_text: Any) -> None:
    output = await bench.bash("echo out; exit 3")
    assert read_text(output) == "out\n\n[exit code 3]"
    assert "leftRunning" not in output.details


async def test_what_stays_in_the_background_is_named_and_ended_as_a_group(
    bench: Any, read_text: Any, until: Any
) -> None:
    output = await asyncio.wait_for(bench.bash("echo $$; sleep 60 & sleep 61 & echo ok"), 10)
    group = int(read_text(output).split("\n")[0])
    assert f"[Still running in the background: a process group (pid {group})." in read_text(output)
    assert output.details["leftRunning"] == [{"pid": group, "command": "a process group"}]
    assert bench.shell.close() == [f"a process group (process {group})"]
    await until(lambda: not group_lives(group))
    assert bench.shell.close() == []


async def test_cancelling_ends_the_group(bench: Any, until: Any) -> None:
    pids = bench.path("pids")
    task = asyncio.ensure_future(bench.bash("sleep 60 & echo $$ >> pids; sleep 60"))
    await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    await until(lambda: not group_lives(int(pids.read_text())))


async def test_a_command_that_ignores_the_request_to_end_is_killed(
    make_bench: Any, read_text: Any, until: Any
) -> None:
    bench = make_bench(kill_grace_s=0.2)
    output = await bench.bash("trap '' TERM; echo $$; while true; do sleep 1; done", 0.3)
    assert "Timed out" in read_text(output)
    await until(lambda: not group_lives(int(read_text(output).split("\n")[0])))


def test_a_number_that_went_to_somebody_else_is_left_alone() -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        of_a_command = CommandProcesses(stranger.pid, "token")
        of_a_command.distrust_group()
        assert of_a_command.find() == []
        assert of_a_command.end_now(0.1) == []
        assert stranger.poll() is None
    finally:
        stranger.send_signal(signal.SIGKILL)
        stranger.wait()
