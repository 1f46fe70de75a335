"""Fixtures of the app tests: a session double and an app that is driven by a pilot."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pi_tui.commands.builtin import builtin_registry
from pi_tui.tui.app import PiTuiApp
from pi_tui.tui.options import TuiOptions


@pytest.fixture(scope="session")
def double() -> ModuleType:
    """The module with the session double."""
    path = Path(__file__).parents[1] / "session_double.py"
    spec = importlib.util.spec_from_file_location("tui_session_double", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class Bench:
    """An app, its session, and what the screen shows."""

    def __init__(self, app: PiTuiApp, session: Any) -> None:
        self.app = app
        self.session = session

    def lines(self) -> list[str]:
        """The screen as text, one string a row."""
        height = self.app.size.height
        rows = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in row).rstrip() for row in rows[:height]]

    @property
    def screen(self) -> str:
        return "\n".join(self.lines())

    def styles_at(self, text: str) -> Sequence[object]:
        """The styles of the segments of the first row that holds the text."""
        for row in self.app.screen._compositor.render_strips():
            if text in "".join(segment.text for segment in row):
                return [segment.style for segment in row if segment.text.strip()]
        raise AssertionError(f"{text!r} is not on screen:\n{self.screen}")


@pytest.fixture
def bench(double: ModuleType) -> Callable[..., Bench]:
    """Makes a bench; keyword arguments go to the options, `session` is a ready double."""

    def make(session: Any = None, **options: Any) -> Bench:
        session = session or double.SessionDouble()
        app = PiTuiApp(session, builtin_registry(), TuiOptions(**options))
        return Bench(app, session)

    return make
