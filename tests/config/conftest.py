"""Fixtures of the config tests: an environment of its own, nothing of the real home."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_tui.config.paths import Environment, read_environment


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Home, one root for the user's files, and a project directory that is the current one."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    (project / ".pi").mkdir(parents=True)
    monkeypatch.chdir(project)
    return read_environment({"HOME": str(home), "PI_TUI_DIR": str(home / "pi")})
