"""Searches the lines of files for a pattern. Runs in a child process; knows no other room.

A regular expression can keep the interpreter busy for ever and cannot be interrupted, so `grep`
starts this module as a program and kills it when time is up or the call is cancelled:
`python -m pi_tui.tools.search`, a JSON job on standard input, JSON lines on standard output: one
for each file with matches, then one with the totals (or with the error of the pattern).
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypedDict

from pi_tui.tools.gitignore import GlobSet
from pi_tui.tools.limits import cut_line
from pi_tui.tools.text_file import SNIFF_BYTES, sniff_encoding
from pi_tui.tools.visible_text import visible
from pi_tui.tools.walk import Walk

_WHOLE_BYTES = 16 * 1024 * 1024
_LINE_BYTES = 1024 * 1024
_NOT_LINEWISE = re.compile(r"\\[AZ]|\(\?")


class Job(TypedDict):
    """What to search. `root` is absolute; `prefix` is put before paths relative to it."""

    root: str
    prefix: str
    pattern: str
    literal: bool
    ignore_case: bool
    glob: str | None
    context: int
    limit: int
    line_chars: int
    time_s: float


class Totals(TypedDict):
    """How the search went. `more`: the limit was reached and there is at least one match more."""

    matches: int
    files: int
    more: bool
    timed_out: bool
    unreadable: int
    binary: int
    error: str
    position: int


class _Search:
    def __init__(self, job: Job, expression: re.Pattern[str]) -> None:
        self._job = job
        self._expression = expression
        self._prefilter = not _NOT_LINEWISE.search(job["pattern"]) or job["literal"]
        flags = re.MULTILINE | (re.IGNORECASE if job["ignore_case"] else 0)
        self._anywhere = re.compile(expression.pattern, flags)
        self._deadline = time.monotonic() + job["time_s"]
        self.totals = Totals(
            matches=0,
            files=0,
            more=False,
            timed_out=False,
            unreadable=0,
            binary=0,
            error="",
            position=0,
        )

    def run(self, emit: Callable[[list[str]], None]) -> None:
        root = Path(self._job["root"])
        if root.is_dir():
            walk = Walk(str(root), self._over)
            globs = GlobSet(self._job["glob"]) if self._job["glob"] else None
            for path, entry in walk:
                try:
                    wanted = entry.is_file(follow_symlinks=False)
                except OSError:
                    continue
                if wanted and (globs is None or globs.matches(path, False)):
                    self._search_file(root / path, self._job["prefix"] + path, emit)
            self.totals["unreadable"] += walk.unreadable
        else:
            self._search_file(root, self._job["prefix"], emit)

    def _over(self) -> bool:
        if time.monotonic() > self._deadline:
            self.totals["timed_out"] = True
        return self.totals["timed_out"] or self.totals["more"]

    def _search_file(self, file: Path, shown: str, emit: Callable[[list[str]], None]) -> None:
        try:
            with file.open("rb") as opened:
                head = opened.read(SNIFF_BYTES)
                encoding = sniff_encoding(head)
                if encoding is None:
                    self.totals["binary"] += 1
                    return
                size = os.fstat(opened.fileno()).st_size
                if size <= _WHOLE_BYTES:
                    data = head + opened.read()
                    text = data[len(encoding.mark) :].decode(encoding.codec, "replace")
                    if self._prefilter and not self._anywhere.search(text):
                        return
                    lines: Iterator[str] = iter(text.removesuffix("\n").split("\n"))
                else:
                    opened.seek(len(encoding.mark))
                    lines = (
                        line.decode(encoding.codec, "replace").removesuffix("\n")
                        for line in iter(lambda: opened.readline(_LINE_BYTES), b"")
                    )
                found = self._search_lines(lines, shown)
        except OSError:
            self.totals["unreadable"] += 1
            return
        if found:
            self.totals["files"] += 1
            emit(found)

    def _search_lines(self, lines: Iterator[str], shown: str) -> list[str]:
        context = self._job["context"]
        before: deque[tuple[int, str]] = deque(maxlen=context)
        after = 0
        last_given = 0
        given: list[str] = []
        for number, raw in enumerate(lines, 1):
            line = raw.removesuffix("\r")
            match = self._expression.search(line)
            if match:
                if self.totals["matches"] == self._job["limit"]:
                    self.totals["more"] = True
                    break
                self.totals["matches"] += 1
                first = before[0][0] if before else number
                if context and given and first > last_given + 1:
                    given.append("--")
                for earlier, text in before:
                    given.append(self._line(shown, "-", earlier, text, 0))
                before.clear()
                given.append(self._line(shown, ":", number, line, match.start()))
                last_given = number
                after = context
            elif after:
                given.append(self._line(shown, "-", number, line, 0))
                last_given = number
                after -= 1
            elif context:
                before.append((number, line))
            if not number % 4096 and self._over():
                break
        return given

    def _line(self, shown: str, mark: str, number: int, line: str, around: int) -> str:
        text = cut_line(line, self._job["line_chars"], around=around)
        path = visible(shown).replace("\n", "\u240a")
        return f"{path}{mark}{number}{mark} {visible(text)}"


def search(job: Job, emit: Callable[[list[str]], None]) -> Totals:
    """Search; `emit` gets the lines of one file at a time. Blocking."""
    source = re.escape(job["pattern"]) if job["literal"] else job["pattern"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expression = re.compile(source, re.IGNORECASE if job["ignore_case"] else 0)
            running = _Search(job, expression)
    except (re.error, OverflowError, RecursionError) as error:
        position = getattr(error, "pos", None)
        return Totals(
            matches=0,
            files=0,
            more=False,
            timed_out=False,
            unreadable=0,
            binary=0,
            error=getattr(error, "msg", None) or str(error),
            position=-1 if position is None else position,
        )
    running.run(emit)
    return running.totals


def main() -> None:
    """Serve one job on the standard streams."""
    job: Job = json.loads(sys.stdin.buffer.readline())

    def send(value: object) -> None:
        sys.stdout.buffer.write(json.dumps(value).encode("ascii") + b"\n")
        sys.stdout.buffer.flush()

    send(search(job, send))


if __name__ == "__main__":
    main()
