"""Cases BASH-01 to BASH-03 and the bash part of SEC-01, with real processes."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import time
import tracemalloc
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.errors import ToolError
from pi_tui.tools.bash import NO_INPUT, Snapshots, lacked_input
from pi_tui.tools.options import MAX_BYTES, MAX_LINES

HAS_PROC = Path("/proc/self/environ").exists()


def alive(pid: int) -> bool:
    if not HAS_PROC:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


needs_proc = pytest.mark.skipif(not HAS_PROC, reason="only the process group is known there")


# ---------------------------------------------------------------- BASH-01


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("sleep 60 & echo started", "started"),
        ("(while true; do echo tick; sleep 0.1; done) & echo up", "up"),
        ("nohup sleep 60 >/dev/null & echo ok", "ok"),
        pytest.param("setsid sleep 60 & echo ok", "ok", marks=needs_proc),
        pytest.param("setsid sleep 60 >/dev/null 2>&1 & echo ok", "ok", marks=needs_proc),
    ],
)
async def test_what_stays_in_the_background_is_not_waited_for(
    bench: Any, read_text: Any, command: str, expected: str
) -> None:
    output = await asyncio.wait_for(bench.bash(command), 10)
    text = read_text(output)
    assert expected in text.splitlines()
    assert not output.is_error
    assert "[Still running in the background:" in text
    left = [item["pid"] for item in output.details["leftRunning"]]
    assert left and alive(left[0])
    assert f"(process {left[0]})" in bench.shell.close()[0]
    assert not any(map(alive, left))
    assert bench.shell.close() == []


async def test_the_foreground_is_waited_for(bench: Any, read_text: Any) -> None:
    output = await bench.bash("sleep 0.5 && echo late")
    assert read_text(output) == "late"
    assert output.details["exitCode"] == 0


async def test_both_streams_come_in_order_with_the_exit_code(bench: Any, read_text: Any) -> None:
    output = await bench.bash("echo a; echo b >&2; echo c; exit 3")
    assert read_text(output) == "a\nb\nc\n\n[exit code 3]"
    assert output.is_error
    assert output.details["exitCode"] == 3


async def test_output_without_newline_and_no_output(bench: Any) -> None:
    assert await bench.text("bash", command="printf 'no newline'") == "no newline"
    assert await bench.text("bash", command="true") == "(no output)"


async def test_later_output_of_a_left_over_goes_nowhere_and_does_not_kill_it(
    bench: Any, until: Any
) -> None:
    mark = bench.path("mark")
    first = await bench.output(
        "bash",
        command=f"(for i in $(seq 200); do echo late-$i; done; sleep 0.4; echo more; "
        f"touch {mark}; sleep 60) & echo up",
    )
    pid = first.details["leftRunning"][0]["pid"]
    second = await bench.text("bash", command="sleep 0.3; echo second")
    assert second == "second"
    await until(mark.exists)
    assert alive(pid)


async def test_a_left_over_that_writes_for_ever_does_not_stop_the_loop(bench: Any) -> None:
    await bench.bash("yes & echo up")
    start = time.monotonic()
    for _ in range(50):
        await asyncio.sleep(0)
    assert time.monotonic() - start < 5
    assert bench.shell.runner.left_running
    assert bench.shell.close()


# ---------------------------------------------------------------- BASH-02


async def test_very_much_output(bench: Any, read_text: Any) -> None:
    tracemalloc.start()
    try:
        output = await bench.bash("yes $(printf 'x%.0s' $(seq 79)) | head -300000")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20_000_000
    first, *rest = read_text(output).split("\n")
    path = output.details["fullOutputPath"]
    assert first.startswith("[Left out: the first 299")
    assert first.endswith(f"The whole output is in {path}]")
    assert 0 < len(rest) <= MAX_LINES
    assert len("\n".join(rest)) <= MAX_BYTES
    assert all(line == "x" * 79 for line in rest)
    assert int(first.split()[4]) + len(rest) == 300_000
    whole = Path(path)
    assert whole.stat().st_size == 300_000 * 80
    assert whole.read_bytes() == b"x" * 79 + b"\n" + whole.read_bytes()[80:]
    assert stat.S_IMODE(whole.stat().st_mode) == 0o600
    assert stat.S_IMODE(whole.parent.stat().st_mode) == 0o700


async def test_a_progress_bar_leaves_its_last_state(bench: Any, read_text: Any) -> None:
    script = "import sys\nfor i in range(50001): sys.stdout.write(f'\\rstep {i}/50000')\n"
    bench.put("bar.py", script + "print('\\ndone')\n")
    output = await bench.bash("python3 bar.py")
    assert read_text(output) == "step 50000/50000\ndone"
    assert not output.details["truncated"]
    assert list(bench.spill.iterdir()) == []


async def test_one_long_line_is_given_from_its_end(bench: Any, read_text: Any) -> None:
    output = await bench.bash("head -c 180000 /dev/zero | tr '\\0' x; echo END")
    note, line = read_text(output).split("\n")
    assert line.endswith("xEND")
    assert len(line) <= MAX_BYTES
    assert "the beginning of a line (126 kB)" in note


async def test_output_for_ever_is_ended_by_the_timeout(bench: Any, read_text: Any) -> None:
    start = time.monotonic()
    tracemalloc.start()
    try:
        output = await bench.bash("yes; true", timeout=0.6)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.monotonic() - start < 10
    assert peak < 20_000_000
    text = read_text(output)
    assert "\ny\ny\n" in text
    assert text.endswith("[Timed out: the command was ended after 0.6 s.]")
    assert output.is_error and output.details["timedOut"]


async def test_the_file_with_everything_has_a_limit_too(make_bench: Any, read_text: Any) -> None:
    bench = make_bench(spill_limit_bytes=100_000)
    output = await bench.bash("yes | head -c 400000")
    assert "The first 98 kB are in" in read_text(output).split("\n")[0]
    assert Path(output.details["fullOutputPath"]).stat().st_size == 100_000


async def test_without_a_word_said_it_is_100_megabytes(bench: Any) -> None:
    assert bench.options.spill_limit_bytes == 100 * 1024 * 1024


async def test_a_nearly_full_disk_is_left_to_the_session(bench: Any, read_text: Any) -> None:
    keep = bench.options.spill_keep_free_bytes
    bench.shell.runner.spill.free_bytes = lambda handle: keep + 300_000 - os.fstat(handle).st_size
    output = await bench.bash("yes | head -c 800000")
    note = read_text(output).split("\n")[0]
    assert "The first 293 kB are in" in note
    assert "more is not kept, because the disk is nearly full" in note
    assert Path(output.details["fullOutputPath"]).stat().st_size == 300_000


async def test_on_a_full_disk_no_file_is_left(bench: Any, read_text: Any) -> None:
    bench.shell.runner.spill.free_bytes = lambda handle: 0
    output = await bench.bash("yes | head -c 400000")
    assert "could not be kept because the disk is nearly full" in read_text(output)
    assert "fullOutputPath" not in output.details
    assert list(bench.spill.iterdir()) == []


async def test_a_disk_that_fills_up_meanwhile_gets_its_space_back(
    bench: Any, read_text: Any
) -> None:
    def full(handle: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    bench.shell.runner.spill.free_bytes = full
    output = await bench.bash("yes | head -c 400000")
    assert "could not be kept (No space left on device)" in read_text(output)
    assert list(bench.spill.iterdir()) == []


async def test_colours_and_other_codes_are_not_in_the_text(bench: Any) -> None:
    text = await bench.text(
        "bash",
        command=r"printf '\033[1;31mred\033[0m \033]0;title\007\033]8;;http://x\033\\link"
        r"\033]8;;\033\\ \302\2332J\033[2Jend\033c \033]no end\nnext\n\000\a'",
    )
    assert text == "red link end no end\nnext"


async def test_no_character_is_broken_by_the_cut(bench: Any, read_text: Any) -> None:
    for shift in range(4):
        output = await bench.bash(
            f"python3 -c \"print('a' * {shift} + chr(0x1F600) * 30000, end='')\""
        )
        line = read_text(output).split("\n")[1]
        assert set(line) == {"\U0001f600"}
        assert len(line.encode()) > MAX_BYTES - 4


async def test_output_below_the_limits_is_whole(bench: Any, read_text: Any) -> None:
    output = await bench.bash("yes $(printf 'y%.0s' $(seq 200)) | head -200")
    assert read_text(output) == "\n".join(["y" * 200] * 200)
    assert not output.details["truncated"]
    assert "fullOutputPath" not in output.details


async def test_updates_are_snapshots(bench: Any, until: Any) -> None:
    task = asyncio.ensure_future(bench.bash("echo one; sleep 60; echo two"))
    await until(lambda: bool(bench.updates))
    assert bench.updates[0] == "one\n"
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_updates_come_at_a_bounded_rate() -> None:
    shown: list[float] = []
    loop = asyncio.get_running_loop()
    snapshots = Snapshots(lambda: shown.append(loop.time()))
    start = loop.time()
    while loop.time() < start + 0.35:
        snapshots.changed()
        await asyncio.sleep(0)
    snapshots.stop()
    assert 2 <= len(shown) <= 5
    assert all(b - a > 0.09 for a, b in pairwise(shown))


# ---------------------------------------------------------------- BASH-03


@pytest.mark.parametrize(
    ("command", "expected", "fails"),
    [
        ('read -p "Name? " x; echo "got:$x"', "got:", False),
        ("cat", "(no output)", False),
        ("printf 'pw: ' >/dev/tty; read y </dev/tty", "/dev/tty", True),
        ('python3 -c "input()"', "EOFError", True),
    ],
)
async def test_commands_that_want_input_end_at_once_and_the_answer_says_why(
    bench: Any, read_text: Any, command: str, expected: str, fails: bool
) -> None:
    output = await asyncio.wait_for(bench.bash(command), 10)
    text = read_text(output)
    assert expected in text
    assert NO_INPUT in text
    assert output.is_error == fails


async def test_git_opens_no_editor_and_no_pager(bench: Any, read_text: Any) -> None:
    setup = (
        "git init -q . && git config user.email a@example.com && git config user.name A && "
        "echo x > f && git add f && for i in $(seq 40); do "
        "git commit -q --allow-empty -m message-$i; done; echo y > g; git add g"
    )
    assert not (await bench.bash(setup)).is_error
    log = await bench.text("bash", command="git log")
    assert "message-1\n" in log + "\n" and "message-40\n" in log
    commit = await bench.bash("git commit")
    assert commit.is_error
    assert "editor" in read_text(commit)
    assert NO_INPUT in read_text(commit)


async def test_the_environment_of_a_command(bench: Any) -> None:
    text = await bench.text(
        "bash", command="echo $TERM $PAGER $GIT_TERMINAL_PROMPT $AI_AGENT $PI_SESSION_ID; tty"
    )
    assert text.startswith("dumb cat 0 pi s-1\nnot a tty")


def test_the_guess_whether_input_was_wanted() -> None:
    assert lacked_input("read answer", "", 1)
    assert lacked_input("sudo true", "sudo: a terminal is required to read the password", 1)
    assert not lacked_input("ls | while read f; do echo $f; done", "a", 0)
    assert not lacked_input("while read f; do echo $f; done < names", "a", 0)
    assert not lacked_input("cat README.md", "", 0)
    assert not lacked_input("echo 'not a tty'", "not a tty", 0)
    assert not lacked_input("grep -n reader x.py", "", 1)


# ---------------------------------------------------------------- ending


@pytest.mark.parametrize("detach", ["", pytest.param("setsid ", marks=needs_proc)])
async def test_cancelling_ends_everything_the_command_started(
    bench: Any, until: Any, detach: str
) -> None:
    pids = bench.path("pids")
    command = f"{detach}sh -c 'echo $$ >> pids; sleep 60' & echo $$ >> pids; sleep 60"
    task = asyncio.ensure_future(bench.bash(command))
    await until(lambda: pids.exists() and pids.read_text().count("\n") == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 10)
    assert not any(alive(int(pid)) for pid in pids.read_text().split())


async def test_a_command_that_ignores_the_request_to_end_is_killed(
    make_bench: Any, read_text: Any
) -> None:
    bench = make_bench(kill_grace_s=0.2)
    output = await bench.bash("trap '' TERM; echo $$ > pid; while true; do sleep 1; done", 0.3)
    assert "Timed out" in read_text(output)
    assert not alive(int(bench.path("pid").read_text()))


async def test_death_by_signal_is_named(bench: Any, read_text: Any) -> None:
    output = await bench.bash("kill -SEGV $$")
    assert "[Ended by SIGSEGV, exit code 139]" in read_text(output)
    assert output.is_error


async def test_no_handles_are_left_open(bench: Any) -> None:
    await bench.bash("true")
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(5):
        await bench.bash("seq 5000; sleep 60 >/dev/null 2>&1 &")
    bench.shell.close()
    assert len(list(Path("/dev/fd").iterdir())) <= before


# ---------------------------------------------------------------- start


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, '"command" is missing'),
        ({"command": 7}, '"command" must be a string'),
        ({"command": "  "}, '"command" is empty'),
        ({"command": "x", "timeout": "soon"}, '"timeout" must be a number of seconds above 0'),
        ({"command": "x", "timeout": -1}, "got the number -1"),
        ({"command": "x", "timeout": float("inf")}, "got the number inf"),
    ],
)
def test_wrong_arguments(bench: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        bench.tools["bash"].check(arguments)
    assert words in caught.value.message


async def test_commands_that_cannot_start(make_bench: Any) -> None:
    bench = make_bench(shell_path="/no/such/shell")
    with pytest.raises(ToolError, match="/no/such/shell could not be started"):
        await bench.bash("true")


async def test_commands_no_system_takes(bench: Any) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await bench.bash("echo \0")
    with pytest.raises(ToolError, match="too long"):
        await bench.bash("true " + "x" * 3_000_000)
    bench.directory.rmdir()
    with pytest.raises(ToolError, match="does not exist any more"):
        await bench.bash("true")


async def test_shell_and_prefix_can_be_set(make_bench: Any) -> None:
    bench = make_bench(shell_path="/bin/sh", shell_command_prefix="greeting=hello")
    assert await bench.text("bash", command="echo $greeting $0", timeout="5") == "hello /bin/sh"


# ---------------------------------------------------------------- the user's own commands


async def test_the_users_command(bench: Any) -> None:
    shown: list[str] = []
    outcome = await bench.shell.run("echo hi; exit 2", str(bench.directory), shown.append)
    assert (outcome.output, outcome.exit_code, outcome.cancelled) == ("hi", 2, False)
    left = await bench.shell.run("sleep 60 & echo up", str(bench.directory), shown.append)
    assert left.left_running and "sleep 60" in left.output
    missing = await bench.shell.run("true", "/no/such/directory", shown.append)
    assert missing.exit_code is None and "does not exist" in missing.output


async def test_the_users_command_cancelled_keeps_what_it_printed(bench: Any, until: Any) -> None:
    shown: list[str] = []
    run = bench.shell.run("echo first; sleep 60", str(bench.directory), shown.append)
    task = asyncio.ensure_future(run)
    await until(lambda: bool(shown))
    task.cancel()
    outcome = await asyncio.wait_for(task, 10)
    assert outcome.cancelled and outcome.exit_code is None
    assert outcome.output == "first"
    assert bench.shell.close() == []
