"""The registry: what is listed, what a name means, who serves it, and which model starts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from model_server import Reply

from pi_tui.core.errors import ErrorKind, ModelError, ProviderError, SettingsError
from pi_tui.core.messages import UserMessage
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import Stopped
from pi_tui.providers.catalogue import Catalogue
from pi_tui.providers.credentials import Credentials
from pi_tui.providers.demo import DEMO_MODEL, DemoProvider
from pi_tui.providers.local import LocalServer
from pi_tui.providers.model_search import split_level
from pi_tui.providers.models_file import parse_models_file
from pi_tui.providers.registry import ModelRegistry, open_registry
from pi_tui.providers.scripted import SCRIPTED_MODEL, ScriptedProvider
from pi_tui.providers.start_model import find_local_model, start_model

IDS = {
    "openai": ["gpt-5", "gpt-5.1", "gpt-4.1", "gpt-5-mini", "o3"],
    "anthropic": [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5-20250929",
        "claude-opus-4-5",
        "claude-opus-4-1",
    ],
    "groq": ["groq/openai/gpt-oss-120b", "groq/openai/gpt-oss-20b"],
    "cohere_chat": ["command-a-03-2025"],
    "gemini": ["gemini/gemini-2.5-pro", "gemini/gemini-3-pro-preview"],
    "azure": ["azure/gpt-5"],
    "bedrock_converse": ["us.anthropic.claude-sonnet-4-5-20250929-v1:0"],
    "newcomer": ["newcomer/m1"],
}


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., ModelRegistry]:
    """A registry over a small catalogue, with the given environment and models file."""
    source = tmp_path / "prices.json"
    source.write_text(
        json.dumps(
            {
                key: {
                    "litellm_provider": provider,
                    "mode": "chat",
                    "supports_function_calling": True,
                    "max_input_tokens": 100_000,
                    "max_output_tokens": 10_000,
                }
                for provider, keys in IDS.items()
                for key in keys
            }
        )
    )

    def made(
        file: object = None, servers: tuple[LocalServer, ...] = (), **environment: str
    ) -> ModelRegistry:
        return ModelRegistry(
            credentials=Credentials(environment),
            catalogue=Catalogue(None, source),
            models_file=parse_models_file(json.dumps(file or {}).encode(), "models.json"),
            servers=servers,
            environment=environment,
        )

    return made


Make = Callable[..., ModelRegistry]

MINE = {
    "providers": {
        "mine": {
            "baseUrl": "http://localhost:1/v1",
            "apiKey": "$MY_KEY",
            "models": [{"id": "org/big:free"}, {"id": "small"}],
        }
    }
}


def names(models: object) -> list[str]:
    return [model.full_name for model in models]  # type: ignore[attr-defined]


# ---------------------------------------------------------------- lists


def test_available_are_models_with_a_key_and_the_demo(make: Make) -> None:
    assert names(make().available()) == ["demo/tour"]
    registry = make(GROQ_API_KEY="k", NEWCOMER_API_KEY="k")
    assert names(registry.available()) == [
        "groq/openai/gpt-oss-120b",
        "groq/openai/gpt-oss-20b",
        "newcomer/m1",
        "demo/tour",
    ]
    assert len(registry.all()) == sum(len(ids) for ids in IDS.values()) + 1


def test_own_providers_come_first_and_need_their_variable(make: Make) -> None:
    assert names(make(MINE).available()) == ["demo/tour"]
    available = names(make(MINE, MY_KEY="k", OPENAI_API_KEY="k").available())
    assert available[:3] == ["mine/org/big:free", "mine/small", "openai/gpt-5"]


def test_an_own_provider_without_a_key_needs_none(make: Make) -> None:
    file = {"providers": {"lab": {"baseUrl": "http://h/v1", "models": [{"id": "m"}]}}}
    registry = make(file, LAB_API_KEY="not for this")
    assert "lab/m" in names(registry.available())
    assert registry.key_reference("lab") is None


def test_an_entry_changes_the_models_of_a_built_in_provider(make: Make) -> None:
    file = {
        "providers": {
            "openai": {
                "baseUrl": "https://proxy/v1",
                "models": [{"id": "gpt-5", "maxTokens": 77}, {"id": "own"}],
                "modelOverrides": {"o3": {"contextWindow": 5}},
            }
        }
    }
    registry = make(file)
    models = {model.id: model for model in registry.models_of("openai")}
    assert list(models)[:2] == ["gpt-5", "own"]
    assert len(models) == len(IDS["openai"]) + 1
    assert {model.base_url for model in models.values()} == {"https://proxy/v1"}
    assert (models["gpt-5"].max_tokens, models["gpt-5"].context_window) == (77, 100_000)
    assert models["o3"].context_window == 5
    assert registry.find("openai/gpt-5") == models["gpt-5"]
    assert registry.find("openai/o3") == models["o3"]


def test_the_address_variables_of_other_programs_are_followed(make: Make) -> None:
    registry = make(OPENAI_API_KEY="k", OPENAI_BASE_URL="https://gateway/v1/")
    model = registry.find("openai/gpt-5")
    assert model is not None
    assert model.base_url == "https://gateway/v1"
    named = registry.find("openai/house-model")  # a gateway has models of its own
    assert named is not None
    assert named.base_url == "https://gateway/v1"


def test_find_takes_any_id_of_an_open_ended_provider_only(make: Make) -> None:
    registry = make(servers=(LocalServer("ollama", "http://box:1/v1"),))
    router = registry.find("openrouter/some/new-model")
    assert router is not None
    assert (router.id, router.base_url) == ("some/new-model", "https://openrouter.ai/api/v1")
    local = registry.find("ollama/qwen3:8b")
    assert local is not None
    assert local.base_url == "http://box:1/v1"
    assert registry.find("google/gemini-2.5-pro") == registry.find("gemini/gemini-2.5-pro")
    assert registry.find("openai/gpt-99") is None
    assert registry.find("mine/x") is None
    assert registry.find("gpt-5") is registry.find("openai/") is registry.find("") is None


def test_search_wants_every_word_and_puts_good_matches_first(make: Make) -> None:
    registry = make()
    assert set(names(registry.search("gpt-5"))[:2]) == {"azure/gpt-5", "openai/gpt-5"}
    assert names(registry.search("anthropic opus")) == [
        "anthropic/claude-opus-4-5",
        "anthropic/claude-opus-4-1",
    ]
    assert "anthropic/claude-sonnet-4-5" in names(registry.search("sont45"))
    assert registry.search("no such thing") == []
    assert registry.search("") == list(registry.all())


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("reference", "name", "level"),
    [
        ("openai/gpt-5", "openai/gpt-5", None),
        ("openai/gpt-5:high", "openai/gpt-5", "high"),
        ("gpt-5", "openai/gpt-5", None),
        ("gpt-5:off", "openai/gpt-5", "off"),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", None),
        ("opus-4-1", "anthropic/claude-opus-4-1", None),
        ("OPUS-4-1:Max", "anthropic/claude-opus-4-1", "max"),
        ("openai/gpt-oss-20b", "groq/openai/gpt-oss-20b", None),
        ("mine/org/big:free", "mine/org/big:free", None),
        ("org/big:free:low", "mine/org/big:free", "low"),
        ("big", "mine/org/big:free", None),
        ("google/gemini-2.5-pro", "gemini/gemini-2.5-pro", None),
        ("openrouter/x/y:free", "openrouter/x/y:free", None),
        ("openrouter/x/y:free:high", "openrouter/x/y:free", "high"),
        ("ollama/qwen3:8b", "ollama/qwen3:8b", None),
        ("ollama/qwen3:high", "ollama/qwen3", "high"),
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",) * 2 + (None,),
        ("demo/tour", "demo/tour", None),
    ],
)
def test_resolves(make: Make, reference: str, name: str, level: str | None) -> None:
    found = make(MINE, MY_KEY="k").resolve(reference)
    assert found.model.full_name == name
    assert found.thinking_level == level


def test_a_usable_provider_wins_over_one_without_a_key(make: Make) -> None:
    assert make(AZURE_API_KEY="k").resolve("gpt-5").model.provider == "azure"


def test_a_dated_copy_does_not_make_a_name_ambiguous(make: Make) -> None:
    found = make(ANTHROPIC_API_KEY="k").resolve("sonnet")
    assert found.model.id == "claude-sonnet-4-5"


def test_the_provider_flag_narrows_the_search(make: Make) -> None:
    registry = make()
    assert registry.resolve("gpt-5", "azure").model.provider == "azure"
    assert registry.resolve("mini", "openai").model.id == "gpt-5-mini"
    assert registry.resolve("new/one:high", "openrouter").model.id == "new/one"
    with pytest.raises(ModelError):
        registry.resolve("gpt-5", "groq")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("openai/gpt-6", "openai/gpt-5"),
        ("claude-sonet-4-5", "anthropic/claude-sonnet-4-5"),
        ("opus", "anthropic/claude-opus-4-5"),
        ("", "provider/id"),
    ],
)
def test_a_wrong_name_gets_the_nearest_ones(make: Make, reference: str, said: str) -> None:
    with pytest.raises(ModelError) as caught:
        make(ANTHROPIC_API_KEY="k").resolve(reference)
    assert said in f"{caught.value.message} {caught.value.hint}"


def test_levels_are_split_off_the_end_only() -> None:
    assert split_level("a:b:high") == ("a:b", "high")
    assert split_level("a:8b") == ("a:8b", None)
    assert split_level(":high") == (":high", None)


# ---------------------------------------------------------------- the start model


def start(registry: ModelRegistry, **options: str) -> tuple[str, str]:
    choice = start_model(registry, **options)
    return choice.model.full_name, choice.source


def test_the_order_of_start_models(make: Make) -> None:
    keys = {"MY_KEY": "k", "OPENAI_API_KEY": "k", "GROQ_API_KEY": "k"}
    settings = {"default_provider": "groq", "default_model": "openai/gpt-oss-20b"}
    everything = make(MINE, **keys)
    assert start(everything, reference="o3", **settings) == ("openai/o3", "flag")
    assert start(everything, **settings) == ("groq/openai/gpt-oss-20b", "settings")
    assert start(everything) == ("mine/org/big:free", "models_file")
    assert start(make(OPENAI_API_KEY="k", GROQ_API_KEY="k")) == ("openai/gpt-5.1", "key")
    assert start(make()) == ("demo/tour", "demo")


def test_the_level_of_the_flag_is_kept(make: Make) -> None:
    assert start_model(make(OPENAI_API_KEY="k"), reference="o3:high").thinking_level == "high"


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-4-5"),
        ("GEMINI_API_KEY", "gemini/gemini-3-pro-preview"),
        ("OPENROUTER_API_KEY", "openrouter/openrouter/auto"),
        ("GROQ_API_KEY", "groq/openai/gpt-oss-120b"),
        ("COHERE_API_KEY", "cohere/command-a-03-2025"),
    ],
)
def test_the_usual_model_of_a_provider_with_a_key(make: Make, variable: str, name: str) -> None:
    assert start(make(**{variable: "k"})) == (name, "key")


def test_cloud_accounts_lying_around_do_not_choose_a_model(make: Make) -> None:
    assert start(make(AWS_PROFILE="work", AWS_ACCESS_KEY_ID="k")) == ("demo/tour", "demo")


def test_settings_that_cannot_be_used_are_passed_over_with_a_notice(make: Make) -> None:
    registry = make(GROQ_API_KEY="k")
    choice = start_model(registry, default_provider="anthropic", default_model="claude-opus-4-5")
    assert choice.source == "key"
    assert "ANTHROPIC_API_KEY" in choice.notice
    choice = start_model(registry, default_provider="anthropic", default_model="gone")
    assert "anthropic/gone" in choice.notice
    assert choice.model.provider == "groq"


def test_a_wrong_flag_is_an_error_not_another_model(make: Make) -> None:
    with pytest.raises(ModelError, match="no model called"):
        start_model(make(), reference="nonsense-model-name")
    with pytest.raises(ModelError) as caught:
        start_model(make(), reference="openai/gpt-5")
    assert "OPENAI_API_KEY" in str(caught.value.hint)
    with pytest.raises(ModelError, match="no provider called"):
        start_model(make(), provider="nobody")


def test_the_provider_flag_alone_takes_its_usual_model(make: Make) -> None:
    assert start(make(OPENAI_API_KEY="k"), provider="openai") == ("openai/gpt-5.1", "flag")
    assert start(make(MINE, MY_KEY="k"), provider="mine") == ("mine/org/big:free", "flag")


def test_a_start_with_an_own_model_never_opens_the_catalogue(make: Make) -> None:
    registry = make(MINE, MY_KEY="k")
    start_model(registry, default_provider="mine", default_model="small")
    start_model(registry, reference="mine/small:low")
    assert registry.find("mine/org/big:free") is not None
    assert not registry.catalogue.loaded


async def test_a_local_server_is_found_in_the_background(make: Make, serve: Callable) -> None:
    server = await serve([Reply()])
    registry = make(servers=(LocalServer("ollama", server.openai_url),))
    assert start(registry) == ("demo/tour", "demo")
    model = await find_local_model(registry)
    assert model is not None
    assert model.provider == "ollama"
    assert model.full_name in names(registry.available())
    assert registry.find(model.full_name) == model
    assert await find_local_model(make()) is None


# ---------------------------------------------------------------- clients


def asked(model: Model) -> ModelRequest:
    return ModelRequest(model, "", (UserMessage("hi", 1),))


@pytest.mark.parametrize(
    "name", ["openai/gpt-5", "cohere/command-a-03-2025", "groq/openai/gpt-oss-20b"]
)
def test_a_model_without_a_key_says_what_to_set(make: Make, name: str) -> None:
    registry = make()
    model = registry.find(name)
    assert model is not None
    assert registry.api_key_missing(model)
    with pytest.raises(ModelError) as caught:
        registry.provider_for(model)
    assert f"{model.provider.upper()}_API_KEY" in str(caught.value.hint)


def test_an_own_key_without_a_value_names_the_file(make: Make) -> None:
    registry = make(MINE)
    model = registry.find("mine/small")
    assert model is not None
    with pytest.raises(ModelError, match=r"models\.json"):
        registry.provider_for(model)


def test_who_may_sign_in_by_other_means_is_not_refused(make: Make) -> None:
    registry = make()
    for name in ("bedrock/any.model", "vertex/any", "newcomer/m1", "ollama/x", "litellm/a/b"):
        model = registry.find(name) or Model("newcomer", "m1", "litellm")
        if name != "newcomer/m1":
            assert not registry.api_key_missing(model), name


def test_clients_are_made_once_per_address(make: Make) -> None:
    registry = make(OPENAI_API_KEY="k", GROQ_API_KEY="k", COHERE_API_KEY="k")

    def client(name: str) -> object:
        model = registry.find(name)
        assert model is not None
        return registry.provider_for(model)

    assert client("openai/gpt-5") is client("openai/o3")
    assert client("openai/gpt-5") is not client("groq/openai/gpt-oss-20b")
    assert type(client("cohere/command-a-03-2025")).__name__ == "LiteLLMProvider"


async def test_a_request_carries_key_and_headers_of_the_file(
    make: Make, serve: Callable, hear: Callable
) -> None:
    server = await serve([Reply(text="hello")])
    file = {
        "providers": {
            "mine": {
                "baseUrl": server.openai_url,
                "apiKey": "!echo key-by-command",
                "headers": {"X-Team": "$TEAM"},
                "models": [{"id": "m", "headers": {"X-Model": "yes"}}, {"id": "n"}],
            }
        }
    }
    registry = make(file, TEAM="blue", PATH="/usr/bin:/bin")
    for number, model_id in enumerate(("m", "n")):
        model = registry.find(f"mine/{model_id}")
        assert model is not None
        heard = await hear(registry.provider_for(model), asked(model))
        assert heard.message.text == "hello"
        headers = server.requests[number].headers
        assert headers["authorization"] == "Bearer key-by-command"
        assert headers["x-team"] == "blue"
        assert headers.get("x-model") == ("yes" if model_id == "m" else None)
    await registry.close()


@pytest.mark.parametrize("bearer", [False, True])
async def test_the_key_of_an_anthropic_server(
    make: Make, serve: Callable, hear: Callable, bearer: bool
) -> None:
    server = await serve([Reply(text="hello")])
    file = {"providers": {"anthropic": {"baseUrl": server.url, "authHeader": bearer}}}
    registry = make(file, ANTHROPIC_API_KEY="the-key")
    model = registry.find("anthropic/claude-opus-4-5")
    assert model is not None
    await hear(registry.provider_for(model), asked(model))
    headers = server.requests[0].headers
    assert headers.get("authorization") == ("Bearer the-key" if bearer else None)
    assert headers.get("x-api-key") == (None if bearer else "the-key")
    await registry.close()


async def test_a_failing_key_command_is_an_error_of_the_request(make: Make, hear: Callable) -> None:
    file = json.loads(json.dumps(MINE).replace("$MY_KEY", "!exit 4"))
    registry = make(file, PATH="/usr/bin:/bin")
    model = registry.find("mine/small")
    assert model is not None
    with pytest.raises(ProviderError, match=r"providers\.mine\.apiKey failed") as caught:
        await hear(registry.provider_for(model), asked(model))
    assert caught.value.kind is ErrorKind.AUTH
    await registry.close()


async def test_the_key_of_this_run_wins_and_is_never_read_as_a_variable(
    make: Make, serve: Callable, hear: Callable
) -> None:
    server = await serve([Reply(text="hello")])
    file = {"providers": {"openai": {"baseUrl": server.openai_url, "apiKey": "of-the-file"}}}
    registry = make(file, OPENAI_API_KEY="of-the-environment")
    registry.credentials.set_override("openai", "$literal")
    model = registry.find("openai/gpt-5")
    assert model is not None
    await hear(registry.provider_for(model), asked(model))
    assert server.requests[0].headers["authorization"] == "Bearer $literal"
    await registry.close()


async def test_added_providers_are_served_by_their_own_client(make: Make, hear: Callable) -> None:
    registry = make()
    registry.add_provider("scripted", [SCRIPTED_MODEL], ScriptedProvider(["hello"]))
    assert "scripted/model" in names(registry.available())
    heard = await hear(registry.provider_for(SCRIPTED_MODEL), asked(SCRIPTED_MODEL))
    assert heard.events[-1] == Stopped("stop")
    registry.remove_provider("scripted")
    assert registry.find("scripted/model") is None
    with pytest.raises(ModelError, match="Nothing here serves"):
        registry.provider_for(SCRIPTED_MODEL)


def test_the_demo_is_always_there(make: Make) -> None:
    registry = make()
    assert registry.find("demo/tour") == DEMO_MODEL
    assert isinstance(registry.provider_for(DEMO_MODEL), DemoProvider)
    assert registry.find("demo/other") is None


async def test_prepare_and_close_are_quiet(make: Make) -> None:
    registry = make(OPENAI_API_KEY="k")
    for name in ("openai/gpt-5", "groq/openai/gpt-oss-20b", "demo/tour"):
        model = registry.find(name)
        assert model is not None
        await registry.prepare(model)
    await registry.close()


# ---------------------------------------------------------------- what is left out


def test_a_wrong_provider_is_told_and_the_others_work(make: Make) -> None:
    registry = make({"providers": {"broken": None, **MINE["providers"]}}, MY_KEY="k")
    assert [problem.key for problem in registry.problems] == ["providers.broken"]
    assert start(registry) == ("mine/org/big:free", "models_file")
    with pytest.raises(ModelError, match=r"providers\.broken"):
        registry.resolve("broken/m")


@pytest.mark.parametrize(
    "entry", [{"baseUrl": "http://[::1"}, {"baseUrl": "http://proxy/v1", "headers": 3}]
)
def test_a_wrong_entry_never_lets_the_prompts_go_to_the_usual_address(
    make: Make, entry: object
) -> None:
    good = make({}, OPENAI_API_KEY="k")
    registry = make({"providers": {"OpenAI": entry}}, OPENAI_API_KEY="k")
    model = good.resolve("openai/gpt-5").model
    assert registry.find("openai/gpt-5") is None
    assert not any(m.provider == "openai" for m in registry.available())
    assert registry.api_key_missing(model)
    with pytest.raises(ModelError, match=r"providers\.OpenAI"):
        registry.provider_for(model)
    with pytest.raises(ModelError, match=r"providers\.OpenAI"):
        registry.resolve("openai/gpt-5")


def test_a_wrong_model_entry_is_not_replaced_by_the_built_in_model(make: Make) -> None:
    file = {"providers": {"openai": {"modelOverrides": {"gpt-5": {"baseUrl": "proxy"}}}}}
    registry = make(file, OPENAI_API_KEY="k")
    assert "openai/gpt-5" not in names(registry.available())
    assert any(m.provider == "openai" for m in registry.available())
    with pytest.raises(ModelError, match="baseUrl"):
        registry.resolve("openai/gpt-5")


def test_the_demo_says_when_it_stands_for_a_mistake(make: Make) -> None:
    choice = start_model(make({"providers": {"mine": {"models": 3}}}))
    assert choice.source == "demo"
    assert "providers.mine.models" in choice.notice
    assert start_model(make({})).notice == ""


def test_a_wrong_address_variable_is_told_and_not_passed_over(make: Make) -> None:
    registry = make({}, OPENAI_API_KEY="k", OPENAI_BASE_URL="http://[::1")
    (problem,) = registry.problems
    assert problem.key == "OPENAI_BASE_URL"
    assert not registry.provider_usable("openai")


def test_an_added_provider_is_not_concerned(make: Make) -> None:
    registry = make({"providers": {"mine": 1}})
    registry.add_provider("mine", (Model("mine", "m", "demo"),), DemoProvider())
    assert registry.find("mine/m") is not None


def test_opening_reports_a_wrong_file_and_imports_nothing_heavy(tmp_path: Path) -> None:
    path = tmp_path / "models.json"
    path.write_text('{"providers": 1}')
    with pytest.raises(SettingsError, match="providers"):
        open_registry({}, models_path=path)
    path.write_text(json.dumps(MINE))
    code = (
        "import sys, pathlib\n"
        "from pi_tui.providers.registry import open_registry\n"
        "from pi_tui.providers.start_model import start_model\n"
        f"r = open_registry({{'MY_KEY': 'k'}}, models_path=pathlib.Path({str(path)!r}))\n"
        "print(start_model(r).model.full_name)\n"
        "r.provider_for(r.find('mine/small'))\n"
        "heavy = {'litellm', 'httpx', 'httpx_sse', 'pydantic', 'rich', 'textual'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert out.stdout.splitlines() == ["mine/org/big:free", "[]"]
