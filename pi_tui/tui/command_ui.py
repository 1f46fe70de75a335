"""What slash commands may ask of this front end: the `CommandUI` of `commands/ui.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi_tui.agent.queues import Draft
from pi_tui.commands.ui import Choice
from pi_tui.core.context_report import ContextReport
from pi_tui.core.events import NoticeLevel
from pi_tui.core.session_library import SessionLibrary
from pi_tui.tui.clipboard import copy_sequence
from pi_tui.tui.dialogs.picker import Picker
from pi_tui.tui.dialogs.question import Question
from pi_tui.tui.dialogs.text_panel import TextPanel
from pi_tui.tui.key_help import key_rows
from pi_tui.tui.sessions.session_view import PickerChoices

if TYPE_CHECKING:
    from pi_tui.tui.app import PiTuiApp

_KIND_CHARS = 24


class TuiCommandUI:
    """Answers commands with the transcript, the editor and panels."""

    def __init__(self, app: PiTuiApp) -> None:
        self._app = app
        self._picker_choices = PickerChoices()

    def notify(self, level: NoticeLevel, text: str) -> None:
        """Append a line; the same confirmation again ("model: …") replaces the earlier one."""
        self._app.catch_up()
        name, colon, _ = text.partition(":")
        kind = name if colon and len(name) <= _KIND_CHARS else text
        self._app.live.notice(level, text, kind if level == "info" else "")

    def show(self, title: str, text: str) -> None:
        app = self._app
        app.spawn(self._read(TextPanel(title, text, app.palette, app.keys)))

    def show_context(self, report: ContextReport, window_tokens: int, notes: str) -> None:
        """Show what fills the window in a panel."""
        from pi_tui.tui.dialogs.context_panel import ContextPanel

        app = self._app
        app.spawn(self._read(ContextPanel(report, window_tokens, notes, app.palette, app.keys)))

    async def _read(self, panel: TextPanel) -> None:
        await self._app.open_panel(panel)

    async def choose(
        self, title: str, options: Sequence[Choice], current: str | None = None
    ) -> str | None:
        app = self._app
        return await app.open_panel(Picker(title, options, app.palette, app.keys, current=current))

    async def confirm(self, title: str, text: str) -> bool:
        """Ask yes or no."""
        app = self._app
        return await app.open_panel(Question(title, text, app.palette, app.keys)) is True

    async def pick_session(self, library: SessionLibrary, query: str) -> str | None:
        """Open the session picker; the path of the chosen session."""
        from pi_tui.tui.sessions.flow import pick_session  # not needed before the first screen

        return await pick_session(self._app, library, query, self._picker_choices)

    def set_editor_text(self, text: str) -> None:
        """Put text into the editor; a draft that is there stays, and the text waits behind Up."""
        self.set_editor_draft(Draft(text))

    def set_editor_draft(self, draft: Draft) -> None:
        """Do the same with a message and its images."""
        self._app.catch_up()
        self._app.desk.edit_again(draft)

    def put_back(self, drafts: Sequence[Draft]) -> None:
        """Put messages that were not sent in front of the draft, with their images."""
        self._app.catch_up()
        self._app.desk.put_back(drafts)

    def open_tree(self) -> bool:
        """Open the tree navigator."""
        return self._app.navigator.open()

    def copy(self, text: str) -> None:
        self.put_on_clipboard(text)

    def put_on_clipboard(self, text: str) -> bool:
        """Copy a text; False, and a line says why, when that cannot be."""
        sequence = copy_sequence(text, inside_tmux=self._app.options.inside_tmux)
        if sequence is None:
            self.notify("error", "the text is too long for the terminal's clipboard (over 1 MB)")
            return False
        self._app.write_to_terminal(sequence)
        return True

    def key_rows(self) -> Sequence[tuple[str, str]]:
        return key_rows(self._app.keys)

    def quit(self) -> None:
        self._app.exit(return_code=0)
