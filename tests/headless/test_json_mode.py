"""JSON mode: lines, order, slow and vanished readers, exit codes."""

from __future__ import annotations

import asyncio
import io
import json
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.events import MessageUpdate, Notice
from pi_tui.core.streaming import TextDelta
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.json_mode import json_line, run_json
from pi_tui.headless.output import OutputWriter


async def test_header_then_events(played: Any, answering: Any) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert await run_json(played(answering("hello")), [Prompt("hi")], out, err) == 0
    lines = [json.loads(line) for line in out.getvalue().split("\n")[:-1]]
    assert [line["type"] for line in lines] == [
        "session",
        "agent_start",
        "message_end",
        "message_end",
        "agent_settled",
    ]
    assert lines[0] == {
        "type": "session",
        "version": 3,
        "id": "s1",
        "timestamp": "2026-01-31T00:00:00.000Z",
        "cwd": "/work",
    }
    assert lines[3]["message"]["content"] == [{"type": "text", "text": "hello"}]
    assert err.getvalue() == ""


@pytest.mark.parametrize(("reason", "code"), [("stop", 0), ("length", 1), ("error", 1)])
async def test_exit_codes_and_errors_go_elsewhere(
    played: Any, answering: Any, reason: str, code: int
) -> None:
    out, err = io.StringIO(), io.StringIO()
    assert await run_json(played(answering("x", reason)), [Prompt("hi")], out, err) == code
    assert bool(err.getvalue()) == bool(code)
    assert all(json.loads(line) for line in out.getvalue().splitlines())


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029\x85c", "\x1b[31m\x9b2J\x7f\u202e", "\n\r\t\0", "ä😀", "half \ud83d"]
)
def test_a_line_is_one_line_for_everybody(text: str) -> None:
    line = json_line({"text": text})
    assert line.endswith(b"\n")
    assert len(line.decode().splitlines()) == 1
    assert not any(c in line[:-1].decode() for c in "\x1b\x9b\x7f\u202e\r\n\t\0")
    assert json.loads(line) == {"text": text}


async def test_a_reader_that_goes_away_ends_the_run_quietly(played: Any) -> None:
    reading, writing = os.pipe()

    async def endless(session: Any, _: str) -> None:
        os.close(reading)
        while not session.aborted.is_set():
            session.emit(Notice("info", "again"))
            await asyncio.sleep(0)
        session.say("", "aborted")

    err = io.StringIO()
    with os.fdopen(writing, "w") as out:
        assert await run_json(played(endless), [Prompt("hi")], out, err) == 1
    assert err.getvalue() == "pi-tui: again\n"


async def test_what_waits_is_written_when_the_run_breaks_off(played: Any, tmp_path: Path) -> None:
    async def bug(session: Any, _: str) -> None:
        raise KeyError("bug")

    with (tmp_path / "out").open("w") as out, pytest.raises(KeyError):
        await run_json(played(bug), [Prompt("hi")], out, io.StringIO())
    lines = (tmp_path / "out").read_text().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["session", "agent_start"]


async def test_lines_arrive_while_the_run_goes_on(played: Any) -> None:
    reading, writing = os.pipe()
    seen = b""

    async def slow(session: Any, _: str) -> None:
        nonlocal seen
        session.emit(MessageUpdate(TextDelta(0, "now")))
        while b'"now"' not in seen:
            assert await asyncio.to_thread(select.select, [reading], [], [], 5)
            seen += os.read(reading, 65536)
        session.say("done")

    with os.fdopen(writing, "w") as out:
        assert await run_json(played(slow), [Prompt("hi")], out, io.StringIO()) == 0
    os.close(reading)
    assert seen.endswith(b'"delta":"now"}}\n')


async def test_a_slow_reader_holds_up_the_run() -> None:
    reading, writing = os.pipe()
    received = bytearray()

    def read_all() -> None:
        while data := os.read(reading, 65536):
            received.extend(data)

    reader = threading.Thread(target=read_all)
    chunk = b"x" * 1_000_000
    with os.fdopen(writing, "w") as out:
        writer = OutputWriter(out, max_backlog_bytes=1000)
        reader.start()
        writer.put(chunk)
        # All but what a pipe holds and one read in flight was taken before `put` returned.
        assert len(received) >= len(chunk) - 2 * 65536
        writer.put(b"end\n")
        await writer.finish(asyncio.Event())
    reader.join()
    os.close(reading)
    assert bytes(received) == chunk + b"end\n"


PROGRAM = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from conftest import PlayedSession
from pi_tui.core.events import Notice
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.json_mode import run_json

async def flood(session, text):
    print("go", file=sys.stderr, flush=True)
    while not session.aborted.is_set():
        session.emit(Notice("info", "x" * 100_000))
        await asyncio.sleep(0)
    session.say("", "aborted")

async def main():
    with open("/dev/null", "w") as quiet:
        return await run_json(PlayedSession(flood), [Prompt("hi")], sys.stdout, quiet)

sys.exit(asyncio.run(main()))
"""


def test_a_reader_that_never_reads_cannot_keep_the_program_alive() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"go\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 143
        assert process.stderr.read() == b""
