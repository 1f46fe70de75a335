"""Pieces of JSON schema the declarations of the tools are made of."""

from __future__ import annotations

from pi_tui.core.messages import JSON, ToolDeclaration


def string(description: str) -> dict[str, JSON]:
    return {"type": "string", "description": description}


def whole_number(description: str) -> dict[str, JSON]:
    return {"type": "integer", "minimum": 1, "description": description}


def flag(description: str) -> dict[str, JSON]:
    return {"type": "boolean", "description": description}


def declare(
    name: str, description: str, properties: dict[str, JSON], required: list[str]
) -> ToolDeclaration:
    """A declaration with an object of named arguments."""
    return ToolDeclaration(
        name,
        description,
        {"type": "object", "properties": properties, "required": required},
    )
