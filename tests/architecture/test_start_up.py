"""What a start imports: nothing heavy before it is known to be needed."""

from __future__ import annotations

import re
import sys
from typing import Any

import pytest

HEAVY = {"textual", "prompt_toolkit", "litellm", "httpx", "pydantic", "rich"}


def imported(stderr: str) -> set[str]:
    """Top-level names in the report of `-X importtime`."""
    return {name.split(".")[0] for name in re.findall(r"\|\s+(\S+)$", stderr, re.MULTILINE)}


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_asking_for_little_imports_little(tool: Any, flag: str) -> None:
    done = tool(sys.executable, "-X", "importtime", "-m", "pi_tui", flag)
    assert done.returncode == 0, done.stderr
    found = imported(done.stderr)
    assert "argparse" in found, "the report was not understood"
    assert found & (HEAVY | {"msgspec", "asyncio", "platformdirs"}) == set()


LIGHT = (
    "pi_tui.agent.session",
    "pi_tui.commands.registry",
    "pi_tui.config.compaction",
    "pi_tui.config.keybindings",
    "pi_tui.config.saving",
    "pi_tui.headless.json_mode",
    "pi_tui.resources.system_prompt",
)


def test_rooms_of_a_start_are_light(tool: Any) -> None:
    code = "; ".join(f"import {name}" for name in LIGHT)
    done = tool(sys.executable, "-X", "importtime", "-c", code)
    assert done.returncode == 0, done.stderr
    found = imported(done.stderr)
    assert "msgspec" in found, "the report was not understood"
    assert found & (HEAVY | {"platformdirs", "markdown_it", "pygments", "tiktoken"}) == set()
