"""The user's key file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pi_tui.config.keybindings import load_keybindings, normalise_key


def write(tmp_path: Path, value: object) -> Path:
    path = tmp_path / "keybindings.json"
    path.write_text(json.dumps(value))
    return path


def test_one_key_a_list_and_none(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {
            "app.exit": "Ctrl+Q",
            "tui.input.newLine": ["shift+enter", "ctrl+j", "ctrl+J", "J"],
            "x.y": [],
        },
    )
    found = load_keybindings(path)
    assert found.problems == ()
    assert found.bindings == {
        "app.exit": ("ctrl+q",),
        "tui.input.newLine": ("shift+enter", "ctrl+j", "shift+j"),
        "x.y": (),
    }


def test_wrong_entries_are_told_and_the_others_hold(tmp_path: Path) -> None:
    path = write(
        tmp_path, {"a": 5, "b": "ctrl+", "c": ["x", None], "d": "hyper+x", "e": "f5", "f": "enter"}
    )
    found = load_keybindings(path, known=["a", "b", "c", "d", "e"])
    assert found.bindings == {"e": ("f5",)}
    assert [p.key for p in found.problems] == ["a", "b", "c", "d", "f"]
    assert "must be a key or a list of keys, not a number" in found.problems[0].message
    assert 'no action is called "f"' in found.problems[-1].message


def test_missing_and_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "keybindings.json"
    assert load_keybindings(path).problems == ()
    path.write_text("{")
    assert "not valid JSON" in load_keybindings(path).problems[0].message


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("shift+ctrl+p", "ctrl+shift+p"),
        ("Alt+Left", "alt+left"),
        ("pageUp", "pageup"),
        ("page_down", "pagedown"),
        ("esc", "escape"),
        ("ctrl+]", "ctrl+]"),
        ("ctrl+-", "ctrl+-"),
        ("ctrl++", "ctrl++"),
        ("+", "+"),
        ("L", "shift+l"),
        ("f12", "f12"),
        ("f13", None),
        ("", None),
        ("ctrl+", None),
        ("nokey", None),
        ("\x1b", None),
        ("ctrl+ctl+x", None),
    ],
)
def test_one_spelling_for_each_key(written: str, key: str | None) -> None:
    assert normalise_key(written) == key


def test_half_a_character_costs_only_its_own_action(tmp_path: Path) -> None:
    path = tmp_path / "keybindings.json"
    path.write_text('{"a": "\\ud83d", "b": "f5"}')
    found = load_keybindings(path)
    assert found.bindings["b"] == ("f5",)
    assert all("not valid JSON" not in problem.message for problem in found.problems)
