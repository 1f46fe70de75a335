"""Parts of a transcript that are read when they are looked at: as if all had been there."""

from __future__ import annotations

import random

import pytest

from pi_tui.core.transcript import (
    AssistantBlock,
    Block,
    CoveredBlock,
    CoveredEndBlock,
    ShownBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.tui.transcript.focus import READS_AT_MOST
from pi_tui.tui.transcript.stretches import KEPT_STRETCHES
from pi_tui.tui.transcript.unread import Clue, Unread, clue_of

SIZE = 10


class Part(Unread):
    """Blocks that are there, with a count of how often they were read."""

    def __init__(self, number: int, blocks: list[Block], log: list[int]) -> None:
        super().__init__(f"{blocks[0].key}:unread", len(blocks))
        self._number = number
        self._blocks = blocks
        self._log = log

    @property
    def has_user_messages(self) -> bool:
        return any(isinstance(block, UserBlock) for block in self._blocks)

    @property
    def has_outputs(self) -> bool:
        return any(isinstance(block, ToolBlock) for block in self._blocks)

    def holds(self, block_key: str) -> bool:
        return any(block.key == block_key for block in self._blocks)

    def read(self) -> list[Block]:
        self._log.append(self._number)
        return list(self._blocks)

    def read_if(self, clue: Clue) -> list[Block] | None:
        lines = (str(block).encode() for block in self._blocks)
        return self._blocks if any(map(clue.fits, lines)) else None


def talk(count: int, start: int = 0) -> list[Block]:
    """Blocks of very different heights."""
    made: list[Block] = []
    for n in range(start, start + count):
        if n % 5 == 0:
            made.append(UserBlock(f"k{n}", f"question {n}"))
        elif n % 5 == 3:
            output = "\n".join(f"row {k} of {n}" for k in range(n % 30))
            made.append(ToolBlock(f"k{n}", f"c{n}", "bash", {"command": f"make {n}"}, "ok", output))
        else:
            made.append(AssistantBlock(f"k{n}", "\n\n".join(f"part {n}" for _ in range(1 + n % 4))))
    return made


def parts_of(blocks: list[Block], log: list[int]) -> list[Unread]:
    return [
        Part(at // SIZE, blocks[at : at + SIZE], log) for at in range(0, len(blocks), SIZE)
    ]  # fmt: skip


def text_of_pages(desk, pages: int, page) -> list[str]:
    seen = []
    for _ in range(pages):
        seen.append("\n".join(desk.lines()[:-1]))
        page()
    return seen


@pytest.mark.parametrize("direction", ["up", "down"])
async def test_paging_shows_what_would_be_shown_were_all_there(open_transcript, direction) -> None:
    blocks, log = talk(120), []
    pages = []
    for shown in ([*blocks, *talk(5, 120)], [*parts_of(blocks, log), *talk(5, 120)]):
        async with open_transcript(shown) as desk:
            if direction == "down":
                desk.transcript.scroll_top()
            move = desk.transcript.page_down if direction == "down" else desk.transcript.page_up
            pages.append(text_of_pages(desk, 40, move))
    assert pages[0] == pages[1]
    assert sorted(set(log)) == list(range(12)) and len(log) == 12


async def test_only_what_is_looked_at_is_read(open_transcript) -> None:
    log: list[int] = []
    async with open_transcript([*parts_of(talk(5_000), log), *talk(20, 5_000)]) as desk:
        desk.screen()
        assert log == []
        desk.transcript.scroll_rows(-100)
        desk.screen()
        assert set(log) < {499, 498, 497, 496}
        log.clear()
        desk.transcript.scroll_top()
        assert "question 0" in desk.screen()
        assert log == [0]
        log.clear()
        desk.transcript.scroll_to(y=desk.transcript.max_scroll_y // 2)
        assert any("25" in line for line in desk.lines())
        assert len(log) <= 2 and 200 < log[0] < 300
        log.clear()
        desk.transcript.scroll_bottom()
        assert "question 5015" in desk.screen() and log == []


async def test_what_is_read_does_not_move_what_is_in_sight(open_transcript) -> None:
    log: list[int] = []
    async with open_transcript([*parts_of(talk(600), log), *talk(5, 600)]) as desk:
        desk.transcript.scroll_to(y=desk.transcript.max_scroll_y // 2)
        before = desk.lines()
        for _ in range(40):
            desk.transcript.scroll_rows(-7)
            desk.screen()
        for _ in range(40):
            desk.transcript.scroll_rows(7)
            desk.screen()
        assert desk.lines() == before
        assert desk.transcript._items.heights.total > 0


async def test_what_was_not_looked_at_for_long_is_forgotten_and_read_again(open_transcript) -> None:
    log: list[int] = []
    blocks = talk(1_000)
    output = "\n".join(f"row {n}" for n in range(40))
    blocks[3] = ToolBlock("k3", "c3", "bash", {"command": "make"}, "ok", output)
    async with open_transcript([*parts_of(blocks, log), *talk(5, 1_000)], height=40) as desk:
        transcript = desk.transcript
        transcript.scroll_top()
        first = desk.lines()
        assert transcript.toggle_block("k3")
        opened = desk.lines()
        transcript.scroll_top()
        while not transcript.following:
            transcript.page_down()
            desk.screen()
        there = [s for s in transcript._items.stretches.all if s.items is not None]
        assert len(there) == KEPT_STRETCHES + 1
        assert transcript.block("k3") is None
        total = transcript._items.heights.total
        log.clear()
        transcript.scroll_top()
        assert desk.lines() == opened != first  # what was opened stays open
        assert log[0] == 0
        assert abs(transcript._items.heights.total - total) < 60


def covered(log: list[int]) -> list[ShownBlock | Unread]:
    inside = parts_of(talk(2_000), log)
    return [
        CoveredBlock("covered:k0", 2_000, len(inside) + 3),
        *inside,
        *talk(2, 2_000),
        CoveredEndBlock("covered-end:k0", 2_000),
        *talk(8, 2_002),
        SummaryBlock("sum", "compaction", "the sum", 84_000, 9_000),
    ]


async def test_behind_a_closed_divider_nothing_is_read(open_transcript) -> None:
    log: list[int] = []
    async with open_transcript(covered(log), height=40) as desk:
        desk.transcript.scroll_top()
        lines = [line.strip() for line in desk.lines() if line.strip()]
        assert lines[0].startswith("── ▸ 2,000 messages")
        desk.transcript.toggle_tools()
        assert not desk.transcript.previous_user_message()
        desk.transcript.scroll_rows(-10)
        desk.screen()
        assert log == []
        assert desk.transcript.toggle_block("covered:k0")
        assert "question 0" in desk.screen()
        assert log and max(log) < 4
        log.clear()
        desk.transcript.scroll_bottom()
        desk.transcript.scroll_rows(-60)
        assert "end of what the summary stands for" in desk.screen()
        assert log == [199] or log == []
        assert desk.transcript.toggle_block("covered:k0")
        assert "part 2002" in desk.screen() and "part 1999" not in desk.screen()


async def test_copying_what_is_behind_the_divider_reads_it_all(open_transcript) -> None:
    log: list[int] = []
    async with open_transcript(covered(log), height=40) as desk:
        while desk.transcript.focus_block(-1):
            pass
        text = desk.transcript.focused_text()
        assert text.startswith("question 0") and text.count("question") == 401
        there = [s for s in desk.transcript._items.stretches.all if s.items is not None]
        assert len(there) <= KEPT_STRETCHES + 2


async def test_a_search_reads_only_what_it_goes_to(open_transcript) -> None:
    log: list[int] = []
    blocks = talk(2_000)
    blocks[700] = UserBlock("k700", "the Needle up there")
    blocks[1_200] = AssistantBlock("k1200", "a needle\n\nanother needle")
    async with open_transcript([*parts_of(blocks, log), *talk(5, 2_000)]) as desk:
        transcript = desk.transcript
        assert await transcript.find("needl")
        assert transcript.found == (3, 3)
        assert "another needle" in desk.screen() and set(log) <= {119, 120, 121}
        assert await transcript.find("needle")
        await transcript.find_next(-1)
        await transcript.find_next(-1)
        assert transcript.found == (1, 3)
        assert "the Needle up there" in desk.screen()
        assert set(log) <= {119, 120, 121, 69, 70, 71}
        await transcript.find_next(-1)
        assert transcript.found == (3, 3)
        transcript.append(UserBlock("late", "one more needle"))
        await transcript.find_next(1)
        assert transcript.found == (4, 4)
        transcript.end_find()


async def test_a_search_goes_to_the_nearest_hit_before_all_are_counted(open_transcript) -> None:
    log: list[int] = []
    blocks: list[Block] = [UserBlock(f"k{n}", f"needle {n}") for n in range(3_000)]
    async with open_transcript([*parts_of(blocks, log), *talk(5, 3_000)]) as desk:
        transcript = desk.transcript
        seen = []
        changed = transcript._finder._changed
        transcript._finder._changed = lambda: (seen.append(transcript.found), changed())
        assert await transcript.find("needle")
        assert len(seen) == 1 and 0 < seen[0][1] < 3_000
        assert transcript.found == (3_000, 3_000)
        assert "needle 2999" in desk.screen()


async def test_new_blocks_during_a_search_begin_it_anew(open_transcript) -> None:
    log: list[int] = []
    async with open_transcript([*parts_of(talk(1_000), log), *talk(5, 1_000)]) as desk:
        transcript = desk.transcript
        done = desk.app.run_worker(transcript.find("question 1"))
        await desk.pilot.pause(0)
        others = [UserBlock("new", "question 1 of another"), *parts_of(talk(100), log)]
        transcript.set_blocks([*others, AssistantBlock("end", "end")])
        assert await done.wait()
        # question 10, 15 and the new one
        assert transcript.found[1] == 3
        assert "question 15" in desk.screen()


async def test_a_hit_behind_the_divider_opens_it(open_transcript) -> None:
    log: list[int] = []
    async with open_transcript(covered(log), height=40) as desk:
        await desk.transcript.find("question 1495")
        assert desk.transcript.found == (1, 1)
        assert "question 1495" in desk.screen()
        assert len(log) <= 3


async def test_user_messages_are_stops_wherever_they_are(open_transcript) -> None:
    log: list[int] = []
    blocks: list[Block] = [AssistantBlock(f"k{n}", f"part {n}") for n in range(3_000)]
    blocks[40] = UserBlock("k40", "the only question")
    async with open_transcript([*parts_of(blocks, log), *talk(5, 3_001)]) as desk:
        assert desk.transcript.previous_user_message()
        assert "the only question" in desk.screen()
        assert not desk.transcript.previous_user_message()
        assert len(log) <= 4
        assert not desk.transcript.next_user_message() or "3005" in desk.screen()


async def test_the_focus_finds_an_output_far_away_without_reading_all(open_transcript) -> None:
    log: list[int] = []
    blocks: list[Block] = [AssistantBlock(f"k{n}", f"part {n}") for n in range(3_000)]
    blocks[45] = ToolBlock("k45", "c", "bash", {"command": "make it"}, "ok", "done")
    blocks[2_900] = ThinkingBlock("k2900", "deep")
    async with open_transcript([*parts_of(blocks, log), UserBlock("u", "end")]) as desk:
        assert desk.transcript.focus_block(-1)
        assert "▶" in desk.screen() and "deep" in desk.screen()
        log.clear()
        assert desk.transcript.focus_block(-1)
        assert "make it" in desk.screen()
        assert len(log) <= READS_AT_MOST + 4
        assert not desk.transcript.focus_block(-1)
        assert desk.transcript.focus_block(1)
        assert "deep" in desk.screen()


async def test_a_reader_far_up_keeps_the_place_when_all_is_set_anew(open_transcript) -> None:
    log: list[int] = []
    blocks = talk(1_000)
    async with open_transcript([*parts_of(blocks, log), *talk(5, 1_000)]) as desk:
        desk.transcript.scroll_to(y=desk.transcript.max_scroll_y // 3)
        before = desk.lines()
        log.clear()
        desk.transcript.set_blocks(
            [*parts_of(blocks, log), *talk(9, 1_000)], keep_position=True
        )  # fmt: skip
        assert desk.lines() == before
        assert len(log) <= 3


async def test_a_part_that_says_something_else_when_read_again_does_no_harm(
    open_transcript,
) -> None:
    log: list[int] = []
    parts = parts_of(talk(1_000), log)
    async with open_transcript([*parts, *talk(5, 1_000)]) as desk:
        desk.transcript.scroll_top()
        desk.transcript.scroll_rows(20)
        desk.screen()
        for part in parts:
            part._blocks = [UserBlock(part.key, "an entry is gone")]
        desk.transcript._items.stretches._forget(0)
        desk.transcript._items.stretches._read.pop(0)
        assert "an entry is gone" in desk.screen()
        desk.transcript.page_up()
        assert "an entry is gone" in desk.screen()


@pytest.mark.parametrize(
    ("query", "line", "fits"),
    [
        ("needle", '{"text":"a Needle"}', True),
        ("needle", '{"text":"a pin"}', False),
        ("Needle", '{"text":"a needle"}', False),
        ("needle in hay", '{"text":"needle\\nin\\nhay"}', True),
        ("kind", '{"text":"\u212aind"}', True),
        ("kind", '{"text":"\\u212aind"}', True),
        ("other", '{"text":"\u00e9t\u00e9"}', False),
        ("(empty answer)", '{"content":[]}', True),
        ("no result recorded", '{"type":"toolCall"}', True),
        ("Interrupted", '{"type":"toolCall"}', True),
        ("12-29", '{"offset":12,"limit":18}', True),
        ("été", '{"text":"nothing"}', True),
    ],
)
def test_a_clue_never_passes_over_what_could_be_found(query: str, line: str, fits: bool) -> None:
    ignore_case = query == query.lower()
    assert clue_of(query, ignore_case=ignore_case).fits(line.encode()) is fits


@pytest.mark.parametrize("seed", range(6))
async def test_whatever_is_done_looks_as_if_all_had_been_there(open_transcript, seed) -> None:
    log: list[int] = []
    blocks, end = talk(230), talk(12, 230)
    chance = random.Random(seed)
    steps = [
        (chance.choice(STEPS), chance.randrange(-60, 60), chance.randrange(242))
        for _ in range(40)
    ]  # fmt: skip
    screens = []
    for inside in (blocks, parts_of(blocks, log)):
        shown = [
            CoveredBlock("covered", 230, len(inside) + 1),
            *inside,
            CoveredEndBlock("covered-end", 230),
            *end,
        ]
        async with open_transcript(shown, width=40, height=20) as desk:
            seen = []
            for step, rows, number in steps:
                await STEPS_DONE[step](desk.transcript, rows, number)
                seen.append((step, desk.screen(), desk.transcript.found))
            screens.append(seen)
    assert screens[0] == screens[1]


async def _find(transcript, rows: int, number: int) -> None:
    await transcript.find(f"part {number}")


async def _step(transcript, rows: int, number: int) -> None:
    await transcript.find_next(1 if rows > 0 else -1)


def _plain(do):
    async def done(transcript, rows: int, number: int) -> None:
        do(transcript, rows, number)

    return done


STEPS_DONE = {
    "find": _find,
    "step": _step,
    "rows": _plain(lambda t, rows, number: t.scroll_rows(rows)),
    "top": _plain(lambda t, rows, number: t.scroll_top()),
    "bottom": _plain(lambda t, rows, number: t.scroll_bottom()),
    "fold": _plain(lambda t, rows, number: t.toggle_block("covered")),
    "user": _plain(
        lambda t, rows, number: t.next_user_message() if rows > 0 else t.previous_user_message()
    ),
    "focus": _plain(lambda t, rows, number: t.focus_block(1 if rows > 0 else -1)),
    "toggle": _plain(lambda t, rows, number: t.toggle_focused()),
    "leave": _plain(lambda t, rows, number: t.leave_focus()),
    "tools": _plain(lambda t, rows, number: t.toggle_tools()),
}
STEPS = [*STEPS_DONE, "rows", "rows", "fold"]
