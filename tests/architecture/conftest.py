"""Where the tree under test is, and how its tools are called."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def tool() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program of this Python's environment at the top of the repository."""

    def run(name: str, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).parent / name
        settings = {"cwd": ROOT, "capture_output": True, "text": True, "check": False, **options}
        return subprocess.run([str(program), *arguments], **settings)  # type: ignore[call-overload, no-any-return]

    return run
