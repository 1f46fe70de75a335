"""Searching the transcript."""

import pytest

from pi_tui.core.transcript import (
    AssistantBlock,
    CoveredBlock,
    CoveredEndBlock,
    NoticeBlock,
    ShellBlock,
    ShownBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.tui.transcript.counting import query_pattern


def found_text(desk) -> str:
    """What is marked as the hit that was gone to."""
    current = desk.transcript._items.artist.styles.jump_hint
    return "".join(
        segment.text
        for strip in desk.strips()
        for segment in strip
        if segment.style
        and (segment.style.color, segment.style.bgcolor) == (current.color, current.bgcolor)
        and "jump" not in segment.text
    )


def marks(desk) -> list[str]:
    return [
        segment.text
        for strip in desk.strips()
        for segment in strip
        if segment.style and segment.style.underline and segment.style.bold
    ]


def filler(prefix: str, count: int = 60) -> list[ShownBlock]:
    return [AssistantBlock(f"{prefix}{n}", f"filler {prefix} {n}") for n in range(count)]


OUTPUT = (
    "\n".join(f"out {n}" for n in range(200)) + "\nwanted in the output\n" + "\n".join("x" * 40)
)

HIDING: list[tuple[str, list[ShownBlock]]] = [
    ("a user message", [UserBlock("b", "wanted")]),
    ("an answer", [AssistantBlock("b", "some **wanted** text")]),
    ("a collapsed output", [ToolBlock("b", "1", "bash", {"command": "x"}, "ok", OUTPUT)]),
    ("a read file", [ToolBlock("b", "1", "read", {"path": "a"}, "ok", "1\nwanted\n3")]),
    ("a command", [ToolBlock("b", "1", "bash", {"command": "make wanted"}, "ok", "")]),
    (
        "a diff",
        [ToolBlock("b", "1", "edit", {"path": "a"}, "ok", "", details={"diff": "+1 wanted"})],
    ),
    ("a shell command", [ShellBlock("b", "ls", "\n".join(["wanted", *"x" * 60]))]),
    ("thinking", [ThinkingBlock("b", "hm, wanted")]),
    ("a summary", [SummaryBlock("b", "compaction", "## Goal\nwanted")]),
    ("a notice", [NoticeBlock("b", "error", "wanted")]),
    (
        "what a summary stands for",
        [
            CoveredBlock("covered:b", 2, 3),
            ToolBlock("b", "1", "bash", {"command": "x"}, "ok", OUTPUT),
            CoveredEndBlock("covered-end:b", 2),
        ],
    ),
]


@pytest.mark.parametrize(("where", "hiding"), HIDING, ids=[name for name, _ in HIDING])
async def test_a_hit_is_brought_into_sight_wherever_it_is(open_transcript, where, hiding) -> None:
    blocks = [*filler("before"), *hiding, *filler("after")]
    async with open_transcript(blocks) as desk:
        desk.transcript.toggle_thinking()
        assert await desk.transcript.find("wanted")
        assert desk.transcript.found == (1, 1)
        assert found_text(desk) == "wanted"


async def test_steps_go_round_and_every_hit_in_sight_is_marked(open_transcript) -> None:
    blocks = [*filler("a"), AssistantBlock("m", "needle one, needle two"), *filler("b"),
              UserBlock("u", "Needle three"), *filler("c")]  # fmt: skip
    async with open_transcript(blocks) as desk:
        transcript = desk.transcript
        await transcript.find("needle")
        assert transcript.found == (3, 3)  # the nearest above the end
        assert found_text(desk) == "Needle"
        await transcript.find_next(1)
        assert transcript.found == (1, 3)
        assert found_text(desk) == "needle" and marks(desk) == ["needle"]
        await transcript.find_next(1)
        assert transcript.found == (2, 3)
        await transcript.find_next(-1)
        await transcript.find_next(-1)
        assert transcript.found == (3, 3)
        place = desk.lines()
        transcript.end_find()
        assert transcript.found == (0, 0) and found_text(desk) == "" and marks(desk) == []
        assert desk.lines()[:-1] == place[:-1]


async def test_the_search_begins_at_what_is_in_sight(open_transcript) -> None:
    blocks = [UserBlock("x", "needle"), *filler("a"), UserBlock("y", "needle"), *filler("b")]
    async with open_transcript([*blocks, UserBlock("z", "needle")]) as desk:
        desk.transcript.scroll_rows(-150)
        await desk.transcript.find("need")
        assert desk.transcript.found == (2, 3)
        await desk.transcript.find("needle")  # typing on stays there
        assert desk.transcript.found == (2, 3)


async def test_nothing_found_leaves_the_place(open_transcript) -> None:
    async with open_transcript(filler("a")) as desk:
        before = desk.lines()
        await desk.transcript.find("nowhere")
        assert desk.transcript.found == (0, 0)
        await desk.transcript.find_next(1)
        assert desk.lines() == before


async def test_text_that_is_wrapped_is_found_and_marked_on_both_rows(open_transcript) -> None:
    words = "aaaa bbbb cccc dddd eeee ffff gggg"
    async with open_transcript([AssistantBlock("a", words)], width=22) as desk:
        rows = [line.strip() for line in desk.lines() if line.strip()]
        wrapped = f"{rows[0].split()[-1]} {rows[1].split()[0]}"
        await desk.transcript.find(wrapped)
        assert desk.transcript.found == (1, 1)
        assert found_text(desk) == wrapped.replace(" ", "")


async def test_a_hit_in_what_markdown_does_not_show_goes_to_its_block(open_transcript) -> None:
    block = AssistantBlock("m", "see [the page](https://example.org/hidden-needle)")
    async with open_transcript([*filler("a"), block, *filler("b")]) as desk:
        await desk.transcript.find("**")
        assert desk.transcript.found == (0, 0)
        await desk.transcript.find("](https")
        assert desk.transcript.found == (1, 1)
        assert "the page" in desk.screen()


async def test_blocks_that_arrive_later_are_found_by_the_next_step(open_transcript) -> None:
    async with open_transcript([UserBlock("a", "needle"), *filler("a")]) as desk:
        await desk.transcript.find("needle")
        desk.transcript.append(UserBlock("late", "needle too"))
        await desk.transcript.find_next(1)
        assert desk.transcript.found == (2, 2)
        desk.transcript.set_blocks([UserBlock("new", "needle")], keep_position=True)
        assert found_text(desk) == ""
        await desk.transcript.find_next(1)
        assert desk.transcript.found == (1, 1) and found_text(desk) == "needle"


async def test_a_later_search_overtakes_an_earlier_one(open_transcript) -> None:
    async with open_transcript([UserBlock("a", "one two")]) as desk:
        first = desk.app.run_worker(desk.transcript.find("one"))
        second = desk.app.run_worker(desk.transcript.find("two"))
        assert [await first.wait(), await second.wait()] == [False, True]
        assert found_text(desk) == "two"


async def test_the_place_is_right_after_a_resize_at_the_end(open_transcript) -> None:
    text = "\n\n".join(f"paragraph {n} with some words to wrap" for n in range(40))
    async with open_transcript([*filler("a"), AssistantBlock("m", text)], width=90) as desk:
        await desk.pilot.resize_terminal(40, 12)
        await desk.pilot.pause()
        await desk.transcript.find("paragraph 3 with")
        assert found_text(desk) == "paragraph 3 with"


def test_case_counts_only_when_there_is_a_capital() -> None:
    assert query_pattern("needle").search("a NEEDLE")
    assert not query_pattern("Needle").search("a needle")
    assert query_pattern("a.b [x").search("A.B  [x")
    assert not query_pattern("a.b").search("aab")
