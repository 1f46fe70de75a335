"""Where the list and the preview of the navigator are, for a width and a height. Pure."""

from __future__ import annotations

from textual.geometry import Region

from pi_tui.tui.tree.tree_state import PreviewMode

BESIDE_FROM_CELLS = 96
BELOW_FROM_ROWS = 14
LEAST_LIST_CELLS = 52


def areas(width: int, rows: int, mode: PreviewMode) -> tuple[Region, Region | None]:
    """The list's and the preview's part; None when there is no room for a preview or none wanted.

    Between the two a column or a row is left free for a line.
    """
    whole = Region(0, 0, width, rows)
    if mode == "whole":
        return Region(0, 0, width, 0), whole
    if mode == "beside" and width >= BESIDE_FROM_CELLS and rows >= 3:
        left = max(LEAST_LIST_CELLS, width * 11 // 20)
        return Region(0, 0, left, rows), Region(left + 1, 0, width - left - 1, rows)
    if mode == "beside" and rows >= BELOW_FROM_ROWS:
        below = rows * 2 // 5
        return Region(0, 0, width, rows - below - 1), Region(0, rows - below, width, below)
    return whole, None
