"""Hides keys in an export; the shapes are those of `core.redaction`.

What is masked keeps its first characters, so that a reader sees what kind of key it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from pi_tui.core.messages import JSON
from pi_tui.core.redaction import Redactor

SHOWN_CHARS = 4
MASK = "…[masked]"
_Value = TypeVar("_Value")


class Masker:
    """Masks keys and counts them. `secrets` are values that must not appear, whatever their shape.

    An inactive one changes nothing.
    """

    def __init__(self, secrets: Iterable[str] = (), *, active: bool = True) -> None:
        self._active = active
        self._redactor = Redactor(secrets, net="document", mark=MASK, shown_chars=SHOWN_CHARS)

    @property
    def count(self) -> int:
        """Keys masked so far."""
        return self._redactor.count

    def mask(self, text: str, *, counted: bool = True) -> str:
        """The text without its keys. `counted` False: it was or will be counted elsewhere."""
        return self._masked(self._redactor.redact, text, counted)

    def mask_json(self, value: JSON, *, counted: bool = True) -> JSON:
        """The same value without keys in its strings and names; to be encoded afterwards."""
        return self._masked(self._redactor.redact_json, value, counted)

    def _masked(self, redact: Callable[[_Value], _Value], value: _Value, counted: bool) -> _Value:
        if not self._active:
            return value
        before = self._redactor.count
        masked = redact(value)
        if not counted:
            self._redactor.count = before
        return masked
