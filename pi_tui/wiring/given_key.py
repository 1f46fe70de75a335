"""The key of the command line: for the provider of the model that is used, and for nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pi_tui.core.errors import UsageError

if TYPE_CHECKING:
    from pi_tui.wiring.start import Start


def use_given_key(start: Start, stored_model: str = "") -> None:
    """Use `--api-key` for this run; it is written nowhere.

    Its provider is that of `--model`, else of the session's own model, else of the settings. Raises
    UsageError when none of them names a model, ModelError when one names no model there is.
    """
    key = start.options.api_key
    if key is None:
        return
    if not key.strip():
        raise UsageError("--api-key needs a key")
    start.models.credentials.set_override(_provider(start, stored_model), key.strip())


def _provider(start: Start, stored_model: str) -> str:
    models, settings = start.models, start.loaded.settings
    if start.options.model is not None:
        return models.resolve(start.options.model).model.provider
    if stored_model and (stored := models.find(stored_model)) is not None:
        return stored.provider
    if settings.default_provider:
        return models.provider_id(settings.default_provider)
    if settings.default_model:
        return models.resolve(settings.default_model).model.provider
    raise UsageError(
        "--api-key needs a model, which tells whose key it is",
        hint="Add --model provider/id.",
    )
