"""kill -9, SIGTERM and SIGINT in the middle of things: the session opens, nothing told is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest


def reading(child: subprocess.Popen[bytes]) -> dict[str, object]:
    assert child.stdout is not None
    return json.loads(child.stdout.readline())


def acknowledged(child: subprocess.Popen[bytes], enough) -> list[str]:
    """Read events until `enough(event)`; the ids of entries that were reported stored."""
    told: list[str] = []
    while True:
        event = reading(child)
        if event["type"] == "entry_appended":
            told.append(event["entry"]["id"])
        if enough(event):
            return told


def is_text(event) -> bool:
    update = event.get("assistantMessageEvent") or {}
    return update.get("type") == "text_delta"


def opens_with(program, told: list[str]) -> None:
    stored = [entry["id"] for entry in program.entries()]
    assert stored[: len(told)] == told
    done = program.run("-p", "--continue", "hello again")
    assert done.returncode == 0, done
    assert done.stdout == b"Hello from the server.\n"
    stored_now = [entry["id"] for entry in program.entries()]
    assert stored_now[: len(stored)] == stored


def test_kill_9_during_a_stream(program):
    child = program.start("--mode", "json", "answer slowly")
    told = acknowledged(child, is_text)
    child.kill()
    child.wait()
    opens_with(program, told)


def test_kill_9_during_a_tool(program):
    child = program.start("--mode", "json", "sleep now")
    told = acknowledged(child, lambda event: event["type"] == "tool_execution_start")
    pid_file = program.project / "pid"
    program.wait(lambda: pid_file.exists() and bool(pid_file.read_text().strip()))
    child.kill()
    child.wait()
    opens_with(program, told)
    # The call without an answer got one in the request.
    sent = program.requests()[-1]["messages"]
    calls = [c["id"] for m in sent for c in m.get("tool_calls") or ()]
    answers = [m["tool_call_id"] for m in sent if m["role"] == "tool"]
    assert calls and answers == calls
    os.killpg(os.getpgid(int(pid_file.read_text())), signal.SIGKILL)


@pytest.mark.parametrize("after", [1, 5, 12, 25])
def test_kill_9_between_writes(program, after):
    child = program.start("--mode", "json", "loop for ever")
    seen = 0

    def enough(event) -> bool:
        nonlocal seen
        seen += event["type"] == "entry_appended"
        return seen >= after

    told = acknowledged(child, enough)
    child.kill()
    child.wait()
    opens_with(program, told)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_an_orderly_end_kills_the_tool_and_answers_its_call(program, signum, code):
    child = program.start("--mode", "json", "sleep now")
    acknowledged(child, lambda event: event["type"] == "tool_execution_start")
    pid_file = program.project / "pid"
    program.wait(lambda: pid_file.exists() and bool(pid_file.read_text().strip()))
    child.send_signal(signum)
    child.communicate(timeout=30)
    assert child.returncode == code
    pid = int(pid_file.read_text())
    program.wait(lambda: gone(pid))
    last = program.messages()[-1]
    assert last["role"] == "toolResult" and last["isError"]


def test_two_programs_do_not_share_a_session(program):
    child = program.start("--mode", "json", "answer slowly")
    acknowledged(child, is_text)
    (path,) = program.session_files()
    done = program.run("-p", "--session", str(path), "me too")
    assert done.returncode == 1
    assert "another" in done.stderr.decode() or "in use" in done.stderr.decode()
    child.kill()
    child.wait()
    assert program.run("-p", "--session", str(path), "me too").returncode == 0
