"""Another session in the same screen: its totals, and what waited for the turn that was stopped."""

from __future__ import annotations

from typing import Any

from pi_tui.agent.navigator import NavigationOutcome
from pi_tui.agent.queues import Draft
from pi_tui.commands.tree import tell_navigation
from pi_tui.commands.ui import TakesDrafts
from pi_tui.core.errors import StorageError
from pi_tui.core.events import LeafMoved, Notice, SessionReplaced
from pi_tui.core.messages import ImageContent, Usage


async def test_the_totals_of_another_session_are_counted(bench: Any) -> None:
    desk = bench()
    session = desk.session
    counts: list[int] = []

    async def count(*, gently: bool = False) -> None:
        counts.append(1)
        session.usage = Usage(input=len(counts) * 1_000_000)

    session.count_stored = count
    async with desk.app.run_test(size=(100, 20)) as pilot:
        await pilot.pause(0.1)
        assert len(counts) == 1 and "↑1.0M" in desk.screen
        session.emit(SessionReplaced("resume"))
        await pilot.pause(0.1)
        assert len(counts) == 2 and "↑2.0M" in desk.screen


async def test_totals_that_cannot_be_counted_are_told(bench: Any) -> None:
    desk = bench()

    async def count(*, gently: bool = False) -> None:
        raise StorageError("an entry is gone", hint="Open it again.")

    desk.session.count_stored = count
    async with desk.app.run_test(size=(100, 20)) as pilot:
        await pilot.pause(0.1)
        assert "the totals are incomplete: an entry is gone. Open it again." in desk.screen


async def test_drafts_a_move_takes_back_stand_before_the_draft(bench: Any) -> None:
    desk = bench()
    image = ImageContent("Y2F0", "image/png")
    assert isinstance(desk.app.ui, TakesDrafts)
    async with desk.app.run_test(size=(100, 20)) as pilot:
        desk.app.editor.set_text("draft")
        outcome = NavigationOutcome(
            "moved", None, None, message="there", taken_back=(Draft("look", (image,)),)
        )
        tell_navigation(desk.app.ui, outcome)
        await pilot.pause(0.05)
        assert desk.app.editor.buffer.expanded() == "look\n\ndraft"
        assert desk.app.desk._attached() == (image,)


async def test_what_a_move_has_to_say_is_written_below_the_new_path(bench: Any) -> None:
    """Also when the screen was drawn a moment ago, so that the path waits for the next frame."""
    desk = bench()
    async with desk.app.run_test(size=(100, 20)) as pilot:
        await pilot.pause(0.1)
        desk.app.editor.set_text("wait, also")
        desk.session.emit(Notice("info", "drawn a moment ago"))
        desk.app.catch_up()
        desk.session.emit(LeafMoved(None, None))
        outcome = NavigationOutcome("moved", None, None, "fix the parser", message="moved away")
        tell_navigation(desk.app.ui, outcome)
        await pilot.pause(0.1)
        assert "moved away" in desk.screen
        assert "your draft was kept" in desk.screen
        assert desk.app.editor.buffer.expanded() == "wait, also"
        await pilot.press("up", "up")
        assert desk.app.editor.buffer.expanded() == "fix the parser"


async def test_a_line_written_while_events_are_folded_waits_for_no_second_fold(bench: Any) -> None:
    desk = bench()
    async with desk.app.run_test(size=(100, 20)) as pilot:
        bridge = desk.app._bridge
        footer_changed = bridge._view.footer_changed

        def footer_and_more() -> None:
            footer_changed()
            desk.session.emit(Notice("info", "told while drawing"))
            desk.app.ui.notify("info", "said while drawing")

        bridge._view.footer_changed = footer_and_more
        desk.session.emit(LeafMoved(None, None))
        await pilot.pause(0.1)
        assert "told while drawing" in desk.screen and "said while drawing" in desk.screen
