"""The session tree as flat arrays, depth first: what the navigator filters and lays out.

An entry's *index* is its place in that order; its descendants are the indexes up to `ends[index]`.
Made once for a state of the tree and without decoding a single entry. Siblings stand in the order
of their times, wherever the leaf is.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_tui.core.entries import EntryHead
from pi_tui.core.tree import SessionTree

TreeFilter: TypeAlias = Literal["default", "no-tools", "user-only", "labeled-only", "all"]
FILTERS: tuple[TreeFilter, ...] = ("default", "no-tools", "user-only", "labeled-only", "all")

BACKSTAGE, ORDINARY, USER, TOOL, ANSWER, UNREAD_ANSWER, QUIET_ANSWER = range(7)
"""What matters of an entry for the filters. BACKSTAGE is shown under "all" only. Of an
UNREAD_ANSWER nobody knows yet whether it is quiet: nothing but tool calls, and not cut short."""

_ANSWERS = (ANSWER, UNREAD_ANSWER)
_ADMITTED: dict[TreeFilter, tuple[int, ...]] = {
    "default": (ORDINARY, USER, TOOL, *_ANSWERS),
    "no-tools": (ORDINARY, USER, *_ANSWERS),
    "user-only": (USER,),
    "labeled-only": (BACKSTAGE, ORDINARY, USER, TOOL, *_ANSWERS),
    "all": (BACKSTAGE, ORDINARY, USER, TOOL, *_ANSWERS),
}

_ORDINARY_TYPES = frozenset({"compaction", "branch_summary", "custom_message"})
_ROLES = {"user": USER, "assistant": UNREAD_ANSWER, "toolResult": TOOL}


def admitted(mode: TreeFilter) -> bytes:
    """A translation table from kinds to 1 (shown) and 0. Labels are not looked at."""
    shown = _ADMITTED[mode]
    return bytes(1 if kind in shown else 0 for kind in range(256))


def admits_answers(mode: TreeFilter) -> bool:
    """True when answers may be shown at all."""
    return ANSWER in _ADMITTED[mode]


class TreeShape:
    """Arrays over all entries of a tree as it is now. `parents` has -1 for roots."""

    __slots__ = ("ends", "ids", "index", "kinds", "parents", "roots")

    def __init__(self, tree: SessionTree) -> None:
        self.ids: list[str] = []
        self.parents: list[int] = []
        self.kinds = bytearray()
        self.roots: list[int] = []
        self._walk(tree)
        self.index = {entry_id: at for at, entry_id in enumerate(self.ids)}
        self.ends = self._subtree_ends()

    def __len__(self) -> int:
        return len(self.ids)

    def children(self, at: int) -> list[int]:
        """The children of an entry, oldest first."""
        found: list[int] = []
        child, end = at + 1, self.ends[at]
        while child < end:
            found.append(child)
            child = self.ends[child]
        return found

    def is_ancestor(self, at: int, other: int) -> bool:
        """True when `at` is `other` or stands above it."""
        return at <= other < self.ends[at]

    def _walk(self, tree: SessionTree) -> None:
        ids, parents, kinds = self.ids, self.parents, self.kinds
        children, head = tree.children, tree.head
        waiting = list(reversed(tree.roots))
        parents_waiting = [-1] * len(waiting)
        while waiting:
            entry_id, parent = waiting.pop(), parents_waiting.pop()
            at = len(ids)
            ids.append(entry_id)
            parents.append(parent)
            kinds.append(_kind(head(entry_id)))
            if parent < 0:
                self.roots.append(at)
            below = children(entry_id)
            if len(below) == 1:
                waiting.append(below[0])
                parents_waiting.append(at)
            elif below:
                waiting.extend(reversed(below))
                parents_waiting.extend([at] * len(below))

    def _subtree_ends(self) -> list[int]:
        parents = self.parents
        sizes = [1] * len(parents)
        for at in range(len(parents) - 1, 0, -1):
            parent = parents[at]
            if parent >= 0:
                sizes[parent] += sizes[at]
        return [at + size for at, size in enumerate(sizes)]


def _kind(head: EntryHead) -> int:
    if head.type == "message":
        return _ROLES.get(head.role, ORDINARY)
    return ORDINARY if head.type in _ORDINARY_TYPES else BACKSTAGE
