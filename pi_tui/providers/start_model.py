"""The model a session starts with, when it does not bring its own.

The order: what the command line names; the settings; the user's own providers of `models.json`; the
first known provider with a key; a server on this machine that answers, found in the background; the
demo. Only a wrong command line is an error: everything else falls through with a notice.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from pi_tui.core.errors import ModelError
from pi_tui.core.messages import ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.providers.demo import DEMO_MODEL
from pi_tui.providers.model_search import best_match
from pi_tui.providers.provider_names import KNOWN_PROVIDERS, ProviderFacts
from pi_tui.providers.registry import ModelRegistry


class StartModel(Struct, frozen=True):
    """The choice and where it came from; `notice` tells what was passed over, and why.

    `source` "demo" means that a local server may still be found: see `find_local_model`.
    """

    model: Model
    source: Literal["flag", "settings", "models_file", "key", "demo"]
    thinking_level: ThinkingLevel | None = None
    notice: str = ""


def start_model(
    registry: ModelRegistry,
    *,
    reference: str = "",
    provider: str = "",
    default_provider: str = "",
    default_model: str = "",
) -> StartModel:
    """Choose the start model at once, without waiting for anything.

    `reference` and `provider` are the command line's. Raises ModelError when they name no model, or
    one that has no key.
    """
    if reference or provider:
        return _from_flag(registry, reference, provider)
    notice = ""
    if default_provider or default_model:
        chosen, notice = _from_settings(registry, default_provider, default_model)
        if chosen is not None:
            return chosen
    for name in registry.own_providers():
        if registry.provider_usable(name):
            return StartModel(registry.models_of(name)[0], "models_file", None, notice)
        if not notice:
            notice = registry.key_advice(registry.models_of(name)[0]).text
    for facts in KNOWN_PROVIDERS:
        # Cloud accounts in the environment are there for other reasons too often to count here.
        if registry.key_reference(facts.id) and registry.provider_usable(facts.id):
            model = _preferred(registry, facts)
            if model is not None:
                return StartModel(model, "key", None, notice)
    if not notice and registry.problems:
        # The demo must not look like the model that was described wrongly.
        notice = f"No model can be used. {registry.problems[0].text}"
    return StartModel(DEMO_MODEL, "demo", None, notice)


async def find_local_model(registry: ModelRegistry) -> Model | None:
    """The first model of a server on this machine, within 200 ms; for the background."""
    found = await registry.probe_local()
    return found[0] if found else None


def _from_flag(registry: ModelRegistry, reference: str, provider: str) -> StartModel:
    if not reference:
        provider = registry.provider_id(provider)
        facts = next((f for f in KNOWN_PROVIDERS if f.id == provider), None)
        listed = registry.models_of(provider)
        model = _preferred(registry, facts) if facts is not None else None
        if model is None and not listed:
            raise ModelError(
                f"There is no provider called “{provider}”, or it has no list of models.",
                hint="Name the model too: --model provider/id.",
            )
        return _checked(registry, StartModel(model or listed[0], "flag"))
    found = registry.resolve(reference, provider)
    return _checked(registry, StartModel(found.model, "flag", found.thinking_level))


def _checked(registry: ModelRegistry, choice: StartModel) -> StartModel:
    if registry.api_key_missing(choice.model):
        raise registry.key_advice(choice.model)
    return choice


def _from_settings(
    registry: ModelRegistry, provider: str, model_id: str
) -> tuple[StartModel | None, str]:
    """The model of the settings, or the reason why it cannot be used."""
    try:
        if provider and model_id:
            model = registry.find(f"{provider}/{model_id}")
            choice = StartModel(model, "settings") if model is not None else None
        else:
            choice = _from_flag(registry, model_id, provider)
            choice = StartModel(choice.model, "settings", choice.thinking_level)
        if choice is not None:
            return _checked(registry, choice), ""
    except ModelError as error:
        hint = f" {error.hint}" if error.hint else ""
        return None, f"The model of the settings cannot be used: {error.message}{hint}"
    return None, f"The settings name a model that does not exist: {provider}/{model_id}."


def _preferred(registry: ModelRegistry, facts: ProviderFacts) -> Model | None:
    """The provider's usual model: by the table's patterns, else its first that can think."""
    models = registry.models_of(facts.id)
    found = best_match(models, facts.preferred)
    if found is None and not models and facts.preferred:
        found = registry.find(f"{facts.id}/{facts.preferred[0]}")
    if found is None and models:
        found = next((model for model in models if model.reasoning), models[0])
    return found
