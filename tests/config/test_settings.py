"""Settings: merging, wrong values, what a project may not set, and where sessions go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pi_tui.config.paths import Environment
from pi_tui.config.schema import USER_ONLY_SETTINGS, Settings
from pi_tui.config.settings import (
    LoadedSettings,
    load_settings,
    session_directory,
    settings_from_texts,
)


def loaded(user: Any = None, project: Any = None, **options: Any) -> LoadedSettings:
    texts = [None if v is None else json.dumps(v) for v in (user, project)]
    options = {"project_trusted": True, "user_file": "U", "project_file": "P", **options}
    return settings_from_texts(*texts, **options)


def keys(found: LoadedSettings) -> list[tuple[str, str]]:
    return [(p.file, p.key) for p in found.problems]


def test_no_files_give_the_defaults() -> None:
    found = loaded()
    assert found.settings == Settings()
    assert found.problems == ()
    assert found.settings.default_tools == ("read", "bash", "edit", "write")
    assert found.settings.retry.base_delay_ms == 2000
    assert found.settings.http_idle_timeout_ms == 300_000


def test_every_setting_is_read_under_its_name() -> None:
    given = {
        "defaultProvider": "acme",
        "defaultModel": "m",
        "defaultThinkingLevel": "high",
        "modelThinkingLevels": {"acme/a/b": "low"},
        "hideThinkingBlock": True,
        "steeringMode": "all",
        "followUpMode": "all",
        "externalEditor": "vi",
        "doubleEscapeAction": "none",
        "treeFilterMode": "user-only",
        "defaultTools": ["read", "-bash"],
        "sessionDir": "~/s",
        "compaction": {"enabled": False, "estimator": "chars", "model": "acme/small"},
        "branchSummary": {"reserveTokens": 5, "skipPrompt": True},
        "theme": "light/dark",
        "quietStartup": "header",
        "autocompleteMaxVisible": 9,
        "retry": {"maxRetries": 1, "baseDelayMs": 0, "provider": {"timeoutMs": 7}},
        "httpIdleTimeoutMs": 1,
        "shellPath": "/bin/zsh",
        "shellCommandPrefix": "set -e;",
        "images": {"autoResize": False},
    }
    found = loaded(given)
    s = found.settings
    assert found.problems == ()
    assert (s.default_provider, s.default_model, s.default_thinking_level) == ("acme", "m", "high")
    assert s.model_thinking_levels == {"acme/a/b": "low"}
    assert (s.steering_mode, s.follow_up_mode, s.double_escape_action) == ("all", "all", "none")
    assert (s.hide_thinking_block, s.external_editor, s.tree_filter_mode) == (
        True,
        "vi",
        "user-only",
    )
    assert (s.default_tools, s.session_dir, s.theme) == (("read", "-bash"), "~/s", "light/dark")
    assert (s.compaction.enabled, s.compaction.estimator, s.compaction.model) == (
        False,
        "chars",
        "acme/small",
    )
    assert (s.branch_summary.reserve_tokens, s.branch_summary.skip_prompt) == (5, True)
    assert (s.quiet_startup, s.autocomplete_max_visible) == ("header", 9)
    assert (s.retry.max_retries, s.retry.base_delay_ms, s.retry.provider.timeout_ms) == (1, 0, 7)
    assert s.retry.max_agent_delay_ms == 60_000
    assert (s.http_idle_timeout_ms, s.shell_path, s.shell_command_prefix) == (
        1,
        "/bin/zsh",
        "set -e;",
    )
    assert (s.images.auto_resize, s.images.block_images) == (False, False)


def test_objects_merge_and_lists_replace() -> None:
    found = loaded(
        {"retry": {"maxRetries": 1, "baseDelayMs": 1}, "defaultTools": ["a", "b"]},
        {"retry": {"baseDelayMs": 2}, "defaultTools": ["c"]},
    )
    assert (found.settings.retry.max_retries, found.settings.retry.base_delay_ms) == (1, 2)
    assert found.settings.default_tools == ("c",)


@pytest.mark.parametrize(
    ("given", "key", "words"),
    [
        ({"theme": 5}, "theme", "must be a text that is not empty, not 5"),
        (
            {"steeringMode": "sometimes"},
            "steeringMode",
            '"one-at-a-time" or "all", not "sometimes"',
        ),
        ({"retry": {"maxRetries": -1}}, "retry.maxRetries", "from 0 to 100, not -1"),
        ({"retry": {"provider": []}}, "retry.provider", "must be an object, not a list"),
        ({"retry": True}, "retry", "must be an object, not true"),
        ({"quietStartup": "maybe"}, "quietStartup", 'true or false or "header", not "maybe"'),
        ({"defaultTools": "read"}, "defaultTools", 'a list of texts, not "read"'),
        ({"branchSummary": {"reserveTokens": None}}, "branchSummary.reserveTokens", "not null"),
        ({"branchSummary": {"reserveTokens": 1.5}}, "branchSummary.reserveTokens", "not 1.5"),
        ({"compaction": {"model": "small"}}, "compaction.model", 'like "provider/model"'),
        (
            {"modelThinkingLevels": {"acme/m.1": "extreme"}},
            'modelThinkingLevels["acme/m.1"]',
            'or "max", not "extreme"',
        ),
    ],
)
def test_a_wrong_value_is_named_and_the_default_holds(
    given: dict[str, Any], key: str, words: str
) -> None:
    found = loaded({"hideThinkingBlock": True, **given})
    assert keys(found) == [("U", key)]
    assert f"U: {key} must be" in found.problems[0].message
    assert words in found.problems[0].message
    assert found.settings == Settings(hide_thinking_block=True)


def test_a_wrong_project_value_leaves_the_users_own() -> None:
    found = loaded({"theme": "mine", "steeringMode": 1}, {"theme": 3, "steeringMode": 2})
    assert found.settings.theme == "mine"
    assert found.settings.steering_mode == "one-at-a-time"
    assert keys(found) == [("P", "steeringMode"), ("U", "steeringMode"), ("P", "theme")]


def test_null_takes_a_setting_back_and_whole_floats_are_whole_numbers() -> None:
    found = loaded({"theme": "mine", "retry": {"maxRetries": 2.0}}, {"theme": None, "images": None})
    assert found.problems == ()
    assert (found.settings.theme, found.settings.retry.max_retries) == ("system", 2)


def test_unknown_keys_are_kept_and_ignored() -> None:
    found = loaded({"other": {"a": 1}, "retry": {"zzz": 1}})
    assert found.problems == ()
    assert found.merged == {"other": {"a": 1}, "retry": {"zzz": 1}}


@pytest.mark.parametrize(
    ("text", "unreadable"), [("5", True), ('"x"', True), ("null", True), ("[]", False), ("{", True)]
)
def test_a_file_that_is_no_object_counts_as_empty(text: str, unreadable: bool) -> None:
    found = settings_from_texts(text, None, user_file="U")
    assert found.settings == Settings()
    assert found.unreadable == (("global",) if unreadable else ())
    assert len(found.problems) == unreadable


def test_an_untrusted_project_is_not_read(environment: Environment) -> None:
    project_file = environment.cwd / ".pi" / "settings.json"
    project_file.write_text('{"theme": "foreign", "steeringMode": 7}')
    found = load_settings(environment)
    assert (found.settings, found.problems) == (Settings(), ())
    trusted = load_settings(environment, project_trusted=True)
    assert trusted.settings.theme == "foreign"
    assert keys(trusted) == [(str(project_file), "steeringMode")]


def test_unreadable_files_are_told_and_the_other_is_used(environment: Environment) -> None:
    environment.directories.config.mkdir()
    environment.directories.settings_file.mkdir()
    (environment.cwd / ".pi" / "settings.json").write_text('{"theme": "x"}')
    found = load_settings(environment, project_trusted=True)
    assert found.unreadable == ("global",)
    assert "not an ordinary file" in found.problems[0].message
    assert found.settings.theme == "x"


# ---------------------------------------------------------------- foreign projects (SEC-03)


@pytest.mark.parametrize("key", sorted(USER_ONLY_SETTINGS))
def test_even_a_trusted_project_cannot_set_what_is_the_users(key: str) -> None:
    found = loaded({"shellPath": "/bin/sh"}, {key: "evil", "theme": "x"})
    assert keys(found) == [("P", key)]
    assert f"{key} was ignored" in found.problems[0].message
    assert key not in found.project
    assert found.settings == Settings(shell_path="/bin/sh", theme="x")


@pytest.mark.parametrize(
    "name", ["/etc/x", "../x", "~/x", "sub/../../x", ".", "", 5, "link/x", "a\0b"]
)
def test_a_project_cannot_put_sessions_outside_itself(tmp_path: Path, name: Any) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "link").symlink_to(tmp_path)
    found = loaded(None, {"sessionDir": name}, project_root=root)
    assert keys(found) == [("P", "sessionDir")]
    assert found.settings.session_dir is None


def test_a_project_may_put_sessions_into_itself(environment: Environment) -> None:
    (environment.cwd / ".pi" / "settings.json").write_text('{"sessionDir": ".pi/sessions"}')
    found = load_settings(environment, project_trusted=True)
    assert found.problems == ()
    assert session_directory(environment, found) == environment.cwd.resolve() / ".pi" / "sessions"


def test_session_directory_prefers_the_command_line_then_the_setting(
    environment: Environment,
) -> None:
    environment.directories.config.mkdir()
    assert session_directory(environment, load_settings(environment)) == (
        environment.directories.sessions
    )
    for written, meant in (
        ("~/s", environment.home / "s"),
        ("s", environment.directories.config / "s"),
    ):
        environment.directories.settings_file.write_text(json.dumps({"sessionDir": written}))
        found = load_settings(environment)
        assert session_directory(environment, found) == meant
        assert session_directory(environment, found, "here") == environment.cwd / "here"
