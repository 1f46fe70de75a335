"""Headers of a request, and which of their values are secrets. Knows no server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

HeadersSource: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""Gives the headers of the next request, the key among them."""

_SECRET_NAMES = ("authorization", "key", "token", "secret", "cookie")


def is_secret_header(name: str) -> bool:
    """True when the value of a header of that name is a key, as far as names tell."""
    return any(word in name.lower() for word in _SECRET_NAMES)


class RequestHeaders:
    """Puts together the headers of each request.

    Later ones win: `defaults`, then `fixed` ones of the models file, then what `source` gives.
    """

    def __init__(
        self,
        source: HeadersSource | None,
        fixed: Mapping[str, str] | None,
        defaults: Mapping[str, str],
    ) -> None:
        self._source = source
        self._fixed = fixed or {}
        self._defaults = defaults

    async def make(self) -> tuple[dict[str, str], tuple[str, ...]]:
        """Headers with lower-case names, and the secrets in them."""
        given = await self._source() if self._source is not None else {}
        headers: dict[str, str] = {}
        for group in (self._defaults, self._fixed, given):
            headers.update({name.lower(): value.strip() for name, value in group.items()})
        headers = {name: value for name, value in headers.items() if value}
        secrets = tuple(
            value.removeprefix("Bearer ").strip()
            for name, value in headers.items()
            if is_secret_header(name)
        )
        return headers, secrets
