"""Long paths: the context is loaded while keys go on, and nobody decodes what nobody looks at."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise

import pytest
from msgspec import structs

from pi_tui.agent import path_entries
from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.agent.path_entries import DECODED_AT_ONCE, PathEntries, load_context_path
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.entries import CompactionEntry, CustomEntry, head_of
from pi_tui.core.errors import StorageError
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.protocols import OpenedSession
from pi_tui.core.tree import SessionTree

MANUAL = CompactRequest("manual", keep_tokens=1000)


class SeenSource:
    """Gives entries, and remembers which it gave and in which thread."""

    def __init__(self, entries):
        self.entries = {entry.id: entry for entry in entries}
        self.given = []
        self.threads = set()

    def load(self, entry_id):
        self.given.append(entry_id)
        self.threads.add(threading.current_thread())
        return self.entries[entry_id]


def after(rig, kind, **fields):
    """Store one more entry of a kind after the last one."""
    entries = rig.store.entries
    entries.append(
        kind(
            id=f"x{len(entries):07d}",
            parent_id=entries[-1].id,
            timestamp=entries[-1].timestamp,
            **fields,
        )
    )


@pytest.fixture(params=["plain", "compacted", "keeps nothing", "pinned"])
def long_path(rig, request):
    """The entries of a path of 400 messages and more."""
    rig.store_talk(200, chars=20)
    ids = [entry.id for entry in rig.store.entries]
    if request.param == "pinned":
        after(rig, CustomEntry, custom_type=PIN_TYPE, data=pin_data(ids[10], pinned=True))
    if request.param != "plain":
        kept = "nowhere" if request.param == "keeps nothing" else ids[150]
        after(rig, CompactionEntry, summary="s", first_kept_entry_id=kept, tokens_before=9)
        rig.store_talk(3, chars=20)
    return rig.store.entries


async def test_the_context_is_the_same_and_nothing_more_is_decoded(long_path):
    source = SeenSource(long_path)
    tree = SessionTree(map(head_of, long_path), source)
    plain = SeenSource(long_path)
    wanted = SessionTree(map(head_of, long_path), plain).context_path()
    assert await load_context_path(tree, source) == wanted
    assert sorted(source.given) == sorted(plain.given)


async def test_other_tasks_go_on_meanwhile(rig):
    rig.store_talk(DECODED_AT_ONCE * 5, chars=20)
    source = SeenSource(rig.store.entries)
    tree = SessionTree(map(head_of, rig.store.entries), source)
    turns = []

    async def keys():
        while True:
            turns.append(len(source.given))
            await asyncio.sleep(0)

    typing = asyncio.ensure_future(keys())
    await load_context_path(tree, source)
    typing.cancel()
    steps = [b - a for a, b in pairwise(turns)]
    assert len(turns) >= 10 and max(steps) <= DECODED_AT_ONCE


async def test_a_path_longer_than_the_tree_keeps_is_decoded_in_a_thread(long_path, monkeypatch):
    monkeypatch.setattr(path_entries, "DECODED_ENTRIES", 5)
    source = SeenSource(long_path)
    tree = SessionTree(map(head_of, long_path), source, decoded_entries=5)
    wanted = tree.context_path()
    source.given.clear()
    source.threads.clear()
    assert await load_context_path(tree, source) == wanted
    assert len(source.given) <= len(long_path) + 1
    if len(wanted) > 5:
        assert any(thread is not threading.main_thread() for thread in source.threads)


def test_entries_of_a_path_are_decoded_when_they_are_looked_at(rig):
    rig.store_talk(5)
    source = SeenSource(rig.store.entries)
    ids = [entry.id for entry in rig.store.entries]
    entries = PathEntries(ids, source)
    assert len(entries) == 10 and "10 entries" in repr(entries) and source.given == []
    assert entries[-1] == rig.store.entries[-1] and source.given == [ids[-1]]
    assert entries[1:3] == tuple(rig.store.entries[1:3]) and len(source.given) == 3
    assert list(entries) == rig.store.entries
    with pytest.raises(IndexError):
        entries[10]


async def test_a_hook_that_looks_at_nothing_costs_nothing(rig):
    rig.store_talk(100)
    first = rig.store.entries[0].id
    after(rig, CompactionEntry, summary="s", first_kept_entry_id=None, tokens_before=9)
    rig.store_talk(10)
    rig.compaction = lambda model: CompactionSettings(keep_recent_tokens=400)
    loaded = []
    load = rig.store.load
    rig.store.load = lambda entry_id: loaded.append(entry_id) or load(entry_id)
    session = rig.session()
    seen = []
    session.hooks.on("session_before_compact", seen.append)
    rig.provider.add("notes")
    assert (await session.compact(structs.replace(MANUAL, keep_tokens=400))).kind == "done"
    assert first not in loaded
    assert seen[0].branch_entries[0].id == first
    assert len(seen[0].branch_entries) == 221


# ---------------------------------------------------------------- how compactions went


async def test_once_counted_the_compactions_need_no_reading(rig):
    rig.store_talk(100)
    rig.provider.add("notes", " ")
    session = rig.session()
    await session.compact(MANUAL)
    session.tree.move_leaf(rig.store.entries[0].id)  # another branch is told of as well
    rig.store_talk(50)
    heads = tuple(head_of(entry) for entry in rig.store.entries)
    again = rig.session(OpenedSession(rig.store, heads))
    before = again.compactions()
    assert [record.ending for record in before] == ["done"]
    await again.count_stored()
    await again.compact(MANUAL)  # its summary is empty
    load = rig.store.load

    def refuse(entry_id):
        raise StorageError("nothing may be read now", path="x")

    rig.store.load = refuse
    assert [record.ending for record in again.compactions()] == ["done", "failed"]
    assert again.compactions()[0] == before[0]
    rig.store.load = load
