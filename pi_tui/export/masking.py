"""Hides keys in an export; the shapes are those of `core.redaction`.

What is masked keeps its first characters, so that a reader sees what kind of key it was.
"""

from __future__ import annotations

from collections.abc import Iterable

from pi_tui.core.redaction import Redactor

SHOWN_CHARS = 4
MASK = "…[masked]"


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
        if not self._active:
            return text
        before = self._redactor.count
        masked = self._redactor.redact(text)
        if not counted:
            self._redactor.count = before
        return masked
