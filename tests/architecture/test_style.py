"""Format, lint, types, and the rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}

READS_ENVIRONMENT = {
    "pi_tui/config/paths.py",
    # The start of a child process of its own, which sets up what the library in it reads.
    "pi_tui/providers/litellm_child.py",
}
# The terminal's guard ends a process that was asked twice to end, or before there is a loop.
EXITS = {"pi_tui/cli.py", "pi_tui/tui/terminal.py"}


def modules(root: Path, *folders: str) -> Iterator[tuple[str, str]]:
    """Name and text of the Python files below some folders."""
    for folder in folders or ("pi_tui",):
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def test_format(tool: Any) -> None:
    done = tool("ruff", "format", "--check", "pi_tui", "tests")
    assert done.returncode == 0, done.stdout + done.stderr


def test_lint(tool: Any) -> None:
    done = tool("ruff", "check", "pi_tui", "tests")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_types(tool: Any) -> None:
    done = tool("mypy")
    assert done.returncode == 0, done.stdout + done.stderr


def test_modules_are_named_after_what_they_hold(root: Path) -> None:
    bad = [
        name
        for name, _ in modules(root)
        if FORBIDDEN_NAMES & set(re.split(r"[/_.]", name.removeprefix("pi_tui/")))
    ]
    assert bad == []


def test_modules_open_with_what_they_hold(root: Path) -> None:
    bad = [
        name
        for name, text in modules(root)
        if text.strip() and not (ast.get_docstring(ast.parse(text)) or "").strip()
    ]
    assert bad == []


def test_only_one_module_reads_home_and_environment(root: Path) -> None:
    assert [
        place
        for name, text in modules(root)
        if name not in READS_ENVIRONMENT
        for place in uses(name, text, _reads_environment)
    ] == []


def test_only_the_command_line_exits(root: Path) -> None:
    assert [
        place
        for name, text in modules(root)
        if name not in EXITS
        for place in uses(name, text, _exits)
    ] == []


def test_doubles_are_written_by_hand(root: Path) -> None:
    mock = re.compile(r"^\s*(from|import) unittest", re.MULTILINE)
    assert [name for name, text in modules(root, "tests") if mock.search(text)] == []


def test_the_rules_find_what_they_look_for() -> None:
    text = (
        "import os, sys\n"
        "a = os.environ['X']\n"
        "from os import getenv\n"
        "b = Path.home()\n"
        "c = path.expanduser()\n"
        "sys.exit(1)\n"
        "raise SystemExit\n"
        "exit()\n"
        "session.home(); exit_code = sys.exc_info()\n"
    )
    assert uses("f", text, _reads_environment) == ["f:2", "f:3", "f:4", "f:5"]
    assert uses("f", text, _exits) == ["f:6", "f:7", "f:8"]


def uses(name: str, text: str, found: Any) -> list[str]:
    """Where a rule's pattern occurs."""
    lines = {node.lineno for node in ast.walk(ast.parse(text)) if found(node)}
    return [f"{name}:{line}" for line in sorted(lines)]


def _reads_environment(node: ast.AST) -> bool:
    if isinstance(node, ast.ImportFrom):
        return node.module == "os" and any(n.name in ("environ", "getenv") for n in node.names)
    if not isinstance(node, ast.Attribute):
        return False
    owner = node.value.id if isinstance(node.value, ast.Name) else ""
    return (
        (owner == "os" and node.attr in ("environ", "environb", "getenv", "getenvb"))
        or (owner == "Path" and node.attr == "home")
        or node.attr in ("expanduser", "expandvars")
    )


def _exits(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and (node.value.id, node.attr) == ("sys", "exit")
    if isinstance(node, ast.Raise):
        what = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return isinstance(what, ast.Name) and what.id == "SystemExit"
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("exit", "quit")
    )
