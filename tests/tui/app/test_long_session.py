"""A large session on the screen: what is decoded follows what is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import msgspec
import pytest

from pi_tui.core.entries import (
    CompactionEntry,
    Entry,
    MessageEntry,
    entry_to_data,
    head_of,
)
from pi_tui.core.errors import StorageError
from pi_tui.core.events import EntryAppended, LeafMoved
from pi_tui.core.messages import (
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_tui.core.tree import SessionTree
from pi_tui.tui.history_loader import FIRST_ENTRIES, STRETCH_ENTRIES
from pi_tui.tui.path_view import PROMPTS_AT_ONCE

Make = Callable[..., Any]
TITLE = "in the model's context as the summary below"
TURNS = 4_000
WINDOW = 2 * (STRETCH_ENTRIES + 4)
"""Two stretches: a window may show the end of one and the beginning of another."""


class CountingSource:
    """Entries in memory; counts how often each was decoded, and which lines were looked at."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.entries = {entry.id: entry for entry in entries}
        self.decoded: Counter[str] = Counter()
        self.looked_at = 0
        self.broken: set[str] = set()

    def load(self, entry_id: str) -> Entry:
        self.decoded[entry_id] += 1
        if entry_id in self.broken:
            raise StorageError("An entry is not where it was.")
        return self.entries[entry_id]

    def raw_line(self, entry_id: str) -> bytes:
        self.looked_at += 1
        return msgspec.json.encode(entry_to_data(self.entries[entry_id]))

    def take(self) -> int:
        """How many were decoded since the last time."""
        count, self.decoded = self.decoded.total(), Counter()
        return count


class Long:
    """A session of many turns: question, call, result, answer."""

    def __init__(self, double: ModuleType, *, compacted: bool = False) -> None:
        self.entries: list[Entry] = []
        for turn in range(TURNS):
            call = ToolCall(f"c{turn}", "read", {"path": f"{turn}.py"})
            self._add(UserMessage(f"question {turn}", 0))
            self._add(AssistantMessage((call,), "a", "p", "m", Usage(), "toolUse", 0))
            self._add(ToolResultMessage(call.id, "read", (TextContent("content"),), False, 0))
            self._add(self._answer(f"answer {turn}"))
        if compacted:
            self.compact()
            self._add(self._answer("after it all"))
        self.source = CountingSource(self.entries)
        self.session = double.SessionDouble()
        self.session.tree = SessionTree(map(head_of, self.entries), self.source)
        self.session.store.load = self.source.load
        self.session.store.line = self.source.raw_line
        self.source.take()

    def _answer(self, text: str) -> AssistantMessage:
        return AssistantMessage((TextContent(text),), "a", "p", "m", Usage(), "stop", 0)

    def _place(self) -> dict[str, Any]:
        parent = self.entries[-1].id if self.entries else None
        return {"id": f"{len(self.entries):08x}", "parent_id": parent, "timestamp": ""}

    def _add(self, message: Any) -> None:
        self.entries.append(MessageEntry(message=message, **self._place()))

    def compact(self, keep: int = 1) -> CompactionEntry:
        kept = self.entries[-keep].id
        entry = CompactionEntry(
            summary="the sum", first_kept_entry_id=kept, tokens_before=84_000, **self._place()
        )
        self.entries.append(entry)
        return entry


@pytest.fixture
def long(double: ModuleType) -> Long:
    return Long(double)


async def test_opening_decodes_the_end_only(bench: Make, long: Long) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        assert f"answer {TURNS - 1}" in b.screen
        assert long.source.take() <= FIRST_ENTRIES + 4
        assert long.source.looked_at == 0


async def test_what_a_compaction_covers_is_not_decoded(bench: Make, double: ModuleType) -> None:
    long = Long(double, compacted=True)
    b = bench(long.session)
    async with b.app.run_test(size=(100, 24)) as pilot:
        await pilot.pause(0.1)
        assert f"{4 * TURNS - 1:,} messages, {TITLE}" in b.screen and "after it all" in b.screen
        assert long.source.take() <= FIRST_ENTRIES + 5
        await pilot.press("alt+shift+up", "up", "enter", "ctrl+home")
        await pilot.pause(0.05)
        assert "question 0" in b.screen and "answer 1" in b.screen
        assert 0 < long.source.take() <= WINDOW


async def test_scrolling_decodes_what_comes_into_sight(bench: Make, long: Long) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        long.source.take()
        b.app.transcript.scroll_rows(-400)
        await pilot.pause(0.05)
        assert 0 < long.source.take() <= 2 * WINDOW
        await pilot.press("ctrl+home")
        await pilot.pause(0.05)
        assert "question 0" in b.screen
        assert 0 < long.source.take() <= WINDOW
        await pilot.press("ctrl+end")
        await pilot.pause(0.05)
        assert f"answer {TURNS - 1}" in b.screen
        assert long.source.take() == 0


async def test_up_reads_earlier_prompts_a_few_at_a_time(bench: Make, long: Long) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        known = FIRST_ENTRIES // 4
        long.source.take()
        for _ in range(known):
            assert b.app.editor.history.previous(b.app.editor.buffer)
        assert b.app.editor.buffer.text == f"question {TURNS - known}"
        assert long.source.take() == 0
        for _ in range(PROMPTS_AT_ONCE + 1):
            assert b.app.editor.history.previous(b.app.editor.buffer)
        assert b.app.editor.buffer.text == f"question {TURNS - known - PROMPTS_AT_ONCE - 1}"
        assert long.source.take() == 2 * PROMPTS_AT_ONCE
        while b.app.editor.history.previous(b.app.editor.buffer):
            pass
        assert b.app.editor.buffer.text == "question 0"


async def test_prompts_that_cannot_be_read_are_told_once(bench: Make, long: Long) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        long.source.broken = {entry.id for entry in long.entries[:200]}
        while b.app.editor.history.previous(b.app.editor.buffer):
            pass
        oldest = b.app.editor.buffer.text
        assert not b.app.editor.history.previous(b.app.editor.buffer)
        await pilot.pause(0.05)
        assert "earlier prompts cannot be read: An entry is not where it was." in b.screen
        assert int(oldest.split()[1]) >= 50


async def test_what_cannot_be_read_says_so_at_its_place(bench: Make, long: Long) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        long.source.broken = {long.entries[3].id}
        await pilot.press("ctrl+home")
        await pilot.pause(0.05)
        assert "An entry is not where it was." in b.screen and "question 0" not in b.screen
        assert "question 16" in b.screen


async def test_a_search_looks_at_lines_and_decodes_what_may_have_it(
    bench: Make, long: Long
) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        long.source.take()
        assert await b.app.transcript.find("nowhere")
        assert b.app.transcript.found == (0, 0)
        assert long.source.take() == 0
        assert long.source.looked_at >= 4 * TURNS - FIRST_ENTRIES - 4
        b.app.transcript.end_find()
        assert await b.app.transcript.find("Question 7")
        assert b.app.transcript.found == (0, 0)
        assert await b.app.transcript.find("question 3999")
        assert b.app.transcript.found == (1, 1)
        assert await b.app.transcript.find("question 1234")
        assert b.app.transcript.found == (1, 1)
        assert "question 1234" in b.screen
        kept = [s for s in b.app.transcript._items.stretches.all if s.items is not None]
        assert len(kept) <= 4


async def test_moving_the_leaf_decodes_the_end_of_the_new_path(bench: Make, long: Long) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(80, 24)) as pilot:
        await pilot.pause(0.1)
        old, new = long.session.tree.leaf_id, long.entries[4 * 1_000 - 1].id
        long.source.take()
        long.session.tree.move_leaf(new)
        long.session.emit(LeafMoved(old, new))
        await pilot.pause(0.1)
        assert "answer 999" in b.screen and "answer 1000" not in b.screen
        assert long.source.take() <= FIRST_ENTRIES + 4
        assert b.app.editor.history.previous(b.app.editor.buffer)
        assert b.app.editor.buffer.text == "question 999"


async def test_a_compaction_and_its_undoing_decode_nothing_that_is_not_seen(
    bench: Make, long: Long
) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(100, 24)) as pilot:
        await pilot.pause(0.1)
        before = long.session.tree.leaf_id
        long.source.take()
        entry = long.compact(keep=6)
        long.source.entries[entry.id] = entry
        long.session.tree.append(entry)
        long.session.emit(EntryAppended(entry))
        await pilot.pause(0.1)
        assert f"{4 * TURNS - 6:,} messages, {TITLE}" in b.screen
        assert f"answer {TURNS - 2}" in b.screen
        assert long.source.take() == 0
        await pilot.press("ctrl+home")
        await pilot.pause(0.05)
        assert "question 0" not in b.screen and long.source.take() == 0
        long.session.tree.move_leaf(before)
        long.session.emit(LeafMoved(entry.id, before))
        await pilot.pause(0.1)
        assert TITLE not in b.screen and f"answer {TURNS - 1}" in b.screen
        assert long.source.take() == 0  # the tree still has it
        await pilot.press("ctrl+home")
        await pilot.pause(0.05)
        assert "question 0" in b.screen


async def test_a_reader_in_the_unread_part_stays_there_when_it_is_covered(
    bench: Make, long: Long
) -> None:
    b = bench(long.session)
    async with b.app.run_test(size=(100, 24)) as pilot:
        await pilot.pause(0.1)
        b.app.transcript.scroll_to(y=b.app.transcript.max_scroll_y // 2)
        await pilot.pause(0.05)
        before = [line for line in b.lines() if "question" in line]
        entry = long.compact(keep=6)
        long.source.entries[entry.id] = entry
        long.session.tree.append(entry)
        long.source.take()
        long.session.emit(EntryAppended(entry))
        await pilot.pause(0.1)
        assert before and [line for line in b.lines() if "question" in line] == before
        assert long.source.take() <= 2 * WINDOW
