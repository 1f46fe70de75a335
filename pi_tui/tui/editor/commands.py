"""Completion of slash commands at the start of the text."""

from __future__ import annotations

from pi_tui.commands.registry import CommandRegistry
from pi_tui.tui.editor.completion import Completion, CompletionItem


class CommandCompleter:
    """Rows of the registry while the first word is being typed."""

    def __init__(self, registry: CommandRegistry) -> None:
        self._registry = registry

    def complete(self, text: str, cursor: int) -> Completion | None:
        if not text.startswith("/") or "\n" in text:
            return None
        word = text[:cursor]
        if not word or any(character.isspace() for character in word):
            return None
        rest = text[cursor:]
        if rest and not rest[0].isspace():
            return None
        items = tuple(
            CompletionItem(
                insert=f"/{command.name} ",
                label=f"/{command.name}",
                hint=command.argument_hint,
                detail=command.description,
            )
            for command in self._registry.complete(word)
        )
        meant = self._registry.meant_by(word)
        return Completion(0, items, submits=True, certain=meant is not None)

    def complete_on_tab(self, text: str, cursor: int) -> Completion | None:
        return None
