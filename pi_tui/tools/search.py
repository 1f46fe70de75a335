"""Searches the lines of files for a pattern. Runs in a child process; knows no other room.

A regular expression can keep the interpreter busy for ever and cannot be interrupted, so `grep`
starts this module as a program and kills it when time is up or the call is cancelled:
`python -m pi_tui.tools.search`, a JSON job on standard input, JSON lines on standard output: one
for each file with matches, then one with the totals (or with the error of the pattern).
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypedDict

from pi_tui.tools.gitignore import GlobSet
from pi_tui.tools.limits import cut_line
from pi_tui.tools.text_file import SNIFF_BYTES, Encoding, sniff_encoding
from pi_tui.tools.visible_text import size_bytes, visible
from pi_tui.tools.walk import Walk

_WHOLE_BYTES = 16 * 1024 * 1024
_LINE_CHARS = 1024 * 1024
"""Longer lines of larger files are searched piece by piece."""

_NOT_LINEWISE = re.compile(r"\\[AZ]|\(\?|[*+?}]\+")
"""What can fit a line alone and yet nowhere in the whole text."""

_Lines = Iterator[tuple[int, str]]
"""Numbers from 1 and lines without their ends."""


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
    answer_bytes: int
    time_s: float


class Totals(TypedDict):
    """How the search went. `more`: the limit was reached and there is at least one match more.

    `left_out`: lines for which the answer had no room. `position` of an error is -1 when unknown.
    """

    matches: int
    files: int
    more: bool
    timed_out: bool
    unreadable: int
    binary: int
    left_out: int
    error: str
    position: int


def _no_totals(error: str = "", position: int = -1) -> Totals:
    return Totals(
        matches=0,
        files=0,
        more=False,
        timed_out=False,
        unreadable=0,
        binary=0,
        left_out=0,
        error=error,
        position=position,
    )


class _Search:
    def __init__(self, job: Job, expression: re.Pattern[str]) -> None:
        self._job = job
        self._expression = expression
        self._prefilter = not _NOT_LINEWISE.search(job["pattern"]) or job["literal"]
        flags = re.MULTILINE | (re.IGNORECASE if job["ignore_case"] else 0)
        self._anywhere = re.compile(expression.pattern, flags)
        self._deadline = time.monotonic() + job["time_s"]
        self._room_bytes = job["answer_bytes"] + 1  # the last line has no newline
        self.totals = _no_totals()

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
        matches = self.totals["matches"]
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
                    if not text:
                        return
                    text = text.replace("\r\n", "\n").removesuffix("\n").removesuffix("\r")
                    if self._prefilter and not self._anywhere.search(text):
                        return
                    lines: _Lines = enumerate(text.split("\n"), 1)
                else:
                    lines = _streamed_lines(opened, encoding)
                found = self._search_lines(lines, shown)
        except OSError:
            self.totals["unreadable"] += 1
            return
        self.totals["files"] += self.totals["matches"] > matches
        if found:
            emit(found)

    def _search_lines(self, lines: _Lines, shown: str) -> list[str]:
        context = self._job["context"]
        before: deque[tuple[int, str]] = deque(maxlen=context)
        after = 0
        last_given = 0
        given: list[str] = []
        for count, (number, line) in enumerate(lines, 1):
            match = self._expression.search(line)
            if match:
                if self.totals["matches"] == self._job["limit"]:
                    self.totals["more"] = True
                    break
                self.totals["matches"] += 1
                first = before[0][0] if before else number
                if context and last_given and first > last_given + 1:
                    self._give(given, "--")
                for earlier, text in before:
                    self._give(given, self._line(shown, "-", earlier, text, 0))
                before.clear()
                self._give(given, self._line(shown, ":", number, line, match.start()))
                last_given = number
                after = context
            elif after:
                self._give(given, self._line(shown, "-", number, line, 0))
                last_given = number
                after -= 1
            elif context:
                before.append((number, line))
            if not count % 4096 and self._over():
                break
        return given

    def _give(self, given: list[str], line: str) -> None:
        cost = size_bytes(line) + 1
        if self.totals["left_out"] or cost > self._room_bytes:
            self.totals["left_out"] += 1
        else:
            self._room_bytes -= cost
            given.append(line)

    def _line(self, shown: str, mark: str, number: int, line: str, around: int) -> str:
        text = cut_line(line, self._job["line_chars"], around=around)
        path = visible(shown).replace("\n", "\u240a")
        return f"{path}{mark}{number}{mark} {visible(text)}"


def _streamed_lines(opened: BinaryIO, encoding: Encoding) -> _Lines:
    opened.seek(len(encoding.mark))
    reader = io.TextIOWrapper(opened, encoding.codec, "replace", newline="\n")
    number = 1
    while piece := reader.readline(_LINE_CHARS):
        yield number, piece.removesuffix("\n").removesuffix("\r")
        number += piece.endswith("\n")


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
        message = getattr(error, "msg", None) or str(error)
        return _no_totals(message, -1 if position is None else position)
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
