"""The navigator in the whole screen: from a summary to its branch, and the end after a move."""

import importlib.util
from pathlib import Path

import pytest

from pi_tui.agent.navigator import NavigationOutcome
from pi_tui.commands.builtin import builtin_registry
from pi_tui.core.entries import BranchSummaryEntry
from pi_tui.core.events import LeafMoved
from pi_tui.core.messages import Cost, Usage
from pi_tui.tui.app import PiTuiApp
from pi_tui.tui.options import TuiOptions

SIZES = [(120, 40), (60, 20), (40, 12)]
DETAILS = {"estimatedTokens": 12_345, "estimatedTokensAfter": 812, "durationMs": 3_200}


@pytest.fixture(scope="module")
def double():
    path = Path(__file__).parents[1] / "session_double.py"
    spec = importlib.util.spec_from_file_location("tui_tree_session_double", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def summarised(trees, from_id="a3"):
    """The small tree, its leaf on a third branch that begins with a summary of the first."""
    entries = trees.small()
    usage = Usage(12_000, 800, 0, 0, 12_800, cost=Cost(total=0.012))
    summary = BranchSummaryEntry(
        id="s1",
        parent_id="a2",
        timestamp=entries[-1].timestamp,
        from_id=from_id,
        summary="learnt",
        usage=usage,
        details=DETAILS,
    )
    return [*entries, summary]


def screen(app):
    rows = app.screen._compositor.render_strips()[: app.size.height]
    return "\n".join("".join(s.text for s in row).rstrip() for row in rows)


def app_of(session):
    return PiTuiApp(session, builtin_registry(), TuiOptions())


@pytest.mark.parametrize("size", SIZES)
async def test_a_summary_has_tokens_and_a_key_to_its_branch(double, trees, size):
    app = app_of(double.SessionDouble(summarised(trees)))
    async with app.run_test(size=size) as pilot:
        await pilot.press("alt+k")
        await pilot.pause()
        line = "branch summary · 12k → 812 tokens · 3.2s · $0.01"
        assert line[:35] in screen(app) and (size[0] == 40 or line in screen(app))
        assert "tab its branch" in screen(app)
        await pilot.press("tab")
        await pilot.pause()
        assert "Session Tree" in screen(app)
        assert app._panels[0].view.selected_id == "a3"
        assert "assistant: fixed the lexer" in screen(app)


async def test_a_branch_that_is_not_there_is_told_at_the_summary(double, trees):
    app = app_of(double.SessionDouble(summarised(trees, from_id="gone")))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("alt+k", "tab")
        await pilot.pause()
        assert "the branch it came from is not in this session" in screen(app)
        assert not app.navigator.is_open


async def test_tab_is_what_it_was_on_other_blocks(double, trees):
    app = app_of(double.SessionDouble(trees.small()))
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("alt+k")
        await pilot.pause()
        assert "opens" in screen(app) and "its branch" not in screen(app)
        await pilot.press("tab")
        await pilot.pause()
        assert not app.navigator.is_open


@pytest.mark.parametrize("size", SIZES)
async def test_the_end_of_the_path_is_in_sight_after_an_undo(double, trees, size):
    make = trees.Builder()
    make.user("u1", "first")
    make.answer("a1", "\n".join(f"line {n}" for n in range(80)) + "\nthe end of one")
    make.user("u2", "second")
    make.answer("a2", "\n".join(f"row {n}" for n in range(80)) + "\nthe end of two")
    session = double.SessionDouble(make.entries)

    async def undo_navigation():
        session.tree.move_leaf("a1")
        session.emit(LeafMoved("a1", "a2"))
        return NavigationOutcome("moved", "a1", "a2", message="back where you were")

    session.undo_navigation = undo_navigation
    app = app_of(session)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.navigator.open()
        await pilot.pause()
        await pilot.press("u")
        await pilot.pause()
        assert app.transcript.following
        assert "the end of one" in screen(app) and "back where you were" in screen(app)
        assert "jump to latest" not in screen(app)
