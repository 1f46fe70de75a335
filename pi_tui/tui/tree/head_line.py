"""The line above the list: what is typed or told, and where in the list one is."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.tree_view import TreeView
from pi_tui.tui.palette import Palette
from pi_tui.tui.transcript.wrap import clip
from pi_tui.tui.tree.line_input import LineInput
from pi_tui.tui.tree.row_painter import RowPainter
from pi_tui.tui.tree.search_control import SearchControl

FILTER_FROM_CELLS = 50
HIDDEN_FROM_CELLS = 60


class HeadLine:
    """Draws it for one panel. `told`: what is said until the next key, and in which colour."""

    def __init__(
        self, view: TreeView, search: SearchControl, painter: RowPainter, palette: Palette
    ) -> None:
        self._view = view
        self._search = search
        self._painter = painter
        self._palette = palette
        self.told = ("", "muted")

    def draw(self, width: int, *, typing: bool, label: LineInput | None, shows_path: bool) -> Strip:
        """The line at a width. `typing`: in the search; `label`: what is typed as one."""
        search, palette = self._search, self._palette
        status = self._status(width)
        text, role = self.told
        room = max(1, width - len(status) - 1)
        if text:
            if cell_len(sanitise_line(text)) + 2 > room:
                status, room = "", width  # what is told is read once, the place at any time
            left = told_line(text, role, room, palette)
        elif label is not None:
            left = input_line("label: ", label, room, palette, typing=True)
        elif shows_path:
            left = told_line("the path to the entry", "accent", room, palette)
        elif typing or search.active:
            left = input_line(
                "search: ", search.line, room, palette, typing=typing, problem=search.problem
            )
        else:
            left = Strip([])
        right = Strip([Segment(clip(status, width), palette.ink("dim"))])
        room = max(0, width - right.cell_length - 1)
        return Strip.join([left.adjust_cell_length(room), Strip([Segment(" ")]), right])

    @property
    def empty_text(self) -> str:
        """Why there are no rows; "" when there are."""
        if len(self._view):
            return ""
        if self._search.has_query:
            return "searching …" if self._search.running else "nothing fits"
        if not len(self._view.tree):
            return "the session is empty"
        return f"there is nothing to show with the filter {self._view.filter}"

    def _status(self, width: int) -> str:
        """Hits, place, filter and what else is set, as much as the width has room for."""
        view, search = self._view, self._search
        at = view.selected_row + 1 if len(view) else 0
        parts = [f"({at:,}/{len(view):,})"]
        if search.has_query:
            hits = f"{view.hit_count:,} {'hit' if view.hit_count == 1 else 'hits'}"
            parts.insert(0, f"{hits} …" if search.running else hits)
        if width >= FILTER_FROM_CELLS or (view.filter != "default" and not search.has_query):
            parts.append(f"[{view.filter}]")
        if self._painter.label_times:
            parts.append("[+label time]")
        if view.hidden_count and width >= HIDDEN_FROM_CELLS:
            parts.append(f"[{view.hidden_count:,} hidden]")
        return " ".join(parts)


def told_line(text: str, role: str, room: int, palette: Palette) -> Strip:
    """Something to be read there, which may be foreign."""
    return Strip([Segment(clip(f"  {sanitise_line(text)}", room), palette.ink(role))])


def input_line(
    prompt: str, line: LineInput, room: int, palette: Palette, *, typing: bool, problem: str = ""
) -> Strip:
    """A line that is typed, its end in sight; a problem with it stands behind."""
    shown = sanitise_line(line.text)
    space = max(1, room - cell_len(prompt) - 4)
    while cell_len(shown) > space:
        shown = shown[max(1, len(shown) - space) :]
    pieces = [Segment(f"  {prompt}", palette.ink("muted")), Segment(shown, palette.ink("text"))]
    if typing:
        pieces.append(Segment(" ", Style(reverse=True)))
    if problem:
        used = sum(cell_len(piece.text) for piece in pieces)
        told = clip(f"  {sanitise_line(problem)}", max(0, room - used))
        pieces.append(Segment(told, palette.ink("warning")))
    return Strip(pieces)
