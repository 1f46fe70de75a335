"""Settings that do nothing are named, once, and never stop anything."""

from __future__ import annotations

import json

import pytest

from pi_tui.config.settings import settings_from_texts
from pi_tui.config.unused import unused_settings


def told(value: object) -> tuple[str, ...]:
    return unused_settings(settings_from_texts(json.dumps(value), None))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"packages": ["x"]}, "packages"),
        ({"cacheWarming": "idle"}, "cacheWarming"),
        ({"codemode": {"mode": "on"}}, "codemode"),
        ({"thinkingBudgets": {"high": 9}}, "thinkingBudgets"),
        ({"foo": 1}, "foo"),
        ({"retry": {"provider": {"maxRetries": 2}}}, "retry.provider.maxRetries"),
        ({"terminal": {"showImages": True}}, "terminal"),
    ],
)
def test_a_setting_without_effect_is_named(given: object, name: str) -> None:
    assert told(given) == (f"settings.json: {name} is not used by this version of pi-tui.",)


@pytest.mark.parametrize(
    ("given", "wrong", "meant"),
    [
        ({"steringMode": "all"}, "steringMode", "steeringMode"),
        ({"compaction": {"enabeld": False}}, "compaction.enabeld", "compaction.enabled"),
        ({"hideThinkingBlok": False}, "hideThinkingBlok", "hideThinkingBlock"),
        (
            {"compaction": {"reserveToken": 1}},
            "compaction.reserveToken",
            "compaction.reserveTokens",
        ),
    ],
)
def test_a_mistyped_setting_is_named_with_the_one_that_was_meant(
    given: object, wrong: str, meant: str
) -> None:
    assert told(given) == (f"settings.json: {wrong} is not a setting. Did you mean {meant}?",)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"packages": [], "codemode": {}, "extensions": None, "showCacheMissNotices": False},
        {"tuiMode": "fullscreen", "cacheWarming": "off"},
        {"modelThinkingLevels": {"a/b": "high"}},
        {"compaction": {"modelOverrides": {"a/b": {"reserveTokens": 5}}, "model": "a/b"}},
    ],
)
def test_what_works_or_asks_for_nothing_is_not_named(given: object) -> None:
    assert told(given) == ()


def test_very_many_are_counted() -> None:
    lines = told({f"mine{n}": n for n in range(100)})
    assert len(lines) == 21 and lines[-1] == "80 more settings are not used."
