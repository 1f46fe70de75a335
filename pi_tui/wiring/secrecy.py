"""What must not be shown or handed on: values of keys, and the variables that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pi_tui.core.redaction import SHORTEST_SECRET_CHARS

if TYPE_CHECKING:
    from pi_tui.providers.registry import ModelRegistry

_MARKS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
_OWN = re.compile(rf"PI_TUI_.*(?:{'|'.join(_MARKS)}).*")


class Secrets:
    """The values that must not appear in a report of a fault or in an export.

    Each iteration finds them anew: a key that a command prints is known only after its first use.
    """

    def __init__(self, variables: Mapping[str, str], models: ModelRegistry) -> None:
        self._variables = variables
        self._models = models

    def __iter__(self) -> Iterator[str]:
        for name, value in self._variables.items():
            if any(mark in name.upper() for mark in _MARKS):
                yield from self._long_enough(value)
        for value in self._models.secrets():
            yield from self._long_enough(value)

    @staticmethod
    def _long_enough(value: str) -> Iterator[str]:
        if len(value.strip()) >= SHORTEST_SECRET_CHARS:
            yield value.strip()


def variables_for_commands(
    variables: Mapping[str, str], models: ModelRegistry, *, keep_keys: bool
) -> dict[str, str]:
    """What shell commands inherit: everything but the keys of model providers.

    A command that prints its environment would send them to a provider and into the session file.
    """
    if keep_keys:
        return dict(variables)
    keys = models.key_variables()
    return {
        name: value
        for name, value in variables.items()
        if name not in keys and not _OWN.fullmatch(name)
    }
