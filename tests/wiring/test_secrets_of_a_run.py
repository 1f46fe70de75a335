"""Keys stay where they belong: not in exports, not in reports, not in commands, not on disk."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.cli import parse_arguments
from pi_tui.core.entries import MessageEntry
from pi_tui.core.errors import ModelError, UsageError
from pi_tui.core.messages import BashExecutionMessage
from pi_tui.core.session_library import snapshot_of
from pi_tui.export.exporter import FileExporter
from pi_tui.tui.crash import crash_report
from pi_tui.wiring import front_ends, launch
from pi_tui.wiring.front_ends import list_models

LITERAL = "literal-key-of-mine-without-a-shape-77"


# ---------------------------------------------------------------- what must not be shown


def test_keys_written_in_the_models_file_are_secrets(desk: Any, models_file: Any) -> None:
    desk.set(ODD_NAME="value-of-an-odd-variable-1", OTHER="hidden-in-braces-42")
    headers = {"X-Proxy-Token": "Bearer ${OTHER}", "X-Title": "a-title-for-everybody-1"}
    data = models_file(apiKey=LITERAL, headers=headers)
    data["providers"]["other"] = models_file(apiKey="$ODD_NAME")["providers"]["mine"]
    data["providers"]["free"] = models_file(apiKey="not-needed")["providers"]["mine"]
    desk.write("models.json", data)
    secrets = set(desk.start().secrets)
    assert {LITERAL, "value-of-an-odd-variable-1", "hidden-in-braces-42"} <= secrets
    assert not {"a-title-for-everybody-1", "not-needed"} & secrets


async def test_a_key_that_a_command_printed_is_hidden_from_then_on(
    desk: Any, models_file: Any, serve: Callable[..., Any], tmp_path: Path
) -> None:
    server = await serve("fine")
    desk.write("models.json", models_file(server.openai_url, apiKey="!echo printed by a $((6*7))"))
    start = desk.start()
    exporter, target = FileExporter(start.secrets), tmp_path / "out.md"
    session = desk.session("--model", "mine/big")
    await session.prompt("the key is: printed by a 42")

    def exported() -> str:
        snapshot = snapshot_of(session.tree, session.store)
        exporter.export(snapshot, str(target), replace=True)
        return target.read_text()

    assert "printed by a 42" in exported(), "nobody could know it yet"
    assert await start.models.credentials.resolve("!echo printed by a $((6*7))", "x")
    assert "printed by a 42" not in exported()
    report = crash_report(ValueError("printed by a 42"), start.secrets)
    assert "printed by a 42" not in report


# ---------------------------------------------------------------- what commands inherit

KEYS = {
    "ANTHROPIC_API_KEY": "anthropic-value",
    "GOOGLE_API_KEY": "google-value",
    "HF_TOKEN": "hf-value",
    "MY_SERVER_DOOR": "door-value",
    "PI_TUI_SYNC_TOKEN": "sync-value",
}


async def _printed_environment(desk: Any, models_file: Any, **settings: Any) -> str:
    desk.set(**KEYS, UNRELATED_API_KEY="unrelated-value", AWS_PROFILE="work")
    desk.write("models.json", models_file(apiKey="$MY_SERVER_DOOR"))
    desk.write("settings.json", settings)
    session = desk.session("--model", "mine/big", "--no-session")
    session.start_shell("env", excluded=False)
    await session.wait_idle()
    entries = [session.tree.entry(i) for i in session.tree.ids()]
    (output,) = (
        e.message.output
        for e in entries
        if isinstance(e, MessageEntry) and isinstance(e.message, BashExecutionMessage)
    )
    return str(output)


async def test_commands_do_not_get_the_keys_of_providers(desk: Any, models_file: Any) -> None:
    output = await _printed_environment(desk, models_file)
    assert [value for value in KEYS.values() if value in output] == []
    assert "unrelated-value" in output and "AWS_PROFILE=work" in output and "PATH=" in output


async def test_commands_keep_the_keys_when_the_user_wants_that(desk: Any, models_file: Any) -> None:
    output = await _printed_environment(desk, models_file, shellKeepKeys=True)
    assert [value for value in KEYS.values() if value not in output] == []


# ---------------------------------------------------------------- the rescue directory


def test_nobody_can_make_the_rescue_directory_first(desk: Any) -> None:
    one, two = desk.start().rescue_directory, desk.start().rescue_directory
    assert Path(one).parent == Path(two).parent
    assert one != two
    assert not Path(one).exists(), "it is made when it is needed"


async def test_a_rescued_session_is_for_its_owner_alone(desk: Any) -> None:
    start = desk.start()
    session = desk.session("--model", "demo/tour")
    session.set_name("kept")
    session.store.relocate(start.rescue_directory)
    directory = Path(start.rescue_directory)
    try:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert "kept" in next(directory.glob("*.jsonl")).read_text()
    finally:
        for file in directory.iterdir():
            file.unlink()
        directory.rmdir()


# ---------------------------------------------------------------- --api-key


async def test_the_given_key_goes_to_the_chosen_provider_and_nowhere_else(
    desk: Any, models_file: Any, serve: Callable[..., Any]
) -> None:
    server = await serve("fine")
    desk.write("models.json", models_file(server.openai_url, apiKey="$NOT_SET"))
    with pytest.raises(ModelError):
        desk.session("--model", "mine/big")
    session = desk.session("--model", "mine/big", "--api-key", LITERAL)
    await session.prompt("hello")
    assert server.requests[0].headers["authorization"] == f"Bearer {LITERAL}"
    await session.close()
    written = [path.read_text() for path in desk.root.rglob("*") if path.is_file()]
    assert any("hello" in text for text in written)
    assert not any(LITERAL in text for text in written)


def test_the_given_key_is_a_secret_and_belongs_to_one_provider(desk: Any) -> None:
    start = desk.start("--model", "openai/gpt-5", "--api-key", LITERAL)
    list_models(start)
    assert LITERAL in set(start.secrets)
    assert start.models.key_reference("openai") == LITERAL
    assert start.models.key_reference("anthropic") is None
    assert LITERAL not in repr(start)


@pytest.mark.parametrize(
    ("settings", "provider"),
    [
        ({"defaultProvider": "groq"}, "groq"),
        ({"defaultProvider": "google"}, "gemini"),
        ({"defaultModel": "deepseek/deepseek-chat"}, "deepseek"),
    ],
)
def test_without_a_model_the_settings_say_whose_key_it_is(
    desk: Any, settings: dict[str, str], provider: str
) -> None:
    desk.write("settings.json", settings)
    start = desk.start("--list-models", "--api-key", LITERAL)
    list_models(start)
    assert start.models.key_reference(provider) == LITERAL


def test_a_key_for_nobody_is_refused(desk: Any) -> None:
    with pytest.raises(UsageError, match="--api-key needs a model"):
        desk.session("--api-key", LITERAL)
    with pytest.raises(UsageError, match="needs a key"):
        desk.session("--model", "openai/gpt-5", "--api-key", " ")


def test_help_says_who_can_see_the_key(desk: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        desk.start("--help")
    assert "list of processes" in " ".join(capsys.readouterr().out.split())


def test_a_crash_without_a_screen_shows_no_key(
    desk: Any,
    models_file: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    desk.write("models.json", models_file(apiKey="correct horse 4711"))

    def broken(start: Any) -> int:
        raise RuntimeError("over correct horse 4711 and sk-abcdefghijklmnopqrstuvwx0123")

    monkeypatch.setattr(front_ends, "list_models", broken)
    argv = ("--list-models",)
    assert launch(parse_arguments(argv, stdin_is_terminal=True, stdout_is_terminal=True)) == 1
    told = capsys.readouterr().err
    assert "RuntimeError: over <hidden> and <hidden>" in told
    assert "internal error" in told
