"""From Enter to the new place: the questions, each step back, and what ends in the editor."""

import asyncio

import pytest

from pi_tui.agent.compaction_plan import CompactionOutcome
from pi_tui.agent.navigator import NavigationOutcome, NavigationPreview
from pi_tui.agent.queues import Draft
from pi_tui.core.errors import StorageError
from pi_tui.core.events import SessionReplaced
from pi_tui.core.messages import ImageContent
from pi_tui.tui.tree import summary_question
from pi_tui.tui.tree.summary_choice import branch_facts

WAITED = (Draft("precious", (ImageContent("Y2F0", "image/png"),)),)


async def choose(desk, entry_id):
    desk.view.select(entry_id)
    await desk.press("enter")


async def test_the_current_leaf_is_already_there(open_tree):
    async with open_tree() as desk:
        await desk.press("enter")
        assert desk.panel is None
        assert desk.ui.notices == [("info", "already at this point")]
        assert desk.session.requests == []


async def test_without_a_summary_a_user_message_comes_back_for_editing(open_tree):
    async with open_tree() as desk:
        await choose(desk, "u2")
        assert "Summarise the branch you leave?" in desk.screen
        await desk.pilot.pause()
        assert "4 entries left behind · about 12k tokens" in desk.screen
        await desk.press("enter")
        (request,) = desk.session.requests
        assert (request.target_id, request.summarize) == ("u2", False)
        assert desk.session.tree.leaf_id == "a2"
        assert desk.ui.editor_texts == ["fix the lexer"]
        assert desk.ui.notices == [("info", "it moved")]
        assert desk.panel is None


async def test_arrows_do_not_wrap_in_the_question(open_tree):
    async with open_tree() as desk:
        await choose(desk, "a3")
        await desk.press("up")
        assert "→ no summary" in desk.screen
        await desk.press("down", "down", "down", "down")
        assert "→ summarise with own instructions" in desk.screen


async def test_every_escape_is_exactly_one_step_and_instructions_are_kept(open_tree):
    async with open_tree() as desk:
        await choose(desk, "a3")
        await desk.press("down", "down", "enter")
        assert "What should the summary look at?" in desk.screen
        await desk.type("the lexer")
        await desk.press("ctrl+j")
        await desk.type("Only that")
        await desk.press("escape")
        assert "→ summarise with own instructions (as typed before)" in desk.screen
        await desk.press("escape")
        assert "Session Tree" in desk.screen and desk.view.selected_id == "a3"
        await desk.press("enter", "down", "down", "enter")
        assert "Only that" in desk.screen
        await desk.press("enter")
        (request,) = desk.session.requests
        assert request.summarize and request.custom_instructions == "the lexer\nOnly that"


async def test_the_external_editor_gets_the_instructions(open_tree):
    async with open_tree() as desk:
        await choose(desk, "a3")
        await desk.press("down", "down", "enter")
        await desk.type("look")
        await desk.press("ctrl+g", "enter")
        assert desk.app.edited == ["look"]
        assert desk.session.requests[0].custom_instructions == "look edited"


async def test_the_answer_can_be_remembered_for_the_session(open_tree):
    async with open_tree() as desk:
        await choose(desk, "a3")
        await desk.press("down", "space", "enter")
        assert desk.session.requests[-1].summarize
        desk.app.navigator.open()
        await desk.pilot.pause()
        await choose(desk, "a5")
        assert len(desk.session.requests) == 2 and desk.session.requests[-1].summarize


@pytest.mark.parametrize("entry_id", ["a3", "u1"])
async def test_the_setting_skips_the_question(open_tree, entry_id):
    async with open_tree() as desk:
        desk.session.branch_skip_prompt = True
        await choose(desk, entry_id)
        assert [one.summarize for one in desk.session.requests] == [False]


async def test_nothing_is_asked_when_nothing_is_left(open_tree):
    async with open_tree(leaf_id="a2") as desk:
        await choose(desk, "a5")
        assert len(desk.session.requests) == 1 and desk.session.previews == 0


async def test_a_cancelled_summary_comes_back_to_the_same_entry(open_tree):
    async with open_tree() as desk:
        desk.session.outcomes = ["cancelled"]
        await choose(desk, "a3")
        await desk.press("down", "enter")
        await desk.pilot.pause()
        assert "Session Tree" in desk.screen and desk.view.selected_id == "a3"
        await desk.press("escape")
        assert desk.panel is None and not desk.app.navigator.is_open


async def test_a_failed_move_is_told_and_closes(open_tree):
    async with open_tree() as desk:
        desk.session.outcomes = ["failed"]
        await choose(desk, "a3")
        await desk.press("enter")
        assert desk.panel is None and desk.ui.notices == [("error", "it failed")]


async def test_it_opens_once_and_remembers_its_view(open_tree):
    async with open_tree() as desk:
        desk.app.navigator.open()
        await desk.pilot.pause()
        assert len(desk.app.panels) == 1
        await desk.press("ctrl+t", "v", "escape", "escape")
        assert not desk.app.navigator.is_open
        desk.app.navigator.open()
        await desk.pilot.pause()
        assert desk.view.filter == "no-tools"


async def test_the_filter_of_the_settings_opens(open_tree):
    def prepare(app):
        app.tree_filter = "user-only"

    async with open_tree(prepare=prepare) as desk:
        assert "[user-only]" in desk.screen and desk.view.selected_id == "u3"


async def test_another_session_closes_it(open_tree):
    async with open_tree() as desk:
        desk.session.emit(SessionReplaced("new"))
        await desk.pilot.pause()
        assert desk.panel is None


@pytest.mark.parametrize("way", ["the key", "the app"])
async def test_undoing_a_move_brings_waiting_messages_back(open_tree, way):
    async with open_tree() as desk:

        async def undo():
            return NavigationOutcome("moved", None, None, message="back", taken_back=WAITED)

        desk.session.undo_navigation = undo
        if way == "the key":
            desk.app.panels[0].actions.undo()
        else:
            desk.app.navigator.undo()
        await desk.pilot.pause()
        assert desk.ui.editor_texts == ["precious"]
        assert desk.ui.notices[-1] == ("info", "back")
        assert "an image" in desk.ui.notices[0][1]


async def test_a_move_brings_them_back_too(open_tree):
    async with open_tree() as desk:

        async def navigate(request):
            return NavigationOutcome("moved", None, None, message="there", taken_back=WAITED)

        desk.session.navigate = navigate
        desk.session.branch_skip_prompt = True
        await choose(desk, "a3")
        assert desk.ui.editor_texts == ["precious"]


@pytest.mark.parametrize(
    ("kind", "told"), [("nothing", [("info", "why")]), ("failed", []), ("done", [])]
)
async def test_only_a_compaction_with_nothing_to_do_is_told_here(open_tree, kind, told):
    """What was done or failed is told by the events of the compaction."""
    async with open_tree() as desk:

        async def compact(request):
            return CompactionOutcome(kind, message="why")

        desk.session.compact = compact
        desk.app.panels[0].actions.compact(desk.session.tree.leaf_id)
        await desk.pilot.pause()
        assert desk.ui.notices == told


async def test_the_question_is_there_before_its_facts(open_tree, monkeypatch):
    """Counting goes on beside the keys, ends with the question, and its failure is told whole."""
    async with open_tree() as desk:
        counted, cancelled = asyncio.Event(), asyncio.Event()

        async def preview(target_id):
            try:
                await counted.wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise
            raise StorageError("an entry is gone", hint="Open it again.")

        monkeypatch.setattr(summary_question, "COUNT_FIRST_S", 0)
        desk.session.preview_navigation = preview
        await choose(desk, "a3")
        await desk.pilot.pause()
        assert "counting what is left" in desk.screen
        await desk.press("escape")
        await desk.pilot.pause()
        assert cancelled.is_set()
        counted.set()
        await choose(desk, "a3")
        await desk.pilot.pause()
        assert "an entry is gone. Open it again." in desk.screen


def test_what_is_left_is_said_in_one_line():
    assert branch_facts(NavigationPreview(1, 0, False)) == (
        "1 entry left behind, nothing in it to summarise"
    )
    preview = NavigationPreview(9, 200_000, True, left_out_messages=3, modified_files=("a", "b"))
    assert branch_facts(preview) == (
        "9 entries left behind · about 200k tokens · 2 changed files stay"
        " · the oldest 3 messages do not fit a summary"
    )


async def test_nobody_is_asked_when_there_is_nothing_to_summarise(open_tree):
    async with open_tree() as desk:

        async def preview(target_id):
            return NavigationPreview(1, 0, False)

        async def open_panel(panel):
            raise AssertionError("somebody was asked")

        desk.session.preview_navigation = preview
        desk.app.open_panel = open_panel
        await choose(desk, "a3")
        assert [one.summarize for one in desk.session.requests] == [False]
        assert desk.panel is None


async def test_a_question_that_turns_out_to_be_none_closes_without_a_summary(
    open_tree, monkeypatch
):
    monkeypatch.setattr(summary_question, "COUNT_FIRST_S", 0)
    async with open_tree() as desk:
        counted = asyncio.Event()

        async def preview(target_id):
            await counted.wait()
            return NavigationPreview(1, 0, False)

        desk.session.preview_navigation = preview
        await choose(desk, "a3")
        assert "Summarise the branch you leave?" in desk.screen
        counted.set()
        await desk.pilot.pause()
        assert [one.summarize for one in desk.session.requests] == [False]


@pytest.mark.parametrize("deed", ["p", "o", "label", "h"])
async def test_after_a_deed_on_it_the_current_entry_is_still_here(open_tree, deed):
    async with open_tree() as desk:
        if deed == "label":
            await desk.press("l")
            await desk.type("mine")
            await desk.press("enter")
        elif deed == "h":
            desk.view.select("a3")
            await desk.press("h", "end")
        else:
            await desk.press(deed)
        row = next(line for line in desk.lines() if line.startswith("› "))
        assert "[here]" in row and desk.view.selected_id == "a5"
        await desk.press("enter")
        assert desk.panel is None and desk.session.requests == []
        assert desk.ui.notices == [("info", "already at this point")]


async def test_keys_after_enter_are_for_the_question(open_tree):
    async with open_tree() as desk:
        desk.view.select("a3")
        panel = desk.panel
        for name in ("enter", "down", "enter"):
            panel.key(name, None)
        await desk.pilot.pause()
        (request,) = desk.session.requests
        assert request.target_id == "a3" and request.summarize


async def test_dont_ask_again_holds_for_own_instructions_and_can_be_taken_back(open_tree):
    async with open_tree() as desk:
        await choose(desk, "a3")
        await desk.press("down", "down", "space")
        assert "[x] don't ask again in this session: always with the instructions" in desk.screen
        await desk.press("enter")
        await desk.type("the lexer")
        await desk.press("enter")
        assert (
            desk.ui.notices[-1][1] == "it moved; not asked about summaries: a in /tree asks again"
        )
        for entry_id in ("a5", "a3"):
            desk.app.navigator.open()
            await desk.pilot.pause()
            await choose(desk, entry_id)
            request = desk.session.requests[-1]
            assert request.summarize and request.custom_instructions == "the lexer"
            assert "a in /tree asks again" in desk.ui.notices[-1][1]
        assert len(desk.session.requests) == 3
        desk.app.navigator.open()
        await desk.pilot.pause()
        await desk.press("a")
        assert "you are asked about a summary again" in desk.screen
        await desk.press("a")
        assert "you are asked about summaries as it is" in desk.screen
        await choose(desk, "a5")
        assert "Summarise the branch you leave?" in desk.screen
        await desk.press("up", "up", "enter")
        assert desk.ui.notices[-1][1] == "it moved"


@pytest.mark.parametrize("size", [(120, 40), (60, 20), (40, 12)])
async def test_the_question_says_what_will_be_done_unasked(open_tree, size):
    async with open_tree(width=size[0], height=size[1]) as desk:
        await choose(desk, "a3")
        await desk.press("space")
        line = desk.lines()[desk.row_of("[x]")]
        assert line.endswith(("go without a summary", "no summary"))
        await desk.press("down")
        assert desk.lines()[desk.row_of("[x]")].endswith("summarise")
        await desk.press("down")
        assert desk.lines()[desk.row_of("[x]")].endswith(("you give now", "own instructions"))
        assert "tokens" in desk.screen


async def test_the_question_takes_the_mouse(open_tree):
    async with open_tree() as desk:
        await choose(desk, "a3")
        await desk.pilot.click(offset=(8, desk.row_of("don't ask again in")))
        await desk.pilot.pause()
        assert "[x]" in desk.screen
        await desk.pilot.click(offset=(8, desk.row_of("  summarise")))
        await desk.pilot.pause()
        assert [one.summarize for one in desk.session.requests] == [True]
        desk.app.navigator.open()
        await desk.pilot.pause()
        await choose(desk, "a5")
        assert desk.session.requests[-1].summarize  # the box was set


async def test_a_click_puts_the_cursor_into_the_instructions(open_tree):
    async with open_tree() as desk:
        await choose(desk, "a3")
        await desk.press("down", "down", "enter")
        await desk.type("look at lexer")
        await desk.pilot.click(offset=(2 + len("look at "), desk.row_of("look at lexer")))
        await desk.pilot.pause()
        await desk.type("the ")
        await desk.press("enter")
        assert desk.session.requests[0].custom_instructions == "look at the lexer"


async def test_an_undo_that_cannot_be_is_said_above_the_list(open_tree):
    async with open_tree() as desk:

        async def undo():
            return NavigationOutcome("failed", None, None, message="there is no move to undo")

        desk.session.undo_navigation = undo
        await desk.press("u")
        assert "there is no move to undo" in desk.screen and "Session Tree" in desk.screen
        assert desk.ui.notices == []
