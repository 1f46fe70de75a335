"""Which models the user wants to choose from: the setting `enabledModels`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from pi_tui.core.models import Model
from pi_tui.providers.model_search import split_level


def enabled(models: Sequence[Model], patterns: Sequence[str]) -> tuple[Model, ...]:
    """The models that fit a pattern, in the order of the patterns.

    A pattern is a full name or an id, with `*` and `?`; a thinking level after it does not count.
    All models when there is no pattern, or when none fits: a list out of date must not lock anybody
    out.
    """
    found: dict[str, Model] = {}
    for pattern in patterns:
        wanted = split_level(pattern.strip())[0].lower()
        for model in models:
            if any(fnmatchcase(n.lower(), wanted) for n in (model.full_name, model.id)):
                found.setdefault(model.full_name, model)
    return tuple(found.values()) or tuple(models)
