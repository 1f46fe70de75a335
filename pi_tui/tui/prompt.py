"""What Enter does with the text: a command, a shell command, or a message.

The editor is emptied only when somebody took its text. Images of messages that come back,
from the queue or from the tree, stand in the text as one character each, so that they are deleted
and sent like the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal

from pi_tui.agent.queues import Draft
from pi_tui.agent.session import AgentSession
from pi_tui.commands.registry import CommandRegistry
from pi_tui.commands.ui import CommandUI
from pi_tui.core.messages import ImageContent
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
        self._images: dict[str, ImageContent] = {}
        self._image_number = 0

    def send(self, delivery: Literal["steer", "followUp"]) -> bool:
        """Send what the editor holds. What it is decides the typed text, not a collapsed paste.

        True when something begins that goes on at the end of the conversation.
        """
        buffer = self._editor.buffer
        if buffer.is_blank:
            return False
        typed, whole = buffer.text.strip(), buffer.expanded()
        if typed == "/" or (typed.startswith("/") and self._registry.is_command(whole)):
            if not self._registry.knows(whole):
                self._ui.notify("error", self._registry.refusal(whole))
                return False
            self._clear()
            self._spawn(self._registry.run(whole, self._session, self._ui))
            return False
        if typed.startswith("!"):
            return self._run_shell(whole.strip())
        became = self._session.submit(whole, delivery, self._attached())
        if became != "refused":
            self._clear()
        return became == "started"

    def run_command(self, text: str) -> None:
        """Run a command line as if it had been typed; the editor is left alone."""
        self._spawn(self._registry.run(text, self._session, self._ui))

    def take_back(self) -> int:
        """Bring queued messages back in front of the draft; how many there were."""
        drafts = self._session.take_back_drafts()
        if drafts:
            self.put_back(drafts)
        return len(drafts)

    def put_back(self, drafts: Sequence[Draft]) -> None:
        """Put messages that were taken out of the queue in front of the draft, and say so."""
        editor = self._editor
        editor.history.leave()
        editor.buffer.put_before([draft.text for draft in drafts])
        images = [image for draft in drafts for image in draft.images]
        editor.buffer.attach(self._markers(images))
        editor.changed(complete=False)
        self._ui.notify("info", f"queue: {_back_in_editor(len(drafts), len(images))}")

    def edit_again(self, draft: Draft) -> None:
        """Put a message that was sent before into the editor; a draft there is kept instead."""
        editor = self._editor
        state = editor.buffer.composed(draft.text, self._markers(draft.images))
        if editor.buffer.is_blank:
            editor.put(state)
            return
        editor.history.add(state, draft.text)
        self._ui.notify("info", "your draft was kept: the other text is the newest in the history")

    def _markers(self, images: Sequence[ImageContent]) -> str:
        """One character of the editor for each image."""
        markers = ""
        for image in images:
            self._image_number += 1
            marker = self._editor.buffer.attachment(f"[image #{self._image_number}]")
            self._images[marker] = image
            markers += marker
        return markers

    def _attached(self) -> tuple[ImageContent, ...]:
        """The images that stand in the text."""
        text = self._editor.buffer.text if self._images else ""
        return tuple(self._images[char] for char in text if char in self._images)

    def _run_shell(self, text: str) -> bool:
        excluded = text.startswith("!!")
        command = text[2:].strip() if excluded else text[1:].strip()
        if not command or not self._session.start_shell(command, excluded=excluded):
            return False
        self._clear()
        return True

    def _clear(self) -> None:
        editor = self._editor
        editor.history.add(editor.buffer.snapshot(), editor.buffer.expanded())
        editor.buffer.forget()
        editor.menu.close()
        editor.changed(complete=False)


def _back_in_editor(messages: int, images: int) -> str:
    text = "one queued message is" if messages == 1 else f"{messages} queued messages are"
    text += " back in the editor"
    if images:
        text += f", with {'an image' if images == 1 else f'{images} images'}"
    return text
