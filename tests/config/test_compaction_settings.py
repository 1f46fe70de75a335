"""The compaction numbers and the words of their errors; conformance has the measured cases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pi_tui.config.compaction import (
    compaction_settings,
)
from pi_tui.config.settings import settings_from_texts
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.errors import SettingsError


def loaded(user: Any, project: Any = None, *, trusted: bool = True) -> Any:
    return settings_from_texts(
        json.dumps(user),
        None if project is None else json.dumps(project),
        user_file="U",
        project_file="P",
        project_trusted=trusted,
    )


def test_an_error_names_the_file_that_gave_the_value() -> None:
    user = {"compaction": {"reserveTokens": 5, "keepRecentTokens": "x"}}
    for found, file, key in (
        (loaded(user), "U", "keepRecentTokens"),
        (loaded(user, {"compaction": {"reserveTokens": -1}}), "P", "reserveTokens"),
    ):
        with pytest.raises(SettingsError) as caught:
            compaction_settings(found, "acme", "m")
        assert (caught.value.file, caught.value.key) == (file, f"compaction.{key}")


def test_the_words_of_an_error() -> None:
    found = loaded({"compaction": {"modelOverrides": {"a/b/c": {"reserveTokens": "1"}}}})
    with pytest.raises(SettingsError) as caught:
        compaction_settings(found, "a", "b/c")
    assert caught.value.message == (
        'U: compaction.modelOverrides["a/b/c"].reserveTokens must be a whole number'
        ' from 0 to 9007199254740991, not "1"'
    )


def test_an_untrusted_project_changes_nothing() -> None:
    found = loaded(
        {"compaction": {"reserveTokens": 5}}, {"compaction": {"reserveTokens": 6}}, trusted=False
    )
    assert compaction_settings(found, None, None) == CompactionSettings(True, 5, 20_000)


@pytest.mark.parametrize("value", [5, [], "x", None])
def test_a_compaction_that_is_no_object_has_no_settings(value: object) -> None:
    assert compaction_settings(loaded({"compaction": value}), "a", "b") == CompactionSettings()


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"enabled": "no"}, "compaction.enabled"),
        ({"modelOverrides": [1]}, "compaction.modelOverrides"),
        ({"modelOverrides": {"a/b": None}}, 'compaction.modelOverrides["a/b"]'),
    ],
)
def test_other_wrong_values(given: dict[str, Any], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        compaction_settings(loaded({"compaction": given}), "a", "b")
    assert caught.value.key == key


def test_wrong_ordinary_numbers_are_told_at_the_start() -> None:
    found = loaded({"compaction": {"reserveTokens": None, "keepRecentTokens": -1}})
    assert [p.key for p in found.problems] == [
        "compaction.reserveTokens",
        "compaction.keepRecentTokens",
    ]
