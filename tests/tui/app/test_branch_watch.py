"""The branch in the footer follows a checkout in another terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from textual import events

from pi_tui.tui import branch_watch
from pi_tui.tui.branch_watch import LOOK_S, BranchWatch, look_at

Make = Callable[..., Any]


def check_out(directory: Path, branch: str) -> None:
    """Switch the branch as git does: with a new file in the place of HEAD."""
    (directory / ".git").mkdir(exist_ok=True)
    (directory / ".git" / "HEAD.lock").write_text(f"ref: refs/heads/{branch}\n")
    (directory / ".git" / "HEAD.lock").rename(directory / ".git" / "HEAD")


class Watched:
    """A watch with a clock of its own; what it starts is awaited by `pass_time`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now_s = 100.0
        self.told: list[str | None] = []
        self.started: list[Coroutine[Any, Any, object]] = []
        self.watch = BranchWatch(
            lambda: str(self.directory), self.started.append, self.told.append, lambda: self.now_s
        )

    async def pass_time(self, seconds: float) -> None:
        """Let what is due by then begin, and wait for it."""
        self.now_s += seconds
        due = self.watch._due
        if due is not None and self.watch._looked_s + LOOK_S <= self.now_s:
            due.cancel()
            self.watch._begin()
        while self.started:
            await self.started.pop(0)


async def test_a_look_sees_another_branch_and_at_most_one_a_second(tmp_path: Path) -> None:
    check_out(tmp_path, "main")
    watched = Watched(tmp_path)
    watch = watched.watch
    watch.look()  # before the first reading there is nothing to compare with
    assert watch._due is None
    await watch.read()
    check_out(tmp_path, "other")
    watch.look()
    watch.look()
    await watched.pass_time(0.5)
    assert watched.told == ["main"]  # the last look is half a second ago
    await watched.pass_time(0.6)
    assert watched.told == ["main", "other"]
    assert watch._due is None  # nothing runs by itself
    await watched.pass_time(60)
    watch.look()
    await watched.pass_time(0.01)
    assert watched.told == ["main", "other"]  # nothing new, nothing told


async def test_an_unchanged_file_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_out(tmp_path, "main")
    seen = look_at(str(tmp_path), None)
    monkeypatch.setattr(branch_watch, "find_head", lambda directory: None)
    assert look_at(str(tmp_path), seen) is seen
    assert look_at(str(tmp_path), None).branch is None


async def test_repositories_come_and_go(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    watched = Watched(one)
    await watched.watch.read()
    assert watched.told == []
    check_out(one, "begun")
    check_out(two, "elsewhere")
    await watched.watch.read()
    watched.directory = two  # the session of another directory was opened
    await watched.watch.read()
    (two / ".git" / "HEAD").unlink()
    await watched.watch.read()
    assert watched.told == ["begun", "elsewhere", None]


async def test_a_question_during_a_reading_is_answered_afterwards(tmp_path: Path) -> None:
    check_out(tmp_path, "main")
    watched = Watched(tmp_path)
    first = asyncio.ensure_future(watched.watch.read())
    await asyncio.sleep(0)
    await watched.watch.read()  # the disk is asked already
    check_out(tmp_path, "other")
    await first
    await watched.pass_time(1.1)
    assert watched.told[-1] == "other"
    watched.watch.look()
    watched.watch.stop()
    assert watched.watch._due is None


@pytest.mark.parametrize("how", ["key", "focus"])
async def test_keys_and_the_focus_look(
    bench: Make, double: ModuleType, tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_watch, "LOOK_S", 0.0)
    check_out(tmp_path, "main")
    b = bench(double.SessionDouble(cwd=str(tmp_path)))
    async with b.app.run_test(size=(120, 24)) as pilot:
        while "(main)" not in b.screen:
            await pilot.pause(0.01)
        check_out(tmp_path, "other")
        if how == "key":
            await pilot.press("x")
        else:
            b.app.post_message(events.AppFocus())
        while "(other)" not in b.screen:
            await pilot.pause(0.01)
        assert b.app._branch._due is None
