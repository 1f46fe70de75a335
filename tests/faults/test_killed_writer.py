"""A writing process is killed: every entry it reported is in the file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_tui.core.entries import MessageEntry
from pi_tui.storage.jsonl import open_session

WRITER = """
import sys
from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.messages import UserMessage
from pi_tui.storage.jsonl import create_session
header = SessionHeader(id="s1", timestamp="2025-07-01T00:00:01.000Z", cwd="/demo")
store = create_session(sys.argv[1], header)
sys.stdout.write(store.path + "\\n")
for number in range(100_000):
    text = "x" * (number * 37 % 5000)
    store.append(MessageEntry(id=f"e{number:07x}", parent_id=None, timestamp="",
                              message=UserMessage(text, number)))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.parametrize("after", [1, 60, 300])
def test_a_killed_writer(
    tmp_path: Path,
    after: int,
    entry: Callable[[int], MessageEntry],
    swept: Callable[[str, int], None],
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    path = Path(process.stdout.readline().strip())
    for _ in range(after):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    reported = after + len(process.stdout.read().split("\n")[:-1])
    process.wait()
    swept("writers killed", 1)
    swept("acknowledged entries compared", reported)
    opened = open_session(path)
    assert len(opened.heads) >= reported
    assert [head.id for head in opened.heads] == [
        f"e{number:07x}" for number in range(len(opened.heads))
    ]
    opened.store.append(entry(0xFFFFFFF))
    opened.store.close()
    last = path.read_bytes().split(b"\n")[-2]
    assert json.loads(last)["id"] == "efffffff"


def test_two_processes_that_both_write_never_mix_lines(
    tmp_path: Path, swept: Callable[[str, int], None]
) -> None:
    """Even past the lock: whoever comes second notices the other and writes nothing."""
    script = WRITER.replace("create_session(sys.argv[1], header)", "store_of(sys.argv[1])")
    script = script.replace(
        "header =",
        """
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.jsonl import open_session
from pi_tui.core.errors import StorageError
class Unlocked(FileSystem):
    def lock(self, fd):
        pass
def store_of(path):
    return open_session(path, fs=Unlocked(), take_over=True).store
header =""",
    )
    script = script.replace("100_000", "200").replace("e{number", "{sys.argv[2]}{number")
    path = tmp_path / "s.jsonl"
    path.write_bytes(b'{"type":"session","version":3,"id":"s1","timestamp":"","cwd":"/demo"}\n')
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name in ("a", "b")
    ]
    reported = [max(0, writer.communicate()[0].count("\n") - 1) for writer in writers]
    assert max(reported) > 0
    ids = [json.loads(line)["id"] for line in path.read_bytes().split(b"\n")[1:-1]]
    for name, count in zip("ab", reported, strict=True):
        assert [i for i in ids if i[0] == name][:count] == [f"{name}{n:07x}" for n in range(count)]
    assert len(ids) >= sum(reported)
    swept("writers at once", len(writers))
