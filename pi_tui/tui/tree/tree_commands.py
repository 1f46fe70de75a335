"""What each action of the navigator does: the table from action ids to deeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pi_tui.core.entries import BranchSummaryEntry
from pi_tui.core.errors import UsageError
from pi_tui.core.tree_shape import TreeFilter
from pi_tui.tui.tree.tree_state import PreviewMode

if TYPE_CHECKING:
    from pi_tui.tui.tree.panel import TreePanel

PREVIEW_ROWS = 3

_FILTERS: dict[str, TreeFilter] = {
    "noTools": "no-tools",
    "userOnly": "user-only",
    "labeledOnly": "labeled-only",
    "all": "all",
}
_NEXT_PREVIEW: dict[PreviewMode, PreviewMode] = {
    "beside": "whole",
    "whole": "off",
    "off": "beside",
}


class TreeCommands:
    """Carries out actions on a panel."""

    def __init__(self, panel: TreePanel) -> None:
        self._panel = panel
        self._view = panel.view
        self._table = self._moves() | self._looks() | self._deeds() | self._filters()

    def perform(self, action: str) -> None:
        """Carry out an action. Raises PiTuiError when it is refused."""
        command = self._table.get(action)
        if command is not None:
            command()

    def _moves(self) -> dict[str, Callable[[], None]]:
        panel, view, tree = self._panel, self._view, "app.tree."
        search = panel.search
        return {
            "tui.select.up": lambda: self._move(-1),
            "tui.select.down": lambda: self._move(1),
            "tui.select.confirm": panel.confirm,
            "tui.select.cancel": panel.step_back,
            f"{tree}pageUp": lambda: self._page(-1),
            f"{tree}pageDown": lambda: self._page(1),
            f"{tree}first": lambda: view.select_row(0),
            f"{tree}last": lambda: view.select_row(len(view)),
            f"{tree}leaf": self._to_leaf,
            f"{tree}foldOrUp": view.fold_or_up,
            f"{tree}unfoldOrDown": view.unfold_or_down,
            f"{tree}search": lambda: self._give_keyboard("search"),
            f"{tree}focus": self._switch_keyboard,
            f"{tree}nextHit": lambda: search.next_hit(1),
            f"{tree}previousHit": lambda: search.next_hit(-1),
        }

    def _looks(self) -> dict[str, Callable[[], None]]:
        panel, view, tree = self._panel, self._view, "app.tree."
        preview = panel.preview
        return {
            f"{tree}preview": self._next_preview,
            f"{tree}showPath": panel.toggle_path,
            f"{tree}larger": lambda: panel.resize_by(panel.resize_step),
            f"{tree}smaller": lambda: panel.resize_by(-panel.resize_step),
            f"{tree}whole": panel.toggle_whole,
            f"{tree}previewUp": lambda: preview.scroll_rows(-PREVIEW_ROWS),
            f"{tree}previewDown": lambda: preview.scroll_rows(PREVIEW_ROWS),
            f"{tree}previewPageUp": preview.page_up,
            f"{tree}previewPageDown": preview.page_down,
            f"{tree}help": panel.open_help,
            f"{tree}toggleLabelTimestamp": self._toggle_label_times,
            f"{tree}showHidden": view.toggle_hidden,
        }

    def _deeds(self) -> dict[str, Callable[[], None]]:
        panel, tree = self._panel, "app.tree."
        actions = panel.actions
        return {
            f"{tree}editLabel": panel.open_label,
            f"{tree}label": panel.open_label,
            "app.message.copy": self._on_selected(actions.copy),
            f"{tree}copy": self._on_selected(actions.copy),
            f"{tree}pin": self._on_selected(actions.pin),
            f"{tree}leaveOut": self._on_selected(actions.leave_out),
            f"{tree}fork": self._on_selected(actions.fork),
            f"{tree}compact": self._on_selected(actions.compact),
            f"{tree}hide": self._hide,
            f"{tree}mark": self._mark,
            f"{tree}compare": self._compare,
            f"{tree}undo": actions.undo,
            f"{tree}origin": self._origin,
            f"{tree}askAgain": lambda: panel.tell(actions.ask_again()),
        }

    def _filters(self) -> dict[str, Callable[[], None]]:
        view, tree = self._view, "app.tree.filter."

        def toggling(mode: TreeFilter) -> Callable[[], None]:
            return self._filtering(lambda: view.toggle_filter(mode))

        return {
            f"{tree}default": self._filtering(lambda: view.set_filter("default")),
            f"{tree}cycleForward": self._filtering(lambda: view.cycle_filter(1)),
            f"{tree}cycleBackward": self._filtering(lambda: view.cycle_filter(-1)),
            **{f"{tree}{name}": toggling(mode) for name, mode in _FILTERS.items()},
        }

    # ------------------------------------------------------------ moving

    def _move(self, step: int) -> None:
        """While a whole path is shown the arrows scroll it."""
        if self._panel.previewing.shows_path:
            self._panel.preview.scroll_rows(step)
        else:
            self._view.move(step, wrap=True)

    def _page(self, step: int) -> None:
        panel = self._panel
        if panel.previewing.shows_path:
            (panel.preview.page_down if step > 0 else panel.preview.page_up)()
        else:
            self._view.move(step * max(1, panel.list.rows - 1))

    def _to_leaf(self) -> None:
        leaf = self._view.tree.leaf_id
        if leaf is not None:
            self._view.select(leaf)

    def _give_keyboard(self, to: str) -> None:
        self._panel.keyboard = "search" if to == "search" else "list"

    def _switch_keyboard(self) -> None:
        self._panel.search.flush()
        self._give_keyboard("list" if self._panel.keyboard == "search" else "search")

    # ------------------------------------------------------------ looking

    def _filtering(self, change: Callable[[], None]) -> Callable[[], None]:
        """A change of the filter; a search goes through what is shown then."""

        def do() -> None:
            change()
            if self._panel.search.has_query:
                self._panel.search.run()

        return do

    def _next_preview(self) -> None:
        panel, state = self._panel, self._panel.state
        if panel.previewing.shows_path:
            panel.toggle_path()
            return
        state.preview = _NEXT_PREVIEW[state.preview]
        if state.preview == "beside" and not panel.has_preview:
            state.preview = "whole"  # there is no room beside or below
        panel.place_preview()

    def _toggle_label_times(self) -> None:
        painter, state = self._panel.painter, self._panel.state
        state.label_times = painter.label_times = not painter.label_times
        painter.forget()

    # ------------------------------------------------------------ deeds

    def _on_selected(self, deed: Callable[[str], str]) -> Callable[[], None]:
        def do() -> None:
            entry_id = self._view.selected_id
            if entry_id is not None:
                self._panel.tell(deed(entry_id))
                self._panel.tree_changed()

        return do

    def _hide(self) -> None:
        selected = self._view.selected_id
        if selected is None:
            return
        actions = self._panel.actions
        start = selected if selected in actions.hidden else self._view.branch_start(selected)
        if start is None:
            raise UsageError("you are on this branch; go to another one, then hide it")
        self._panel.tell(actions.hide(start))
        self._panel.tree_changed()

    def _mark(self) -> None:
        panel, selected = self._panel, self._view.selected_id
        marked = panel.state.marked = None if panel.state.marked == selected else selected
        key = panel.tree_keys.name("app.tree.compare")
        panel.tell(f"marked; {key} elsewhere compares" if marked else "no mark")
        panel.tree_changed()

    def _origin(self) -> None:
        """From a branch summary to the end of the branch it is about."""
        panel, tree, selected = self._panel, self._view.tree, self._view.selected_id
        entry = None if selected is None else tree.entry(selected)
        if not isinstance(entry, BranchSummaryEntry):
            raise UsageError("only branch summaries have an origin")
        if not panel.reveal(entry.from_id):
            raise UsageError("its branch is not in this session")
        panel.tell("the summary's branch ends here")

    def _compare(self) -> None:
        panel, selected = self._panel, self._view.selected_id
        other = panel.state.marked or self._view.tree.leaf_id
        if selected is None or other is None:
            return
        if selected == other:
            key = panel.tree_keys.name("app.tree.mark")
            raise UsageError(f"choose another entry to compare with, or mark one with {key}")
        panel.tell(panel.actions.compare(other, selected))
