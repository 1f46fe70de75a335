"""The built-in catalogue: litellm's file read without litellm, cached, loaded by provider."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pi_tui.providers.catalogue import (
    CACHE_NAME,
    Catalogue,
    find_source,
    read_source,
)
from pi_tui.providers.provider_names import LITELLM_MODEL_KEY


def entry(provider: str, **more: object) -> dict[str, object]:
    base: dict[str, object] = {
        "litellm_provider": provider,
        "mode": "chat",
        "supports_function_calling": True,
        "max_input_tokens": 200_000,
        "max_output_tokens": 8_000,
    }
    return {**base, **more}


SOURCE = {
    "sample_spec": {"litellm_provider": "one of the list", "mode": "chat", "max_tokens": "a text"},
    "gpt-x": entry(
        "openai",
        input_cost_per_token=3e-06,
        output_cost_per_token=1.5e-05,
        cache_read_input_token_cost=3e-07,
        supports_vision=True,
        supports_reasoning=True,
        supports_minimal_reasoning_effort=False,
        supports_xhigh_reasoning_effort=True,
    ),
    "gpt-x-codex": entry("openai", mode="responses"),
    "gpt-x-audio": entry("openai"),
    "gpt-embed": entry("openai", mode="embedding"),
    "gpt-no-tools": entry("openai", supports_function_calling=False),
    "gpt-broken": entry("openai", max_input_tokens="many"),
    "claude-x": entry("anthropic", max_output_tokens=None, max_tokens=64_000),
    "groq/openai/gpt-oss": entry("groq"),
    "deepseek-chat": entry("deepseek"),
    "deepseek/deepseek-chat": entry("deepseek"),
    "command-x": entry("cohere_chat"),
    "anthropic.claude-v9": entry("bedrock_converse"),
    "bedrock/us-east-1/anthropic.claude-v9": entry("bedrock"),
    "gemini-x": entry("vertex_ai-language-models"),
    "gemini/gemini-x": entry("gemini"),
    "ollama/llama": entry("ollama"),
    "github_copilot/gpt-x": entry("github_copilot"),
    "newcomer/m": entry("newcomer"),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(SOURCE))
    return path


def test_keeps_chat_models_that_call_tools() -> None:
    models = read_source(json.dumps(SOURCE).encode())
    ids = {provider: [model.id for model in group] for provider, group in models.items()}
    assert ids == {
        "openai": ["gpt-x", "gpt-x-codex"],
        "anthropic": ["claude-x"],
        "groq": ["openai/gpt-oss"],
        "deepseek": ["deepseek-chat"],
        "cohere": ["command-x"],
        "bedrock": ["anthropic.claude-v9"],
        "vertex": ["gemini-x"],
        "gemini": ["gemini-x"],
        "newcomer": ["m"],
    }


def test_maps_limits_prices_and_abilities() -> None:
    models = read_source(json.dumps(SOURCE).encode())
    gpt = models["openai"][0]
    assert gpt.full_name == "openai/gpt-x"
    assert (gpt.context_window, gpt.max_tokens) == (200_000, 8_000)
    assert (gpt.cost.input, gpt.cost.output, gpt.cost.cache_read) == (3.0, 15.0, 0.3)
    assert gpt.input == ("text", "image")
    assert gpt.reasoning
    assert gpt.thinking_level_map == {"minimal": None, "xhigh": "xhigh"}
    assert models["anthropic"][0].max_tokens == 64_000


def test_says_who_serves_a_model() -> None:
    models = read_source(json.dumps(SOURCE).encode())
    served = {m.full_name: (m.api, m.base_url) for group in models.values() for m in group}
    assert served["openai/gpt-x"] == ("openai-completions", "https://api.openai.com/v1")
    assert served["anthropic/claude-x"] == ("anthropic-messages", "https://api.anthropic.com")
    assert served["openai/gpt-x-codex"] == ("litellm", "")  # only the Responses API has it
    assert served["cohere/command-x"] == ("litellm", "")
    assert served["newcomer/m"] == ("litellm", "")


@pytest.mark.parametrize(
    ("name", "litellm_name"),
    [
        ("openai/gpt-x", "openai/gpt-x"),
        ("cohere/command-x", "cohere_chat/command-x"),
        ("bedrock/anthropic.claude-v9", "bedrock/anthropic.claude-v9"),
        ("vertex/gemini-x", "vertex_ai/gemini-x"),
        ("gemini/gemini-x", "gemini/gemini-x"),
        ("groq/openai/gpt-oss", "groq/openai/gpt-oss"),
    ],
)
def test_keeps_litellms_own_names(name: str, litellm_name: str) -> None:
    models = read_source(json.dumps(SOURCE).encode())
    found = next(m for group in models.values() for m in group if m.full_name == name)
    assert found.compat[LITELLM_MODEL_KEY] == litellm_name


def test_the_cache_answers_without_the_source(source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    first = Catalogue(cache, source)
    assert first.find("openai", "gpt-x") is not None
    (cache / CACHE_NAME).write_bytes(
        (cache / CACHE_NAME).read_bytes().replace(b'"gpt-x"', b'"gpt-y"')
    )
    second = Catalogue(cache, source)
    assert second.find("openai", "gpt-y") is not None  # it came from the cache
    assert second.models("anthropic") == first.models("anthropic")


def test_a_changed_source_makes_the_cache_stale(source: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    Catalogue(cache, source).all()
    source.write_text(json.dumps({"gpt-new": entry("openai")}))
    os.utime(source, ns=(1, 1))
    assert [model.id for model in Catalogue(cache, source).all()] == ["gpt-new"]


@pytest.mark.parametrize("content", [b"", b"{", b'{"format":99}', b"\xff\xfe", b"[1]"])
def test_a_damaged_cache_is_made_anew(source: Path, tmp_path: Path, content: bytes) -> None:
    (tmp_path / CACHE_NAME).write_bytes(content)
    assert Catalogue(tmp_path, source).find("openai", "gpt-x") is not None
    assert (tmp_path / CACHE_NAME).read_bytes() != content


def test_a_cache_that_cannot_be_written_only_costs_time(source: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert Catalogue(blocked, source).find("openai", "gpt-x") is not None
    assert blocked.read_text() == ""


def test_a_broken_source_is_an_empty_catalogue_with_a_reason(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    catalogue = Catalogue(None, broken)
    assert catalogue.all() == ()
    assert "could not be read" in catalogue.problem
    assert Catalogue(None, tmp_path / "missing").providers() == ()


def test_nothing_is_loaded_before_it_is_asked_for(source: Path) -> None:
    catalogue = Catalogue(None, source)
    assert not catalogue.loaded
    assert catalogue.models("openai")
    assert catalogue.loaded


def test_the_real_file_is_found_and_read_without_importing_litellm(tmp_path: Path) -> None:
    assert find_source() is not None
    code = (
        "import sys, pathlib\n"
        "from pi_tui.providers.catalogue import Catalogue\n"
        f"c = Catalogue(pathlib.Path({str(tmp_path)!r}))\n"
        "print(len(c.all()), bool(c.models('openai')), bool(c.models('anthropic')))\n"
        "print(sorted({'litellm', 'httpx', 'pydantic', 'openai'} & set(sys.modules)))\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()
    count, openai, anthropic = out[0].split()
    assert int(count) > 500
    assert (openai, anthropic) == ("True", "True")
    assert out[1] == "[]"
