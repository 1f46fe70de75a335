"""`models.json`: providers and models the user adds, and changes to the built-in ones.

The file is strict JSON (a byte-order mark is allowed). Keys this program does not know are ignored,
because other programs share the format; a known key with a wrong value is an error that names the
file and the key. Reading does not resolve keys or headers: `credentials` does that when needed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from pi_tui.core.errors import SettingsError
from pi_tui.core.messages import JSON, THINKING_LEVELS
from pi_tui.providers.provider_names import LITELLM_APIS, OWN_APIS, provider_facts


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
    """The providers of the file in its order. `path` is the file as the user knows it."""

    path: str = "models.json"
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict)


def load_models_file(path: Path, shown: str = "") -> ModelsFile:
    """Read the file; a missing one is empty. Raises SettingsError."""
    name = shown or str(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ModelsFile(name)
    except OSError as error:
        raise SettingsError(
            f"{name} cannot be read: {error.strerror or error}.", file=name
        ) from error
    return parse_models_file(data, name)


def parse_models_file(data: bytes, shown: str) -> ModelsFile:
    """Parse the text of a models file. Raises SettingsError."""
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
    except RecursionError as error:
        raise SettingsError(f"{shown} is nested too deeply to be read.", file=shown) from error
    return _Reader(shown).models_file(tree)


class _Reader:
    """Checks values one by one, so that an error can name the exact key."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def models_file(self, tree: JSON) -> ModelsFile:
        top = self._object(tree, "the file")
        providers = self._object(top.get("providers", {}), "providers")
        return ModelsFile(
            self._shown,
            {
                name: self._provider(name, value, f"providers.{name}")
                for name, value in providers.items()
            },
        )

    def _provider(self, name: str, value: JSON, key: str) -> ProviderEntry:
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
            models=tuple(
                self._model(item, f"{key}.models[{number}]", None)
                for number, item in enumerate(models)
            ),
            overrides={
                model_id: self._model(item, f"{key}.modelOverrides.{model_id}", model_id)
                for model_id, item in overrides.items()
            },
        )
        self._check_complete(entry, key)
        return entry

    def _check_complete(self, entry: ProviderEntry, key: str) -> None:
        """A provider nobody knows must say where it is; litellm's own need not."""
        facts = provider_facts(entry.id)
        for number, model in enumerate(entry.models):
            api = model.api or entry.api or (facts.api if facts else "openai-completions")
            known_url = facts is not None and facts.base_url and facts.api == api
            if api in OWN_APIS[:2] and not (model.base_url or entry.base_url or known_url):
                raise self._error(
                    f"{key}.baseUrl",
                    f"the address of the server is missing, and models[{number}] needs it",
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
        if not value.startswith(("http://", "https://")) or any(c.isspace() for c in value):
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


def _is_number(value: JSON) -> bool:
    finite = isinstance(value, int | float) and not isinstance(value, bool)
    return finite and value == value and abs(value) < 1e15


def _shown(value: JSON) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else text[:37] + "…"
