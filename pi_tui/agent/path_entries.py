"""Entries of long paths, so that decoding them does not hold up the event loop.

A path may have 100,000 entries, and decoding that many takes seconds. Whoever needs the context
gets it in slices with other tasks between them; whoever may want some entries of a whole path gets
a sequence that decodes what is looked at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import overload

from pi_tui.core.entries import CompactionEntry, Entry, EntryHead, MessageEntry
from pi_tui.core.messages import AssistantMessage
from pi_tui.core.protocols import EntrySource
from pi_tui.core.tree import DECODED_ENTRIES, SessionTree

DECODED_AT_ONCE = 64
"""Takes a millisecond or two; images take longer."""


class PathEntries(Sequence[Entry]):
    """The entries of a path, root to leaf, each decoded when it is looked at and not kept.

    With a store as the source it may be read in any thread. Looking at an entry raises StorageError
    when the file no longer has it.
    """

    def __init__(self, entry_ids: Sequence[str], source: EntrySource) -> None:
        self._ids = entry_ids
        self._source = source

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, at: int) -> Entry: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Entry, ...]: ...

    def __getitem__(self, at: int | slice) -> Entry | tuple[Entry, ...]:
        if isinstance(at, slice):
            return tuple(self._source.load(entry_id) for entry_id in self._ids[at])
        return self._source.load(self._ids[at])

    def __repr__(self) -> str:
        return f"<{len(self)} entries of a path>"


async def load_context_path(tree: SessionTree, source: EntrySource) -> list[Entry]:
    """The same as `tree.context_path()`, while other tasks go on.

    `source` is where the tree reads from. Raises StorageError.
    """
    path_ids = tree.path_ids()
    needed = _context_ids(tree, path_ids)
    if len(needed) > DECODED_ENTRIES:  # more than the tree keeps: decoded elsewhere, once
        heads = [tree.head(entry_id) for entry_id in path_ids]
        return await asyncio.to_thread(_decoded_apart, heads, source)
    for number, entry_id in enumerate(needed, start=1):
        tree.entry(entry_id)
        if number % DECODED_AT_ONCE == 0:
            await asyncio.sleep(0)
    return tree.context_path(path_ids[-1] if path_ids else None)


def newest_answer(tree: SessionTree) -> AssistantMessage | None:
    """The newest assistant message on the path; nothing else is decoded."""
    for entry_id in reversed(tree.path_ids()):
        if tree.head(entry_id).role == "assistant":
            entry = tree.entry(entry_id)
            if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
                return entry.message
    return None


def _decoded_apart(heads: Sequence[EntryHead], source: EntrySource) -> list[Entry]:
    tree = SessionTree(heads, source, decoded_entries=len(heads))
    return tree.context_path()


def _context_ids(tree: SessionTree, path_ids: Sequence[str]) -> list[str]:
    """About what `context_path` decodes: the entries a compaction keeps, and those that may pin."""
    kept = 0
    for at in reversed(range(len(path_ids))):
        if tree.head(path_ids[at]).type != "compaction":
            continue
        entry = tree.entry(path_ids[at])
        wanted = entry.first_kept_entry_id if isinstance(entry, CompactionEntry) else None
        kept = next((i for i in range(at) if path_ids[i] == wanted), at)
        break
    pins = [entry_id for entry_id in path_ids[:kept] if tree.head(entry_id).type == "custom"]
    return [*pins, *path_ids[kept:]]
