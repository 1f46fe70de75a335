"""The tree panel: list, search, preview, and the keys and clicks that move in them.

It shows a `TreeView` and hands every deed to `TreeActions`. Its result is where to go, or None.
One thing has the keyboard at a time: the list, the search, the label editor or the help. Times are
seconds of the performance counter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Self, TypeAlias

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.geometry import Region
from textual.strip import Strip

from pi_tui.agent.navigator import NavigateRequest
from pi_tui.core.errors import PiTuiError
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tree_view import TreeView
from pi_tui.tui.dialogs.panel import RULE_CELLS, Panel
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.theme import ThemeSource
from pi_tui.tui.transcript import KeyHints
from pi_tui.tui.tree.answer_reading import AnswerReading
from pi_tui.tui.tree.areas import areas
from pi_tui.tui.tree.delays import Delays
from pi_tui.tui.tree.head_line import HeadLine, told_line
from pi_tui.tui.tree.help_page import HelpPage
from pi_tui.tui.tree.line_input import LineInput
from pi_tui.tui.tree.list_pane import ListPane
from pi_tui.tui.tree.panel_height import PanelHeight
from pi_tui.tui.tree.preview import PreviewPane
from pi_tui.tui.tree.preview_control import PreviewControl
from pi_tui.tui.tree.row_painter import RowPainter
from pi_tui.tui.tree.search_control import SearchControl
from pi_tui.tui.tree.tree_actions import TreeActions
from pi_tui.tui.tree.tree_commands import TreeCommands
from pi_tui.tui.tree.tree_keys import TreeKeys
from pi_tui.tui.tree.tree_state import TreeState

LIST_TOP = 2
SUMMARY_TYPE = "branch_summary"
WHEEL_ROWS = 3
HINTS = {
    "label": "esc cancels · enter saves · empty removes",
    "help": "esc back · ↑ ↓ space scroll",
    "search": "esc clear · enter go · ↑ ↓ move · tab list · alt+key for commands",
}
CHANGE_PAUSE_S = 0.1
ENTRIES_READ_PER_S = 50_000
"""How fast a grown tree may be taken in again and again without being felt."""

Keyboard: TypeAlias = Literal["list", "search", "label", "help"]


class TreePanel(Panel[NavigateRequest]):
    """The navigator over one session's tree."""

    DEFAULT_CSS = "TreePanel { height: 12; overflow: hidden; }"

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
        self.list = ListPane(view, self.painter)
        hints = KeyHints(
            expand=keys.label("app.tools.expand"),
            thinking=keys.label("app.thinking.toggle"),
            more=f"↓ more ({self.tree_keys.name('app.tree.previewPageDown')})",
        )
        self.preview = PreviewPane(theme, hints)
        self.label_input = LineInput()
        self.delays = Delays(self)
        self.previewing = PreviewControl(view, self.preview, self.delays)
        self.search = SearchControl(view, self.painter, state.texts, self.delays, self.show)
        self._reading = AnswerReading(view, self.delays, self.search.lay_out_soon)
        self._help = HelpPage(self.tree_keys.help_notes(), self.tree_keys.help_rows())
        self._height = PanelHeight(state)
        self._head = HeadLine(view, self.search, self.painter, palette)
        self._labelled: str | None = None
        self._early_keys: list[tuple[str, str | None]] = []
        self._lines: list[Strip] = []
        self._commands = TreeCommands(self)

    def compose(self) -> ComposeResult:
        yield self.preview

    def on_mount(self) -> None:
        self._reading.begin()
        self.view.relayout()
        self.show()

    def on_unmount(self) -> None:
        self.search.stop()
        self.previewing.stop()
        self.delays.stop_all()

    # ------------------------------------------------------------ size

    def wanted_rows(self) -> int:
        return self._height.wanted(self._available_rows)

    def fit(self) -> None:
        height = self._height.rows(self._available_rows)
        self._body_rows = height - 2
        self.styles.height = height
        self.place_preview()
        self.refresh()

    def resize_by(self, rows: int) -> None:
        """Take more rows, fewer when negative."""
        self._height.grow(rows, self._available_rows)
        self.fit()

    def toggle_whole(self) -> None:
        """Take the whole terminal, or as much as before."""
        self._height.toggle_whole()
        self.fit()

    @property
    def resize_step(self) -> int:
        return max(2, self._available_rows // 8)

    @property
    def _below_head(self) -> int:
        return max(0, self.body_rows - 1)

    def _areas(self) -> tuple[Region, Region | None]:
        mode = "whole" if self.previewing.shows_path else self.state.preview
        return areas(self.size.width, self._below_head, mode)

    def _fit_list(self) -> None:
        area = self._areas()[0]
        self.list.fit(area.width, area.height)

    @property
    def has_preview(self) -> bool:
        """True when there is room for a preview and it is wanted."""
        return self._areas()[1] is not None

    def place_preview(self) -> None:
        """Put the preview where it belongs now."""
        self._fit_list()
        if self.is_attached:
            region = None if self.keyboard == "help" else self._areas()[1]
            self.preview.place(None if region is None else region.translate((0, LIST_TOP)))

    def on_resize(self, event: events.Resize) -> None:
        event.stop()
        self.fit()
        self.show()

    # ------------------------------------------------------------ keys

    def key(self, name: str, character: str | None) -> None:
        if self.actions.asking:
            self._early_keys.append((name, character))
            return
        self.tell("")
        if self.keyboard == "label":
            self._label_key(name, character)
        elif self.keyboard == "help":
            self._help_key(name, character)
        else:
            self._command_key(name, character)

    def take_early_keys(self) -> list[tuple[str, str | None]]:
        """The keys that came after an entry was chosen, for the question that opens."""
        keys, self._early_keys = self._early_keys, []
        return keys

    def replay_early_keys(self) -> None:
        """Take them here: there was no question, or it has gone."""
        for name, character in self.take_early_keys():
            self.key(name, character)

    def _command_key(self, name: str, character: str | None) -> None:
        typing = self.keyboard == "search"
        action = self.tree_keys.action(name, character, typing=typing)
        text = character if action is None else None
        if typing and self.tree_keys.edit(self.search.line, name, text):
            self.search.edited()
            self._refresh_changed()
            return
        if action is None and character is not None and not typing:
            search, every = (self.tree_keys.name(f"app.tree.{w}") for w in ("search", "help"))
            self.tell(f"{search} searches, {every} shows the keys")
        if action is not None:
            self.attempt(lambda: self._commands.perform(action))
        self.show()

    def paste(self, text: str) -> None:
        if self.keyboard == "label":
            self.label_input.insert(text)
        elif self.keyboard != "help":
            self.keyboard = "search"
            self.search.line.insert(text)
            self.search.edited()
        self._refresh_changed()

    def attempt(self, deed: Callable[[], object]) -> None:
        """Do something that may be refused; a refusal is told."""
        try:
            deed()
        except PiTuiError as error:
            self.tell(error.text, "error")

    def tell(self, text: str, role: str = "muted") -> None:
        """Say something above the list until the next key."""
        self._head.told = text, role

    def tell_now(self, text: str, role: str = "muted") -> None:
        """Say something that comes by itself, not from a key that draws everything anyway."""
        self.tell(text, role)
        self.show()

    def reveal(self, entry_id: str) -> bool:
        """Select an entry, out of searches, folds and hidden branches; False when there is none."""
        if self.search.active:
            self.search.clear()
        self.keyboard = "list"
        return self.view.reveal(entry_id)

    def step_back(self) -> None:
        """Escape: leave the path, then the search, then the large preview, then the navigator."""
        if self.previewing.shows_path:
            self.toggle_path()
        elif self.keyboard == "search" or self.search.active:
            self.search.clear()
            self.keyboard = "list"
        elif self.state.preview == "whole":
            self.state.preview = "beside"
            self.place_preview()
        else:
            self.finish(None)

    def confirm(self) -> None:
        """Enter: go to the selected entry."""
        self.search.flush()
        if self.view.selected_id is not None:
            self.actions.choose(self.view.selected_id)

    # ------------------------------------------------------------ label and help

    def open_label(self) -> None:
        """Edit the label of the selected entry."""
        self._labelled = self.view.selected_id
        if self._labelled is not None:
            self.keyboard = "label"
            self.label_input.set(self.view.tree.label(self._labelled) or "")

    def _label_key(self, name: str, character: str | None) -> None:
        if self.keys.means(name, "tui.select.cancel"):
            self.keyboard = "list"
        elif self.keys.means(name, "tui.select.confirm"):
            self.keyboard = "list"
            self.attempt(self._store_label)
        elif self.keys.means(name, "tui.editor.deleteToLineStart"):
            self.label_input.clear()
        else:
            self.tree_keys.edit(self.label_input, name, character)
        self.show()

    def _store_label(self) -> None:
        if self._labelled is not None:
            self.tell(self.actions.label(self._labelled, self.label_input.text.strip()))
            self.state.texts.forget(self._labelled)
            self.tree_changed()

    def open_help(self) -> None:
        self.keyboard = "help"
        self._help.open()
        self.place_preview()

    def _help_key(self, name: str, character: str | None) -> None:
        page = max(1, self._below_head - 1)
        steps = {"up": -1, "down": 1, "pageUp": -page, "pageDown": page}
        means = self.keys.means
        if means(name, "tui.select.cancel") or character in ("q", "?"):
            self.keyboard = "list"
            self.place_preview()
        else:
            keys = (rows for word, rows in steps.items() if means(name, f"tui.select.{word}"))
            rows = page if name == "space" else next(keys, 0)
            self._help.scroll(rows, self._below_head, self.size.width)
        self.show()

    # ------------------------------------------------------------ the tree changes

    def tree_changed(self) -> None:
        """Take in entries, labels, marks and moves of the leaf."""
        view = self.view
        if len(view.shape) != len(view.tree) or view.leaf_moved:
            view.refresh()
        view.set_hidden(self.actions.hidden)
        self.painter.marks = self.actions.marks
        self.painter.forget()
        self.previewing.forget()
        self._reading.go_on()
        self.show()

    def note_change(self) -> None:
        """Say that the tree changed; it is looked at again soon."""
        if "change" not in self.delays and self.is_attached:
            pause_s = max(CHANGE_PAUSE_S, len(self.view.shape) / ENTRIES_READ_PER_S)
            self.delays.start("change", pause_s, self.tree_changed)

    # ------------------------------------------------------------ preview

    def toggle_path(self) -> None:
        """Show the whole path to the selected entry, or the list again."""
        self.previewing.toggle_path()
        self.place_preview()

    # ------------------------------------------------------------ drawing

    def show(self) -> None:
        """Draw again, after a change of whatever kind."""
        if not self.is_attached:
            return
        self._fit_list()
        self.list.follow()
        self.view.settle(self.list.rows, self.list.rows)
        self.previewing.follow()
        self._refresh_changed()

    def _refresh_changed(self) -> None:
        """Draw those lines again that are others now: what is beside them is left alone."""
        before, width = self._lines, self.size.width
        self._lines = [self._draw_line(y) for y in range(self.size.height)]
        if len(before) != len(self._lines):
            super().refresh()
            return
        area, preview = self._areas()
        beside = preview is not None and 0 < area.width < width and self.keyboard != "help"
        for y, (old, new) in enumerate(zip(before, self._lines, strict=True)):
            if old != new:
                in_list = beside and LIST_TOP <= y < LIST_TOP + area.height
                self.refresh(Region(0, y, area.width + 1 if in_list else width, 1))

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        if not regions:
            self._lines = []  # the next one that is asked for is drawn anew
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    @property
    def hint(self) -> str:
        keys = self.tree_keys
        if self.keyboard in ("list", "search") and self.previewing.shows_path:
            return keys.path_line()
        if self.keyboard != "list":
            return HINTS[self.keyboard]
        selected = self.view.selected_id
        is_summary = selected is not None and self.view.tree.head(selected).type == SUMMARY_TYPE
        first = ("app.tree.origin",) if is_summary else ()
        return keys.help_line(max(0, self.size.width - RULE_CELLS), first=first)

    def render_line(self, y: int) -> Strip:
        return self._lines[y] if y < len(self._lines) else self._draw_line(y)

    def _draw_line(self, y: int) -> Strip:
        # The ground of the theme, as the preview beside it has.
        return super().render_line(y).simplify().apply_style(self.rich_style)

    def body_line(self, y: int, width: int) -> Strip:
        if y == 0:
            label = self.label_input if self.keyboard == "label" else None
            typing, path = self.keyboard == "search", self.previewing.shows_path
            return self._head.draw(width, typing=typing, label=label, shows_path=path)
        if self.keyboard == "help":
            return self._help.line(y - 1, width, self.palette)
        area, preview = self._areas()
        row, border = y - 1, self.palette.ink("borderMuted")
        if row >= area.height:
            return Strip([Segment("─" * width if row == area.height else "", border)])
        strip = self.list.line(row)
        if strip is None:
            said = self._head.empty_text if row == 0 else ""
            strip = told_line(said, "dim", area.width, self.palette)
        if preview is None or area.width == width:
            return strip
        return Strip.join([strip.adjust_cell_length(area.width), Strip([Segment("│", border)])])

    # ------------------------------------------------------------ mouse

    async def _on_click(self, event: events.Click) -> None:
        event.stop()
        number = self.list.row_at(event.x, event.y - LIST_TOP)
        if self.keyboard in ("help", "label") or number is None or event.button != 1:
            return
        self.tell("")
        top = self.list.top
        if event.chain == 1 and self.list.is_on_fold(event.x, number):
            self.view.toggle_fold(number)
        else:
            self.view.select_row(number)
        self.show()
        self.list.hold(top)  # what was clicked on stays under the mouse
        if event.chain == 2:
            self.confirm()

    def _on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._wheel(WHEEL_ROWS)

    def _on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._wheel(-WHEEL_ROWS)

    def _wheel(self, rows: int) -> None:
        if self.keyboard == "help":
            self._help.scroll(rows, self._below_head, self.size.width)
        else:
            self.list.wheel(rows)
        self._refresh_changed()
