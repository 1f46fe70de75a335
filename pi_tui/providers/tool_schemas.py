"""Tool declarations as chat-completions servers, and litellm, take them."""

from __future__ import annotations

from collections.abc import Iterable

from pi_tui.core.messages import JSON, ToolDeclaration


def function_tools(tools: Iterable[ToolDeclaration]) -> list[dict[str, JSON]]:
    """One object of type `function` for each tool."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]
