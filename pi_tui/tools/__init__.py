"""The tools a model can call, and the shell for the user's own commands.

Composition: `options = ToolOptions(environment=...)`, `shell = LocalShell(options)`,
`tools = builtin_tools(options, shell.runner)`, and `shell.close()` at the end of the program.
The names below are loaded on first use; the search child imports only what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_tui.tools.builtin import ALL_TOOLS, DEFAULT_TOOLS, builtin_tools
    from pi_tui.tools.local_shell import LocalShell
    from pi_tui.tools.options import ToolOptions
    from pi_tui.tools.runner import ProcessRunner

_HOMES = {
    "ALL_TOOLS": "builtin",
    "DEFAULT_TOOLS": "builtin",
    "builtin_tools": "builtin",
    "LocalShell": "local_shell",
    "ProcessRunner": "runner",
    "ToolOptions": "options",
}

__all__ = [
    "ALL_TOOLS",
    "DEFAULT_TOOLS",
    "LocalShell",
    "ProcessRunner",
    "ToolOptions",
    "builtin_tools",
]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(import_module(f"pi_tui.tools.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
