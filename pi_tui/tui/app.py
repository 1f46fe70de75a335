"""The full-screen application: it puts the parts together and passes things on.

`run_tui` is the one entry point. The app class holds the widgets and what they share, receives keys
and events, and leaves every decision to its parts.
"""

from __future__ import annotations

import asyncio
import gc
import shlex
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from textual import events
from textual.app import App, ComposeResult

from pi_tui.agent.session import AgentSession
from pi_tui.commands.registry import CommandRegistry
from pi_tui.core.coverage import Coverage, coverage_of
from pi_tui.core.errors import PiTuiError, StorageError
from pi_tui.core.sanitise import sanitise
from pi_tui.core.transcript import Block, NoticeBlock, UserBlock, blocks_of
from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_shape import TreeFilter
from pi_tui.tui.actions import AppActions
from pi_tui.tui.bridge import FRAME_S, Rebuild, SessionBridge
from pi_tui.tui.command_ui import TuiCommandUI
from pi_tui.tui.crash import crash_report, hide_secrets
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.dialogs.text_panel import TextPanel
from pi_tui.tui.driver import TerminalDriver, ignore_textual_settings, set_escape_delay
from pi_tui.tui.editor.commands import CommandCompleter
from pi_tui.tui.editor.history import PromptHistory
from pi_tui.tui.editor.paths import PathCompleter
from pi_tui.tui.editor.widget import PromptEditor
from pi_tui.tui.external_editor import ExternalEditor
from pi_tui.tui.footer import StatusFooter
from pi_tui.tui.footer_source import FooterSource
from pi_tui.tui.git_branch import git_branch
from pi_tui.tui.history_loader import PathReader
from pi_tui.tui.input_queue import MOUNT_S, InputQueue
from pi_tui.tui.keys import KeyMap, normalise_key
from pi_tui.tui.live_transcript import LiveTranscript
from pi_tui.tui.no_colour import WithoutColours
from pi_tui.tui.options import TuiOptions
from pi_tui.tui.own_children import kill_own_children
from pi_tui.tui.palette import Palette
from pi_tui.tui.prompt import PromptDesk
from pi_tui.tui.queue_view import QueueView
from pi_tui.tui.terminal import TerminalGuard, hold_terminal
from pi_tui.tui.terminal_input import InputItem, TerminalInput, TypedText, types
from pi_tui.tui.theme import PLAIN, ThemeSource, textual_theme
from pi_tui.tui.transcript import KeyHints, Transcript
from pi_tui.tui.view_state import StatusState, spinner

if TYPE_CHECKING:
    from pi_tui.tui.tree.flow import TreeNavigator

T = TypeVar("T")

SCOPES = ("app.", "tui.input.", "tui.altScreen.", "tui.editor.")
"""Where a key is looked up while the editor has the keyboard, in this order."""
FOCUSED_SCOPES = ("tui.block.", *SCOPES)
"""The same while a block of the transcript is marked."""
PANEL_LETTERS = ("q", "space")
"""Characters that mean something in every text to read: close, and a page further."""
STATUS_FRAME_CELLS = 8
"""What the editor's border needs beside the status text, the spinner included."""


class PiTuiApp(App[None], inherit_bindings=False):
    """Transcript, queue, editor (or a panel in its place), footer."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS = """
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
                leave=self.keys.label("tui.block.leave"),
            ),
        )
        self.live = LiveTranscript(
            self.transcript, lambda: _coverage(session.tree, session.tree.path_ids())
        )
        self.queue_view = QueueView(self.palette, self.keys.label("app.message.dequeue"))
        self._paths = PathCompleter(lambda: session.cwd, options.home)
        self.editor = PromptEditor(
            self.palette.ink,
            completers=(CommandCompleter(registry), self._paths),
            menu_rows=options.completion_rows,
        )
        self._paths.ready = self.editor.completions_ready
        self.footer = StatusFooter(self.palette)
        self.footer_source = FooterSource(session, options)
        self.ui = TuiCommandUI(self)
        self.desk = PromptDesk(session, registry, self.ui, self.editor, self._start_command)
        self.actions = AppActions(self)
        self.external_editor = ExternalEditor(options.editor_command)
        self._navigator: TreeNavigator | None = None
        self.crash: BaseException | None = None
        self.on_leaving: Callable[[], None] | None = None
        self._input = InputQueue(self._deliver)
        self._tasks: set[asyncio.Task[object]] = set()
        self._panels: list[Panel[Any]] = []
        self._head: list[Block] = [
            NoticeBlock(f"startup:{number}", line.level, line.text)
            for number, line in enumerate(options.startup)
        ]
        self._status: StatusState | None = None
        self._bridge: SessionBridge | None = None
        self._shown_path: Rebuild | None = None
        self.register_theme(textual_theme(theme))
        self.theme = theme.name

    def compose(self) -> ComposeResult:
        yield self.transcript
        yield self.queue_view
        yield self.editor
        yield self.footer

    # ------------------------------------------------------------ start

    def on_mount(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._background_error)
        self._status = StatusState(self.session.activity, time.monotonic())
        self._bridge = SessionBridge(self.session, self.live, self._status, self)
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
        for problem in self.keys.problems:
            self.live.notice("warning", problem)
        self.call_after_refresh(self._painted)

    def _painted(self) -> None:
        """What nobody has to wait for."""
        gc.freeze()  # what was loaded so far stays: no collection needs to look at it
        gc.enable()
        self.spawn(self._read_numbers())
        if self.options.after_paint is not None:
            self.spawn(self.options.after_paint(self.ui))

    async def _read_numbers(self) -> None:
        source = self.footer_source
        await self._read_branch()
        source.show_provider = len({m.provider for m in self.session.models.available()}) > 1
        source.numbers_ready = True
        source.follow(self.spawn, self.footer_changed, lambda text: self.live.notice("error", text))

    async def _read_branch(self) -> None:
        self.footer_source.branch = await asyncio.to_thread(git_branch, self.session.cwd)

    # ------------------------------------------------------------ input

    async def on_event(self, event: events.Event) -> None:
        # Keys are handled here, at once and in order: on the way through the widgets' queues a key
        # could overtake the opening of a panel, and a binding the characters before it.
        if isinstance(event, TerminalInput):
            self._input.add(event.items)
        elif isinstance(event, events.Key | events.Paste | TypedText):
            self._input.add((event,))
        else:
            await super().on_event(event)

    def _deliver(self, item: InputItem) -> Sequence[InputItem]:
        """Take one piece of input; typed text comes back as keys where each may mean something."""
        if isinstance(item, TypedText):
            if self._panel or self.transcript.has_focused_block or self._has_bound(item.text):
                return [events.Key(character, character) for character in item.text]
            self.editor.insert("".join(filter(types, item.text)))
        elif isinstance(item, events.Paste):
            self._paste(item.text)
        else:
            character = item.character if types(item.character) else None
            self._key(normalise_key(item.key), character)
        return ()

    def _has_bound(self, text: str) -> bool:
        """True when a character of the text is the key of an action."""
        return any(self.keys.actions(normalise_key(character), SCOPES) for character in set(text))

    def _key(self, name: str, character: str | None) -> None:
        panel = self._panel
        if panel is not None:
            if not self._types_past(panel, name, character):
                panel.key(name, character)
                if panel.result.done():
                    self._input.hold()  # until it is gone, or another one stands in its place
                return
            panel.finish(None)
        focused = self.transcript.has_focused_block
        for action in self.keys.actions(name, FOCUSED_SCOPES if focused else SCOPES):
            if self.actions.perform(action) or self.editor.run(action):
                return
        if character is not None:
            self.transcript.leave_focus()
            self.editor.insert(character)

    def _paste(self, text: str) -> None:
        panel = self._panel
        if panel is not None and not self._is_only_read(panel):
            panel.paste(text)
            return
        if panel is not None:
            panel.finish(None)
        self.editor.paste(text)

    @property
    def _panel(self) -> Panel[Any] | None:
        """The panel that has the keyboard: the last one that waits for its result."""
        return next((panel for panel in reversed(self._panels) if not panel.result.done()), None)

    def _is_only_read(self, panel: Panel[Any]) -> bool:
        """True for a text to read with nothing but the editor below it."""
        alone = not any(other is not panel and not other.result.done() for other in self._panels)
        return alone and isinstance(panel, TextPanel)

    def _types_past(self, panel: Panel[Any], name: str, character: str | None) -> bool:
        """True for a character that nothing in the panel takes: who reads has begun to write."""
        return (
            character is not None
            and name not in PANEL_LETTERS
            and not self.keys.actions(name, ("tui.select.", "tui.editor."))
            and self._is_only_read(panel)
        )

    def on_resize(self, event: events.Resize) -> None:
        self._fit(event.size.height)

    def _fit(self, rows: int) -> None:
        self.editor.set_available_rows(rows)
        for panel in self._panels:
            panel.set_available_rows(rows)

    # ------------------------------------------------------------ what the bridge tells

    def status_changed(self) -> None:
        now_s = time.monotonic()
        room = self.size.width - STATUS_FRAME_CELLS
        text = "" if self._status is None else self._status.text(now_s, self._cancel_key, room)
        self.editor.set_status(f"{spinner(now_s)} {text}" if text else "")
        if self._status is not None and not self._status.busy:
            self.spawn(self._after_work())

    def footer_changed(self) -> None:
        self.footer.show(self.footer_source.facts())
        self._thinking_colour()

    def queue_changed(self, steering: tuple[str, ...], follow_up: tuple[str, ...]) -> None:
        self.queue_view.show(steering, follow_up)

    def path_changed(self, rebuild: Rebuild) -> None:
        reader = PathReader(rebuild.tree, rebuild.path_ids)
        try:
            blocks = blocks_of(reader.end())
            coverage = _coverage(rebuild.tree, rebuild.path_ids)
        except StorageError as error:
            self.live.notice("error", error.text)
            return
        self._shown_path = rebuild
        self.live.rebuild([*self._head, *blocks], coverage)
        self.editor.history = PromptHistory(_prompts(blocks))
        if not reader.complete_at_once:
            self.spawn(self._load_beginning(rebuild, reader))

    async def _load_beginning(self, rebuild: Rebuild, reader: PathReader) -> None:
        try:
            beginning = blocks_of(await reader.beginning())
        except StorageError as error:
            if rebuild is self._shown_path and rebuild.tree is self.session.tree:
                self.live.notice("error", error.text)  # else its session was left and closed
            return
        while self.live.streaming:
            await self.session.wait_idle()
            await asyncio.sleep(FRAME_S)  # for the events that are still to be folded
        if rebuild is self._shown_path:
            self.live.put_before(beginning, after=len(self._head))
            self.editor.history.extend_back(_prompts(beginning))

    async def _after_work(self) -> None:
        """Commands of the agent may have switched the branch."""
        before = self.footer_source.branch
        await self._read_branch()
        if self.footer_source.branch != before:
            self.footer_changed()

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
        self.ui.notify("info", f"copied: {len(text):,} characters")
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
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._spawned_done)
        return task

    def _spawned_done(self, task: asyncio.Task[object]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._tell_fault(error)

    def _background_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, Exception):
            self._tell_fault(error)
        elif error is None:
            text = f"internal error: {context.get('message', 'unknown')}"
            self.call_next(self.live.notice, "error", text)

    def _tell_fault(self, error: BaseException) -> None:
        text = hide_secrets(
            f"internal error: {type(error).__name__}: {error}", self.options.secrets
        )
        if self.is_running:
            self.call_next(self.live.notice, "error", text)  # with the app as context

    def _handle_exception(self, error: Exception) -> None:
        """A fault in the screen itself: end, and report it on the normal screen."""
        if self.crash is None:
            self.crash = error
        super()._handle_exception(error)

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()  # the report is printed by `run_tui`, without values

    def panic(self, *renderables: object) -> None:
        self._close_messages_no_wait()

    async def shut_down(self) -> None:
        """After the screen is gone: end what was started from here."""
        self._paths.stop()
        self.footer_source.stop()
        if self._bridge is not None:
            self._bridge.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _coverage(tree: SessionTree, path_ids: Sequence[str]) -> Coverage:
    return coverage_of([tree.head(entry_id) for entry_id in path_ids], tree.entry)


def _prompts(blocks: Iterable[Block]) -> list[str]:
    return [block.text for block in blocks if isinstance(block, UserBlock) and block.text]


def run_tui(session: AgentSession, registry: CommandRegistry, options: TuiOptions) -> int:
    """Run the full-screen front end until the person leaves; returns the exit code.

    Closes the session. The terminal is as it was before when this returns, however it ended.
    """
    guard = hold_terminal()
    guard.remote = options.remote
    guard.on_forced_end = kill_own_children
    ignore_textual_settings()
    set_escape_delay(max(options.escape_delay_s, 0.1 if options.remote else 0.0))
    crash: BaseException | None = None
    told: tuple[str, ...] = ()
    code = 1
    gc.disable()  # until the first screen: while a program starts there is no garbage
    try:
        with guard:
            code, crash, told = asyncio.run(_run(session, registry, options, guard))
    except Exception as error:  # noqa: BLE001 - the last place that can still tell anybody
        crash = error
    if guard.signalled is not None:
        code = 128 + guard.signalled
    _farewell(session, options, crash, told)
    return code


def _farewell(
    session: AgentSession,
    options: TuiOptions,
    crash: BaseException | None,
    told: tuple[str, ...],
) -> None:
    """What is left to say, on the normal screen."""
    with suppress(OSError):  # after a hang-up nobody reads this
        if crash is not None:
            sys.stderr.write(crash_report(crash, options.secrets))
        sys.stderr.writelines(f"pi-tui: {sanitise(line)}\n" for line in told)
        sys.stderr.flush()
        if len(session.tree) and session.store.path is not None:
            reference = options.resume_reference or session_id
            name = shlex.quote(reference(session))
            sys.stdout.write(f"To go on with this session:\n{options.resume_command} {name}\n")
            sys.stdout.flush()


async def _run(
    session: AgentSession, registry: CommandRegistry, options: TuiOptions, guard: TerminalGuard
) -> tuple[int, BaseException | None, tuple[str, ...]]:
    loop = asyncio.get_running_loop()
    app = PiTuiApp(session, registry, options)

    def end(signum: int) -> None:
        loop.call_soon_threadsafe(lambda: app.exit(return_code=128 + signum))

    guard.on_signal = end
    app.on_leaving = guard.begin_leaving
    try:
        await app.run_async()
    finally:
        guard.on_signal = _ending_already
        guard.begin_leaving()
        await app.shut_down()
        guard.restore_screen()
        told = await session.close()
    crash = app.crash
    return (1 if crash is not None else app.return_code or 0), crash, told


def session_id(session: AgentSession) -> str:
    """The usual name of a session."""
    return session.session_id


def _ending_already(signum: int) -> None:
    """The end is under way; the guard ends the process if that takes too long."""
