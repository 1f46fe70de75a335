"""The built-in tools by name, in the order they are offered to the model."""

from __future__ import annotations

from pi_tui.core.protocols import Tool
from pi_tui.tools.bash import BashTool
from pi_tui.tools.edit import EditTool
from pi_tui.tools.find import FindTool
from pi_tui.tools.grep import GrepTool
from pi_tui.tools.listing import ListTool
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.read import ReadTool
from pi_tui.tools.runner import ProcessRunner
from pi_tui.tools.write import WriteTool

DEFAULT_TOOLS = ("read", "bash", "edit", "write")
ALL_TOOLS = (*DEFAULT_TOOLS, "grep", "find", "ls")


def builtin_tools(options: ToolOptions, runner: ProcessRunner | None = None) -> dict[str, Tool]:
    """All built-in tools. Give the runner of the `LocalShell`, whose `close` then covers both."""
    tools: tuple[Tool, ...] = (
        ReadTool(options),
        BashTool(runner or ProcessRunner(options)),
        EditTool(options),
        WriteTool(options),
        GrepTool(options),
        FindTool(options),
        ListTool(options),
    )
    return {tool.declaration.name: tool for tool in tools}
