"""Saving one setting keeps the rest of the file."""

from __future__ import annotations

import json
import multiprocessing
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from pi_tui.config.saving import parse_dotted, save_setting
from pi_tui.config.settings import dotted
from pi_tui.core.errors import SettingsError


def test_other_keys_and_their_order_stay(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"z": 1, "compaction": {"zzz": [1], "enabled": true}, "a": null}')
    save_setting(path, "compaction.enabled", False)
    save_setting(path, 'modelThinkingLevels["acme/m-1.5"]', "high")
    assert json.loads(path.read_text()) == {
        "z": 1,
        "compaction": {"zzz": [1], "enabled": False},
        "a": None,
        "modelThinkingLevels": {"acme/m-1.5": "high"},
    }
    assert list(json.loads(path.read_text())) == ["z", "compaction", "a", "modelThinkingLevels"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_new_file_and_taking_a_setting_away(tmp_path: Path) -> None:
    path = tmp_path / "new" / "settings.json"
    save_setting(path, "theme", "x")
    save_setting(path, "hideThinkingBlock", True)
    save_setting(path, "theme", UNSET)
    save_setting(path, "theme", UNSET)
    assert json.loads(path.read_text()) == {"hideThinkingBlock": True}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("text", "words"),
    [("{broken", "not valid JSON"), ("[1]", "not a list"), ('{"a": 5}', "a is a number")],
)
def test_a_file_that_is_not_understood_is_never_replaced(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "settings.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=words):
        save_setting(path, "a.b", 1)
    assert path.read_text() == text


@pytest.mark.parametrize("name", ["", ".a", "a..b", "a.", 'a["x', 'a["x"', "a[x]"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match="name of a setting"):
        parse_dotted(name)


@given(
    st.lists(
        st.text(min_size=1, max_size=8).filter(lambda t: t.isprintable()), min_size=1, max_size=4
    )
)
def test_names_come_back(keys: list[str]) -> None:
    if not keys[0].isidentifier():
        keys[0] = "first"
    assert parse_dotted(dotted(tuple(keys))) == tuple(keys)


def _save_many(path: Path, prefix: str) -> None:
    for number in range(10):
        save_setting(path, f"{prefix}{number}", number)


def test_two_programs_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_save_many, args=(path, p)) for p in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    data: dict[str, Any] = json.loads(path.read_text())
    assert len(data) == 20
