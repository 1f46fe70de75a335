"""Completion of paths in the editor of the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from textual import events

from pi_tui.tui.editor import paths

Make = Callable[..., Any]


@pytest.fixture
def b(bench: Make, double: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(paths, "TAB_WAIT_S", 10)  # a machine under load is slow
    for name in ("src/main.py", "src/maker.py", "[bold] x.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    return bench(double.SessionDouble(cwd=str(tmp_path)))


async def keys(b: Any, *names: str) -> None:
    for name in names:
        b.app.post_message(events.Key(name, name if len(name) == 1 else None))
    await asyncio.sleep(0)


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(1_000):
        if holds():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to that")


async def test_at_opens_the_list_and_enter_takes_a_row(b: Any) -> None:
    editor = b.app.editor
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(b, *"see @ma")
        await until(lambda: len(editor.menu.items) == 2)
        await pilot.pause()
        assert "› src/main.py" in b.screen and "(1/2)" in b.screen
        await keys(b, "down", "enter", *"ok")
        await until(lambda: editor.buffer.text.endswith("ok"))
        assert editor.buffer.text == "see @src/maker.py ok"
        assert b.session.submitted == [] and not editor.menu.is_open


async def test_escape_closes_the_list_and_keeps_the_text(b: Any) -> None:
    editor = b.app.editor
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(b, *"@ma")
        await until(lambda: editor.menu.is_open)
        await pilot.press("escape")
        assert editor.buffer.text == "@ma" and not editor.menu.is_open
        await pilot.press("i")
        assert editor.buffer.text == "@mai" and not editor.menu.is_open
        await pilot.press("enter")
        assert b.session.submitted == [("@mai", "steer")]


async def test_tab(b: Any) -> None:
    editor = b.app.editor
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(b, *"sr", "tab", "m", "tab")
        await until(lambda: editor.menu.is_open)
        assert editor.buffer.text == "src/ma"  # what both have in common
        await pilot.press("escape", "tab")
        assert editor.menu.is_open
        await pilot.press("k", "tab")
        assert editor.buffer.text == "src/maker.py " and not editor.menu.is_open
        await pilot.press("ctrl+-")
        assert editor.buffer.text == "src/mak"


async def test_names_are_text(b: Any) -> None:
    editor = b.app.editor
    async with b.app.run_test(size=(80, 24)) as pilot:
        await keys(b, *"@bold")
        await until(lambda: editor.menu.is_open)
        await pilot.pause()
        assert "› [bold] x.md" in b.screen
        await pilot.press("tab")
        assert editor.buffer.text == '@"[bold] x.md" '


async def test_a_paste_opens_no_list(b: Any) -> None:
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.app.post_message(events.Paste("@ma"))
        await pilot.pause()
        assert b.app.editor.buffer.text == "@ma" and not b.app.editor.menu.is_open
