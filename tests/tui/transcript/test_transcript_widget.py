import pytest
from textual.events import MouseScrollUp
from textual.geometry import Offset

from pi_tui.core.transcript import (
    AssistantBlock,
    Block,
    NoticeBlock,
    ShellBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.resources.themes import load_theme


def conversation(turns: int) -> list[Block]:
    blocks: list[Block] = []
    for n in range(turns):
        output = "\n".join(f"line {line} of {n}" for line in range(30))
        blocks += [
            UserBlock(f"u{n}", f"question {n}"),
            AssistantBlock(f"a{n}", f"answer **{n}** " + "with words " * (n % 40)),
            ToolBlock(f"t{n}", f"c{n}", "bash", {"command": f"make {n}"}, "ok", output),
        ]
    return blocks


async def test_opening_ten_thousand_blocks_draws_what_is_visible(open_transcript) -> None:
    async with open_transcript(conversation(4_000)) as desk:
        assert "$ make 3999" in desk.screen()
        assert desk.transcript.drawn_count <= 10
        desk.transcript.page_up()
        desk.screen()
        assert desk.transcript.drawn_count <= 25
        desk.transcript.scroll_top()
        assert "question 0" in desk.screen()
        assert desk.transcript.drawn_count <= 40


async def test_a_long_output_is_cut_only_where_it_is_looked_at(open_transcript) -> None:
    output = "\n".join(f"line {n} " + "x" * (n % 200) for n in range(2_000))
    block = ToolBlock("t", "1", "bash", {"command": "x"}, "ok", output)
    async with open_transcript([block]) as desk:
        assert "… 1995 earlier lines" in desk.screen()
        desk.transcript.toggle_tools()
        desk.transcript.scroll_top()
        assert "line 3" in desk.screen()
        drawn = desk.transcript._items.ensure(0)
        assert drawn is not None
        assert drawn.height > 2_000
        assert len(drawn._strips) <= 2 * 24


async def test_sticks_to_the_end_until_somebody_scrolls_up(open_transcript) -> None:
    async with open_transcript(conversation(20)) as desk:
        desk.transcript.append(NoticeBlock("n1", "info", "first news"))
        assert "first news" in desk.lines()[-1]
        desk.transcript.scroll_rows(-3)
        before = desk.lines()
        assert "jump to latest" in before[-1]
        desk.transcript.append(NoticeBlock("n2", "info", "second news"))
        after = desk.lines()
        assert after[:-1] == before[:-1]
        assert "1 new · jump to latest (ctrl+end)" in after[-1]
        desk.transcript.scroll_bottom()
        assert "second news" in desk.lines()[-1]
        assert desk.transcript.following
        assert "jump to latest" not in desk.screen()


async def test_scrolling_down_to_the_end_follows_again(open_transcript) -> None:
    async with open_transcript(conversation(20)) as desk:
        end = desk.lines()
        desk.transcript.page_up()
        desk.transcript.page_up()
        desk.transcript.page_down()
        assert not desk.transcript.following
        desk.transcript.page_down()
        desk.transcript.page_down()
        assert desk.transcript.following
        assert desk.lines() == end


async def test_pages_overlap_and_miss_nothing(open_transcript) -> None:
    async with open_transcript(conversation(30), height=20) as desk:
        seen = desk.lines()
        for _ in range(200):
            desk.transcript.page_up()
            page = desk.lines()
            if page[0] == "" and "question 0" in "".join(page[:4]):
                break
            joined = page[:18]
            assert page[18] == seen[0]
            seen = joined + seen
        text = "\n".join(seen)
        assert all(f"$ make {n}\n" in text for n in range(2, 30))


async def test_guessed_heights_above_do_not_move_what_is_read(open_transcript) -> None:
    async with open_transcript(conversation(300)) as desk:
        for _ in range(50):
            before = desk.lines()
            desk.transcript.scroll_rows(-1)
            after = desk.lines()
            assert after[1:-1] == before[:-2]


@pytest.mark.parametrize(("width", "height"), [(40, 15), (120, 40), (79, 24)])
async def test_resize_keeps_the_reading_position(open_transcript, width, height) -> None:
    async with open_transcript(conversation(100)) as desk:
        desk.transcript.page_up()
        while not desk.transcript.previous_user_message():
            pass
        top = desk.lines()[1]
        assert top.strip("▌ ").startswith("question")
        await desk.pilot.resize_terminal(width, height)
        await desk.pilot.pause()
        assert desk.lines()[1] == top
        assert {strip.cell_length for strip in desk.strips()} == {width}


async def test_resize_at_the_end_stays_at_the_end(open_transcript) -> None:
    blocks = [*conversation(50), NoticeBlock("n", "info", "the very last")]
    async with open_transcript(blocks) as desk:
        for size in ((40, 15), (120, 40), (1, 1), (80, 24)):
            await desk.pilot.resize_terminal(*size)
            await desk.pilot.pause()
        assert desk.lines()[-1].strip() == "the very last"


async def test_a_streaming_answer_is_drawn_again_at_another_width(open_transcript) -> None:
    words = " ".join(f"word{n}" for n in range(40))
    async with open_transcript([AssistantBlock("a", "", streaming=True)], width=80) as desk:
        desk.transcript.append_text("a", words[:150])
        desk.transcript.flush()
        await desk.pilot.resize_terminal(40, 24)
        await desk.pilot.pause()
        desk.transcript.append_text("a", words[150:])
        desk.transcript.finish("a")
        narrow = desk.lines()
        desk.transcript.set_blocks([AssistantBlock("a", words)])
        assert desk.lines() == narrow


async def test_streamed_then_stored_looks_the_same_and_is_not_drawn_again(open_transcript) -> None:
    text = "# Title\n\n- a\n- b\n\n```py\nx = 1\n```\nend *text*"
    async with open_transcript([]) as desk:
        transcript = desk.transcript
        transcript.append(AssistantBlock("live:0", text[:5], streaming=True))
        for char in text[5:]:
            transcript.append_text("live:0", char)
            transcript.flush()
        drawn = transcript.drawn_count
        assert transcript.block("live:0") == AssistantBlock("live:0", text, streaming=True)
        transcript.replace("live:0", AssistantBlock("entry:0", text))
        final = desk.lines()
        assert transcript.drawn_count == drawn
        assert transcript.block("live:0") is None
        assert transcript.block("entry:0") == AssistantBlock("entry:0", text)
        transcript.set_blocks([AssistantBlock("entry:0", text)])
        assert desk.lines() == final


async def test_many_calls_make_one_flush(open_transcript, monkeypatch) -> None:
    async with open_transcript([AssistantBlock("a", "", streaming=True)]) as desk:
        flushes = 0
        flush = desk.transcript.flush

        def counted() -> None:
            nonlocal flushes
            flushes += 1
            flush()

        monkeypatch.setattr(desk.transcript, "flush", counted)
        for _ in range(500):
            desk.transcript.append_text("a", "x ")
        while "x x" not in desk.app.screen._compositor.render_strips()[1].text:
            await desk.pilot.pause()
        assert flushes <= 2


async def test_only_lines_that_differ_are_repainted(open_transcript, monkeypatch) -> None:
    async with open_transcript([UserBlock("u", "hi"), AssistantBlock("a", "b", True)]) as desk:
        repainted: list[int] = []
        monkeypatch.setattr(
            desk.transcript, "refresh", lambda *regions: repainted.extend(r.y for r in regions)
        )
        desk.transcript.append_text("a", "c")
        desk.transcript.flush()
        assert repainted == [desk.line_of("bc")]


async def test_toggling_all_tools_and_summaries(open_transcript) -> None:
    blocks: list[Block] = [
        ToolBlock("t", "1", "bash", {"command": "x"}, "ok", "\n".join(map(str, range(9)))),
        SummaryBlock("s", "compaction", "the summary", 84_210, 9_120, 12_300, 0.031),
        ThinkingBlock("th", "deep thoughts"),
    ]
    async with open_transcript(blocks) as desk:
        collapsed = desk.screen()
        assert "… 4 earlier lines (ctrl+o)" in collapsed
        assert "compacted 84k → 9.1k tokens · 12s · $0.03" in collapsed
        assert "the summary" not in collapsed
        desk.transcript.toggle_tools()
        assert "earlier" not in desk.screen()
        assert "the summary" in desk.screen()
        desk.transcript.toggle_tools()
        assert desk.screen() == collapsed
        desk.transcript.toggle_thinking()
        assert "deep thoughts" not in desk.screen()
        assert "thinking (ctrl+t shows it)" in desk.screen()


async def test_a_click_opens_one_block_and_leaves_its_head_where_it_is(open_transcript) -> None:
    blocks = conversation(3)
    async with open_transcript(blocks, height=40) as desk:
        head = desk.line_of("$ make 1")
        await desk.pilot.click(desk.transcript, offset=(10, head))
        await desk.pilot.pause()
        assert desk.line_of("$ make 1") == head
        assert "line 0 of 1" in desk.screen()
        assert "line 0 of 2" not in desk.screen()
        await desk.pilot.click(desk.transcript, offset=(10, head))
        await desk.pilot.pause()
        assert "line 0 of 1" not in desk.screen()


async def test_a_click_inside_a_long_open_block_leads_back_to_its_head(open_transcript) -> None:
    async with open_transcript(conversation(20)) as desk:
        assert desk.transcript.toggle_block("t1")
        desk.transcript.scroll_top()
        desk.transcript.scroll_rows(30)
        y = next(y for y, line in enumerate(desk.lines()) if "of 1" in line and y > 3)
        await desk.pilot.click(desk.transcript, offset=(5, y))
        await desk.pilot.pause()
        assert "$ make 1" in desk.lines()[0]
        assert not desk.transcript.toggle_block("u1")
        assert not desk.transcript.toggle_block("nothing")


async def test_a_click_on_the_hint_goes_to_the_end(open_transcript) -> None:
    async with open_transcript(conversation(30)) as desk:
        desk.transcript.page_up()
        desk.transcript.flush()
        await desk.pilot.click(desk.transcript, offset=(40, 23))
        assert desk.transcript.following


async def test_wheel_and_scrollbar(open_transcript) -> None:
    async with open_transcript(conversation(100)) as desk:
        transcript = desk.transcript
        end = desk.lines()
        assert transcript.scroll_y == transcript.max_scroll_y > 0
        await desk.pilot._post_mouse_events([MouseScrollUp], transcript, offset=(5, 5), button=0)
        await desk.pilot.pause()
        assert desk.lines()[3:-1] == end[:-4]
        transcript.scroll_to(y=0)
        assert "question 0" in desk.screen()
        transcript.scroll_to(y=transcript.max_scroll_y)
        assert desk.lines() == end


async def test_jumping_between_user_messages(open_transcript) -> None:
    async with open_transcript(conversation(50)) as desk:
        tops = []
        for _ in range(3):
            assert desk.transcript.previous_user_message()
            tops.append(desk.lines()[1].strip("▌ "))
        first = int(tops[0].split()[1])
        assert tops == [f"question {first - n}" for n in range(3)]
        assert desk.transcript.next_user_message()
        assert desk.lines()[1].strip("▌ ") == tops[1]
        desk.transcript.scroll_top()
        desk.transcript.flush()
        assert not desk.transcript.previous_user_message()


async def test_removed_blocks_leave_no_gap_and_do_not_move_what_is_read(open_transcript) -> None:
    async with open_transcript(conversation(20)) as desk:
        desk.transcript.scroll_rows(-10)
        before = desk.lines()
        desk.transcript.remove("a0")
        desk.transcript.remove("t3")
        desk.transcript.remove("unknown")
        assert desk.lines() == before
        desk.transcript.set_blocks(
            [UserBlock("u", "one"), NoticeBlock("n", "info", "two"), NoticeBlock("m", "info", "3")]
        )
        desk.transcript.remove("n")
        assert [line.strip("▌ ") for line in desk.lines() if line.strip("▌ ")] == ["one", "3"]
        desk.transcript.append(NoticeBlock("n", "info", "two"))
        assert desk.lines()[-1] == "" or "two" in desk.screen()
        assert "two" in desk.screen()


async def test_earlier_blocks_can_come_later_without_moving_what_is_read(open_transcript) -> None:
    blocks = conversation(60)
    async with open_transcript(blocks[90:]) as desk:
        desk.transcript.page_up()
        before = desk.lines()
        desk.transcript.set_blocks(blocks, keep_position=True)
        assert desk.lines() == before
        desk.transcript.scroll_top()
        assert "question 0" in desk.screen()
        desk.transcript.set_blocks(blocks)
        assert desk.transcript.following


async def test_clear(open_transcript) -> None:
    async with open_transcript(conversation(5)) as desk:
        desk.transcript.clear()
        assert desk.screen().strip() == ""
        desk.transcript.page_up()
        desk.transcript.page_down()
        assert not desk.transcript.previous_user_message()
        desk.transcript.append(UserBlock("u", "again"))
        assert "again" in desk.screen()


async def test_another_theme_draws_everything_again(open_transcript) -> None:
    async with open_transcript(conversation(3)) as desk:
        dark = desk.terminal_output()
        desk.transcript.set_theme(load_theme("light"))
        light = desk.terminal_output()
        assert light != dark
        desk.transcript.set_theme(load_theme("dark"))
        assert desk.terminal_output() == dark


async def test_a_running_command_shows_how_long(open_transcript) -> None:
    now_s = 100.0
    block = ToolBlock("t", "1", "bash", {"command": "sleep"}, "running", "so far")
    async with open_transcript([block], clock=lambda: now_s) as desk:
        assert "7.0s" not in desk.screen()
        now_s = 107.4
        desk.transcript._tick()
        assert "7.0s" in desk.screen()
        desk.transcript.replace("t", ToolBlock("t", "1", "bash", {}, "ok", "done", duration_ms=60))
        assert "7.0s" not in desk.screen()
        assert "0.1s" in desk.screen()


async def test_selecting_with_the_mouse_copies_plain_text(open_transcript) -> None:
    text = "The **bold** words of an answer that is long enough to be wrapped at this width."
    blocks: list[Block] = [
        UserBlock("u", "a question"),
        AssistantBlock("a", f"{text}\n\n```py\nx = 1\ny = 2\n```"),
    ]
    async with open_transcript(blocks, width=40) as desk:
        start, end = desk.line_of("The bold"), desk.line_of("y = 2")
        await desk.pilot.mouse_down(desk.transcript, offset=(2, start))
        await desk.pilot.hover(desk.transcript, offset=(20, end))
        await desk.pilot.mouse_up(desk.transcript, offset=(20, end))
        await desk.pilot.pause()
        copied = desk.app.screen.get_selected_text()
        assert copied == f"{text.replace('**', '')}\n\npy\nx = 1\ny = 2"
        # The selection stays on its text when something is added above the fold or below.
        desk.transcript.append(NoticeBlock("n", "info", "news\n" * 30))
        desk.transcript.flush()
        assert desk.app.screen.get_selected_text() == copied


async def test_a_double_click_selects_a_word_and_a_triple_click_a_line(open_transcript) -> None:
    async with open_transcript([UserBlock("u", "see src/app.py:12 now")]) as desk:
        y = desk.line_of("see src")
        await desk.pilot.double_click(desk.transcript, offset=(10, y))
        await desk.pilot.pause()
        assert desk.app.screen.get_selected_text() == "src/app.py:12"
        await desk.pilot.triple_click(desk.transcript, offset=(10, y))
        await desk.pilot.pause()
        assert desk.app.screen.get_selected_text() == "see src/app.py:12 now"


async def test_dragging_does_not_toggle(open_transcript) -> None:
    async with open_transcript(conversation(2), height=40) as desk:
        y = desk.line_of("$ make 1")
        before = desk.lines()
        await desk.pilot.mouse_down(desk.transcript, offset=(4, y))
        await desk.pilot.hover(desk.transcript, offset=(12, y))
        await desk.pilot.mouse_up(desk.transcript, offset=(12, y))
        await desk.pilot.pause()
        assert desk.lines() == before
        assert desk.app.screen.get_selected_text() == "bash $ ma"


async def test_an_empty_streaming_block_takes_no_room(open_transcript) -> None:
    async with open_transcript(
        [UserBlock("u", "hi"), AssistantBlock("a", "", streaming=True)]
    ) as desk:
        assert [line for line in desk.lines() if line.strip("▌ ")] == ["▌ hi"]


async def test_a_selection_goes_when_its_lines_are_others(open_transcript) -> None:
    async with open_transcript([UserBlock("u", "some words here")]) as desk:
        y = desk.line_of("some words")
        await desk.pilot.double_click(desk.transcript, offset=Offset(4, y))
        await desk.pilot.pause()
        assert desk.app.screen.get_selected_text() == "some"
        await desk.pilot.resize_terminal(50, 20)
        await desk.pilot.pause()
        assert desk.app.screen.get_selected_text() is None


async def test_a_shell_block_says_how_it_ended(open_transcript) -> None:
    blocks: list[Block] = [
        ShellBlock("a", "make", "bad", exit_code=2),
        ShellBlock("b", "sleep 9", "", cancelled=True, excluded=True),
        ShellBlock("c", "seq 9999", "9999", 0, truncated=True, full_output_path="/tmp/all.txt"),
        ShellBlock("d", "top", "", running=True),
    ]
    async with open_transcript(blocks, height=40) as desk:
        shown = desk.screen()
        assert "exit 2" in shown
        assert "$ sleep 9  not sent to the model" in shown
        assert "cancelled" in shown
        assert "output cut, all of it is in /tmp/all.txt" in shown
        assert "running" in shown
