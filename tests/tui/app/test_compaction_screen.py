"""A compaction as a person sees it: while it runs, when it is done, after reopening."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from pi_tui.agent.accounting import ContextUsage
from pi_tui.core.context_report import ContextPart, ContextReport
from pi_tui.core.coverage import coverage_of, with_covered
from pi_tui.core.entries import CompactionEntry
from pi_tui.core.events import (
    ActivityChanged,
    BranchSummaryEnd,
    BranchSummaryProgress,
    BranchSummaryStart,
    CompactionEnd,
    CompactionProgress,
    CompactionStart,
    EntryAppended,
)
from pi_tui.core.messages import Cost, Usage, UserMessage
from pi_tui.core.transcript import blocks_of
from pi_tui.tui.key_help import key_rows
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.view_state import StatusState

Make = Callable[..., Any]
TITLE = "in the model's context as the summary below"


def talk(session: Any, turns: int) -> None:
    for n in range(turns):
        session.append(UserMessage(f"question {n}", 0))
        session.answer(f"answer {n}")


def compact(session: Any, keep: int = 2) -> None:
    """Store a compaction and tell the front end, as the engine does."""
    entry = CompactionEntry(
        id=f"{len(session.tree) + 1:08x}",
        parent_id=session.tree.leaf_id,
        timestamp="2026-01-01T00:00:00.000Z",
        summary="## Goal\n\nship it",
        first_kept_entry_id=session.tree.path_ids()[-keep],
        tokens_before=84_000,
        usage=Usage(1, 1, 0, 0, 2, Cost(total=0.03)),
        details={"estimatedTokensAfter": 9_000, "durationMs": 12_000, "readFiles": ["a.py"]},
    )
    session.emit(ActivityChanged("compacting"), CompactionStart("manual"))
    session.tree.append(entry)
    session.emit(
        EntryAppended(entry), CompactionEnd("manual", None), ActivityChanged("idle")
    )  # fmt: skip


async def press(pilot: Any, *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause(0.05)


# ---------------------------------------------------------------- while it runs


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (120, 40)])
async def test_the_border_says_what_happens_and_typing_goes_on(bench: Make, size: Any) -> None:
    b = bench()
    async with b.app.run_test(size=size) as pilot:
        b.session.emit(ActivityChanged("compacting"), CompactionStart("overflow"))
        b.session.emit(CompactionProgress(2, 3, 1200))
        await press(pilot, *"draft")
        line = next(line for line in b.lines() if "compacting" in line)
        assert "esc" in line and len(line) <= size[0]
        assert any("draft" in line for line in b.lines())
        await press(pilot, "enter")
        assert b.session.steering == ["draft"]
        assert "Steering: draft" in b.screen
        await press(pilot, "alt+up")
        assert b.session.steering == [] and b.app.editor.buffer.text == "draft"


def test_the_status_says_less_where_there_is_less_room() -> None:
    status = StatusState("running", 0)
    status.handle(ActivityChanged("compacting"), 0)
    status.handle(CompactionStart("threshold"), 0)
    status.handle(CompactionProgress(2, 3, 1200), 1)
    wordings = {room: status.text(12.5, "esc", room) for room in (90, 55, 38, 30, 20, 1)}
    assert wordings == {
        90: "auto-compacting the context 12s, part 2 of 3, 1.2k tokens · esc to cancel",
        55: "compacting 12s, 2/3 · esc to cancel",
        38: "compacting 12s, 2/3 · esc to cancel",
        30: "compacting 12s · esc to cancel",
        20: "compacting 12s · esc",
        1: "compacting 12s · esc",
    }
    assert status.text(12.5, "", 30) == "compacting 12s, 2/3"


def test_a_branch_summary_has_time_part_and_tokens() -> None:
    status = StatusState("running", 0)
    status.handle(ActivityChanged("summarising_branch"), 90)
    status.handle(BranchSummaryStart("t", "l", 12, 5_000), 100)
    status.handle(BranchSummaryProgress(1, 2, 340), 101)
    assert (
        status.text(104, "esc")
        == "summarising the branch 4s, part 1 of 2, 340 tokens · esc to cancel"
    )
    assert status.text(104, "esc", 35) == "summarising 4s, 1/2 · esc to cancel"
    status.handle(BranchSummaryEnd("x"), 105)
    assert status.text(105, "esc") == "summarising the branch 5s · esc to cancel"


async def test_a_failure_says_what_the_engine_says(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        talk(b.session, 2)
        why = "The summary was cut at the output limit. Nothing was changed. Set compaction.model."
        b.session.emit(CompactionStart("manual"), CompactionEnd("manual", None, error_message=why))
        await pilot.pause(0.05)
        joined = " ".join(line.strip() for line in b.lines())
        assert f"Error: {why}" in joined
        assert "compacting" not in b.screen and TITLE not in b.screen


async def test_a_cancelled_one_says_that_nothing_was_changed(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        b.session.emit(CompactionStart("manual"), CompactionEnd("manual", None, aborted=True))
        await pilot.pause(0.05)
        assert "compaction cancelled; nothing was changed" in b.screen


# ---------------------------------------------------------------- when it is done


async def test_live_and_reopened_show_the_same(bench: Make, double: ModuleType) -> None:
    session = double.SessionDouble()
    b = bench(session)
    async with b.app.run_test(size=(100, 30)) as pilot:
        talk(session, 4)
        compact(session)
        talk(session, 1)
        await pilot.pause(0.05)
        live = b.lines()
        assert f"6 messages, {TITLE}" in b.screen
        assert "compacted 84k → 9k tokens · 12s · $0.03" in b.screen
        assert "question 2" not in b.screen and "question 3" in b.screen
    again = bench(double.SessionDouble(session.tree.path()))
    async with again.app.run_test(size=(100, 30)) as pilot:
        await pilot.pause(0.05)
        assert again.lines() == live
        tree = session.tree
        coverage = coverage_of([tree.head(i) for i in tree.path_ids()], tree.entry)
        for block in with_covered(blocks_of(tree.path()), coverage):
            assert b.app.transcript.block(block.key) == block
            assert again.app.transcript.block(block.key) == block


async def test_the_start_of_a_long_session_is_read_behind_the_divider(
    bench: Make, double: ModuleType
) -> None:
    session = double.SessionDouble()
    talk(session, 400)
    compact(session)
    b = bench(session)
    async with b.app.run_test(size=(100, 30)) as pilot:
        await pilot.pause(0.1)
        assert f"798 messages, {TITLE}" in b.screen
        await press(pilot, "alt+shift+up", "up", "enter")
        assert "question 0" in b.screen and "answer 1" in b.screen


async def test_the_footer_has_an_estimate_marked_as_one(bench: Make) -> None:
    b = bench(auto_compaction=True)
    async with b.app.run_test(size=(100, 24)) as pilot:
        talk(b.session, 2)
        await pilot.pause(0.05)
        assert " 12.3%/100k (auto)" in f" {b.lines()[-1]}"
        b.session.context_usage = lambda: ContextUsage(9_000, 100_000, True)
        compact(b.session)
        await pilot.pause(0.05)
        assert "~9.0%/100k (auto)" in b.lines()[-1]


# ---------------------------------------------------------------- keys on blocks


async def test_keys_open_copy_and_leave_one_block(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        sent: list[str] = []
        b.app.write_to_terminal = sent.append
        talk(b.session, 3)
        compact(b.session)
        await press(pilot, *"abc", "alt+k")
        assert any(line.startswith("▶ compacted") for line in b.lines())
        await press(pilot, "enter")
        assert "ship it" in b.screen and "Files read" in b.screen
        assert b.session.submitted == []
        await press(pilot, "ctrl+x")
        assert len(sent) == 1 and "copied 16 characters" in b.screen
        await press(pilot, "up")
        assert any(line.startswith("▶ ── ▸ 4 messages") for line in b.lines())
        await press(pilot, "escape")
        assert "▶" not in b.screen and b.session.aborts == 0
        await press(pilot, "alt+shift+up")
        await press(pilot, *"de")  # typing goes on in the editor
        assert b.app.editor.buffer.text == "abcde" and "▶" not in b.screen


async def test_without_anything_to_open_the_keys_do_nothing(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(80, 24)) as pilot:
        talk(b.session, 1)
        await press(pilot, "alt+shift+up", "enter")
        assert "▶" not in b.screen


# ---------------------------------------------------------------- search


async def searched(b: Any, pilot: Any) -> str:
    """What the search bar says at its end, once the search is done."""
    for _ in range(200):
        await pilot.pause()
        line = next(line for line in b.lines() if line.startswith("  > "))
        if not line.endswith("…"):
            break
    await pilot.pause(0.02)
    return str(line.split()[-1])


@pytest.mark.parametrize("size", [(40, 12), (100, 30)])
async def test_search_reaches_what_was_summarised(bench: Make, size: Any) -> None:
    b = bench()
    async with b.app.run_test(size=size) as pilot:
        talk(b.session, 30)
        compact(b.session)
        await press(pilot, *"draft")
        for key in ["f3", *"question 7"]:  # one read: nothing may land in the editor
            b.app._key(*("space", " ") if key == " " else (key, key if len(key) == 1 else None))
        assert await searched(b, pilot) == "1/1"
        assert "question 7" in b.screen.replace("> question 7", "", 1)
        assert b.app.editor.buffer.text == "draft"
        await press(pilot, "escape")
        assert "question 7" in b.screen and "draft" in b.screen and "1/1" not in b.screen


async def test_search_steps_and_edits_its_query(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 30)) as pilot:
        talk(b.session, 9)
        await press(pilot, "ctrl+shift+f", *"answer")
        assert (await searched(b, pilot)).endswith("/9")
        at, count = b.app.transcript.found
        await press(pilot, "enter")
        assert b.app.transcript.found == (at % count + 1, count)
        await press(pilot, "up", "shift+enter")
        assert b.app.transcript.found == ((at - 2) % count + 1, count)
        await press(pilot, "ctrl+u", *"zzz")
        await searched(b, pilot)
        assert "not found" in b.screen
        await press(pilot, "backspace", "backspace", "backspace")
        assert "not found" not in b.screen
        assert b.session.submitted == []


# ---------------------------------------------------------------- context


@pytest.mark.parametrize("size", [(40, 15), (100, 40)])
async def test_the_context_is_drawn_as_a_bar_and_a_list(bench: Make, size: Any) -> None:
    parts = (
        ContextPart("system", "system prompt", 10_000),
        ContextPart("context-file", "/a/very/long/path/that/does/not/fit/AGENTS\x1b[31m.md", 500),
        ContextPart("tools", "tool declarations", 15_000, 7),
        ContextPart("messages", "your messages", 25_000, 3),
    )
    report = ContextReport(parts, (), 50_500, is_reported=False)
    b = bench()
    async with b.app.run_test(size=size) as pilot:
        b.app.ui.show_context(report, 100_000, "a note")
        await pilot.pause(0.05)
        lines = b.lines()
        top = next(n for n, line in enumerate(lines) if "Context" in line)
        bar = lines[top + 1].strip()
        assert 0.45 < 1 - bar.count("·") / len(bar) < 0.55
        assert "~50,500 of 100,000 tokens (~50.5 %)" in lines[top + 2]
        assert "19.8 %" in lines[top + 4] and "AGENTS" in lines[top + 5]
        if size[1] == 40:
            assert "tool declarations (7)" in b.screen and "a note" in b.screen
        await press(pilot, "escape")
        assert "system prompt" not in b.screen


async def test_an_empty_context_has_an_empty_bar(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(60, 24)) as pilot:
        b.app.ui.show_context(ContextReport((), (), 0, is_reported=False), 0, "")
        await pilot.pause(0.05)
        assert "Nothing yet." in b.screen and "█" not in b.screen.replace("▁", "")


def test_the_keys_are_listed() -> None:
    rows = {words: keys for keys, words in key_rows(KeyMap())}
    assert rows["mark the block above that can be opened"] == "alt+shift+up, alt+k"
    assert rows["search the transcript, folded parts too"] == "ctrl+shift+f, f3"
