"""Where a key, a typed text or a paste goes: to the panel, to an action, or into the text.

A panel that waits for its result has the keyboard; one with nothing but a text to read lets what is
typed past it, into the editor below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from textual import events

from pi_tui.tui.actions import AppActions
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.dialogs.text_panel import TextPanel
from pi_tui.tui.editor.widget import PromptEditor
from pi_tui.tui.keys import KeyMap, normalise_key
from pi_tui.tui.status_line import StatusLine
from pi_tui.tui.terminal_input import InputItem, TypedText, types
from pi_tui.tui.transcript import Transcript

SCOPES = ("app.", "tui.input.", "tui.altScreen.", "tui.editor.")
"""Where a key is looked up while the editor has the keyboard, in this order."""
FOCUSED_SCOPES = ("tui.block.", *SCOPES)
"""The same while a block of the transcript is marked."""
PANEL_LETTERS = ("q", "space")
"""Characters that mean something in every text to read: close, and a page further."""


class InputRouter:
    """One per app. `panels`: those on screen, the newest last. `hold`: keep later keys waiting."""

    def __init__(
        self,
        *,
        keys: KeyMap,
        editor: PromptEditor,
        transcript: Transcript,
        actions: AppActions,
        status: StatusLine,
        panels: Sequence[Panel[Any]],
        hold: Callable[[], None],
    ) -> None:
        self._keys = keys
        self._editor = editor
        self._transcript = transcript
        self._actions = actions
        self._status = status
        self._panels = panels
        self._hold = hold

    @property
    def panel(self) -> Panel[Any] | None:
        """The panel that has the keyboard: the last one that waits for its result."""
        return next((panel for panel in reversed(self._panels) if not panel.result.done()), None)

    def deliver(self, item: InputItem) -> Sequence[InputItem]:
        """Take one piece of input; typed text comes back as keys where each may mean something."""
        if isinstance(item, TypedText):
            if self.panel or self._transcript.has_focused_block or self._has_bound(item.text):
                return [events.Key(character, character) for character in item.text]
            self._actions.input_came()
            self._status.drop_hint()
            self._editor.insert("".join(filter(types, item.text)))
        elif isinstance(item, events.Paste):
            self.paste(item.text)
        else:
            character = item.character if types(item.character) else None
            self.key(normalise_key(item.key), character)
        return ()

    def key(self, name: str, character: str | None) -> None:
        """Take one key: its normalised name, and what it types, if anything."""
        self._actions.input_came()
        panel = self.panel
        if panel is not None:
            if not self._types_past(panel, name, character):
                panel.key(name, character)
                if panel.result.done():
                    self._hold()  # until it is gone, or another one stands in its place
                return
            panel.finish(None)
        self._status.drop_hint()
        focused = self._transcript.has_focused_block
        for action in self._keys.actions(name, FOCUSED_SCOPES if focused else SCOPES):
            if self._actions.perform(action) or self._editor.run(action):
                return
        if character is not None:
            self._transcript.leave_focus()
            self._editor.insert(character)

    def paste(self, text: str) -> None:
        """Take pasted text."""
        self._actions.input_came()
        panel = self.panel
        if panel is not None and not self._is_only_read(panel):
            panel.paste(text)
            return
        if panel is not None:
            panel.finish(None)
        self._status.drop_hint()
        self._editor.paste(text)

    def _has_bound(self, text: str) -> bool:
        """True when a character of the text is the key of an action."""
        return any(self._keys.actions(normalise_key(one), SCOPES) for one in set(text))

    def _is_only_read(self, panel: Panel[Any]) -> bool:
        """True for a text to read with nothing but the editor below it."""
        alone = not any(other is not panel and not other.result.done() for other in self._panels)
        return alone and isinstance(panel, TextPanel)

    def _types_past(self, panel: Panel[Any], name: str, character: str | None) -> bool:
        """True for a character that nothing in the panel takes: who reads has begun to write."""
        return (
            character is not None
            and name not in PANEL_LETTERS
            and not self._keys.actions(name, ("tui.select.", "tui.editor."))
            and self._is_only_read(panel)
        )
