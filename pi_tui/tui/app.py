"""The full-screen application: it puts the parts together and passes things on.

The app class holds the widgets and what they share, receives keys and events, and leaves every
decision to its parts. `run` starts it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from textual import events
from textual.app import App, ComposeResult

from pi_tui.agent.session import AgentSession
from pi_tui.commands.registry import CommandRegistry
from pi_tui.core.errors import PiTuiError
from pi_tui.core.transcript import NoticeBlock
from pi_tui.core.tree_shape import TreeFilter
from pi_tui.tui.actions import TOLD_S, AppActions
from pi_tui.tui.background import BackgroundWork
from pi_tui.tui.branch_watch import BranchWatch
from pi_tui.tui.bridge import Rebuild, SessionBridge
from pi_tui.tui.command_ui import TuiCommandUI
from pi_tui.tui.crash import hide_secrets
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.driver import TerminalDriver
from pi_tui.tui.editor.commands import CommandCompleter
from pi_tui.tui.editor.paths import PathCompleter
from pi_tui.tui.editor.widget import PromptEditor
from pi_tui.tui.external_editor import ExternalEditor
from pi_tui.tui.footer import StatusFooter
from pi_tui.tui.footer_source import FooterSource
from pi_tui.tui.garbage import begin_collecting
from pi_tui.tui.input_queue import MOUNT_S, InputQueue
from pi_tui.tui.input_router import InputRouter
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.live_transcript import LiveTranscript
from pi_tui.tui.no_colour import WithoutColours
from pi_tui.tui.options import TuiOptions
from pi_tui.tui.palette import Palette
from pi_tui.tui.path_view import PathView, path_coverage
from pi_tui.tui.prompt import PromptDesk
from pi_tui.tui.queue_view import QueueView
from pi_tui.tui.status_line import StatusLine
from pi_tui.tui.terminal_input import InputItem, TerminalInput, TypedText
from pi_tui.tui.theme import PLAIN, ThemeSource, textual_theme
from pi_tui.tui.transcript import KeyHints, Transcript
from pi_tui.tui.view_state import StatusState

if TYPE_CHECKING:
    from pi_tui.tui.tree.flow import TreeNavigator

T = TypeVar("T")


class PiTuiApp(App[None], inherit_bindings=False):
    """Transcript, queue, editor (or a panel in its place), footer."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS = """
    Screen { overflow: hidden; }
    Transcript { height: 1fr; }
    Screen:nocolor .screen--selection { text-style: reverse; }
    """

    def __init__(
        self,
        session: AgentSession,
        registry: CommandRegistry,
        options: TuiOptions,
    ) -> None:
        super().__init__(driver_class=TerminalDriver)
        if self.no_color:
            self._filters = [WithoutColours()]
        theme = (None if self.no_color else options.theme) or PLAIN
        self._theme_source = theme
        self._work = BackgroundWork(self._tell_fault)
        self.session = session
        self.options = options
        self.keys = KeyMap(options.keybindings)
        self.palette = Palette(theme)
        self.transcript = Transcript(
            theme,
            show_thinking=not options.hide_thinking,
            key_hints=KeyHints(
                expand=self.keys.label("app.tools.expand"),
                thinking=self.keys.label("app.thinking.toggle"),
                latest=self.keys.label("tui.altScreen.bottom"),
                focus=self.keys.label("tui.altScreen.focusPrevious"),
                toggle=self.keys.label("tui.block.toggle"),
                copy=self.keys.label("tui.block.copy"),
                origin=self.keys.label("tui.block.origin"),
                leave=self.keys.label("tui.block.leave"),
            ),
        )
        self.live = LiveTranscript(
            self.transcript, lambda: path_coverage(session.tree, session.tree.path_ids())
        )
        self.queue_view = QueueView(self.palette, self.keys.label("app.message.dequeue"))
        self._paths = PathCompleter(lambda: session.cwd, options.home)
        self.editor = PromptEditor(
            self.palette.ink,
            completers=(CommandCompleter(registry), self._paths),
            menu_rows=options.completion_rows,
        )
        self._paths.ready = self.editor.completions_ready
        self.status = StatusLine(self.editor, lambda: self._cancel_key, lambda: self.size.width)
        self.footer = StatusFooter(self.palette)
        self.footer_source = FooterSource(session, options)
        self._branch = BranchWatch(lambda: session.cwd, self.spawn, self._branch_changed)
        self.ui = TuiCommandUI(self)
        self.desk = PromptDesk(session, registry, self.ui, self.editor, self._start_command)
        self.actions = AppActions(self)
        self.external_editor = ExternalEditor(options.editor_command)
        self._navigator: TreeNavigator | None = None
        self.crash: BaseException | None = None
        self.on_leaving: Callable[[], None] | None = None
        self._input = InputQueue(lambda item: self._router.deliver(item))
        self._panels: list[Panel[Any]] = []
        self._router = InputRouter(
            keys=self.keys,
            editor=self.editor,
            transcript=self.transcript,
            actions=self.actions,
            status=self.status,
            panels=self._panels,
            hold=self._input.hold,
        )
        head = [
            NoticeBlock(f"startup:{number}", line.level, line.text)
            for number, line in enumerate(options.startup)
            if not line.kind
        ]
        self._path_view = PathView(session, self.live, self.editor, head)
        self._bridge: SessionBridge | None = None
        self.register_theme(textual_theme(theme))
        self.theme = theme.name

    def compose(self) -> ComposeResult:
        yield self.transcript
        yield self.queue_view
        yield self.editor
        yield self.footer

    # ------------------------------------------------------------ start

    def on_mount(self) -> None:
        self._work.watch_loop()
        self.status.state = StatusState(self.session.activity, time.monotonic())
        self._bridge = SessionBridge(self.session, self.live, self.status.state, self)
        self._bridge.start()
        self._fit(self.size.height)
        self._thinking_colour()
        self.footer.show(self.footer_source.facts())
        self.queue_changed(*self.session.queued)
        self.status_changed()
        if self.options.initial_text:
            self.editor.set_text(self.options.initial_text)
        tree = self.session.tree
        self.path_changed(Rebuild(tree, tuple(tree.path_ids())))
        for line in self.options.startup:
            if line.kind:
                self.live.notice(line.level, line.text, line.kind)
        for problem in self.keys.problems:
            self.live.notice("warning", problem)
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        """What nobody has to wait for."""
        begin_collecting()
        self.spawn(self._read_numbers())
        if self.options.after_paint is not None:
            self.spawn(self.options.after_paint(self.ui))

    async def _read_numbers(self) -> None:
        source = self.footer_source
        await self._branch.read()
        source.show_provider = len({m.provider for m in self.session.models.available()}) > 1
        source.numbers_ready = True
        source.follow(self.spawn, self.footer_changed, lambda text: self.live.notice("error", text))

    def _branch_changed(self, branch: str | None) -> None:
        self.footer_source.branch = branch
        if self.is_running:
            self.footer.show(self.footer_source.facts())

    # ------------------------------------------------------------ input

    async def on_event(self, event: events.Event) -> None:
        # Keys are handled here, at once and in order: on the way through the widgets' queues a key
        # could overtake the opening of a panel, and a binding the characters before it.
        if isinstance(event, TerminalInput):
            self._take_input(event.items)
        elif isinstance(event, events.Key | events.Paste | TypedText):
            self._take_input((event,))
        else:
            if isinstance(event, events.AppFocus):
                self._branch.look()
            await super().on_event(event)

    def _take_input(self, items: Iterable[InputItem]) -> None:
        self._branch.look()
        self._input.add(items)

    def _key(self, name: str, character: str | None) -> None:
        self._router.key(name, character)

    @property
    def _panel(self) -> Panel[Any] | None:
        return self._router.panel

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.height)

    def _fit(self, rows: int) -> None:
        self.editor.set_available_rows(rows)
        for panel in self._panels:
            panel.set_available_rows(rows)

    # ------------------------------------------------------------ what the bridge tells

    def status_changed(self) -> None:
        self.status.show()
        if self.status.state is not None and not self.status.busy:
            # Commands of the agent may have switched the branch, or made a repository.
            self.spawn(self._branch.read(anew=True))

    def footer_changed(self) -> None:
        self.footer.show(self.footer_source.facts())
        self._thinking_colour()
        self._branch.look()  # another session may be in another directory

    def settled(self) -> None:
        """The agent has stopped, and nothing sends what still waits: its run failed."""
        if self.session.activity == "idle" and any(self.session.queued):
            self.desk.take_back()

    def queue_changed(self, steering: tuple[str, ...], follow_up: tuple[str, ...]) -> None:
        self.queue_view.show(steering, follow_up)

    def catch_up(self) -> None:
        """Put on the screen what the session has told already, before more is written."""
        if self._bridge is not None:
            self._bridge.catch_up()

    def path_changed(self, rebuild: Rebuild) -> None:
        self._path_view.show(rebuild)

    def _thinking_colour(self) -> None:
        level = self.session.thinking_level
        self.editor.set_border_colour(f"thinking{level.capitalize()}")

    @property
    def _cancel_key(self) -> str:
        return self.keys.label("app.interrupt")

    # ------------------------------------------------------------ panels

    def open_panel(self, panel: Panel[T]) -> Coroutine[Any, Any, T | None]:
        """Show a panel in the editor's place until it has a result.

        Keys are for it from now on, not only once somebody waits for the result.
        """
        self._panels.append(panel)
        return self._serve_panel(panel)

    async def _serve_panel(self, panel: Panel[T]) -> T | None:
        self.editor.display = False
        for other in self._panels[:-1]:
            other.display = False
        shown = asyncio.get_running_loop().create_future()
        self._input.hold(shown, MOUNT_S)
        try:
            await self.mount(panel, before=self.footer)
            panel.set_available_rows(self.size.height)
            shown.set_result(None)
            return await panel.result
        finally:
            self._panels.remove(panel)
            panel.remove()
            if self._panels:
                self._panels[-1].display = True
            else:
                self.editor.display = True

    def open_search(self) -> None:
        """Search the transcript until the person closes the search."""
        from pi_tui.tui.dialogs.search_bar import SearchBar  # not needed before the first screen

        self.transcript.leave_focus()
        bar = SearchBar(self.transcript, self.spawn, self.palette, self.keys)
        closed = self.open_panel(bar)
        self.spawn(closed)

    # ------------------------------------------------------------ terminal

    def write_to_terminal(self, sequence: str) -> None:
        """Send a control sequence of our own making."""
        if self._driver is not None:
            self._driver.write(sequence)

    def copy_selection(self) -> bool:
        """Copy what is selected with the mouse; False when nothing is."""
        text = self.screen.get_selected_text()
        if not text:
            return False
        self.ui.copy(text)
        self.screen.clear_selection()
        self.status.hint(TOLD_S, f"copied {len(text):,} characters")
        return True

    def suspend_process(self) -> None:
        """Stop until the shell continues the program."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.suspend_process()

    # ------------------------------------------------------------ the tree navigator, what it needs

    @property
    def navigator(self) -> TreeNavigator:
        """The tree navigator; made, and its modules loaded, when it is first asked for."""
        if self._navigator is None:
            from pi_tui.tui.tree.flow import TreeNavigator

            self._navigator = TreeNavigator(self)
        return self._navigator

    @property
    def theme_source(self) -> ThemeSource:
        return self._theme_source

    @property
    def tree_filter(self) -> TreeFilter:
        return self.options.tree_filter

    def run_command(self, text: str) -> None:
        """Run a command line in the background."""
        self.desk.run_command(text)

    async def edit_text(self, text: str) -> str:
        """Have the person edit a text in the external editor."""
        driver = self._driver
        with driver.lent() if isinstance(driver, TerminalDriver) else nullcontext():
            return await self.external_editor.edit(text)

    def edit_externally(self) -> None:
        """Open the external editor with the text."""
        if not self.external_editor.running:
            self.spawn(self._edit_externally())

    async def _edit_externally(self) -> None:
        buffer = self.editor.buffer
        try:
            text = await self.edit_text(buffer.expanded())
        except PiTuiError as error:
            self.ui.notify("error", error.text)
            return
        buffer.set_edited_text(text)
        self.editor.changed(complete=False)

    def _set_pointer_shape(self, shape: str) -> None:
        """The mouse pointer is the terminal's business."""

    # ------------------------------------------------------------ work and faults

    def _start_command(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        """Run a command; keys wait a moment for the panel it may open."""
        task = self.spawn(work)
        self._input.hold(task)
        return task

    def exit(self, *args: Any, **options: Any) -> None:
        if self.on_leaving is not None:
            self.on_leaving()
        super().exit(*args, **options)

    def spawn(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        """Run something in the background; a fault in it becomes a line on screen."""
        return self._work.spawn(work)

    def _tell_fault(self, words: str) -> None:
        if self.is_running:
            text = hide_secrets(words, self.options.secrets)
            self.call_next(self.live.notice, "error", text)  # with the app as context

    def _handle_exception(self, error: Exception) -> None:
        """A fault in the screen itself: end, and report it on the normal screen."""
        if self.crash is None:
            self.crash = error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()  # the report is printed by `run`, without values

    def panic(self, *renderables: object) -> None:
        self._close_messages_no_wait()

    async def shut_down(self) -> None:
        """After the screen is gone: end what was started from here."""
        self._paths.stop()
        self._branch.stop()
        self.footer_source.stop()
        if self._bridge is not None:
            self._bridge.stop()
        await self._work.end()
