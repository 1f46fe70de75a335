"""What Enter does with the text: a command, a shell command, or a message."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Literal

from pi_tui.agent.session import AgentSession
from pi_tui.commands.registry import CommandRegistry
from pi_tui.commands.ui import CommandUI
from pi_tui.tui.editor.widget import PromptEditor

Spawn = Callable[[Coroutine[Any, Any, object]], object]


class PromptDesk:
    """Takes texts from the editor to the session and back."""

    def __init__(
        self,
        session: AgentSession,
        registry: CommandRegistry,
        ui: CommandUI,
        editor: PromptEditor,
        spawn: Spawn,
    ) -> None:
        self._session = session
        self._registry = registry
        self._ui = ui
        self._editor = editor
        self._spawn = spawn

    def send(self, delivery: Literal["steer", "followUp"]) -> None:
        """Send what the editor holds. What it is decides the typed text, not a collapsed paste."""
        buffer = self._editor.buffer
        if buffer.is_blank:
            return
        typed, whole = buffer.text.strip(), buffer.expanded()
        if typed.startswith("/") and self._registry.is_command(whole):
            self._clear()
            self._spawn(self._registry.run(whole, self._session, self._ui))
        elif typed.startswith("!"):
            self._run_shell(whole.strip())
        else:
            self._clear()
            self._session.submit(whole, delivery)

    def run_command(self, text: str) -> None:
        """Run a command line as if it had been typed; the editor is left alone."""
        self._spawn(self._registry.run(text, self._session, self._ui))

    def take_back(self) -> int:
        """Bring queued messages back in front of the draft; how many there were."""
        texts = self._session.take_back_queue()
        if texts:
            editor = self._editor
            editor.history.leave()
            editor.buffer.put_before(texts)
            editor.changed(complete=False)
            count = (
                "one queued message is" if len(texts) == 1 else f"{len(texts)} queued messages are"
            )
            self._ui.notify("info", f"queue: {count} back in the editor")
        return len(texts)

    def _run_shell(self, text: str) -> None:
        excluded = text.startswith("!!")
        command = text[2:].strip() if excluded else text[1:].strip()
        if not command:
            return
        if self._session.start_shell(command, excluded=excluded):
            self._clear()

    def _clear(self) -> None:
        editor = self._editor
        editor.history.add(editor.buffer.snapshot())
        editor.buffer.forget()
        editor.menu.close()
        editor.changed(complete=False)
