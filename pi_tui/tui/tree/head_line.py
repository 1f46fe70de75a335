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

FILTER_FROM_CELLS = 50
HIDDEN_FROM_CELLS = 60


def status_text(
    view: TreeView, width: int, *, searched: bool, searching: bool, label_times: bool
) -> str:
    """Hits, place, filter and what else is set, as much as the width has room for."""
    at = view.selected_row + 1 if len(view) else 0
    parts = [f"({at:,}/{len(view):,})"]
    if searched:
        hits = f"{view.hit_count:,} {'hit' if view.hit_count == 1 else 'hits'}"
        parts.insert(0, f"{hits} …" if searching else hits)
    if width >= FILTER_FROM_CELLS or (view.filter != "default" and not searched):
        parts.append(f"[{view.filter}]")
    if label_times:
        parts.append("[+label time]")
    if view.hidden_count and width >= HIDDEN_FROM_CELLS:
        parts.append(f"[{view.hidden_count:,} hidden]")
    return " ".join(parts)


def head_line(left: Strip, status: str, width: int, palette: Palette) -> Strip:
    """The left part, cut where it has to be, and the status at the right end."""
    right = Strip([Segment(clip(status, width), palette.ink("dim"))])
    room = max(0, width - right.cell_length - 1)
    return Strip.join([left.adjust_cell_length(room), Strip([Segment(" ")]), right])


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
