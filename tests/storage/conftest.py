"""Sessions to read and write: lines, entries, files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.messages import UserMessage

HEADER = SessionHeader(
    id="0197c000-1111-7111-8111-6709c46a50bb",
    timestamp="2025-07-01T00:00:01.000Z",
    cwd="/home/demo/project",
)


def message_line(number: int, text: str = "quartz", **more: object) -> dict[str, object]:
    """Entry `number` of a chain, as a stored object."""
    return {
        "type": "message",
        "id": f"e{number:07x}",
        "parentId": f"e{number - 1:07x}" if number > 1 else None,
        "timestamp": f"2025-07-01T00:00:{number % 60:02d}.000Z",
        "message": {"role": "user", "content": text, "timestamp": 1751328000000 + number},
        **more,
    }


def user_entry(number: int, text: str = "quartz") -> MessageEntry:
    """Entry `number` of a chain, as a value."""
    return MessageEntry(
        id=f"e{number:07x}",
        parent_id=f"e{number - 1:07x}" if number > 1 else None,
        timestamp=f"2025-07-01T00:00:{number % 60:02d}.000Z",
        message=UserMessage(text, 1751328000000 + number),
    )


def as_line(data: dict[str, object]) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def header_line(**more: object) -> bytes:
    data = {
        "type": "session",
        "version": 3,
        "id": HEADER.id,
        "timestamp": HEADER.timestamp,
        "cwd": HEADER.cwd,
        **more,
    }
    return as_line(data)


@pytest.fixture
def header() -> SessionHeader:
    return HEADER


@pytest.fixture
def entry() -> Callable[..., MessageEntry]:
    return user_entry


@pytest.fixture
def line() -> Callable[..., bytes]:
    """A stored line of a chain: `line(3, "text")`."""
    return lambda number, text="quartz", **more: as_line(message_line(number, text, **more))


@pytest.fixture
def head_line() -> Callable[..., bytes]:
    """A header line, with fields replaced or added."""
    return header_line


@pytest.fixture
def session(tmp_path: Path) -> Callable[..., Path]:
    """Writes a session file: header and the lines given, or the bytes given alone."""

    def write(*lines: bytes, name: str = "s.jsonl", bare: bool = False) -> Path:
        path = tmp_path / name
        path.write_bytes(b"".join(lines) if bare else header_line() + b"".join(lines))
        return path

    return write


@pytest.fixture
def stored() -> Callable[[str | Path | None], list[dict[str, object]]]:
    """All lines of a file, each of which must be JSON."""

    def read(path: str | Path | None) -> list[dict[str, object]]:
        assert path is not None
        data = Path(path).read_bytes()
        assert data.endswith(b"\n")
        return [json.loads(item) for item in data.split(b"\n")[:-1]]

    return read


@pytest.fixture
def sessions_directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "sessions"
