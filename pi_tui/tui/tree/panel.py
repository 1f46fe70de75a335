"""The tree panel: list, search, preview, and the keys and clicks that move in them.

It shows a `TreeView` and hands every deed to `TreeActions`. Its result is where to go, or None.
One thing has the keyboard at a time: the list, the search, the label editor or the help.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.app import ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.timer import Timer

from pi_tui.agent.navigator import NavigateRequest
from pi_tui.core.errors import PiTuiError, UsageError
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.session_search import Query, parse_query
from pi_tui.core.tree_shape import TreeFilter
from pi_tui.core.tree_view import TreeView
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.theme import ThemeSource
from pi_tui.tui.transcript import KeyHints
from pi_tui.tui.transcript.wrap import clip
from pi_tui.tui.tree.line_input import LineInput
from pi_tui.tui.tree.path_preview import PathPreview
from pi_tui.tui.tree.preview import PreviewPane
from pi_tui.tui.tree.preview_blocks import preview_blocks
from pi_tui.tui.tree.row_painter import MarkedEntries, RowPainter
from pi_tui.tui.tree.search import TreeSearch, outward
from pi_tui.tui.tree.tree_keys import TreeKeys
from pi_tui.tui.tree.tree_state import TreeState

SMALL_ROWS = 28
"""Below this height of the terminal the panel takes all of it."""
FOOTER_ROWS = 2
BESIDE_FROM_CELLS = 96
BELOW_FROM_ROWS = 14
WHEEL_ROWS = 3
DEBOUNCE_S = 0.05
PREVIEW_DELAY_S = 0.03
READ_AT_ONCE_S = 0.03
READ_SLICE_S = 0.004
READ_STEP = 50
RELAYOUT_SHARE = 6
"""Between two layouts passes at least this many times what one takes."""

Keyboard: TypeAlias = Literal["list", "search", "label", "help"]


class TreeActions(Protocol):
    """What the navigator has done by others. They answer with a line for people, or raise
    PiTuiError; what takes longer goes on by itself and tells on its own."""

    @property
    def marks(self) -> MarkedEntries: ...
    @property
    def hidden(self) -> Collection[str]: ...
    def choose(self, entry_id: str) -> None: ...
    def label(self, entry_id: str, text: str) -> str: ...
    def copy(self, entry_id: str) -> str: ...
    def pin(self, entry_id: str) -> str: ...
    def leave_out(self, entry_id: str) -> str: ...
    def hide(self, start_id: str) -> str: ...
    def compare(self, a_id: str, b_id: str) -> str: ...
    def fork(self, entry_id: str) -> str: ...
    def compact(self, entry_id: str) -> str: ...
    def undo(self) -> str: ...


class TreePanel(Panel[NavigateRequest]):
    """The navigator over one session's tree."""

    DEFAULT_CSS = "TreePanel { height: 12; layout: vertical; overflow: hidden; }"

    def __init__(
        self,
        view: TreeView,
        state: TreeState,
        actions: TreeActions,
        palette: Palette,
        keys: KeyMap,
        theme: ThemeSource,
        estimator: TokenEstimator,
        *,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__("Session Tree", palette, keys)
        self.view = view
        self.state = state
        self.actions = actions
        self.tree_keys = TreeKeys(keys)
        self.keyboard: Keyboard = "list"
        self.painter = RowPainter(view.tree, palette, estimator, now_ms, state.texts.of)
        self.painter.marks = actions.marks
        self.painter.label_times = state.label_times
        more = self.tree_keys.name("app.tree.previewPageDown")
        hints = KeyHints(keys.label("app.tools.expand"), keys.label("app.thinking.toggle"))
        self.preview = PreviewPane(theme, hints, more)
        self.path_preview = PathPreview(view.tree, self.preview)
        self.search_input = LineInput()
        self.label_input = LineInput()
        self._search = TreeSearch(state.texts, self._found, self._search_ended)
        self._query = Query()
        self._problem = ""
        self._notice = ""
        self._notice_role = "muted"
        self._labelled: str | None = None
        self._help_top = 0
        self._top_override: int | None = None
        self._previewed: str | None = None
        self._timers: dict[str, Timer] = {}
        self._laid_out_s = float("-inf")
        self._layout_cost_s = 0.0
        self._commands = self._command_table()

    def compose(self) -> ComposeResult:
        yield self.preview

    def on_mount(self) -> None:
        until_s = time.perf_counter() + READ_AT_ONCE_S
        vanished = False
        while self.view.unread_count and time.perf_counter() < until_s:
            vanished = self.view.settle_some(READ_STEP) or vanished
        if vanished:
            self.view.relayout()
        if self.view.unread_count:
            self._later("read", 0.0, self._read_on)
        self._show()

    def on_unmount(self) -> None:
        self._search.stop()
        self.path_preview.stop()
        for timer in self._timers.values():
            timer.stop()

    # ------------------------------------------------------------ size

    def wanted_rows(self) -> int:
        rows = self.state.rows or self._available_rows // 2
        return rows if not self._takes_all else self._available_rows

    @property
    def _takes_all(self) -> bool:
        return self.state.whole or self._available_rows < SMALL_ROWS

    def fit(self) -> None:
        """Half of the terminal, what was chosen, or all of a small one."""
        most = max(3, self._available_rows - FOOTER_ROWS)
        height = max(3, min(self.wanted_rows(), most))
        self._body_rows = height - 2
        self.styles.height = height
        self._place_preview()
        self.refresh()

    def _resize_by(self, rows: int) -> None:
        least, most = 8, self._available_rows - FOOTER_ROWS
        now = min(self.wanted_rows(), most)
        self.state.whole = False
        self.state.rows = max(least, min(most, now + rows))
        self.fit()
        self._show()

    def _toggle_whole(self) -> None:
        self.state.whole = not self.state.whole
        self.fit()
        self._show()

    @property
    def _room(self) -> int:
        """Rows below the search row."""
        return max(0, self.body_rows - 1)

    def _areas(self) -> tuple[Region, Region | None]:
        """Where the list and the preview are, within the body."""
        width, rows = self.size.width, self._room
        whole = Region(0, 0, width, rows)
        if self.path_preview.active or self.state.preview == "whole":
            return Region(0, 0, width, 0), whole
        if self.state.preview == "off":
            return whole, None
        if width >= BESIDE_FROM_CELLS and rows >= 3:
            left = max(52, width * 11 // 20)
            return Region(0, 0, left, rows), Region(left + 1, 0, width - left - 1, rows)
        if rows >= BELOW_FROM_ROWS:
            below = rows * 2 // 5
            return Region(0, 0, width, rows - below - 1), Region(0, rows - below, width, below)
        return whole, None

    def _place_preview(self) -> None:
        if not self.is_attached:
            return
        _, region = self._areas()
        if self.keyboard == "help" or region is None:
            self.preview.place(None)
        else:
            self.preview.place(region.translate((0, 2)))

    @property
    def _list_rows(self) -> int:
        return max(1, self._areas()[0].height)

    def on_resize(self, event: events.Resize) -> None:
        event.stop()
        self.fit()
        self._show()

    # ------------------------------------------------------------ keys

    def key(self, name: str, character: str | None) -> None:
        self._notice = ""
        if self.keyboard == "label":
            self._label_key(name, character)
            return
        if self.keyboard == "help":
            self._help_key(name, character)
            return
        typing = self.keyboard == "search"
        action = self.tree_keys.action(name, character, typing=typing)
        if typing and self._edit(self.search_input, name, character, action):
            self._later("search", DEBOUNCE_S, self._search_now)
            self.refresh()
            return
        command = self._commands.get(action or "")
        if command is None:
            if character is not None and character.isprintable() and not typing:
                search, help_ = (
                    self.tree_keys.name(f"app.tree.{what}") for what in ("search", "help")
                )
                self._tell(f"{search} searches, {help_} shows the keys")
            self.refresh()
            return
        try:
            command()
        except PiTuiError as error:
            self._tell(f"{error.message} {error.hint or ''}".strip(), "error")
        self._show()

    def paste(self, text: str) -> None:
        if self.keyboard == "label":
            self.label_input.insert(text)
        elif self.keyboard in ("list", "search"):
            self.keyboard = "search"
            self.search_input.insert(text)
            self._later("search", DEBOUNCE_S, self._search_now)
        self.refresh()

    def _edit(self, line: LineInput, name: str, character: str | None, action: str | None) -> bool:
        """Let a key change a line; False when it means something else."""
        if action is None and character is not None and character.isprintable():
            line.insert(character)
        elif self.keys.means(name, "tui.editor.deleteCharBackward"):
            line.delete_left()
        elif self.keys.means(name, "tui.editor.deleteWordBackward"):
            line.delete_word()
        else:
            return False
        return True

    def _command_table(self) -> dict[str, Callable[[], None]]:
        view, tree = self.view, "app.tree."

        def page(direction: int) -> Callable[[], None]:
            return lambda: view.move(direction * max(1, self._list_rows - 1))

        def scroll(rows: Callable[[], int]) -> Callable[[], None]:
            return lambda: self.preview.scroll_rows(rows())

        def preview_page() -> int:
            return max(1, self.preview.size.height - 2)

        table: dict[str, Callable[[], None]] = {
            "tui.select.up": self._moving(lambda: view.move(-1, wrap=True), -1),
            "tui.select.down": self._moving(lambda: view.move(1, wrap=True), 1),
            "tui.select.confirm": self._confirm,
            "tui.select.cancel": self._step_back,
            "app.message.copy": self._on_selected(self.actions.copy),
            f"{tree}pageUp": page(-1),
            f"{tree}pageDown": page(1),
            f"{tree}first": lambda: view.select_row(0),
            f"{tree}last": lambda: view.select_row(len(view)),
            f"{tree}leaf": self._to_leaf,
            f"{tree}foldOrUp": view.fold_or_up,
            f"{tree}unfoldOrDown": view.unfold_or_down,
            f"{tree}search": self._open_search,
            f"{tree}focus": self._switch_focus,
            f"{tree}nextHit": lambda: self._to_hit(1),
            f"{tree}previousHit": lambda: self._to_hit(-1),
            f"{tree}editLabel": self._open_label,
            f"{tree}label": self._open_label,
            f"{tree}toggleLabelTimestamp": self._toggle_label_times,
            f"{tree}copy": self._on_selected(self.actions.copy),
            f"{tree}pin": self._on_selected(self.actions.pin),
            f"{tree}leaveOut": self._on_selected(self.actions.leave_out),
            f"{tree}fork": self._on_selected(self.actions.fork),
            f"{tree}compact": self._on_selected(self.actions.compact),
            f"{tree}hide": self._hide,
            f"{tree}showHidden": view.toggle_hidden,
            f"{tree}mark": self._mark,
            f"{tree}compare": self._compare,
            f"{tree}undo": lambda: self._tell(self.actions.undo()),
            f"{tree}preview": self._next_preview,
            f"{tree}showPath": self._toggle_path,
            f"{tree}larger": lambda: self._resize_by(max(2, self._available_rows // 8)),
            f"{tree}smaller": lambda: self._resize_by(-max(2, self._available_rows // 8)),
            f"{tree}whole": self._toggle_whole,
            f"{tree}previewUp": scroll(lambda: -WHEEL_ROWS),
            f"{tree}previewDown": scroll(lambda: WHEEL_ROWS),
            f"{tree}previewPageUp": scroll(lambda: -preview_page()),
            f"{tree}previewPageDown": scroll(preview_page),
            f"{tree}help": self._open_help,
        }
        filters: dict[str, TreeFilter] = {
            "noTools": "no-tools", "userOnly": "user-only", "labeledOnly": "labeled-only",
            "all": "all",
        }  # fmt: skip
        for name, mode in filters.items():
            table[f"{tree}filter.{name}"] = self._filtering(
                lambda mode=mode: view.toggle_filter(mode)  # type: ignore[misc]
            )
        table[f"{tree}filter.default"] = self._filtering(lambda: view.set_filter("default"))
        table[f"{tree}filter.cycleForward"] = self._filtering(lambda: view.cycle_filter(1))
        table[f"{tree}filter.cycleBackward"] = self._filtering(lambda: view.cycle_filter(-1))
        return table

    def _on_selected(self, deed: Callable[[str], str]) -> Callable[[], None]:
        def do() -> None:
            entry_id = self.view.selected_id
            if entry_id is not None:
                self._tell(deed(entry_id))
                self._take_in_marks()

        return do

    def _filtering(self, change: Callable[[], None]) -> Callable[[], None]:
        def do() -> None:
            change()
            if self._query:
                self._search_now()

        return do

    def _moving(self, move: Callable[[], None], step: int) -> Callable[[], None]:
        """While a whole path is shown the arrows scroll it."""

        def do() -> None:
            if self.path_preview.active:
                self.preview.scroll_rows(step)
            else:
                move()

        return do

    def _confirm(self) -> None:
        entry_id = self.view.selected_id
        if entry_id is not None:
            self._flush_search()
            self.actions.choose(self.view.selected_id or entry_id)

    def _step_back(self) -> None:
        if self.path_preview.active:
            self._toggle_path()
        elif self.keyboard == "search" or self._query or self.search_input.text:
            self._clear_search()
        elif self.state.preview == "whole":
            self.state.preview = "beside"
            self._place_preview()
        else:
            self.finish(None)

    def _to_leaf(self) -> None:
        if self.view.tree.leaf_id is not None:
            self.view.select(self.view.tree.leaf_id)

    # ------------------------------------------------------------ search

    def _open_search(self) -> None:
        self.keyboard = "search"

    def _switch_focus(self) -> None:
        if self.keyboard == "search":
            self._flush_search()
            self.keyboard = "list"
        else:
            self.keyboard = "search"

    def _clear_search(self) -> None:
        self._stop_timer("search")
        self._search.stop()
        self.search_input.clear()
        self.keyboard = "list"
        self._problem = ""
        self._query = Query()
        self.painter.set_query(self._query)
        if self.view.searching:
            self.view.end_search()

    def _flush_search(self) -> None:
        """Do now what waits for a pause in typing."""
        if "search" in self._timers:
            self._search_now()

    def _search_now(self) -> None:
        self._stop_timer("search")
        text = self.search_input.text
        try:
            query = parse_query(text)
        except UsageError as error:
            self._search.stop()
            self._problem = error.message
            self.refresh()
            return
        self._problem = ""
        self._query = query
        self.painter.set_query(query)
        if not query:
            self._search.stop()
            if self.view.searching:
                self.view.end_search()
            self._show()
            return
        view = self.view
        at = view.shape.index.get(view.selected_id or "", 0)
        view.begin_search()
        ids = (entry_id for entry_id in outward(view.shape.ids, at) if view.is_shown_kind(entry_id))
        self._search.start(query, ids)
        self.refresh()

    def _found(self, hits: Sequence[str]) -> None:
        self.view.add_hits(hits)
        self._lay_out_soon()

    def _search_ended(self, problem: str | None) -> None:
        if problem is not None:
            self._problem = problem
        self._stop_timer("layout")
        self._lay_out_now()

    def _lay_out_soon(self) -> None:
        """Lay out again, but only for a small share of the time."""
        wait_s = self._laid_out_s + RELAYOUT_SHARE * self._layout_cost_s - time.perf_counter()
        if wait_s <= 0:
            self._stop_timer("layout")
            self._lay_out_now()
        elif "layout" not in self._timers:
            self._later("layout", wait_s, self._lay_out_now)

    def _lay_out_now(self) -> None:
        self._stop_timer("layout")
        start_s = time.perf_counter()
        self.view.relayout()
        self._laid_out_s = time.perf_counter()
        self._layout_cost_s = self._laid_out_s - start_s
        self._show()

    def _to_hit(self, step: int) -> None:
        self._flush_search()
        if not self.view.next_hit(step):
            search = self.tree_keys.name("app.tree.search")
            self._tell("no hits" if self._query else f"{search} searches first")

    # ------------------------------------------------------------ label

    def _open_label(self) -> None:
        self._labelled = self.view.selected_id
        if self._labelled is not None:
            self.keyboard = "label"
            self.label_input.set(self.view.tree.label(self._labelled) or "")

    def _label_key(self, name: str, character: str | None) -> None:
        if self.keys.means(name, "tui.select.cancel"):
            self.keyboard = "list"
        elif self.keys.means(name, "tui.select.confirm"):
            self.keyboard = "list"
            self._store_label()
        elif not self._edit(self.label_input, name, character, None) and self.keys.means(
            name, "tui.editor.deleteToLineStart"
        ):
            self.label_input.clear()
        self._show()

    def _store_label(self) -> None:
        if self._labelled is None:
            return
        try:
            self._tell(self.actions.label(self._labelled, self.label_input.text.strip()))
        except PiTuiError as error:
            self._tell(f"{error.message} {error.hint or ''}".strip(), "error")
        self.state.texts.forget(self._labelled)
        self.tree_changed()

    def _toggle_label_times(self) -> None:
        self.state.label_times = self.painter.label_times = not self.painter.label_times
        self.painter.forget()

    # ------------------------------------------------------------ deeds

    def _hide(self) -> None:
        selected = self.view.selected_id
        if selected is None:
            return
        hidden = self.actions.hidden
        start = selected if selected in hidden else self.view.branch_start(selected)
        if start is None:
            raise UsageError("you are on this branch; go to another one, then hide it")
        self._tell(self.actions.hide(start))
        self._take_in_marks()

    def _mark(self) -> None:
        selected = self.view.selected_id
        marked = self.state.marked = None if self.state.marked == selected else selected
        key = self.tree_keys.name("app.tree.compare")
        self._tell(f"marked; {key} on another entry compares the two" if marked else "no mark")
        self._take_in_marks()

    def _compare(self) -> None:
        selected = self.view.selected_id
        other = self.state.marked or self.view.tree.leaf_id
        if selected is None or other is None:
            return
        if selected == other:
            mark = self.tree_keys.name("app.tree.mark")
            raise UsageError(f"choose another entry to compare with, or mark one with {mark}")
        self._tell(self.actions.compare(other, selected))

    def _take_in_marks(self) -> None:
        self.painter.marks = self.actions.marks
        self.painter.forget()
        self.tree_changed()

    def tree_changed(self) -> None:
        """Take in entries, labels and moves of the leaf; for the caller to say how often."""
        if len(self.view.shape) != len(self.view.tree) or self.view.leaf_moved:
            self.view.refresh()
        self.view.set_hidden(self.actions.hidden)
        self.painter.marks = self.actions.marks
        self.painter.forget()
        self._previewed = None
        self._show()

    def note_change(self) -> None:
        """Say that the tree changed; it is looked at again soon."""
        if "change" not in self._timers and self.is_attached:
            cost_s = max(0.1, 10 * self._layout_cost_s, len(self.view.shape) / 50_000)
            self._later("change", cost_s, self.tree_changed)

    # ------------------------------------------------------------ preview

    def _next_preview(self) -> None:
        if self.path_preview.active:
            self._toggle_path()
            return
        order = ("beside", "whole", "off")
        self.state.preview = order[(order.index(self.state.preview) + 1) % 3]
        if self.state.preview == "beside" and self._areas()[1] is None:
            self.state.preview = "whole"  # there is no room beside or below
        self._place_preview()

    def _toggle_path(self) -> None:
        if self.path_preview.active:
            self.path_preview.stop()
            self._previewed = None
        elif self.view.selected_id is not None:
            self.path_preview.start(self.view.selected_id)
        self._place_preview()

    def _preview_now(self) -> None:
        self._stop_timer("preview")
        selected = self.view.selected_id
        if self.path_preview.active or not self.preview.display:
            return
        if selected is None:
            self.preview.show(())
        elif selected != self._previewed:
            self.preview.show(preview_blocks(self.view.tree, selected))
        self._previewed = selected

    # ------------------------------------------------------------ help

    def _open_help(self) -> None:
        self.keyboard = "help"
        self._help_top = 0
        self._place_preview()

    def _help_key(self, name: str, character: str | None) -> None:
        keys = self.keys
        page = max(1, self._room - 1)
        steps = {"tui.select.up": -1, "tui.select.down": 1, "tui.select.pageUp": -page,
                 "tui.select.pageDown": page}  # fmt: skip
        if keys.means(name, "tui.select.cancel") or character in ("q", "?"):
            self.keyboard = "list"
            self._place_preview()
        else:
            step = next((rows for action, rows in steps.items() if keys.means(name, action)), 0)
            step = page if name == "space" else step
            last = max(0, len(self.tree_keys.help_rows()) - self._room)
            self._help_top = max(0, min(last, self._help_top + step))
        self._show()

    # ------------------------------------------------------------ timers and reading on

    def _later(self, name: str, wait_s: float, work: Callable[[], None]) -> None:
        self._stop_timer(name)

        def fire() -> None:
            self._timers.pop(name, None)
            work()

        self._timers[name] = self.set_timer(wait_s, fire)

    def _stop_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.stop()

    def _read_on(self) -> None:
        """Look at more answers while nobody waits, so that quiet ones vanish."""
        until_s = time.perf_counter() + READ_SLICE_S
        vanished = False
        while self.view.unread_count and time.perf_counter() < until_s:
            vanished = self.view.settle_some(READ_STEP) or vanished
        if vanished:
            self._lay_out_soon()
        if self.view.unread_count:
            self._later("read", 0.001, self._read_on)

    # ------------------------------------------------------------ showing

    def _tell(self, text: str, role: str = "muted") -> None:
        self._notice, self._notice_role = sanitise_line(text), role

    def _show(self) -> None:
        """Draw again, after a change of whatever kind."""
        if not self.is_attached:
            return
        self._top_override = None
        rows = self._list_rows
        if self.view.settle(rows, rows):
            self._previewed = None
        if self.preview.display and self.view.selected_id != self._previewed:
            self._later("preview", PREVIEW_DELAY_S, self._preview_now)
        self.refresh()

    @property
    def hint(self) -> str:
        room = max(0, self.size.width - 6)
        if self.keyboard == "label":
            return clip("enter saves · empty removes · esc cancels", room)
        if self.keyboard == "help":
            return clip("↑ ↓ scroll · esc back", room)
        if self.path_preview.active:
            key = self.tree_keys.name("app.tree.showPath")
            return clip(f"↑ ↓ space b scroll · {key} or esc back · nothing was moved", room)
        if self.keyboard == "search":
            return clip("enter go · ↑ ↓ move · tab list · esc clear · alt+key for commands", room)
        without = [] if self.state.marked else ["app.tree.compare"]
        return self.tree_keys.help_line(room, without=without)

    def body_line(self, y: int, width: int) -> Strip:
        if y == 0:
            return self._head_line(width)
        if self.keyboard == "help":
            return self._help_line(y - 1, width)
        area, preview = self._areas()
        row = y - 1
        if row >= area.height:
            border = self.palette.ink("borderMuted")
            return Strip([Segment("─" * width if row == area.height else "", border)])
        strip = self._list_line(row, area.width)
        if area.width < width and preview is not None:
            line = Strip([Segment("│", self.palette.ink("borderMuted"))])
            strip = Strip.join([strip.adjust_cell_length(area.width), line])
        return strip

    @property
    def _top(self) -> int:
        rows, count = self._list_rows, len(self.view)
        top = self.view.selected_row - rows // 2 if self._top_override is None else None
        top = self._top_override if top is None else top
        return max(0, min(top or 0, count - rows))

    @property
    def _pan(self) -> int:
        if not len(self.view):
            return 0
        level = self.view.row(self.view.selected_row).level
        return self.painter.pan_for(level, self._areas()[0].width)

    def _list_line(self, row: int, width: int) -> Strip:
        number = self._top + row
        if number >= len(self.view):
            return Strip([Segment(self._empty_text() if row == 0 else "", self.palette.ink("dim"))])
        selected = number == self.view.selected_row
        return self.painter.draw(self.view, number, width, self._pan, selected=selected)

    def _empty_text(self) -> str:
        if len(self.view):
            return ""
        if self._query:
            return "  searching …" if self._search.running else "  nothing fits"
        if not len(self.view.tree):
            return "  the session is empty"
        return f"  nothing to show with the filter {self.view.filter}"

    def _head_line(self, width: int) -> Strip:
        ink = self.palette.ink
        status = Strip([Segment(self._status(width), ink("dim"))])
        room = max(1, width - status.cell_length - 1)
        if self._notice:
            left = Strip([Segment("  " + clip(self._notice, room - 2), ink(self._notice_role))])
        elif self.keyboard == "label":
            left = self._input_line("label: ", self.label_input, room, has_keyboard=True)
        elif self.path_preview.active:
            left = Strip([Segment(clip("  the path to the entry", room), ink("accent"))])
        elif self.keyboard == "search" or self.search_input.text:
            left = self._input_line(
                "search: ", self.search_input, room, has_keyboard=self.keyboard == "search"
            )
        else:
            left = Strip([Segment("", ink("dim"))])
        if self._problem and not self._notice:
            problem = Segment(f"  {clip(sanitise_line(self._problem), room)}", ink("warning"))
            left = Strip.join([left, Strip([problem])])
        return Strip.join([left.adjust_cell_length(room), Strip([Segment(" ")]), status])

    def _input_line(self, prompt: str, line: LineInput, room: int, *, has_keyboard: bool) -> Strip:
        shown = sanitise_line(line.text)
        space = max(1, room - cell_len(prompt) - 4)
        while cell_len(shown) > space:
            shown = shown[max(1, len(shown) - space) :]
        cursor = [Segment(" ", Style(reverse=True))] if has_keyboard else []
        ink = self.palette.ink
        return Strip([Segment(f"  {prompt}", ink("muted")), Segment(shown, ink("text")), *cursor])

    def _status(self, width: int) -> str:
        view = self.view
        at = view.selected_row + 1 if len(view) else 0
        parts = [f"({at:,}/{len(view):,})"]
        if self._query:
            hits = f"{view.hit_count:,} {'hit' if view.hit_count == 1 else 'hits'}"
            parts.insert(0, f"{hits} …" if self._search.running else hits)
        if width >= 50 or view.filter != "default":
            parts.append(f"[{view.filter}]")
        if self.painter.label_times:
            parts.append("[+label time]")
        if view.hidden_count and width >= 60:
            parts.append(f"[{view.hidden_count:,} hidden]")
        return " ".join(parts)

    def _help_line(self, row: int, width: int) -> Strip:
        rows = self.tree_keys.help_rows()
        number = self._help_top + row
        if number >= len(rows):
            return Strip([])
        keys, words = rows[number]
        column = min(max(len(keys) for keys, _ in rows), max(8, width // 3))
        ink = self.palette.ink
        left = Strip([Segment(f"  {clip(keys, column)}", ink("accent"))])
        text = clip(words, max(1, width - column - 5))
        return Strip.join(
            [left.adjust_cell_length(column + 4), Strip([Segment(text, ink("text"))])]
        )

    # ------------------------------------------------------------ mouse

    def _on_click(self, event: events.Click) -> None:
        event.stop()
        row = event.y - 2
        area, _ = self._areas()
        inside = 0 <= row < area.height and event.x < area.width
        if self.keyboard in ("help", "label") or not inside or event.button != 1:
            return
        number = self._top + row
        if number >= len(self.view):
            return
        self._notice = ""
        self.keyboard = "list"
        pan, top = self._pan, self._top
        if event.chain == 1 and self.painter.is_on_fold(event.x, self.view.row(number), pan):
            self.view.toggle_fold(number)
        else:
            self.view.select_row(number)
            if event.chain == 2:
                self._confirm()
        self._show()
        self._top_override = top  # what was clicked on stays under the mouse

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._wheel(WHEEL_ROWS)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._wheel(-WHEEL_ROWS)

    def _wheel(self, rows: int) -> None:
        if self.keyboard == "help":
            last = max(0, len(self.tree_keys.help_rows()) - self._room)
            self._help_top = max(0, min(last, self._help_top + rows))
        else:
            self._top_override = self._top + rows
            self._top_override = self._top
            ahead = abs(self._top - self.view.selected_row) + 2 * self._list_rows
            selected, before = self.view.selected_row, self._top
            if self.view.settle(ahead, ahead):
                self._top_override = before + self.view.selected_row - selected
        self.refresh()


def local_time(ms: int) -> datetime:
    """A moment as the clock on the wall shows it."""
    return datetime.fromtimestamp(ms / 1000)
