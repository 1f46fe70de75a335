"""A file system that lets the n-th operation of a kind fail, and the count of what was swept."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.messages import UserMessage
from pi_tui.storage.filesystem import FileSystem

KINDS = ("open", "write", "truncate", "fsync", "rename", "link", "unlink", "mkdir", "chmod", "lock")


class FailingFileSystem(FileSystem):
    """Counts every changing operation; the n-th one fails, and with `for_good` all later ones.

    A failing write takes a part of the data first, as a full disk does.
    """

    def __init__(
        self, nth: int, *, kind: str = "", code: int = errno.ENOSPC, for_good: bool = False
    ) -> None:
        self.nth = nth
        self.kind = kind
        self.code = code
        self.for_good = for_good
        self.count = 0
        self.failed = False

    def _step(self, kind: str) -> None:
        if self.kind and kind != self.kind:
            return
        self.count += 1
        if self.count == self.nth or (self.for_good and self.nth and self.count > self.nth):
            self.failed = True
            raise OSError(self.code, os.strerror(self.code))

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            self._step("open")
        return super().open(path, flags, mode)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        try:
            self._step("write")
        except OSError:
            super().write(fd, data[: len(data) // 2])
            raise
        return super().write(fd, data)

    def truncate(self, fd: int, size_bytes: int) -> None:
        self._step("truncate")
        super().truncate(fd, size_bytes)

    def fsync(self, fd: int) -> None:
        self._step("fsync")
        super().fsync(fd)

    def rename(self, source: str, target: str) -> None:
        self._step("rename")
        super().rename(source, target)

    def link(self, source: str, target: str) -> None:
        self._step("link")
        super().link(source, target)

    def unlink(self, path: str) -> None:
        self._step("unlink")
        super().unlink(path)

    def mkdir(self, path: str, mode: int) -> None:
        self._step("mkdir")
        super().mkdir(path, mode)

    def chmod(self, fd: int, mode: int) -> None:
        self._step("chmod")
        super().chmod(fd, mode)

    def lock(self, fd: int) -> None:
        self._step("lock")
        super().lock(fd)


@pytest.fixture
def failing() -> type[FailingFileSystem]:
    return FailingFileSystem


@pytest.fixture
def header() -> SessionHeader:
    return SessionHeader(id="s1", timestamp="2025-07-01T00:00:01.000Z", cwd="/demo")


@pytest.fixture
def entry() -> Callable[[int], MessageEntry]:
    """Entry `number` of a chain."""
    return lambda number: MessageEntry(
        id=f"e{number:07x}",
        parent_id=f"e{number - 1:07x}" if number > 1 else None,
        timestamp="2025-07-01T00:00:02.000Z",
        message=UserMessage(f"text é {number}", number),
    )


@pytest.fixture
def swept(record_property: Callable[[str, Any], None]) -> Callable[[str, int], None]:
    """Say how many points a sweep went through; the summary adds them up."""
    return lambda what, count: record_property("swept", (what, count))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    totals: Counter[tuple[str, str]] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        if report.when == "call" and "tests/faults/test_" in report.nodeid:
            group = Path(report.nodeid.split("::")[0]).stem.removeprefix("test_")
            for name, value in report.user_properties:
                if name == "swept":
                    totals[group.replace("_", " "), value[0]] += value[1]
    if totals:
        terminalreporter.section("fault sweep")
    for (group, what), count in sorted(totals.items()):
        terminalreporter.line(f"{group:>20}: {count:,} {what}")
