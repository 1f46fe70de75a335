"""Which session a start opens, and that a refused one is left as it was."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.cli import parse_arguments
from pi_tui.core.errors import SessionNotFoundError, UsageError
from pi_tui.wiring import launch
from pi_tui.wiring.sessions import Sessions

MESSAGE = {"type": "message", "id": "e1", "parentId": None, "timestamp": "x"}
MESSAGE["message"] = {"role": "user", "content": "one", "timestamp": 1}  # type: ignore[assignment]


def stored(path: Path, cwd: str, *, version: int = 3, torn: str = "") -> Path:
    """A session file of one message, perhaps with a torn line after it."""
    head = {"type": "session", "version": version, "id": path.stem, "cwd": cwd}
    head["timestamp"] = "2026-01-01T00:00:00.000Z"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{json.dumps(head)}\n{json.dumps(MESSAGE)}\n{torn}")
    return path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs the program without a screen and without piped input."""
    monkeypatch.setattr(sys, "stdin", None)
    return _run


def _run(*argv: str) -> int:
    return launch(parse_arguments(argv, stdin_is_terminal=True, stdout_is_terminal=True))


@pytest.mark.parametrize("more", [{"torn": '{"type'}, {"version": 1}], ids=["torn", "version 1"])
@pytest.mark.parametrize(
    ("cwd", "arguments"),
    [
        ("/gone/away", ()),
        ("", ("--model", "no-such-model")),
        ("", ("--tools", "no-such-tool")),
        ("", ("--debug-log", "/gone/away/log")),
    ],
)
def test_a_refused_session_is_left_as_it_was(
    run: Callable[..., int],
    desk: Any,
    tmp_path: Path,
    cwd: str,
    arguments: tuple[str, ...],
    more: Any,
) -> None:
    path = stored(tmp_path / "kept" / "s.jsonl", cwd or str(tmp_path / "project"), **more)
    before = path.read_bytes()
    assert run("-p", "--session", str(path), *arguments, "hi") in (1, 2)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_link_to_the_directory_leads_to_its_sessions(
    desk: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, link = tmp_path / "project", tmp_path / "link"
    link.symlink_to(real)
    folder = desk.root / "sessions" / "--x--"
    path = stored(folder / "2026-01-01T00-00-00-000Z_abc.jsonl", str(real))
    monkeypatch.chdir(link)
    monkeypatch.setenv("PWD", str(link))
    sessions = Sessions(desk.start("--continue"))
    assert sessions.asked_for() == str(path)
    sessions.open(str(path)).store.close()
    assert sessions.create().store.header.cwd == str(real)
    old = stored(folder / "2026-01-02T00-00-00-000Z_def.jsonl", str(link))
    path.unlink()
    assert sessions.asked_for() == str(old)
    sessions.open(str(old)).store.close()


def test_another_directory_is_refused_in_words(desk: Any, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    folder = desk.root / "sessions" / "--x--"
    path = stored(folder / "2026-01-01T00-00-00-000Z_abc.jsonl", str(tmp_path / "other"))
    with pytest.raises(UsageError, match="not to"):
        Sessions(desk.start("--session", "abc")).open(str(path))
    with pytest.raises(SessionNotFoundError, match="No session belongs to"):
        Sessions(desk.start("--continue")).asked_for()


# ---------------------------------------------------------------- where it cannot be written


@pytest.fixture
def rescued(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where sessions go that their own place does not take."""
    directory = tmp_path / "rescued"
    monkeypatch.setattr("pi_tui.wiring.start._rescue_directory", lambda: str(directory))
    return directory


@pytest.mark.parametrize("mode", ["text", "json"])
def test_a_run_that_could_not_be_saved_says_where_it_went_and_fails(
    run: Callable[..., int],
    desk: Any,
    tmp_path: Path,
    rescued: Path,
    capsys: pytest.CaptureFixture[str],
    mode: str,
) -> None:
    path = stored(tmp_path / "s.jsonl", str(tmp_path / "project"))
    before = path.read_bytes()
    Path(f"{path}.lock").mkdir()
    assert run("--mode", mode, "--session", str(path), "/name kept") == 1
    (copy,) = rescued.glob("*.jsonl")
    said = capsys.readouterr().err
    assert f"The whole session was saved to {copy} instead" in said
    assert "do not quit" not in said and "will be written as soon" not in said
    assert path.read_bytes() == before
    assert b"kept" in copy.read_bytes() and copy.read_bytes().startswith(before)


def test_a_run_that_could_be_saved_is_fine(
    run: Callable[..., int], desk: Any, tmp_path: Path, rescued: Path
) -> None:
    path = stored(tmp_path / "s.jsonl", str(tmp_path / "project"))
    assert run("-p", "--session", str(path), "/name kept") == 0
    assert b"kept" in path.read_bytes()
    assert not rescued.exists()
