"""Stretches of a path: together they are the path, and a search misses nothing in them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.coverage import coverage_of, with_covered
from pi_tui.core.entries import (
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    entry_to_data,
    head_of,
)
from pi_tui.core.messages import (
    AssistantMessage,
    BashExecutionMessage,
    Message,
    SystemMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.transcript import Block, CoveredBlock, ShownBlock, blocks_of
from pi_tui.core.tree import MemorySource, tree_of
from pi_tui.tui.history_loader import STRETCH_ENTRIES, PathReader
from pi_tui.tui.path_stretch import PathStretch
from pi_tui.tui.transcript.block_text import block_text
from pi_tui.tui.transcript.counting import query_pattern
from pi_tui.tui.transcript.unread import clue_of


class Lines(MemorySource):
    """Entries in memory, also as lines."""

    def raw_line(self, entry_id: str) -> bytes:
        return msgspec.json.encode(entry_to_data(self.load(entry_id)))


class Path:
    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def _place(self) -> dict[str, str | None]:
        parent = self.entries[-1].id if self.entries else None
        return {"id": f"e{len(self.entries)}", "parent_id": parent, "timestamp": ""}

    def add(self, message: Message) -> str:
        self.entries.append(MessageEntry(message=message, **self._place()))
        return self.entries[-1].id

    def turn(self, text: str, calls: int) -> str:
        first = self.add(UserMessage(text, 0))
        made = tuple(ToolCall(f"{first}-{n}", "read", {"path": f"{n}.py"}) for n in range(calls))
        self.add(AssistantMessage(made, "a", "p", "m", None, "toolUse", 0))
        for number, call in enumerate(made):
            if number == 1:  # typed while the tools were running
                self.add(BashExecutionMessage("ls", "out", 0, False, False, 0))
            self.add(ToolResultMessage(call.id, "read", (TextContent("content"),), False, 0))
        self.add(AssistantMessage((TextContent("done"),), "a", "p", "m", None, "stop", 0))
        return first

    def pin(self, target: str) -> None:
        data = pin_data(target, pinned=True)
        self.entries.append(CustomEntry(custom_type=PIN_TYPE, data=data, **self._place()))

    def compact(self, kept: str) -> None:
        self.entries.append(
            CompactionEntry(
                summary="sum", first_kept_entry_id=kept, tokens_before=9, **self._place()
            )
        )


def shown_by(path: Path) -> tuple[list[ShownBlock], list[ShownBlock], list[PathStretch]]:
    """What a transcript is given, read; what it were given at once; and the stretches."""
    tree, source = tree_of(path.entries), Lines(path.entries)
    ids = tree.path_ids()
    coverage = coverage_of([tree.head(entry_id) for entry_id in ids], tree.entry)
    reader = PathReader(tree, ids)
    stretches = reader.earlier(coverage, source)
    read: list[ShownBlock] = []
    for shown in with_covered([*stretches, *blocks_of(reader.end())], coverage):
        read += shown.read() if isinstance(shown, PathStretch) else [shown]
    return read, with_covered(blocks_of(path.entries), coverage), stretches


def without_counts(blocks: list[ShownBlock]) -> list[ShownBlock]:
    """Counts of what follows in a list differ while some of it is unread."""
    return [
        CoveredBlock(block.key, block.messages, 0) if isinstance(block, CoveredBlock) else block
        for block in blocks
    ]


@pytest.mark.parametrize("calls", [0, 1, 3, STRETCH_ENTRIES + 20])
@pytest.mark.parametrize("compacted", [False, True])
def test_stretches_and_the_end_are_the_whole(calls: int, compacted: bool) -> None:
    path = Path()
    path.add(SystemMessage("", 0))
    turns = [path.turn(f"question {n}", calls) for n in range(1_200 // (calls + 4))]
    if compacted:
        path.pin(turns[len(turns) // 2])
        path.compact(turns[-2])
        path.turn("after it", 1)
    read, whole, stretches = shown_by(path)
    assert without_counts(read) == without_counts(whole)
    assert len(stretches) > 3
    assert all(stretch.entries <= STRETCH_ENTRIES + calls + 5 for stretch in stretches)


def test_a_stretch_is_covered_as_a_whole_or_not_at_all() -> None:
    path = Path()
    turns = [path.turn(f"question {n}", 1) for n in range(100)]
    path.compact(turns[30])
    for n in range(60):
        path.turn(f"later {n}", 0)
    read, whole, stretches = shown_by(path)
    assert without_counts(read) == without_counts(whole)
    tree = tree_of(path.entries)
    coverage = coverage_of([head_of(entry) for entry in path.entries], tree.entry)
    for stretch in stretches:
        runs = {coverage.run_of(block.key) for block in stretch.read()}
        assert runs == {coverage.run_of(stretch.key)}
    assert {coverage.run_of(stretch.key) for stretch in stretches} == {None, 0}


def test_a_path_without_anything_to_show_has_no_stretches() -> None:
    path = Path()
    for _ in range(300):
        path.add(SystemMessage("", 0))
    assert shown_by(path) == ([], [], [])


def test_a_stretch_knows_its_blocks() -> None:
    path = Path()
    for n in range(100):
        path.turn(f"question {n}", 1)
    _, whole, stretches = shown_by(path)
    for number, stretch in enumerate(stretches):
        assert all(stretch.holds(block.key) for block in stretch.read())
        other = stretches[number - 1].read()[0]
        assert not stretch.holds(other.key)
        assert stretch.has_user_messages and stretch.has_outputs
    assert not any(stretch.holds(whole[-1].key) for stretch in stretches)


TEXTS = st.text(alphabet='needlKSIkſıİK \n"\\/é\u202ea1.', max_size=12)


@given(
    st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=4),
    TEXTS.filter(lambda query: query.strip()),
)
@settings(max_examples=300, deadline=None)
def test_what_need_not_be_decoded_has_no_hit(texts: list[tuple[str, str, str]], query: str) -> None:
    entries: list[Entry] = []
    for number, (asked, argument, output) in enumerate(texts):
        call = ToolCall(f"c{number}", "grep", {"pattern": argument, "path": output})
        for message in (
            UserMessage(asked, 0),
            AssistantMessage((call,), "a", "p", "m", None, "toolUse", 0),
            ToolResultMessage(call.id, "grep", (TextContent(output),), False, 0),
            AssistantMessage((), "a", "p", "m", None, "length", 0),
        ):
            entries.append(
                MessageEntry(id=f"x{len(entries)}", parent_id=None, timestamp="", message=message)
            )
    ids = [entry.id for entry in entries]
    stretch = PathStretch(tree_of(entries), Lines(entries), ids, 0, len(ids), 0)
    ignore_case = not any(character.isupper() for character in query)
    pattern = query_pattern(query)

    def hits(blocks: list[Block] | None) -> int:
        return sum(len(pattern.findall(block_text(block))) for block in blocks or ())

    clue = clue_of(query, ignore_case=ignore_case)
    assert hits(stretch.read_if(clue)) == hits(stretch.read())
