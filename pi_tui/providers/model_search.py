"""Finding a model by what a person types: exact ids, parts of them, near misses. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from pi_tui.core.messages import THINKING_LEVELS, ThinkingLevel
from pi_tui.core.models import Model

_SKIPPING = 100
"""The score of a word found only by skipping letters: taken when nothing holds it whole."""


def split_level(reference: str) -> tuple[str, ThinkingLevel | None]:
    """Take a thinking level off the end: `id:high`. Ids may hold colons of their own."""
    head, colon, tail = reference.rpartition(":")
    if colon and head:
        for level in THINKING_LEVELS:
            if tail.lower() == level:
                return head, level
    return reference, None


def search(models: Iterable[Model], query: str) -> list[Model]:
    """Models that hold every word of the query, best first; letters may be skipped.

    An empty query keeps all, in their order.
    """
    words = query.lower().split()
    if not words:
        return list(models)
    ranked: list[tuple[int, int, int, Model]] = []
    for order, model in enumerate(models):
        scores = [_score(word, model) for word in words]
        if None not in scores:
            total = sum(score for score in scores if score is not None)
            ranked.append((total, len(model.id), order, model))
    ranked.sort(key=lambda item: item[:3])
    if ranked and ranked[0][0] < _SKIPPING:
        ranked = [item for item in ranked if item[0] < _SKIPPING]
    return [item[3] for item in ranked]


def _score(word: str, model: Model) -> int | None:
    """0 is an exact hit; None is none at all."""
    model_id, full, name = model.id.lower(), model.full_name.lower(), model.name.lower()
    if word in (model_id, full):
        return 0
    if full.startswith(word) or model_id.startswith(word):
        return 1
    if re.search(rf"(^|[^a-z0-9]){re.escape(word)}", full):
        return 2
    if word in full or word in name:
        return 3
    letters = iter(full)
    if len(word) >= 3 and all(letter in letters for letter in word):
        return _SKIPPING
    return None


def containing(models: Iterable[Model], text: str) -> list[Model]:
    """Models whose `provider/id` holds the text, whatever the case."""
    wanted = text.lower()
    return [model for model in models if wanted in model.full_name.lower()]


def only_one(models: Sequence[Model]) -> Model | None:
    """The one model meant: the only one, or the one whose dated copies the others are."""
    if not models:
        return None
    shortest = min(models, key=lambda model: len(model.id))
    for model in models:
        rest = model.id[len(shortest.id) :]
        dated = re.fullmatch(r"[-@][\d-]{4,}(-v\d(:\d)?)?", rest) is not None
        same_place = model.provider == shortest.provider and model.id.startswith(shortest.id)
        if model is not shortest and not (same_place and dated):
            return None
    return shortest


def nearest(models: Iterable[Model], text: str, count: int = 3) -> list[str]:
    """Names most like the text, for a message; in `text`'s own provider when it names one."""
    by_name: dict[str, str] = {}
    for model in models:
        by_name.setdefault(model.full_name.lower(), model.full_name)
        by_name.setdefault(model.id.lower(), model.full_name)
    found = difflib.get_close_matches(text.lower(), by_name, n=count * 2, cutoff=0.6)
    return list(dict.fromkeys(by_name[name] for name in found))[:count]


def best_match(models: Sequence[Model], patterns: Sequence[str]) -> Model | None:
    """The model with the highest version among those that match the first fruitful pattern."""
    for pattern in patterns:
        matching = [model for model in models if re.fullmatch(pattern, model.id)]
        if matching:
            return max(matching, key=lambda model: (_version(model.id), -len(model.id)))
    return None


def _version(model_id: str) -> tuple[int, ...]:
    """The numbers of an id in order; long ones are dates or sizes and do not count."""
    return tuple(int(number) for number in re.findall(r"\d+", model_id) if len(number) <= 2)
