"""Hides keys in a text that leaves the machine: what has the shape of a credential.

Only well-known shapes, and values the caller names, are found: this is a net for accidents, not a
promise. What is masked keeps its first characters, so that a reader sees what kind of key it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SHOWN_CHARS = 4
MASK = "…[masked]"
_MIN_SECRET_CHARS = 8

_WORD = r"(?<![A-Za-z0-9_])"
_SHAPES = (
    r"sk-[A-Za-z0-9_\-]{16,200}+",  # OpenAI, Anthropic, OpenRouter and many that copy them
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,200}+",  # Stripe
    r"gh[pousr]_[A-Za-z0-9]{30,255}+|github_pat_[A-Za-z0-9_]{40,255}+",
    r"glpat-[A-Za-z0-9_\-]{16,100}+",
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])",  # AWS
    r"AIza[A-Za-z0-9_\-]{35}",  # Google
    r"ya29\.[A-Za-z0-9_\-]{20,500}+",
    r"xox[abeoprs]-[A-Za-z0-9\-]{10,250}+|xapp-[A-Za-z0-9\-]{10,250}+",  # Slack
    r"hf_[A-Za-z0-9]{30,100}+|npm_[A-Za-z0-9]{30,100}+|gsk_[A-Za-z0-9]{30,100}+",
    r"pypi-[A-Za-z0-9_\-]{50,400}+|dop_v1_[a-f0-9]{64}|xai-[A-Za-z0-9]{40,200}+",
    r"SG\.[A-Za-z0-9_\-]{16,40}\.[A-Za-z0-9_\-]{30,60}",  # SendGrid
    r"eyJ[A-Za-z0-9_\-]{8,4000}+\.eyJ[A-Za-z0-9_\-]{8,8000}+\.[A-Za-z0-9_\-]{8,4000}+",  # JWT
)
_PRIVATE_KEY = (
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[\s\S]{0,20000}?"
    r"(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
)
_NAMED = (
    r"(?P<name>(?i:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|authorization)"
    r"[A-Za-z_]{0,20}[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:bearer\s{1,3}|basic\s{1,3})?)"
    r"(?P<value>(?=[A-Za-z_\-+/=.~]{0,199}\d)[A-Za-z0-9_\-+/=.~]{16,200}+)"
)
_KEY = re.compile(
    f"(?P<key>{_PRIVATE_KEY}|{_WORD}(?:{'|'.join(_SHAPES)}))|{_NAMED}"
    r"|(?P<login>(?<=://)[^\s/:@]{1,100}:)(?P<password>[^\s/@]{3,200})(?=@)"
)


class Masker:
    """Masks keys and counts them. `secrets` are values that must not appear, whatever their shape.

    An inactive one changes nothing.
    """

    def __init__(self, secrets: Iterable[str] = (), *, active: bool = True) -> None:
        self.count = 0
        self._active = active
        known = sorted({s for s in secrets if len(s) >= _MIN_SECRET_CHARS}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def mask(self, text: str, *, counted: bool = True) -> str:
        """The text without its keys. `counted` False: it was or will be counted elsewhere."""
        if not self._active:
            return text
        before = self.count
        if self._known is not None:
            text = self._known.sub(self._whole, text)
        text = _KEY.sub(self._replaced, text)
        if not counted:
            self.count = before
        return text

    def _whole(self, found: re.Match[str]) -> str:
        self.count += 1
        return MASK

    def _replaced(self, found: re.Match[str]) -> str:
        self.count += 1
        if found["key"] is not None:
            shown = "" if found["key"].startswith("-----") else found["key"][:SHOWN_CHARS]
            return shown + MASK
        if found["password"] is not None:
            return found["login"] + MASK
        return found["name"] + found["value"][:SHOWN_CHARS] + MASK
