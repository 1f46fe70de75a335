"""The fold over what a summary stands for."""

import pytest
from textual.geometry import Offset

from pi_tui.core.transcript import (
    AssistantBlock,
    CoveredBlock,
    CoveredEndBlock,
    NoticeBlock,
    ShownBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.tui.transcript.kinds import estimated_rows

TITLE = "in the model's context as the summary below"


def covered(turns: int, kept: int = 3) -> list[ShownBlock]:
    """Turns behind a fold, some that were kept, and the summary."""
    inside: list[ShownBlock] = []
    for n in range(turns):
        inside += [UserBlock(f"u{n}", f"question {n}"), AssistantBlock(f"a{n}", f"answer {n}")]
    after: list[ShownBlock] = [AssistantBlock(f"k{n}", f"kept {n}") for n in range(kept)]
    return [
        CoveredBlock("covered:u0", len(inside), len(inside) + 1),
        *inside,
        CoveredEndBlock("covered-end:u0", len(inside)),
        *after,
        SummaryBlock("c", "compaction", "the sum", 84_000, 9_000, 12_000, 0.03),
    ]


async def test_closed_it_is_one_line_and_nothing_behind_it_is_drawn(open_transcript) -> None:
    async with open_transcript(covered(5_000), width=100) as desk:
        lines = [line.strip() for line in desk.lines() if line.strip()]
        assert lines[0].startswith(f"── ▸ 10,000 messages, {TITLE} (alt+shift+up, enter) ──")
        assert lines[1:4] == ["kept 0", "kept 1", "kept 2"]
        assert lines[4].startswith("▌ compacted 84k → 9k tokens · 12s · $0.03")
        assert desk.transcript.drawn_count <= 6
        desk.transcript.scroll_rows(-50)
        desk.screen()
        assert desk.transcript.drawn_count <= 6


async def test_opened_it_shows_all_dimmed_up_to_the_end_mark(open_transcript) -> None:
    async with open_transcript(covered(4), width=100, height=40) as desk:
        assert desk.transcript.toggle_block("covered:u0")
        lines = [line for line in desk.lines() if line.strip()]
        assert f"▾ 8 messages, {TITLE}" in lines[0]
        end = next(n for n, line in enumerate(lines) if "end of what the summary stands" in line)
        assert [f"answer {n}" for n in range(4)] == [x.strip() for x in lines[1:end] if "ans" in x]
        dim = desk.transcript._items.artist.styles.dim
        inks = {s.style.color for s in desk.strips()[desk.line_of("question 2")] if s.style}
        assert dim.color in inks
        kept = next(s for s in desk.strips()[desk.line_of("kept 1")] if "kept" in s.text)
        assert kept.style is not None and kept.style.color != dim.color
        assert desk.transcript.toggle_block("covered:u0")
        assert "question" not in desk.screen()


@pytest.mark.parametrize("size", [(40, 12), (60, 20), (120, 40)])
async def test_scrolling_through_an_open_fold_misses_nothing(open_transcript, size) -> None:
    async with open_transcript(covered(30), width=size[0], height=size[1]) as desk:
        desk.transcript.toggle_block("covered:u0")
        desk.transcript.scroll_bottom()
        seen = desk.screen()
        for _ in range(100):
            desk.transcript.page_up()
            seen = desk.screen() + seen
        assert all(f"question {n}\n" in seen and f"answer {n}\n" in seen for n in range(30))
        heights = desk.transcript._items.heights
        assert heights.total == sum(heights[n] for n in range(len(heights)))


async def test_closing_it_from_within_goes_to_the_divider(open_transcript) -> None:
    async with open_transcript(covered(30, kept=40)) as desk:
        desk.transcript.toggle_block("covered:u0")
        desk.transcript.scroll_top()
        desk.transcript.scroll_rows(50)
        assert TITLE not in desk.screen()
        desk.transcript.toggle_block("covered:u0")
        assert TITLE in "\n".join(desk.lines()[:2])
        assert "kept 0" in desk.screen()


async def test_all_outputs_leave_the_fold_closed(open_transcript) -> None:
    async with open_transcript(covered(3)) as desk:
        desk.transcript.toggle_tools()
        assert "question" not in desk.screen()
        assert "the sum" in desk.screen()


async def test_a_click_opens_it(open_transcript) -> None:
    async with open_transcript(covered(3), width=100) as desk:
        await desk.pilot.click(offset=Offset(10, desk.line_of(TITLE)))
        assert "question 0" in desk.screen()


async def test_user_messages_behind_it_are_no_stops(open_transcript) -> None:
    blocks = [*covered(5), UserBlock("last", "last question")]
    async with open_transcript(
        [*blocks, *(NoticeBlock(f"n{n}", "info", "x") for n in range(40))]
    ) as d:
        assert d.transcript.previous_user_message()
        assert "last question" in "".join(d.lines()[:2])
        assert not d.transcript.previous_user_message()


async def test_a_reader_keeps_the_place_when_it_gets_covered(open_transcript) -> None:
    blocks = [
        block for block in covered(30) if not isinstance(block, CoveredBlock | CoveredEndBlock)
    ]
    async with open_transcript(blocks) as desk:
        desk.transcript.scroll_top()
        desk.transcript.scroll_rows(40)
        before = desk.lines()[:-1]
        desk.transcript.set_blocks(covered(30), keep_position=True)
        assert desk.lines()[:-1] == before
        desk.transcript.scroll_bottom()
        desk.transcript.set_blocks(covered(30), keep_position=True)
        assert desk.transcript.following


async def test_the_place_is_kept_when_the_topmost_block_is_gone(open_transcript) -> None:
    blocks = covered(0, kept=60)[2:]
    async with open_transcript(blocks) as desk:
        desk.transcript.scroll_top()
        desk.transcript.scroll_rows(21)
        assert desk.lines()[0].strip() == "kept 10"
        desk.transcript.remove("k10")
        rest = [block for block in blocks if block.key != "k10"]
        earlier = [NoticeBlock(f"e{n}", "info", "earlier") for n in range(50)]
        desk.transcript.set_blocks([*earlier, *rest], keep_position=True)
        assert not desk.transcript.following
        assert "kept 11" in "\n".join(desk.lines()[:3])


async def test_a_running_tool_keeps_its_clock_when_blocks_are_put_before_it(
    open_transcript,
) -> None:
    now = [100.0]
    tool = ToolBlock("t", "1", "bash", {"command": "make"}, "running")
    async with open_transcript([tool], clock=lambda: now[0]) as desk:
        now[0] = 107.0
        desk.transcript.set_blocks([UserBlock("u", "before"), tool], keep_position=True)
        desk.transcript.flush()
        desk.transcript._tick()
        assert "7.0s" in desk.screen()


def test_guesses_are_cheap_for_every_block() -> None:
    assert all(estimated_rows(block, 80) > 0 for block in covered(2))


# ---------------------------------------------------------------- focus


def openable() -> list[ShownBlock]:
    output = "\n".join(f"line {n}" for n in range(30))
    return [
        *covered(10),
        ThinkingBlock("th", "deep thought"),
        *(NoticeBlock(f"n{n}", "info", f"notice {n}") for n in range(40)),
        ToolBlock("t", "1", "bash", {"command": "make"}, "ok", output),
        AssistantBlock("end", "the end"),
    ]


def marked(lines: list[str]) -> str:
    return next((line for line in lines if line.startswith("▶")), "")


async def test_the_focus_walks_through_what_can_be_opened(open_transcript) -> None:
    async with open_transcript(openable()) as desk:
        transcript = desk.transcript
        assert not transcript.has_focused_block and not transcript.toggle_focused()
        seen = []
        while transcript.focus_block(-1):
            seen.append(marked(desk.lines()))
        assert ["make" in seen[0], "thought" in seen[1], "compacted" in seen[2]] == [True] * 3
        assert TITLE in seen[3] and len(seen) == 4
        assert transcript.focus_block(1) and "compacted" in marked(desk.lines())
        assert "enter opens · ctrl+x copies · esc leaves" in desk.lines()[-1]
        assert transcript.leave_focus() and not transcript.leave_focus()
        assert marked(desk.lines()) == ""


async def test_only_the_marked_block_is_opened(open_transcript) -> None:
    async with open_transcript(openable(), height=40) as desk:
        transcript = desk.transcript
        transcript.focus_block(-1)
        assert "line 29" in desk.screen() and "line 3\n" not in desk.screen()
        assert transcript.toggle_focused()
        transcript.scroll_rows(-1)
        assert "line 3\n" in desk.screen() and "▶" in desk.screen()
        transcript.focus_block(-1)
        transcript.focus_block(-1)
        assert "compacted" in marked(desk.lines())
        assert "the sum" not in desk.screen()
        assert transcript.toggle_focused()
        assert "the sum" in desk.screen()


async def test_a_whole_block_is_copied_safely(open_transcript) -> None:
    blocks = [ToolBlock("t", "1", "bash", {"command": "make"}, "ok", "a\n\x1b[31mb\x07\n" * 20)]
    async with open_transcript(blocks) as desk:
        desk.transcript.focus_block(-1)
        text = desk.transcript.focused_text()
        assert text.startswith("bash $ make\na\nb") and text.count("\na\n") == 20
        assert "\x1b" not in text and "\x07" not in text


async def test_copying_the_divider_gives_all_behind_it(open_transcript) -> None:
    async with open_transcript(covered(2)) as desk:
        while desk.transcript.focus_block(-1):
            pass
        assert desk.transcript.focused_text() == "question 0\n\nanswer 0\n\nquestion 1\n\nanswer 1"


async def test_the_focus_survives_blocks_put_before_it(open_transcript) -> None:
    blocks = openable()
    async with open_transcript(blocks) as desk:
        desk.transcript.focus_block(-1)
        earlier = [UserBlock("early", "early")]
        desk.transcript.set_blocks([*earlier, *blocks], keep_position=True)
        assert "make" in marked(desk.lines())
        desk.transcript.remove("t")
        assert not desk.transcript.has_focused_block


async def test_a_block_that_vanishes_into_a_fold_loses_the_focus(open_transcript) -> None:
    inside = ToolBlock("t", "1", "bash", {"command": "make"}, "ok", "out")
    blocks = [
        CoveredBlock("covered:t", 1, 2), inside, CoveredEndBlock("end", 1),
        AssistantBlock("k", "kept"),
    ]  # fmt: skip
    async with open_transcript(blocks) as desk:
        desk.transcript.toggle_block("covered:t")
        desk.transcript.focus_block(-1)
        assert "make" in marked(desk.lines())
        desk.transcript.toggle_block("covered:t")
        assert not desk.transcript.has_focused_block


# ---------------------------------------------------------------- the summary


async def test_an_open_summary_has_its_files_as_a_section(open_transcript) -> None:
    text = "## Goal\nship\n\n<read-files>\na.py\n</read-files>"
    text += "\n\n<modified-files>\nb.py\nnew.py\n</modified-files>"
    details = {
        "readFiles": ["a.py"],
        "modifiedFiles": ["b.py", "new.py"],
        "createdFiles": ["new.py"],
    }
    for block in (
        SummaryBlock("c", "compaction", text, 84_000, 9_000, details=details),
        SummaryBlock("c", "compaction", text, 84_000, 9_000),
    ):
        async with open_transcript([block]) as desk:
            assert desk.transcript.toggle_block("c")
            shown = [line.strip("▌ ") for line in desk.lines()]
            assert "read-files" not in desk.screen()
            at = shown.index("Files changed")
            new = "new.py (new)" if block.details else "new.py"
            assert shown[at + 1 : at + 6] == ["b.py", new, "", "Files read", "a.py"]


@pytest.mark.parametrize("width", [40, 30, 60])
async def test_a_closed_summary_is_one_line_where_its_numbers_fit(open_transcript, width) -> None:
    block = SummaryBlock("c", "compaction", "x", 84_000, 9_000, 12_000)
    async with open_transcript([block], width=width) as desk:
        lines = [line for line in desk.lines() if line.strip()]
        assert len(lines) == (1 if width >= 40 else 2)
