"""`models.json`: what is read, what is refused and in which words, and how keys are resolved."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from pi_tui.core.errors import ModelError, SettingsError
from pi_tui.core.models import Model, ModelCost
from pi_tui.providers.credentials import Credentials, KeyCommand
from pi_tui.providers.custom_models import litellm_model, model_from_entry, override_provider
from pi_tui.providers.models_file import (
    MAX_FILE_BYTES,
    ModelsFile,
    load_models_file,
    parse_models_file,
)
from pi_tui.providers.provider_names import LITELLM_MODEL_KEY

EXAMPLE = {
    "providers": {
        "mine": {
            "name": "My server",
            "baseUrl": "http://localhost:8000/v1/",
            "api": "openai-completions",
            "apiKey": "$MY_KEY",
            "headers": {"X-Team": "blue"},
            "compat": {"supportsStore": False},
            "models": [
                {
                    "id": "big/one",
                    "name": "Big",
                    "contextWindow": 64000,
                    "maxTokens": 100000,
                    "reasoning": True,
                    "thinkingLevelMap": {"high": "max", "minimal": None},
                    "input": ["text", "image"],
                    "cost": {"input": 1, "output": 2.5, "cacheRead": 0.1},
                    "compat": {"maxTokensField": "max_tokens"},
                    "somethingNew": [1, 2],
                },
                {"id": "small"},
            ],
        },
        "openai": {"apiKey": "!pass show openai", "modelOverrides": {"gpt-5": {"maxTokens": 1000}}},
    }
}


def parse(data: object) -> ModelsFile:
    return parse_models_file(json.dumps(data).encode(), "models.json")


def models(file: ModelsFile, provider: str) -> list[Model]:
    entry = file.providers[provider]
    return [model_from_entry(entry, item, None) for item in entry.models]


def test_reads_a_provider_as_other_programs_write_it() -> None:
    big, small = models(parse(EXAMPLE), "mine")
    assert big == Model(
        provider="mine",
        id="big/one",
        api="openai-completions",
        name="Big",
        base_url="http://localhost:8000/v1",
        context_window=64_000,
        max_tokens=64_000,  # never more than the window
        reasoning=True,
        thinking_level_map={"high": "max", "minimal": None},
        input=("text", "image"),
        cost=ModelCost(1, 2.5, 0.1, 0),
        compat={"supportsStore": False, "maxTokensField": "max_tokens"},
    )
    assert (small.name, small.context_window, small.max_tokens) == ("small", 128_000, 16_384)


def test_a_file_with_a_byte_order_mark_empty_or_missing(tmp_path: Path) -> None:
    assert parse_models_file(b"\xef\xbb\xbf{}", "f").providers == {}
    assert parse_models_file(b" \n", "f").providers == {}
    assert load_models_file(tmp_path / "none.json").providers == {}


def test_an_entry_changes_only_what_it_gives() -> None:
    built_in = Model("openai", "gpt-5", "openai-completions", "GPT", "https://api", 272_000, 9_000)
    file = parse({"providers": {"openai": {"baseUrl": "https://proxy/v1"}}})
    changed = override_provider(built_in, file.providers["openai"])
    assert changed.base_url == "https://proxy/v1"
    assert (changed.name, changed.context_window, changed.api) == (
        "GPT",
        272_000,
        "openai-completions",
    )
    item = parse(EXAMPLE).providers["openai"].overrides["gpt-5"]
    assert item.max_tokens == 1000


@pytest.mark.parametrize(
    ("api", "litellm_name"),
    [
        ("openai-responses", "openai/responses/m"),
        ("google-generative-ai", "gemini/m"),
        ("bedrock-converse-stream", "bedrock/converse/m"),
    ],
)
def test_formats_of_other_programs_go_through_litellm(api: str, litellm_name: str) -> None:
    (model,) = models(parse({"providers": {"p": {"api": api, "models": [{"id": "m"}]}}}), "p")
    assert model.api == "litellm"
    assert litellm_model(model) == litellm_name


def test_litellm_names_of_own_entries() -> None:
    data = {
        "providers": {
            "cohere": {"models": [{"id": "command-x"}]},
            "my-vllm": {
                "api": "litellm",
                "baseUrl": "http://h/v1",
                "models": [
                    {"id": "m", "compat": {LITELLM_MODEL_KEY: "hosted_vllm/m"}},
                    {"id": "n"},
                ],
            },
            "litellm": {"api": "litellm", "models": [{"id": "watsonx/granite"}]},
        }
    }
    names = {m.id: litellm_model(m) for p in data["providers"] for m in models(parse(data), p)}
    assert names == {
        "command-x": "cohere_chat/command-x",
        "m": "hosted_vllm/m",
        "n": "openai/n",
        "watsonx/granite": "watsonx/granite",
    }


def with_model(**fields: object) -> dict[str, object]:
    return {"providers": {"p": {"baseUrl": "http://h", "models": [{"id": "m", **fields}]}}}


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"providers": {"p": 1}}, "providers.p"),
        ({"providers": {"a/b": {}}}, "providers.a/b"),
        ({"providers": {"p": {"models": {}}}}, "providers.p.models"),
        ({"providers": {"p": {"models": [{"id": "m"}]}}}, "providers.p.baseUrl"),
        ({"providers": {"p": None}}, "providers.p"),
        ({"providers": {"p": []}}, "providers.p"),
        ({"providers": {"p": {"baseUrl": "localhost:1"}}}, "providers.p.baseUrl"),
        ({"providers": {"p": {"baseUrl": "not a url"}}}, "providers.p.baseUrl"),
        ({"providers": {"p": {"baseUrl": "http://[::1"}}}, "providers.p.baseUrl"),
        ({"providers": {"p": {"baseUrl": "http://h:99999"}}}, "providers.p.baseUrl"),
        ({"providers": {"p": {"baseUrl": "http:///v1"}}}, "providers.p.baseUrl"),
        ({"providers": {"p": {"apiKey": 7}}}, "providers.p.apiKey"),
        ({"providers": {"p": {"api": "telepathy"}}}, "providers.p.api"),
        ({"providers": {"p": {"headers": {"A": 1}}}}, "providers.p.headers.A"),
        ({"providers": {"p": {"headers": {"A B": "x"}}}}, "providers.p.headers"),
        ({"providers": {"p": {"authHeader": "yes"}}}, "providers.p.authHeader"),
        ({"providers": {"p": {"modelOverrides": []}}}, "providers.p.modelOverrides"),
        ({"providers": {"p": {"baseUrl": "http://h", "models": [{}]}}}, "providers.p.models[0].id"),
        (with_model(contextWindow=0), "providers.p.models[0].contextWindow"),
        (with_model(contextWindow=1.5), "providers.p.models[0].contextWindow"),
        (with_model(maxTokens=True), "providers.p.models[0].maxTokens"),
        (with_model(reasoning="no"), "providers.p.models[0].reasoning"),
        (with_model(input=["smell"]), "providers.p.models[0].input"),
        (with_model(cost={"input": -1}), "providers.p.models[0].cost.input"),
        (with_model(thinkingLevelMap={"deep": "x"}), "providers.p.models[0].thinkingLevelMap.deep"),
        (with_model(thinkingLevelMap={"low": 1}), "providers.p.models[0].thinkingLevelMap.low"),
    ],
)
def test_a_wrong_value_is_left_out_by_file_and_key(data: dict[str, object], key: str) -> None:
    other = {"baseUrl": "http://h", "models": [{"id": "m"}]}
    providers = {**data["providers"], "other": other}  # type: ignore[dict-item]
    file = parse({"providers": providers})
    (problem,) = file.problems
    assert (problem.file, problem.key) == ("models.json", key)
    assert key in problem.message
    assert "left out" in problem.text
    assert [model.id for model in models(file, "other")] == ["m"]


@pytest.mark.parametrize(("data", "key"), [([], "the file"), ({"providers": []}, "providers")])
def test_a_file_of_another_shape_is_refused(data: object, key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(data)
    assert (caught.value.file, caught.value.key) == ("models.json", key)


def test_a_wrong_model_costs_only_itself() -> None:
    file = parse(
        {
            "providers": {
                "p": {
                    "baseUrl": "http://h",
                    "models": [{"id": "bad", "contextWindow": 0}, None, {"id": "good"}],
                    "modelOverrides": {"x": {"reasoning": 1}, "y": {"name": "Y"}},
                }
            }
        }
    )
    assert [model.id for model in models(file, "p")] == ["good"]
    assert list(file.providers["p"].overrides) == ["y"]
    assert [problem.key for problem in file.problems] == [
        "providers.p.models[0].contextWindow",
        "providers.p.models[1]",
        "providers.p.modelOverrides.x.reasoning",
    ]


def test_a_provider_with_no_model_left_does_not_change_a_built_in_one() -> None:
    """`google` without models stands for a known provider; with models it is one by itself."""
    file = parse({"providers": {"google": {"baseUrl": "http://h", "models": [{"id": 1}]}}})
    assert file.providers == {}
    assert "google" in file.left_out
    assert "gemini" not in file.left_out


def test_half_a_character_in_the_file_is_replaced() -> None:
    text = b'{"providers": {"p": {"name": "a\\ud83d", "baseUrl": "http://h"}}}'
    assert parse_models_file(text, "f").providers["p"].name == "a\ufffd"


@pytest.mark.parametrize("kind", ["pipe", "endless", "directory", "large"])
def test_what_is_no_ordinary_file_neither_hangs_nor_fills_the_memory(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "models.json"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "directory":
        path.mkdir()
    else:
        with path.open("wb") as file:
            file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(SettingsError, match=r"models\.json cannot be read"):
        load_models_file(path)


@pytest.mark.parametrize("text", ["{", "// no\n{}", '{"a": 1,}', "{'a': 1}", "[" * 100_000])
def test_what_is_no_json_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(SettingsError):
        parse_models_file(text.encode(), "models.json")


def test_a_number_without_end_is_no_json() -> None:
    with pytest.raises(SettingsError, match="not valid JSON"):
        parse_models_file(b'{"x": ' + b"1" * 5000 + b"}", "models.json")


def test_errors_never_show_a_key() -> None:
    (problem,) = parse({"providers": {"p": {"apiKey": ["sk-secret"]}}}).problems
    assert "sk-secret" not in problem.text


# ---------------------------------------------------------------- keys


def test_literals_and_variables() -> None:
    credentials = Credentials({"KEY": " from env ", "EMPTY": ""})
    assert credentials.read("plain", "w") == "plain"
    assert credentials.read("$KEY", "w") == "from env"
    assert credentials.read("Bearer ${KEY}", "w") == "Bearer from env"
    assert credentials.read("a$KEY", "w") == "a$KEY"  # a dollar inside a key is part of it
    assert credentials.read("$$KEY", "w") == "$KEY"
    assert credentials.read("!echo x", "w") == KeyCommand("echo x", "w")


@pytest.mark.parametrize("reference", ["$NONE", "${NONE}", "$EMPTY", "x${NONE}"])
def test_a_variable_that_is_not_set_is_named(reference: str) -> None:
    credentials = Credentials({"EMPTY": ""})
    assert not credentials.is_set(reference)
    with pytest.raises(ModelError, match=r"NONE|EMPTY"):
        credentials.read(reference, "models.json, providers.p.apiKey")


async def test_a_command_runs_once_for_many_askers(tmp_path: Path) -> None:
    count = tmp_path / "count"
    credentials = Credentials({"PATH": "/usr/bin:/bin"})
    command = f"!echo run >> {count}; echo ' the-key '; echo second line"
    keys = await asyncio.gather(*(credentials.resolve(command, "w") for _ in range(3)))
    assert keys == ["the-key"] * 3
    assert await credentials.resolve(command, "w") == "the-key"
    assert credentials.read(command, "w") == "the-key"
    assert count.read_text() == "run\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [("echo sk-secret; exit 3", "exit code 3"), ("true", "no key"), (" ", "empty command")],
)
async def test_a_failing_command_is_told_without_its_output(command: str, words: str) -> None:
    credentials = Credentials({"PATH": "/usr/bin:/bin"})
    with pytest.raises(ModelError, match=words) as caught:
        await credentials.resolve(f"!{command}", "models.json, providers.p.apiKey")
    assert "sk-secret" not in f"{caught.value} {caught.value.hint}"
    assert "providers.p.apiKey" in str(caught.value)


async def test_a_failed_command_is_tried_again(tmp_path: Path) -> None:
    flag = tmp_path / "unlocked"
    credentials = Credentials({"PATH": "/usr/bin:/bin"})
    command = f"!test -e {flag} && echo key"
    with pytest.raises(ModelError):
        await credentials.resolve(command, "w")
    flag.write_text("")
    assert await credentials.resolve(command, "w") == "key"


async def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pi_tui.providers.credentials.COMMAND_TIMEOUT_S", 0.05)
    credentials = Credentials({"PATH": "/usr/bin:/bin"})
    with pytest.raises(ModelError, match="did not end"):
        await credentials.resolve("!sleep 60", "w")


def test_keys_of_the_environment_by_provider() -> None:
    credentials = Credentials(
        {"GOOGLE_API_KEY": "g", "OPENAI_API_KEY": "  ", "KYMA_API_KEY": "k", "AWS_PROFILE": "dev"}
    )
    assert credentials.environment_key("gemini") == "g"
    assert credentials.environment_key("openai") is None
    assert credentials.environment_key("kyma") == "k"
    assert credentials.ambient("bedrock")
    assert not credentials.ambient("openai")


def test_the_child_gets_only_what_it_needs() -> None:
    given = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "COHERE_API_KEY": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "HTTPS_PROXY": "http://p",
        "GITHUB_TOKEN": "t",
        "DATABASE_URL": "d",
        "SSH_AUTH_SOCK": "x",
        "LD_PRELOAD": "evil.so",
    }
    assert set(Credentials(given).child_environment()) == {
        "PATH",
        "HOME",
        "COHERE_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "HTTPS_PROXY",
    }
