"""Lines that hold only for a while, and what a failed run leaves waiting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pi_tui.core.events import ActivityChanged, AgentSettled, AutoRetryEnd
from pi_tui.tui.options import StartupLine

Make = Callable[..., Any]

NO_MODEL = StartupLine("no model is set up: this is the scripted demo.", kind="model")


@pytest.mark.parametrize("way", ["found", "cycled"])
async def test_that_no_model_is_set_up_is_said_until_there_is_one(
    bench: Make, double: Any, way: str
) -> None:
    session = double.SessionDouble(models=(double.MODEL, double.OTHER_MODEL))
    b = bench(session, startup=(StartupLine("pi-tui"), NO_MODEL))
    async with b.app.run_test(size=(100, 24)) as pilot:
        await pilot.pause()
        assert "no model is set up" in b.screen
        if way == "found":
            b.app.ui.notify("info", "model: lmstudio/x (found on this machine)")
        else:
            await pilot.press("ctrl+p")
        await pilot.pause()
        assert "no model is set up" not in b.screen
        assert "model: " in b.screen and "pi-tui" in b.screen


async def test_what_waits_when_a_run_has_failed_comes_back(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 24)) as pilot:
        b.session.emit(ActivityChanged("running"))
        b.session.submit("first")
        b.session.submit("second", "followUp")
        b.app.editor.set_text("draft")
        await pilot.pause(0.05)
        assert "Steering: first" in b.screen
        b.session.emit(
            AutoRetryEnd(False, 3, "overloaded"), ActivityChanged("idle"), AgentSettled(False)
        )
        await pilot.pause(0.05)
        assert b.app.editor.buffer.text == "first\n\nsecond\n\ndraft"
        assert "Steering" not in b.screen and "2 queued messages are back" in b.screen
        assert "gave up after 3 retries" in b.screen


async def test_what_the_next_run_takes_stays_in_the_queue(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(100, 24)) as pilot:
        b.session.emit(ActivityChanged("running"))
        b.session.submit("written after the stop")
        # An aborted run settles, and what was written meanwhile begins the next one at once.
        b.session.emit(ActivityChanged("idle"), AgentSettled(True), ActivityChanged("running"))
        await pilot.pause(0.05)
        assert b.app.editor.buffer.text == ""
        assert "Steering: written after the stop" in b.screen
