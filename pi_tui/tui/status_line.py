"""The text in the editor's upper rule: what is going on, or for a moment something else.

A hint is about what a person has just done. It goes by itself, or with the next key; nothing of it
stays in the conversation. Times are seconds of the monotonic clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.timer import Timer

from pi_tui.tui.editor.widget import PromptEditor
from pi_tui.tui.view_state import StatusState, spinner

FRAME_CELLS = 8
"""What the rule needs beside the text, the spinner included."""
HINT_FRAME_CELLS = 6
"""The same without a spinner."""


class StatusLine:
    """One per app. `state` is there once the session is listened to."""

    def __init__(
        self,
        editor: PromptEditor,
        cancel_key: Callable[[], str],
        width_cells: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.state: StatusState | None = None
        self._editor = editor
        self._cancel_key = cancel_key
        self._width_cells = width_cells
        self._clock = clock
        self._hint = ""
        self._timer: Timer | None = None

    @property
    def busy(self) -> bool:
        """True while something is going on."""
        return self.state is not None and self.state.busy

    def show(self) -> None:
        """Bring the rule up to date."""
        if self._hint:
            self._editor.set_status(self._hint)
            return
        now_s = self._clock()
        room = self._width_cells() - FRAME_CELLS
        text = "" if self.state is None else self.state.text(now_s, self._cancel_key(), room)
        self._editor.set_status(f"{spinner(now_s)} {text}" if text else "")

    def hint(self, lasting_s: float, *wordings: str) -> None:
        """Say something for a moment: the first of the wordings that fits, else the last."""
        self.drop_hint()
        room = self._width_cells() - HINT_FRAME_CELLS
        self._hint = next((words for words in wordings if len(words) <= room), wordings[-1])
        self._timer = self._editor.set_timer(lasting_s, self.drop_hint)
        self.show()

    def drop_hint(self) -> None:
        """Show what is going on again."""
        if not self._hint:
            return
        self._hint = ""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self.show()
