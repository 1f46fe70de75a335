"""What the navigator keeps of a session from one opening to the next, while the program runs."""

from __future__ import annotations

from msgspec import Struct, field

from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_layout import TreeLayout
from pi_tui.core.tree_shape import TreeFilter, TreeShape


class TreeMemory(Struct):
    """What a session's navigator remembers while the program runs: its view, and what it found out.

    `filter` None: the one from the settings. `quiet` says of answers whether they are quiet. The
    rows stand beside what they were made of, so that opening again need not lay them out again.
    """

    filter: TreeFilter | None = None
    show_hidden: bool = False
    folded: set[str] = field(default_factory=set)
    quiet: dict[str, bool] = field(default_factory=dict)
    shape: TreeShape | None = None
    shape_of: SessionTree | None = None
    layout: TreeLayout | None = None
    layout_of: tuple[bytes, frozenset[int]] = (b"", frozenset())
