"""Compaction settings that are changed while the program runs hold from the next check on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from pi_tui.core.errors import SettingsError
from pi_tui.core.events import CompactionStart, Event, Notice
from pi_tui.core.models import Model
from pi_tui.wiring.start import Start


def small(start: Start) -> Model:
    return start.models.resolve("demo/tour").model


def test_a_change_holds_from_the_next_check_on(desk: Any) -> None:
    start = desk.start()
    model = small(start)
    assert start.live.compaction(model).enabled
    desk.write("settings.json", {"compaction": {"enabled": False, "keepRecentTokens": 77}})
    found = start.live.compaction(model)
    assert (found.enabled, found.keep_recent_tokens) == (False, 77)
    (desk.root / "settings.json").unlink()
    assert start.live.compaction(model).enabled


def test_the_file_is_read_again_only_when_it_changed(
    desk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write("settings.json", {"compaction": {"keepRecentTokens": 5000}})
    start = desk.start()
    model = small(start)
    read: list[Any] = []
    monkeypatch.setattr("pi_tui.wiring.live_settings.load_settings", read.append)
    for _ in range(3):
        assert start.live.compaction(model).keep_recent_tokens == 5000
    assert read == []


def test_an_edit_of_the_same_size_is_seen(desk: Any) -> None:
    desk.write("settings.json", {"compaction": {"keepRecentTokens": 5000}})
    start = desk.start()
    path = desk.root / "settings.json"
    before = path.stat()
    path.write_text(path.read_text().replace("5000", "6000"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert start.live.compaction(small(start)).keep_recent_tokens == 6000


def test_a_text_that_cannot_be_read_keeps_the_last_good_settings(desk: Any) -> None:
    desk.write("settings.json", {"compaction": {"keepRecentTokens": 5000}})
    start = desk.start()
    model, told = small(start), []
    start.live.warn = told.append
    path = desk.root / "settings.json"
    path.write_text('{"compaction": {"keepRecentTokens"')
    for _ in range(3):
        assert start.live.compaction(model).keep_recent_tokens == 5000
    assert len(told) == 1
    assert "is not valid JSON" in told[0] and "stay in use" in told[0]
    path.write_text('{"compaction": {"keepRecentTokens": 6000}}')
    assert start.live.compaction(model).keep_recent_tokens == 6000
    assert len(told) == 1


def test_a_wrong_number_is_an_error_until_it_is_mended(desk: Any) -> None:
    start = desk.start()
    desk.write("settings.json", {"compaction": {"reserveTokens": "much"}})
    with pytest.raises(SettingsError, match=r"compaction\.reserveTokens"):
        start.live.compaction(small(start))
    desk.write("settings.json", {"compaction": {"reserveTokens": 9}})
    assert start.live.compaction(small(start)).reserve_tokens == 9


async def test_automatic_compaction_is_off_until_the_setting_is_mended(
    desk: Any, models_file: Any, serve: Callable[..., Any]
) -> None:
    server = await serve("an answer " * 400, "fine", "a summary " * 20, "fine")
    desk.write("models.json", models_file(server.openai_url, apiKey="k"))
    session = desk.session("--model", "mine/big")
    events: list[Event] = []
    session.subscribe(events.append)
    await session.prompt("one")
    desk.write("settings.json", {"compaction": {"reserveTokens": "much"}})
    await session.prompt("two")
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert [t for t in notices if "compaction is off until this is mended" in t]
    assert not [event for event in events if isinstance(event, CompactionStart)]
    room = session.model.context_window
    desk.write("settings.json", {"compaction": {"reserveTokens": room - 60, "keepRecentTokens": 1}})
    await session.prompt("three")
    assert [event for event in events if isinstance(event, CompactionStart)]


def test_who_writes_summaries_is_asked_before_each(desk: Any) -> None:
    start = desk.start()
    assert start.live.summaries().model is None
    desk.write(
        "settings.json",
        {"compaction": {"model": "a/b"}, "branchSummary": {"skipPrompt": True, "reserveTokens": 9}},
    )
    found = start.live.summaries()
    assert (found.model, found.branch_reserve_tokens, found.branch_skip_prompt) == ("a/b", 9, True)
