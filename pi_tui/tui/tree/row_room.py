"""How a row of the navigator shares its width when there is little: the text comes first.

The columns go before anything of the text does, then steps of the indentation, then words of the
marks. Pure; widths are cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from rich.cells import cell_len

from pi_tui.core.tree_rows import (
    COMPARED_MARK,
    LABEL_ROLE,
    LEFT_OUT_MARK,
    PINNED_MARK,
    Part,
)
from pi_tui.tui.transcript.wrap import clip

STEP_CELLS = 3
CURSOR_CELLS = 2
BESIDE_COLUMNS_CELLS = 28
"""With less room for its text than this a row has no columns, unless the text is shorter."""
READABLE_CELLS = 18
"""So much of its text can be read of a row, in any case of the selected one."""
LEAST_TEXT_CELLS = 16
GUTTER_TENTHS = 3
"""How much of a row's width its indentation takes at most."""
LEAST_LABEL_CELLS = 7
"""A label that would be shorter with its brackets says nothing."""

_LETTERS = {COMPARED_MARK: "m", PINNED_MARK: "p", LEFT_OUT_MARK: "o"}
"""The marks in short: the letters are those of their keys."""


class RowNeeds(Struct, frozen=True):
    """What a row would like to show. `steps`: of the gutter, `beside`: what else stands before the
    marks, `marks`: whole, `least_marks`: as short as they may be, `text`: whole, `columns`: at the
    right end."""

    steps: int
    beside: int
    marks: int
    least_marks: int
    text: int
    columns: int


class RowRoom(Struct, frozen=True):
    """What of it is shown; `marks` is the room for marks."""

    steps: int
    columns: bool
    marks: int


def share(width: int, needs: RowNeeds, *, selected: bool) -> RowRoom:
    """Share a width. Only the selected row gives up steps, so that others stay in line."""
    left = width - CURSOR_CELLS - needs.beside - needs.steps * STEP_CELLS
    rest = left - min(needs.text, READABLE_CELLS)
    spare = left - min(needs.text, BESIDE_COLUMNS_CELLS) - needs.marks
    columns = 0 < needs.columns <= spare
    steps = needs.steps
    while selected and steps > 1 and rest < needs.least_marks:
        steps -= 1
        rest += STEP_CELLS
    taken = needs.columns if columns else 0
    return RowRoom(steps, columns, max(0, rest - taken))


def most_steps(width: int) -> int:
    """How many steps of the gutter stand before a text at most."""
    room = min(width * GUTTER_TENTHS // 10, width - LEAST_TEXT_CELLS - CURSOR_CELLS)
    return max(1, room // STEP_CELLS)


def cells_of(parts: Iterable[Part]) -> int:
    return sum(cell_len(text) for text, _ in parts)


def least_cells_of(marks: Sequence[Part]) -> int:
    """What label and marks take when they are as short as they may be."""
    label = sum(cell_len(text) for text, role in marks if role == LABEL_ROLE)
    return cells_of(_in_letters(marks)) + min(label, LEAST_LABEL_CELLS)


def _in_letters(marks: Sequence[Part]) -> list[Part]:
    """The marks without the label, all in one bracket: `[mpo] `."""
    letters = "".join(_LETTERS[text] for text, role in marks if role != LABEL_ROLE)
    return [(f"[{letters}] ", "accent")] if letters else []


def fitting(marks: Sequence[Part], room: int) -> list[Part]:
    """The marks in so much room: whole, or as letters and with what fits of the label."""
    if cells_of(marks) <= room:
        return list(marks)
    short = _in_letters(marks)
    left = room - cells_of(short)
    label = next((text for text, role in marks if role == LABEL_ROLE), "")
    if label and left >= min(LEAST_LABEL_CELLS, cell_len(label)):
        words = clip(label.strip()[1:-1], left - 3)
        short.insert(0, (f"[{words}] ", LABEL_ROLE))
    return short if cells_of(short) <= room else []
