"""The import rule, checked by import-linter; and that each contract can break at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

CONTRACTS = Path(__file__).with_name("contracts.ini")

ROOMS = [
    *("wiring", "cli", "core", "agent", "commands", "extensions"),
    *("providers", "tools", "storage", "config", "resources"),
    *("tui", "inline", "headless", "export"),
]


def test_the_import_rule_holds(tool: Any) -> None:
    done = tool("lint-imports", "--no-cache", str(CONTRACTS))
    assert done.returncode == 0, done.stdout + done.stderr


BREACHES = [
    ("Arrows point down", "agent", "import pi_tui.commands"),
    ("Arrows point down", "providers", "import pi_tui.storage"),
    ("Arrows point down", "tui", "import pi_tui.headless"),
    ("Arrows point down", "config", "import pi_tui.agent"),
    (
        "Arrows point down",
        "core",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pi_tui.agent",
    ),
    ("Only the wiring knows", "commands", "import pi_tui.storage"),
    ("Only the wiring knows", "headless", "import pi_tui.config"),
    ("Only the wiring knows", "extensions", "import pi_tui.tools"),
    ("The core does no I/O", "core", "import os.path"),
    ("The core does no I/O", "core", "from pathlib import Path"),
    ("textual only", "commands", "import textual.app"),
    ("prompt_toolkit only", "tui", "import prompt_toolkit"),
    ("litellm only", "providers", "import litellm"),
    ("HTTP only", "headless", "def f():\n    import httpx"),
    ("rich and Markdown", "headless", "import rich.text"),
]


@pytest.mark.parametrize(
    ("contract", "room", "line"), BREACHES, ids=[f"{r}: {i.split()[-1]}" for _, r, i in BREACHES]
)
def test_a_breach_is_found(tmp_path: Path, tool: Any, contract: str, room: str, line: str) -> None:
    done = check(tmp_path, tool, {room: line})
    broken = [text for text in done.stdout.splitlines() if text.rstrip().endswith("BROKEN")]
    assert any(text.startswith(contract) for text in broken), done.stdout + done.stderr
    assert done.returncode == 1


def test_a_tree_without_breaches_passes(tmp_path: Path, tool: Any) -> None:
    allowed = {
        "wiring": "import pi_tui.tui, pi_tui.storage, pi_tui.extensions",
        "tui": "import textual, rich.text, pi_tui.commands, pi_tui.agent",
        "inline": "import prompt_toolkit",
        "headless": "import pi_tui.core, os",
        "extensions": "import pi_tui.agent",
        "providers": "import httpx, pi_tui.core",
    }
    done = check(tmp_path, tool, allowed)
    assert done.returncode == 0, done.stdout + done.stderr


def check(directory: Path, tool: Any, inside: dict[str, str]) -> Any:
    """Check a package with all rooms empty but those given."""
    package = directory / "pi_tui"
    for name in ROOMS:
        (package / name).mkdir(parents=True)
        (package / name / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    for room, text in inside.items():
        (package / room / "inside.py").write_text(text + "\n")
    return tool(
        "lint-imports",
        "--no-cache",
        str(CONTRACTS),
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory)},
    )
