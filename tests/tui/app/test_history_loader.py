"""Reading a path in two steps: nothing is lost between them, and nobody waits for collections."""

from __future__ import annotations

import pytest

from pi_tui.core.entries import MessageEntry, iso_timestamp
from pi_tui.core.messages import (
    AssistantMessage,
    TextContent,
    ToolCall,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from pi_tui.core.transcript import blocks_of
from pi_tui.core.tree import tree_of
from pi_tui.tui.garbage import take_back
from pi_tui.tui.history_loader import SLICE_ENTRIES, PathReader


def path_of(turns: int, calls: int) -> list[MessageEntry]:
    """Turns of a question, an answer with some calls, their results, and an answer."""
    entries: list[MessageEntry] = []

    def add(message: object) -> None:
        number = len(entries)
        parent = entries[-1].id if entries else None
        stamp = iso_timestamp(1000 * number)
        entries.append(
            MessageEntry(id=f"e{number}", parent_id=parent, timestamp=stamp, message=message)
        )

    for turn in range(turns):
        add(UserMessage(f"question {turn}", 0))
        made = tuple(ToolCall(f"c{turn}-{n}", "read", {"path": f"{n}.py"}) for n in range(calls))
        add(AssistantMessage(made, "a", "p", "m", Usage(), "toolUse", 0))
        for call in made:
            add(ToolResultMessage(call.id, "read", (TextContent("content"),), False, 0))
        add(AssistantMessage((TextContent("done"),), "a", "p", "m", Usage(), "stop", 0))
    return entries


@pytest.mark.parametrize("calls", [1, 4, 7, SLICE_ENTRIES + 20])
async def test_both_parts_together_are_the_whole(calls: int) -> None:
    entries = path_of(1200 // (calls + 3), calls)
    tree = tree_of(entries)
    reader = PathReader(tree, tree.path_ids())
    try:
        assert not reader.complete_at_once
        assert [*await reader.beginning(), *blocks_of(reader.end())] == blocks_of(entries)
    finally:
        take_back()
