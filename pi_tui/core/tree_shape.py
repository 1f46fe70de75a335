"""The session tree as flat arrays, depth first: what the navigator filters and lays out.

An entry's *index* is its place in that order; its descendants are the indexes up to `ends[index]`.
Made once for a state of the tree and without decoding a single entry. Siblings stand in the order
of their times, wherever the leaf is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeAlias

from pi_tui.core.entries import EntryHead
from pi_tui.core.navigation import is_said
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

    __slots__ = ("_numbers", "_places", "_structure", "ends", "ids", "kinds", "parents", "roots")

    def __init__(self, tree: SessionTree) -> None:
        file_ids = tree.ids()
        heads = [tree.head(entry_id) for entry_id in file_ids]
        self._places = {entry_id: at for at, entry_id in enumerate(file_ids)}
        above, order = self._walk(tree, file_ids, heads)
        self._numbers = [-1] * (len(order) + 1)  # the last one: what stands above a root
        for at, place in enumerate(order):
            self._numbers[place] = at
        self.ids = [file_ids[place] for place in order]
        self.kinds = _kinds(heads, order)
        self.parents = [self._numbers[above[place]] for place in order]
        self.roots = [at for at, parent in enumerate(self.parents) if parent < 0]
        self.ends = self._subtree_ends()
        self._structure: tuple[list[int], list[int]] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def find(self, entry_id: str | None) -> int | None:
        """The index of an entry; None when there is none."""
        place = self._places.get(entry_id or "")
        return None if place is None else self._numbers[place]

    def path(self, at: int) -> list[int]:
        """The indexes from the root to an entry, both included."""
        upward: list[int] = []
        parents = self.parents
        while at >= 0:
            upward.append(at)
            at = parents[at]
        upward.reverse()
        return upward

    def flags(self, mode: TreeFilter, place: int, labelled: Iterable[int]) -> bytearray:
        """One byte for each entry: does a filter admit it? At `place` a quiet answer is shown."""
        kinds = self.kinds
        flags = kinds.translate(admitted(mode))
        if admits_answers(mode) and place >= 0 and kinds[place] == QUIET_ANSWER:
            flags[place] = 1
        if mode != "labeled-only":
            return flags
        chosen = bytearray(len(kinds))
        for at in labelled:
            chosen[at] = flags[at]
        return chosen

    def above(self, at: int, wanted: Callable[[int], bool]) -> int:
        """The nearest entry at or above an index that is wanted; -1 when there is none."""
        while at >= 0 and not wanted(at):
            at = self.parents[at]
        return at

    def branch_start(self, at: int, on_path: Sequence[int]) -> int:
        """The first entry of the branch an entry is on, which is not on the marked path."""
        start = self.structure[1][at]
        while start < 0 or on_path[start]:
            parent = self.parents[at]
            if parent < 0 or on_path[parent]:
                return at
            at = parent
        return start

    @property
    def structure(self) -> tuple[list[int], list[int]]:
        """For each entry the nearest message of the user at or above it (else the root), and the
        start of the branch it is on (-1: the trunk). Made when it is first asked for."""
        if self._structure is None:
            turns: list[int] = []
            starts: list[int] = []
            kinds, ends = self.kinds, self.ends
            many_roots = len(self.roots) > 1
            for at, parent in enumerate(self.parents):
                if parent < 0:
                    turns.append(at)
                    starts.append(at if many_roots else -1)
                    continue
                turns.append(at if kinds[at] == USER else turns[parent])
                alone = at == parent + 1 and ends[at] == ends[parent]
                starts.append(starts[parent] if alone else at)
            self._structure = turns, starts
        return self._structure

    def with_ancestors(self, hits: Iterable[int], flags: Sequence[int]) -> list[int]:
        """The hits that are flagged, with what says where they are: root, question, and the forks
        on the way. In order; only flagged entries.

        What lies between is left out, so that hits of a long conversation stand close together.
        """
        parents, roots = self.parents, self.roots
        turns, starts = self.structure
        wanted = {at for at in hits if flags[at]}
        seen: set[int] = set()
        for hit in tuple(wanted):
            wanted.add(turns[hit])
            wanted.add(roots[bisect_right(roots, hit) - 1])
            start = starts[hit]
            while start >= 0 and start not in seen:
                seen.add(start)
                wanted.add(start)
                fork = parents[start]
                while fork >= 0 and not flags[fork]:
                    fork = parents[fork]
                if fork < 0:
                    break
                wanted.add(fork)
                start = starts[fork]
        return sorted(at for at in wanted if flags[at])

    def _walk(
        self, tree: SessionTree, file_ids: Sequence[str], heads: Sequence[EntryHead]
    ) -> tuple[list[int], list[int]]:
        """The parent of each entry, and all entries depth first, as places in the file.

        Nearly all entries of a long session have one child: nothing is made for those.
        """
        places = self._places
        roots = [places[entry_id] for entry_id in tree.roots]
        above = [places.get(head.parent_id or "", -1) for head in heads]
        for root in roots:
            above[root] = -1
        below = [-1] * len(above)
        forks: set[int] = set()
        for at, parent in enumerate(above):
            if parent >= 0 and below[parent] < 0:
                below[parent] = at
            elif parent >= 0:
                forks.add(parent)
        order: list[int] = []
        waiting = roots[::-1]
        while waiting:
            at = waiting.pop()
            while at >= 0:
                order.append(at)
                if at in forks:
                    waiting += [places[child] for child in reversed(tree.children(file_ids[at]))]
                    break
                at = below[at]
        return above, order

    def _subtree_ends(self) -> list[int]:
        parents = self.parents
        sizes = [1] * len(parents)
        for at in range(len(parents) - 1, 0, -1):
            parent = parents[at]
            if parent >= 0:
                sizes[parent] += sizes[at]
        return [at + size for at, size in enumerate(sizes)]


def _kinds(heads: Sequence[EntryHead], order: Sequence[int]) -> bytearray:
    """What matters of each entry, in the order of the shape."""
    known: dict[tuple[str, str], int] = {}
    kinds = bytearray(len(order))
    for at, place in enumerate(order):
        head = heads[place]
        what = head.type, head.role
        kind = known.get(what)
        if kind is None:
            kind = known[what] = _kind(head)
        kinds[at] = kind
    return kinds


def _kind(head: EntryHead) -> int:
    if head.type == "message":
        return _ROLES.get(head.role, ORDINARY)
    return ORDINARY if is_said(head.type) else BACKSTAGE
