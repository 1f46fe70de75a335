"""Slash commands without a screen: what they say goes out, what they would ask is not asked.

A command that needs an answer gets none and says itself what to type instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pi_tui.agent.session import AgentSession
from pi_tui.commands.registry import CommandRegistry
from pi_tui.commands.ui import Choice
from pi_tui.core.events import NoticeLevel


class HeadlessUI:
    """The `CommandUI` of print and JSON mode. `failed` once a command reported an error."""

    def __init__(
        self,
        show: Callable[[str, str], None],
        notify: Callable[[NoticeLevel, str], None],
    ) -> None:
        self._show = show
        self._notify = notify
        self.failed = False

    def notify(self, level: NoticeLevel, text: str) -> None:
        self.failed = self.failed or level == "error"
        self._notify(level, text)

    def show(self, title: str, text: str) -> None:
        self._show(title, text)

    async def choose(
        self, title: str, options: Sequence[Choice], current: str | None = None
    ) -> str | None:
        """Nobody can be asked: list what there is."""
        rows = [
            f"{'*' if option.value == current else ' '} {option.value}  {option.detail}".rstrip()
            for option in options
        ]
        self._show(title, "\n".join(rows))
        return None

    def set_editor_text(self, text: str) -> None:
        self._show("Text of the message", text)

    def copy(self, text: str) -> None:
        self._show("Copied text", text)

    def key_rows(self) -> Sequence[tuple[str, str]]:
        return ()

    def quit(self) -> None:
        """The run ends by itself."""


class HeadlessCommands:
    """Runs the prompts that are commands."""

    def __init__(self, registry: CommandRegistry, session: AgentSession, ui: HeadlessUI) -> None:
        self._registry = registry
        self._session = session
        self._ui = ui

    def knows(self, text: str) -> bool:
        """True when the text is a command line, which never goes to the model."""
        return self._registry.is_command(text)

    async def run(self, text: str) -> bool:
        """Run it; True when it did what it says."""
        self._ui.failed = False
        done = await self._registry.run(text, self._session, self._ui)
        await self._session.wait_idle()
        return done and not self._ui.failed
