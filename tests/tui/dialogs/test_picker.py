"""A list to choose from: what is asked can be read whole, however narrow the terminal is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from textual.app import App

from pi_tui.commands.ui import Choice
from pi_tui.tui.dialogs.picker import Picker
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.theme import PLAIN

REASON = (
    "This session belongs to /home/demo/code/a-directory-with-a-rather-long-name/project, which "
    "does not exist any more. You are in /home/demo/elsewhere/project."
)
ANSWERS = (
    Choice("here", "continue here", "tools run in ~/elsewhere/project; the model is told so"),
    Choice("fork", "fork it for this directory", "the old session stays as it is"),
    Choice("cancel", "cancel"),
)


@asynccontextmanager
async def shown(
    title: str, choices: Sequence[Choice], size: tuple[int, int]
) -> AsyncIterator[Picker]:
    """A picker at the bottom of a terminal of that size."""
    app: App[None] = App()
    async with app.run_test(size=size) as pilot:
        picker = Picker(title, choices, Palette(PLAIN), KeyMap())
        await app.mount(picker)
        picker.set_available_rows(size[1])
        await pilot.pause()
        yield picker


def lines(picker: Picker) -> list[str]:
    return [picker.render_line(y).text.rstrip() for y in range(picker.body_rows + 2)]


def body(picker: Picker) -> str:
    return " ".join(" ".join(lines(picker)[1:-1]).split())


@pytest.mark.parametrize("size", [(120, 40), (60, 20), (40, 12)])
async def test_a_long_question_is_read_whole_and_answered(size: tuple[int, int]) -> None:
    async with shown(REASON, ANSWERS, size) as picker:
        # A path that is longer than a line is broken, so blanks say nothing.
        assert REASON.replace(" ", "") in body(picker).replace(" ", "")
        rows = lines(picker)
        assert set(rows[0]) == {"─"}
        assert [row for row in rows if "continue here" in row]
        assert "cancels" in rows[-1]
        assert len(rows) <= size[1] - 2
        picker.key("down", None)
        picker.key("enter", None)
        assert picker.result.result() == "fork"


async def test_a_question_that_is_too_long_for_the_terminal_is_read_by_pages() -> None:
    words = [f"word{number}" for number in range(60)]
    async with shown(" ".join(words), ANSWERS, (40, 12)) as picker:
        assert "reads on" in lines(picker)[-1]
        seen = body(picker)
        for _ in range(12):
            picker.key("pagedown", None)
            seen += body(picker)
        assert [word for word in words if word not in seen] == []
        assert words[-1] in body(picker) and "continue here" in body(picker)
        for _ in range(12):
            picker.key("pageup", None)
        assert words[0] in body(picker)


async def test_a_short_title_stays_in_the_rule() -> None:
    async with shown("Model", ANSWERS, (60, 20)) as picker:
        rows = lines(picker)
        assert rows[0].startswith("── Model ──")
        assert rows[1].startswith("  >") and "continue here" in rows[2]


async def test_what_a_row_has_no_room_for_stands_below_the_list() -> None:
    async with shown("Where?", ANSWERS, (70, 20)) as picker:
        rows = lines(picker)
        assert ANSWERS[0].detail not in rows[2] and "…" in rows[2]
        assert rows[-2] == f"  (1/3)  {ANSWERS[0].detail}"
        picker.key("down", None)
        assert lines(picker)[-2] == "  (2/3)"


async def test_typing_still_searches_where_the_line_for_it_was_left_out() -> None:
    async with shown(REASON, ANSWERS, (40, 12)) as picker:
        assert not [row for row in lines(picker) if row.startswith("  >")]
        for character in "fork":
            picker.key(character, character)
        assert [row for row in lines(picker) if row.startswith("  > fork")]
        picker.key("enter", None)
        assert picker.result.result() == "fork"


async def test_a_long_list_under_a_long_title_keeps_its_search_line() -> None:
    many = [Choice(str(number), f"row {number}") for number in range(200)]
    async with shown(REASON, many, (60, 20)) as picker:
        rows = lines(picker)
        assert [row for row in rows if row.startswith("  >")]
        assert "row 0" in body(picker) and len(rows) <= 18
