"""The application's actions: what Escape, Ctrl+C and the other keys do outside the text.

An action answers False when it does not apply at the moment; then the key's next meaning is tried.
Times are seconds of the monotonic clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from pi_tui.commands.builtin import thinking_levels
from pi_tui.tui.terminal import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from pi_tui.tui.app import PiTuiApp

TWICE_S = 0.5
"""How long the second press of a key that means more when pressed twice may take."""
TOLD_S = 2.0
"""How long the status line says what a key has done."""


class AppActions:
    """Maps action ids to what the app does."""

    def __init__(self, app: PiTuiApp, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock
        self._inputs = 0
        self._pressed: tuple[str, int, float] | None = None
        transcript = app.transcript
        self._table: dict[str, Callable[[], bool | None]] = {
            "app.interrupt": self._interrupt,
            "app.clear": self._clear,
            "app.exit": self._exit,
            "app.suspend": app.suspend_process,
            "app.editor.external": app.edit_externally,
            "app.message.copy": lambda: app.desk.run_command("/copy"),
            "app.message.followUp": lambda: self._send("followUp"),
            "app.message.dequeue": lambda: app.desk.take_back() > 0,
            "app.tools.expand": self._toggle_tools,
            "app.thinking.toggle": self._toggle_thinking,
            "app.thinking.cycle": self._cycle_thinking,
            "app.model.select": lambda: app.desk.run_command("/model"),
            "app.model.cycleForward": lambda: self._cycle_model(1),
            "app.model.cycleBackward": lambda: self._cycle_model(-1),
            "app.session.new": lambda: app.desk.run_command("/new"),
            "app.session.tree": lambda: app.desk.run_command("/tree"),
            "app.session.fork": lambda: app.desk.run_command("/fork"),
            "app.session.resume": lambda: app.desk.run_command("/resume"),
            "tui.input.submit": self._submit,
            "tui.altScreen.pageUp": lambda: self._scroll(transcript.page_up),
            "tui.altScreen.pageDown": lambda: self._scroll(transcript.page_down),
            "tui.altScreen.halfPageUp": lambda: transcript.scroll_rows(-self._half_page),
            "tui.altScreen.halfPageDown": lambda: transcript.scroll_rows(self._half_page),
            "tui.altScreen.lineUp": lambda: transcript.scroll_rows(-1),
            "tui.altScreen.lineDown": lambda: transcript.scroll_rows(1),
            "tui.altScreen.previousPrompt": transcript.previous_user_message,
            "tui.altScreen.nextPrompt": transcript.next_user_message,
            "tui.altScreen.top": transcript.scroll_top,
            "tui.altScreen.bottom": transcript.scroll_bottom,
            "tui.altScreen.search": app.open_search,
            "tui.altScreen.focusPrevious": lambda: transcript.focus_block(-1),
            "tui.altScreen.focusNext": lambda: transcript.focus_block(1),
            "tui.block.previous": lambda: transcript.focus_block(-1) or True,
            "tui.block.next": lambda: transcript.focus_block(1) or True,
            "tui.block.toggle": transcript.toggle_focused,
            "tui.block.copy": self._copy_block,
            "tui.block.origin": self._open_origin,
            "tui.block.leave": transcript.leave_focus,
        }

    def input_came(self) -> None:
        """Count a key, a paste or typed text, whoever takes it: two presses must be neighbours."""
        self._inputs += 1

    def _is_second(self, action: str) -> bool:
        """True when nothing came since the same action's last press, and that was just now."""
        before, now_s = self._pressed, self._clock()
        second = (
            before is not None
            and before[:2] == (action, self._inputs - 1)
            and now_s - before[2] <= TWICE_S
        )
        self._pressed = None if second else (action, self._inputs, now_s)
        return second

    def perform(self, action: str) -> bool:
        """Carry out an action; False when it is not one of these or does not apply."""
        handler = self._table.get(action)
        return handler is not None and handler() is not False

    @property
    def _half_page(self) -> int:
        return max(1, self._app.transcript.size.height // 2)

    def _scroll(self, move: Callable[[], None]) -> bool:
        if self._app.editor.menu.is_open:
            return False
        move()
        return True

    def _submit(self) -> None:
        app = self._app
        editor = app.editor
        if editor.menu.certain and not editor.accept_completion():
            return
        buffer = editor.buffer
        before = buffer.text[: buffer.cursor]
        if before.endswith("\\") and not before.endswith("\\\\"):
            buffer.replace(buffer.cursor - 1, buffer.cursor, "\n")
            editor.changed()
            return
        self._send("steer")

    def _send(self, delivery: Literal["steer", "followUp"]) -> None:
        if self._app.desk.send(delivery):
            self._app.transcript.scroll_bottom()  # what was sent is at the end, so is the answer

    def _interrupt(self) -> bool:
        app = self._app
        if app.editor.close_completion():
            return True
        if app.session.abort():
            app.desk.take_back()
            return True
        if app.session.activity != "idle":  # stopping already
            return True
        twice = self._is_second("app.interrupt")
        if twice and not app.editor.buffer.text and app.options.double_escape != "none":
            app.desk.run_command(f"/{app.options.double_escape}")
        return True

    def _clear(self) -> bool:
        app = self._app
        if app.copy_selection():
            return True
        if self._is_second("app.clear") and not app.editor.buffer.text:
            app.exit(return_code=EXIT_INTERRUPTED)
            return True
        app.editor.clear()
        # Not "again": this may be read later than a second press counts.
        leaves = f"{app.keys.label('app.clear')} twice quickly to leave"
        interrupts = app.keys.label("app.interrupt")
        busy = app.status.busy and interrupts
        app.status.hint(TOLD_S, *([f"{interrupts} interrupts · {leaves}"] if busy else []), leaves)
        return True

    def _toggle_tools(self) -> None:
        transcript = self._app.transcript
        transcript.toggle_tools()
        self._confirm(f"tool output: {'opened' if transcript.tools_expanded else 'closed'}")

    def _toggle_thinking(self) -> None:
        transcript = self._app.transcript
        transcript.toggle_thinking()
        self._confirm(f"thinking: {'shown' if transcript.thinking_shown else 'hidden'}")

    def _confirm(self, text: str) -> None:
        """Say what a key has done: it may have changed nothing in sight."""
        self._app.status.hint(TOLD_S, text)

    def _copy_block(self) -> None:
        app = self._app
        text = app.transcript.focused_text()
        if text and app.ui.put_on_clipboard(text):
            app.transcript.note_at_focus(f"copied {len(text):,} characters")

    def _open_origin(self) -> bool:
        """Show in the tree where the branch ends that the marked summary is about."""
        app = self._app
        origin = app.transcript.focused_origin
        if not origin:
            return False
        if origin not in app.session.tree:
            app.transcript.note_at_focus("the branch it came from is not in this session")
            return True
        app.transcript.leave_focus()
        app.navigator.open(origin)
        return True

    def _exit(self) -> bool:
        if self._app.editor.buffer.text:
            return False
        self._app.exit(return_code=0)
        return True

    def _cycle_thinking(self) -> bool:
        app = self._app
        model = app.session.model
        if not model.reasoning:
            app.ui.notify("info", f"thinking: {model.id} has no thinking levels")
            return True
        offered = thinking_levels(model)
        now = app.session.thinking_level
        at = offered.index(now) if now in offered else -1
        app.session.set_thinking_level(offered[(at + 1) % len(offered)])
        app.ui.notify("info", f"thinking: {app.session.thinking_level}")
        return True

    def _cycle_model(self, step: int) -> bool:
        app = self._app
        models = list(app.session.models.available())
        names = [model.full_name for model in models]
        now = app.session.model.full_name
        if not models or names == [now]:
            app.ui.notify("info", "model: there is only one")
            return True
        at = names.index(now) if now in names else -1
        app.session.set_model(models[(at + step) % len(models)])
        app.ui.notify("info", f"model: {app.session.model.full_name}")
        return True
