"""What the navigator keeps of a session while the program runs, from one opening to the next."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct, field

from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_memory import TreeMemory
from pi_tui.tui.tree.search import SearchTexts

PreviewMode: TypeAlias = Literal["beside", "whole", "off"]
SummaryAnswer: TypeAlias = Literal["none", "summary", "instructions"]


class TreeState(Struct):
    """`rows`: the height the person chose, None: half of the terminal. `answer`: what is to be
    done about summaries without asking again. `instructions`: what was typed for one, and is used
    again with the answer of that name. `marks_of`: for how many entries and which leaf `pinned`
    and `left_out` were found."""

    tree: SessionTree
    texts: SearchTexts
    view: TreeMemory = field(default_factory=TreeMemory)
    preview: PreviewMode = "beside"
    rows: int | None = None
    whole: bool = False
    marked: str | None = None
    answer: SummaryAnswer | None = None
    instructions: str = ""
    label_times: bool = False
    pinned: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    marks_of: tuple[int, str | None] | None = None

    @classmethod
    def of(cls, tree: SessionTree) -> TreeState:
        """A state in which nothing was chosen yet."""
        return cls(tree, SearchTexts(tree))
