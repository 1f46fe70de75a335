"""Slash commands without a screen: what they say goes out, what they would ask is not asked.

A question lists its answers, and the command counts as failed: nobody can choose one here. So does
one that told of an error while it ran, whoever told it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pi_tui.agent.session import AgentSession
from pi_tui.commands.facts import as_data
from pi_tui.commands.registry import CommandRegistry
from pi_tui.commands.ui import Choice
from pi_tui.core.events import CompactionEnd, CompactionResult, Event, Notice, NoticeLevel
from pi_tui.core.messages import JSON
from pi_tui.core.numbers import compact_count

NOBODY_TO_ASK = (
    "Nobody can be asked here, so nothing was changed. Name the choice with the command if it "
    "takes one, or use the screen."
)


class HeadlessUI:
    """The `CommandUI` of print and JSON mode. `failed` once a command reported an error.

    `show` gets a title, a text, and the same as data or None.
    """

    def __init__(
        self,
        show: Callable[[str, str, JSON], None],
        notify: Callable[[NoticeLevel, str], None],
    ) -> None:
        self._show = show
        self._notify = notify
        self.failed = False

    def notify(self, level: NoticeLevel, text: str) -> None:
        self.failed = self.failed or level == "error"
        self._notify(level, text)

    def show(self, title: str, text: str) -> None:
        if text.strip():
            self._show(title, text, None)
        else:
            self.notify("info", f"{title}: there is nothing to show here")

    def show_facts(self, title: str, text: str, facts: JSON) -> None:
        self._show(title, text, facts)

    async def choose(
        self, title: str, options: Sequence[Choice], current: str | None = None
    ) -> str | None:
        """Nobody can be asked: list what there is, and say that nothing was chosen."""
        rows = [
            f"{'*' if option.value == current else ' '} {option.value}  {option.detail}".rstrip()
            for option in options
        ]
        self._show(title, "\n".join(rows), {"options": as_data(options), "current": current})
        stop = "" if title.endswith((".", "?", "!")) else "."
        self.notify("error", f"{title}{stop} {NOBODY_TO_ASK}")
        return None

    def set_editor_text(self, text: str) -> None:
        self._show("Text of the message", text, None)

    def copy(self, text: str) -> None:
        self._show("Copied text", text, None)

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
        unsubscribe = self._session.subscribe(self._listen)
        try:
            done = await self._registry.run(text, self._session, self._ui)
            await self._session.wait_idle()
        finally:
            unsubscribe()
        return done and not self._ui.failed

    def _listen(self, event: Event) -> None:
        """Hear how it went where only events tell that; the front end writes what they say."""
        if isinstance(event, Notice):
            self._ui.failed = self._ui.failed or event.level == "error"
        elif isinstance(event, CompactionEnd):
            if event.result is None:
                self._ui.failed = True
            elif event.reason == "manual":
                self._ui.notify("info", compacted_text(event.result))


def compacted_text(result: CompactionResult) -> str:
    """A finished compaction in one line."""
    before, after = compact_count(result.tokens_before), result.estimated_tokens_after
    return (
        f"compacted: {before} → about {compact_count(after)} tokens; the session keeps everything"
    )
