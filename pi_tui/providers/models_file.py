"""`models.json`: providers and models the user adds, and changes to the built-in ones.

The file is strict JSON (a byte-order mark is allowed). Keys this program does not know are ignored,
because other programs share the format. A known key with a wrong value leaves its model or provider
out, and the problem names the file and the key; only a file that cannot be parsed is an error.
Reading does not resolve keys or headers: `credentials` does that when needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from pi_tui.core.errors import SettingsError
from pi_tui.core.json_text import mended
from pi_tui.core.messages import JSON, THINKING_LEVELS
from pi_tui.providers.provider_names import (
    LITELLM_APIS,
    OWN_APIS,
    canonical_provider,
    provider_facts,
)
from pi_tui.providers.regular_file import read_regular_file
from pi_tui.providers.web_address import is_web_address

MAX_FILE_BYTES = 4 * 1024 * 1024
"""Far above any real file; keeps one put there by mistake from filling the memory."""


class ModelEntry(Struct, frozen=True):
    """One model of the file, or a change to one: None means not given."""

    id: str
    name: str | None = None
    api: str | None = None
    base_url: str | None = None
    context_window: int | None = None
    max_tokens: int | None = None
    reasoning: bool | None = None
    thinking_level_map: Mapping[str, str | None] | None = None
    input: tuple[str, ...] | None = None
    cost: Mapping[str, float] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    compat: Mapping[str, JSON] = field(default_factory=dict)


class ProviderEntry(Struct, frozen=True):
    """One provider of the file. "" means not given."""

    id: str
    name: str = ""
    base_url: str = ""
    api_key: str = ""
    api: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    auth_header: bool = False
    compat: Mapping[str, JSON] = field(default_factory=dict)
    models: tuple[ModelEntry, ...] = ()
    overrides: Mapping[str, ModelEntry] = field(default_factory=dict)


class ModelsFile(Struct, frozen=True):
    """The providers of the file in its order. `path` is the file as the user knows it.

    `problems` are for the user, in the order of the file. `left_out` says of each provider, and of
    each model as `provider/id`, that the file has and nothing can be sent to, why that is.
    """

    path: str = "models.json"
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict)
    problems: tuple[SettingsError, ...] = ()
    left_out: Mapping[str, SettingsError] = field(default_factory=dict)


def load_models_file(path: Path, shown: str = "") -> ModelsFile:
    """Read the file; a missing one is empty. Raises SettingsError, as `parse_models_file` does."""
    name = shown or str(path)
    try:
        data = read_regular_file(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return ModelsFile(name)
    except OSError as error:
        raise SettingsError(
            f"{name} cannot be read: {error.strerror or error}.", file=name
        ) from error
    return parse_models_file(data, name)


def parse_models_file(data: bytes, shown: str) -> ModelsFile:
    """Parse the text of a models file.

    Raises SettingsError when it is no JSON, or no object of providers.
    """
    try:
        text = data.decode("utf-8-sig")
        tree = json.loads(text) if text.strip() else {}
    except UnicodeDecodeError as error:
        raise SettingsError(
            f"{shown} is not UTF-8 text (byte {error.start}).",
            file=shown,
            hint="Save it as UTF-8.",
        ) from error
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"{shown} is not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}.",
            file=shown,
            hint="The file takes plain JSON: no comments and no trailing commas.",
        ) from error
    except ValueError as error:
        raise SettingsError(f"{shown} is not valid JSON: {error}.", file=shown) from error
    except RecursionError as error:
        raise SettingsError(f"{shown} is nested too deeply to be read.", file=shown) from error
    return _Reader(shown).models_file(mended(tree))


class _Reader:
    """Checks values one by one, so that a problem can name the exact key."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._problems: list[SettingsError] = []
        self._left_out: dict[str, SettingsError] = {}

    def models_file(self, tree: JSON) -> ModelsFile:
        top = self._object(tree, "the file")
        providers = self._object(top.get("providers", {}), "providers")
        entries: dict[str, ProviderEntry] = {}
        for name, value in providers.items():
            try:
                entry = self._provider(name, value, f"providers.{name}")
            except SettingsError as error:
                then = f"Until then the provider {name!r} is left out."
                self._leave_out(_our_id(name, value), error, then)
            else:
                if entry is not None:
                    entries[name] = entry
        return ModelsFile(self._shown, entries, tuple(self._problems), self._left_out)

    def _leave_out(self, name: str, error: SettingsError, what_then: str) -> None:
        hint = error.hint or "Correct it."
        problem = SettingsError(
            error.message, file=error.file, key=error.key, hint=f"{hint} {what_then}"
        )
        self._problems.append(problem)
        self._left_out[name] = problem

    def _provider(self, name: str, value: JSON, key: str) -> ProviderEntry | None:
        """The provider; None when of its own models none is left."""
        if not name.strip() or "/" in name:
            raise self._error(key, "a provider's name may not be empty or contain a slash")
        data = self._object(value, key)
        models = data.get("models", [])
        if not isinstance(models, list):
            raise self._wrong(f"{key}.models", "a list of models", models)
        overrides = self._object(data.get("modelOverrides", {}), f"{key}.modelOverrides")
        entry = ProviderEntry(
            id=name,
            name=self._text(data, "name", key) or "",
            base_url=self._url(data, key) or "",
            api_key=self._text(data, "apiKey", key) or "",
            api=self._api(data, key) or "",
            headers=self._headers(data, key),
            auth_header=self._flag(data, "authHeader", key) or False,
            compat=self._object(data.get("compat", {}), f"{key}.compat"),
        )
        own = [self._own_model(entry, item, number, key) for number, item in enumerate(models)]
        kept = tuple(model for model in own if model is not None)
        if own and not kept and provider_facts(name) is None:
            # Without models it would count as a change to the provider its name may stand for.
            self._left_out[name] = self._problems[-1]
            return None
        return replace(
            entry,
            models=kept,
            overrides={
                model_id: model
                for model_id, item in overrides.items()
                if (model := self._override(_our_id(name, data), model_id, item, key)) is not None
            },
        )

    def _own_model(
        self, entry: ProviderEntry, item: JSON, number: int, key: str
    ) -> ModelEntry | None:
        key = f"{key}.models[{number}]"
        try:
            model = self._model(item, key, None)
            self._check_address(entry, model, key)
        except SettingsError as error:
            given = item.get("id") if isinstance(item, dict) else None
            name = f"{entry.id}/{given}" if isinstance(given, str) and given else key
            self._leave_out(name, error, "Until then this model is left out.")
            return None
        return model

    def _override(self, provider: str, model_id: str, item: JSON, key: str) -> ModelEntry | None:
        try:
            return self._model(item, f"{key}.modelOverrides.{model_id}", model_id)
        except SettingsError as error:
            self._leave_out(f"{provider}/{model_id}", error, "Until then this model is left out.")
            return None

    def _check_address(self, entry: ProviderEntry, model: ModelEntry, key: str) -> None:
        """A provider nobody knows must say where it is; litellm's own need not."""
        facts = provider_facts(entry.id)
        api = model.api or entry.api or (facts.api if facts else "openai-completions")
        known_url = facts is not None and facts.base_url and facts.api == api
        if api in OWN_APIS[:2] and not (model.base_url or entry.base_url or known_url):
            raise self._error(
                f"providers.{entry.id}.baseUrl",
                f"the address of the server is missing, and {key.rpartition('.')[2]} needs it",
                hint='For example "baseUrl": "http://localhost:8000/v1". Models that litellm'
                ' is to serve say "api": "litellm".',
            )

    def _model(self, value: JSON, key: str, model_id: str | None) -> ModelEntry:
        data = self._object(value, key)
        given = self._text(data, "id", key) if model_id is None else model_id
        if not given:
            raise self._error(f"{key}.id", "the model's id is missing")
        return ModelEntry(
            id=given,
            name=self._text(data, "name", key),
            api=self._api(data, key),
            base_url=self._url(data, key),
            context_window=self._count(data, "contextWindow", key),
            max_tokens=self._count(data, "maxTokens", key),
            reasoning=self._flag(data, "reasoning", key),
            thinking_level_map=self._levels(data, key),
            input=self._input(data, key),
            cost=self._cost(data, key),
            headers=self._headers(data, key),
            compat=self._object(data.get("compat", {}), f"{key}.compat"),
        )

    def _levels(self, data: dict[str, JSON], key: str) -> Mapping[str, str | None] | None:
        if data.get("thinkingLevelMap") is None:
            return None
        levels = self._object(data["thinkingLevelMap"], f"{key}.thinkingLevelMap")
        for level, wanted in levels.items():
            if level not in THINKING_LEVELS:
                raise self._error(
                    f"{key}.thinkingLevelMap.{level}",
                    f"there is no such thinking level; the levels are {', '.join(THINKING_LEVELS)}",
                )
            if wanted is not None and not isinstance(wanted, str):
                raise self._wrong(f"{key}.thinkingLevelMap.{level}", "text or null", wanted)
        return levels

    def _input(self, data: dict[str, JSON], key: str) -> tuple[str, ...] | None:
        value = data.get("input")
        if value is None:
            return None
        if not isinstance(value, list) or not all(item in ("text", "image") for item in value):
            raise self._wrong(f"{key}.input", 'a list of "text" and "image"', value)
        return tuple(value)

    def _cost(self, data: dict[str, JSON], key: str) -> Mapping[str, float] | None:
        if data.get("cost") is None:
            return None
        prices = self._object(data["cost"], f"{key}.cost")
        known = {}
        for name in ("input", "output", "cacheRead", "cacheWrite"):
            value = prices.get(name, 0)
            if not _is_number(value) or value < 0:
                raise self._wrong(f"{key}.cost.{name}", "dollars per million tokens", value)
            known[name] = float(value)
        return known

    def _headers(self, data: dict[str, JSON], key: str) -> Mapping[str, str]:
        headers = self._object(data.get("headers") or {}, f"{key}.headers")
        for name, value in headers.items():
            if not isinstance(value, str):
                raise self._wrong(f"{key}.headers.{name}", "text", value)
            if not name.isascii() or not name.strip() or any(c in name for c in "\r\n: "):
                raise self._error(f"{key}.headers", f"{name!r} is no name for a header")
        return headers

    def _api(self, data: dict[str, JSON], key: str) -> str | None:
        value = self._text(data, "api", key)
        if value is not None and value not in OWN_APIS and value not in LITELLM_APIS:
            raise self._error(
                f"{key}.api",
                f"there is no API called {value!r}",
                hint=f"Known: {', '.join((*OWN_APIS, *LITELLM_APIS))}.",
            )
        return value

    def _url(self, data: dict[str, JSON], key: str) -> str | None:
        value = self._text(data, "baseUrl", key)
        if value is None:
            return None
        if not is_web_address(value):
            raise self._wrong(f"{key}.baseUrl", "an http:// or https:// address", value)
        return value.rstrip("/")

    def _count(self, data: dict[str, JSON], name: str, key: str) -> int | None:
        value = data.get(name)
        if value is None:
            return None
        if not _is_number(value) or value != int(value) or value < 1:
            raise self._wrong(f"{key}.{name}", "a whole number of tokens above 0", value)
        return int(value)

    def _flag(self, data: dict[str, JSON], name: str, key: str) -> bool | None:
        value = data.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(f"{key}.{name}", "true or false", value)

    def _text(self, data: dict[str, JSON], name: str, key: str) -> str | None:
        value = data.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(f"{key}.{name}", "text", value)

    def _object(self, value: JSON, key: str) -> dict[str, JSON]:
        if not isinstance(value, dict):
            raise self._wrong(key, "an object in braces", value)
        return value

    def _wrong(self, key: str, wanted: str, value: JSON) -> SettingsError:
        shown = "" if "apiKey" in key or "headers" in key else f", not {_shown(value)}"
        return self._error(key, f"this must be {wanted}{shown}")

    def _error(self, key: str, problem: str, hint: str | None = None) -> SettingsError:
        return SettingsError(
            f"{self._shown}, {key}: {problem}.", file=self._shown, key=key, hint=hint
        )


def _our_id(name: str, value: JSON) -> str:
    """Our id of a provider of the file: one without models changes a built-in provider."""
    has_models = isinstance(value, dict) and bool(value.get("models"))
    return name if has_models else canonical_provider(name)


def _is_number(value: JSON) -> bool:
    finite = isinstance(value, int | float) and not isinstance(value, bool)
    return finite and value == value and abs(value) < 1e15


def _shown(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "…"
