"""How a person names an entry: by its id or by the beginning of one.

The words around it (`leaf`, labels, numbers of a list) belong to those who know them.
"""

from __future__ import annotations

from collections.abc import Iterable

SHORTEST_PREFIX_CHARS = 2
"""A single character is a slip of the finger, not the beginning of an id."""


def beginning_with(wanted: str, ids: Iterable[str]) -> list[str]:
    """All ids that begin with `wanted`, in their order; case does not count, ids are lower case."""
    if len(wanted) < SHORTEST_PREFIX_CHARS:
        return []
    folded = wanted.casefold()
    return [known for known in ids if known.startswith(folded)]
