"""What the model knows only through a summary: the same as what the projection leaves out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.coverage import Coverage, coverage_of, with_covered
from pi_tui.core.entries import CompactionEntry, CustomEntry, Entry, MessageEntry, head_of
from pi_tui.core.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_content,
)
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.projection import project
from pi_tui.core.transcript import CoveredBlock, CoveredEndBlock, NoticeBlock, blocks_of


class Path:
    """Builds a path; each method returns the id of the entry it adds."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def _base(self) -> dict[str, object]:
        parent = self.entries[-1].id if self.entries else None
        return {"id": f"e{len(self.entries)}", "parent_id": parent, "timestamp": ""}

    def add(self, message: Message) -> str:
        self.entries.append(MessageEntry(message=message, **self._base()))  # type: ignore[arg-type]
        return self.entries[-1].id

    def user(self, text: str) -> str:
        return self.add(UserMessage(text, 0))

    def answer(self, text: str, *calls: ToolCall) -> str:
        content = (*text_content(text), *calls)
        return self.add(AssistantMessage(content, "a", "p", "m", None, "stop", 0))

    def result(self, call_id: str) -> str:
        return self.add(ToolResultMessage(call_id, "read", text_content("out"), False, 0))

    def compact(self, kept: str | None) -> str:
        base = self._base()
        entry = CompactionEntry(
            summary="sum",
            first_kept_entry_id=str(base["id"]) if kept is None else kept,
            tokens_before=9,
            **base,  # type: ignore[arg-type]
        )
        self.entries.append(entry)
        return entry.id

    def pin(self, target: str, *, pinned: bool = True) -> None:
        data = pin_data(target, pinned=pinned)
        entry = CustomEntry(custom_type=PIN_TYPE, data=data, **self._base())  # type: ignore[arg-type]
        self.entries.append(entry)

    @property
    def coverage(self) -> Coverage:
        return coverage(self.entries)

    def shape(self) -> list[str]:
        """The transcript, covered parts in brackets."""
        shown = []
        for block in with_covered(blocks_of(self.entries), self.coverage):
            if isinstance(block, CoveredBlock):
                shown.append(f"[{block.messages}")
            elif isinstance(block, CoveredEndBlock):
                shown.append("]")
            else:
                shown.append(block.key.partition(":")[0])
        return shown


def coverage(entries: Sequence[Entry]) -> Coverage:
    by_id = {entry.id: entry for entry in entries}
    return coverage_of([head_of(entry) for entry in entries], by_id.__getitem__)


@pytest.fixture
def path() -> Path:
    return Path()


def test_nothing_is_covered_without_a_compaction(path: Path) -> None:
    path.user("a")
    assert path.coverage.runs == ()
    assert path.shape() == ["e0"]


def test_what_is_before_the_first_kept_entry_is_covered(path: Path) -> None:
    path.add(SystemMessage("prompt", 0))
    path.user("a")
    path.answer("b")
    kept = path.user("c")
    path.compact(kept)
    path.user("later")
    assert path.shape() == ["[2", "e1", "e2", "]", "e3", "e4", "e5"]


@pytest.mark.parametrize("kept", [None, "nowhere"])
def test_a_compaction_that_keeps_nothing_covers_all(path: Path, kept: str | None) -> None:
    path.user("a")
    path.answer("b")
    path.compact(kept)
    assert path.shape() == ["[2", "e0", "e1", "]", "e2"]


def test_an_older_summary_lies_within_the_covered_part(path: Path) -> None:
    path.user("a")
    path.compact(path.answer("b"))
    path.user("c")
    path.compact(path.answer("d"))
    assert path.shape() == ["[3", "e0", "e1", "e2", "e3", "]", "e4", "e5"]


def test_pinned_entries_stand_between_covered_ones(path: Path) -> None:
    path.user("a")
    pinned = path.answer("look", ToolCall("c1", "read", {"path": "x"}))
    path.result("c1")
    path.user("b")
    path.compact(path.answer("c"))
    assert path.shape() == ["[4", "e0", "e1", "e1", "e3", "]", "e4", "e5"]
    path.pin(pinned)  # also when it is pinned after the compaction
    assert path.shape() == ["[1", "e0", "]", "e1", "e1", "[1", "e3", "]", "e4", "e5"]
    path.pin(pinned, pinned=False)
    assert path.shape() == ["[4", "e0", "e1", "e1", "e3", "]", "e4", "e5"]


def test_the_end_of_a_path_has_the_count_of_the_whole(path: Path) -> None:
    for n in range(10):
        path.user(str(n))
    path.compact(path.user("kept"))
    blocks = with_covered(blocks_of(path.entries[8:]), path.coverage)
    assert blocks[0] == CoveredBlock("covered:e0", 10, 3)


def test_lines_of_the_screen_stay_where_they_are(path: Path) -> None:
    path.user("a")
    path.user("b")
    path.compact(path.user("kept"))
    start, inside, after = (
        NoticeBlock(key, "info", key) for key in ("startup:0", "notice:1", "notice:2")
    )
    a, b, kept, summary = blocks_of(path.entries)
    shown = with_covered([start, a, inside, b, after, kept, summary], path.coverage)
    head, end = CoveredBlock("covered:e0", 2, 4), CoveredEndBlock("covered-end:e0", 2)
    assert shown == [start, head, a, inside, b, end, after, kept, summary]


STEPS = st.lists(st.sampled_from(["user", "tool", "compact", "pin", "unpin"]), max_size=25)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.randoms(use_true_random=False))
def test_covered_is_what_the_projection_leaves_out(steps: list[str], random: object) -> None:
    choose = random.choice  # type: ignore[attr-defined]
    path = Path()
    for number, step in enumerate(steps):
        ids = [e.id for e in path.entries if isinstance(e, MessageEntry)]
        if step == "user" or not ids:
            path.user("x")
        elif step == "tool":
            path.answer("y", ToolCall(f"c{number}", "read", {}))
            path.result(f"c{number}")
        elif step == "compact":
            path.compact(choose(ids))
        else:
            path.pin(choose(ids), pinned=step == "pin")
    selected = set(project(path.entries).selected_ids)
    left_out = {e.id for e in path.entries if e.id not in selected}
    found = path.coverage
    covered = set(found.run_of_entry)
    assert covered == {
        e.id for e in path.entries if e.id in left_out and e.type in ("message", "compaction")
    }
    messages = sum(e.type == "message" for e in path.entries if e.id in covered)
    assert sum(run.messages for run in found.runs) == messages
