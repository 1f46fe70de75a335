"""From entries of `models.json` to models: what is not given comes from the provider or built in.

Also litellm's own string for a model. Pure: no files, no keys.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from pi_tui.core.models import Model, ModelCost
from pi_tui.providers.models_file import ModelEntry, ProviderEntry
from pi_tui.providers.provider_names import (
    LITELLM_APIS,
    LITELLM_MODEL_KEY,
    litellm_prefix,
    provider_facts,
)

T = TypeVar("T")


def model_from_entry(provider: ProviderEntry, entry: ModelEntry, base: Model | None) -> Model:
    """The model an entry describes; what it leaves out comes from the provider, then `base`.

    `base` is the built-in model of the same id, if there is one.
    """
    facts = provider_facts(provider.id)
    if base is None:
        api = entry.api or provider.api or (facts.api if facts else "openai-completions")
        known_url = facts.base_url if facts and facts.api == api else ""
        base = Model(provider=provider.id, id=entry.id, api=api, name=entry.id, base_url=known_url)
    return override_model(override_provider(base, provider), entry)


def override_provider(model: Model, provider: ProviderEntry) -> Model:
    """The same model with the provider's address, API and switches."""
    changed = msgspec.structs.replace(
        model,
        base_url=provider.base_url or model.base_url,
        compat={**model.compat, **provider.compat},
    )
    return _with_api(changed, provider.api) if provider.api else changed


def override_model(model: Model, entry: ModelEntry) -> Model:
    """The same model with everything the entry gives."""
    window = _or(entry.context_window, model.context_window)
    changed = msgspec.structs.replace(
        model,
        name=_or(entry.name, model.name),
        base_url=_or(entry.base_url, model.base_url),
        context_window=window,
        max_tokens=min(_or(entry.max_tokens, model.max_tokens), window),
        reasoning=_or(entry.reasoning, model.reasoning),
        thinking_level_map={**model.thinking_level_map, **(entry.thinking_level_map or {})},
        input=_or(entry.input, model.input),
        cost=model.cost
        if entry.cost is None
        else ModelCost(
            entry.cost["input"],
            entry.cost["output"],
            entry.cost["cacheRead"],
            entry.cost["cacheWrite"],
        ),
        compat={**model.compat, **entry.compat},
    )
    return _with_api(changed, entry.api or model.api)


def _or(value: T | None, fallback: T) -> T:
    return fallback if value is None else value


def _with_api(model: Model, api: str) -> Model:
    """The model served over `api`; formats that only litellm speaks go to litellm."""
    prefix = LITELLM_APIS.get(api)
    if prefix is not None:
        compat = {**model.compat, LITELLM_MODEL_KEY: prefix + model.id}
        return msgspec.structs.replace(model, api="litellm", compat=compat)
    if api == "litellm" and LITELLM_MODEL_KEY not in model.compat:
        compat = {**model.compat, LITELLM_MODEL_KEY: litellm_model(model)}
        return msgspec.structs.replace(model, api=api, compat=compat)
    return msgspec.structs.replace(model, api=api)


def litellm_model(model: Model) -> str:
    """litellm's string for the model.

    A provider it does not know, with an address of its own, is spoken to in OpenAI's format.
    """
    given = model.compat.get(LITELLM_MODEL_KEY)
    if isinstance(given, str) and given:
        return given
    if model.provider == "litellm":
        return model.id
    if provider_facts(model.provider) is None and model.base_url:
        return f"openai/{model.id}"
    return f"{litellm_prefix(model.provider)}/{model.id}"
