"""Hides keys in a text that leaves the program: what has the shape of a credential.

The one list of shapes, for exports, failed requests and crash reports. Only well-known shapes, and
values the caller names, are found: this is a net for accidents, not a promise. Time follows the
length of the text, whatever stands in it. Knows no environment and no file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import cache
from typing import Literal, TypeAlias

from pi_tui.core.json_fields import JSON

Net: TypeAlias = Literal["document", "message", "report"]
"""How fine the net is.

`document`: whole keys, and named values that look made by a machine; prose stays as it is.
`message`: shortened keys too, and keys whose middle a server replaced by stars.
`report`: any value beside a name like `password` as well.
"""

SHORTEST_SECRET_CHARS = 8
"""Shorter values are words that occur anywhere."""

_MAX_DEPTH = 128
_NAME_CHARS = 100
"""How much of the end of a long name is looked at beside its value."""
_TOO_DEEP = "[nested too deeply]"
_PLACEHOLDER_CHARS = 20
_PLACEHOLDER = re.compile(r"[A-Za-z]+(?:[-_][A-Za-z]+)*")

_WORD = r"(?:(?<![A-Za-z0-9_])|(?<=\\[bfnrtv])|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\x[0-9A-Fa-f]{2}))"
"""Where a word begins, also directly after a control character that somebody wrote as an escape."""
_QUOTE = r"(?:\\{0,7}[\"'])?"
"""Perhaps a quote, also within JSON that stands in a string of JSON, and so on."""
_LETTERS = "A-Za-z0-9"
_USUAL = r"A-Za-z0-9_\-"

_SHAPES: tuple[tuple[str, str, int, int, int], ...] = (
    (r"[spr]k-", _USUAL, 16, 250, 6),  # OpenAI, Anthropic, OpenRouter and many that copy them
    (r"[spr]k_(?:live|test)_", _LETTERS, 16, 250, 6),  # Stripe
    (r"gh[pousr]_", _LETTERS, 30, 255, 10),  # GitHub
    (r"github_pat_", "A-Za-z0-9_", 40, 255, 10),
    (r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-", _USUAL, 16, 100, 10),  # GitLab
    (r"A(?:KIA|SIA|BIA|CCA)", "A-Z0-9", 16, 16, 12),  # AWS
    (r"AIza", _USUAL, 35, 35, 10),  # Google
    (r"ya29\.", _USUAL, 20, 500, 10),
    (r"xox[abeoprs]-", r"A-Za-z0-9\-", 10, 250, 8),  # Slack
    (r"xapp-", r"A-Za-z0-9\-", 10, 250, 8),
    (r"(?:hf|npm|gsk|vck|fw)_", _LETTERS, 30, 100, 12),
    (r"(?:r8|tgp_v1|lin_api|dckr_pat)_", _USUAL, 20, 100, 12),
    (r"(?:csk|nvapi)-", _USUAL, 30, 100, 8),
    (r"xai-", _LETTERS, 40, 200, 8),
    (r"pypi-", _USUAL, 50, 400, 20),
    (r"dop_v1_", "a-f0-9", 64, 64, 16),
    (r"SG\.[A-Za-z0-9_\-]{16,40}\.", _USUAL, 30, 60, 8),  # SendGrid
    (r"eyJ[A-Za-z0-9_\-]{8,4000}+\.[A-Za-z0-9_\-]{8,8000}+\.", _USUAL, 8, 4000, 0),  # JWT
)
"""Beginning, alphabet, fewest and most characters of the rest, and fewest in a message."""

_BODY = r"(?:[^-]|-(?!----))"
_PRIVATE_KEY = (
    # A body that looks like one is hidden even when its end was cut off.
    r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:"
    rf"(?=[\s\S]{{0,200}}?[A-Za-z0-9+/=]{{24}}){_BODY}{{0,20000}}+"
    r"(?:-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----)?"
    rf"|{_BODY}{{0,20000}}+-----END [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----)"
)
_NAMES = r"api[_\- ]?key|access[_-]?key|secret|token|passw(?:or)?d|authorization"
_SCHEME = r"(?i:bearer\s{1,3}|basic\s{1,3})"
_MADE = r"(?=[A-Za-z_\-+/=.~]{0,199}+\d)[A-Za-z0-9_\-+/=.~]{16,200}+"
"""A value with a digit in it: names of variables and words have none, keys nearly always."""

_SAFELY_NAMED = (
    rf"(?P<name>(?:(?i:{_NAMES})[A-Za-z_]{{0,20}}{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}{_QUOTE}{_SCHEME}?"
    rf"|{_WORD}(?i:bearer)\s{{1,3}}))(?P<value>{_MADE})"
)
_ANY_NAMED = (
    rf"(?P<name>(?i:{_NAMES}){_QUOTE}\s{{0,20}}[:=]\s{{0,20}}{_QUOTE}{_SCHEME}?"
    rf"|{_WORD}(?i:bearer)\s{{1,3}}(?=[\w.~+/=\-]{{8}}))(?P<value>[^\s\"',;)}}\]]{{1,4000}}+)"
    # The longer names of a document, too: `OPENAI_API_KEY_2 = "…"`.
    rf"|(?P<name2>(?i:{_NAMES})[A-Za-z_]{{0,20}}{_QUOTE}\s{{0,3}}[:=]\s{{0,3}}{_QUOTE})"
    rf"(?P<value2>{_MADE})"
)
_BARE_BEARER = rf"(?P<name2>{_WORD}(?i:bearer)\s{{1,3}})(?P<value2>[\w\-.~+/=*]{{8,4000}}+)"
_LOGIN = r"(?P<login>(?<=://)[^\s/:@]{0,100}:)(?P<password>[^\s/@]{3,200})(?=@)"


@cache
def _pattern(net: Net) -> re.Pattern[str]:
    shapes = []
    for start, alphabet, fewest, most, fewest_in_message in _SHAPES:
        if net == "document":
            end = rf"(?![{alphabet}])" if fewest == most else ""
            shapes.append(rf"{start}[{alphabet}]{{{fewest},{most}}}+{end}")
        else:
            # Dots and a starred middle belong to the key; a full stop after it does not.
            shapes.append(rf"{start}(?:[{alphabet}*]|\.(?=[\w*])){{{fewest_in_message},4000}}+")
    named = {
        "document": _SAFELY_NAMED,
        "message": f"{_SAFELY_NAMED}|{_BARE_BEARER}",
        "report": _ANY_NAMED,
    }[net]
    return re.compile(rf"(?P<key>{_PRIVATE_KEY}|{_WORD}(?:{'|'.join(shapes)}))|{named}|{_LOGIN}")


def is_placeholder(value: str) -> bool:
    """True for what people write where a server needs no key: `ollama`, `not-needed`."""
    return len(value) < _PLACEHOLDER_CHARS and _PLACEHOLDER.fullmatch(value) is not None


def _written_forms(text: str) -> set[str]:
    """A text as it is, and as it stands in JSON and in what Python prints of strings."""
    return {
        text,
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        repr(text)[1:-1],
    }


class Redactor:
    """Replaces keys by a mark and counts them.

    `secrets` are values that must not appear, whatever their shape. The first `shown_chars` of a
    key that was known by its shape stay, so that a reader sees what kind it was.
    """

    def __init__(
        self,
        secrets: Iterable[str] = (),
        *,
        net: Net,
        mark: str,
        shown_chars: int = 0,
    ) -> None:
        self.count = 0
        self._pattern = _pattern(net)
        self._mark = mark
        self._shown_chars = shown_chars
        known = {
            form
            for secret in secrets
            if len(secret) >= SHORTEST_SECRET_CHARS
            for form in _written_forms(secret)
        }
        self._secrets = sorted(known, key=lambda secret: (-len(secret), secret))

    def redact(self, text: str) -> str:
        """The text without its keys."""
        for secret in self._secrets:
            if found := text.count(secret):
                self.count += found
                text = text.replace(secret, self._mark)
        return self._pattern.sub(self._replaced, text)

    def redact_json(self, value: JSON) -> JSON:
        """The same value with no key in any string, names included; to be encoded afterwards.

        A string beside a telling name is judged together with it. What lies absurdly deep is left
        out.
        """
        return self._redacted(value, "", 0)

    def _redacted(self, value: JSON, name: str, depth: int) -> JSON:
        if isinstance(value, str):
            return self._redacted_string(value, name)
        if not isinstance(value, dict | list | tuple):
            return value
        if depth >= _MAX_DEPTH:
            return _TOO_DEEP
        if not isinstance(value, dict):
            return [self._redacted(item, name, depth + 1) for item in value]
        changed: dict[str, JSON] = {}
        for key, item in value.items():
            shown = self.redact(key)
            while shown in changed:
                shown += "'"  # two keys of one kind look alike now
            changed[shown] = self._redacted(item, key, depth + 1)
        return changed

    def _redacted_string(self, text: str, name: str) -> str:
        before = self.count
        beginning = f"{name[-_NAME_CHARS:]}: "
        together = self.redact(beginning + text)
        if name and together.startswith(beginning):
            return together[len(beginning) :]
        self.count = before  # the name is itself a key, and was counted
        return self.redact(text)

    def _replaced(self, found: re.Match[str]) -> str:
        parts = found.groupdict()
        if parts["password"] is not None:
            before, value, shown_chars = parts["login"], parts["password"], 0
        elif parts["key"] is not None:
            before, value, shown_chars = "", parts["key"], self._shown_chars
        else:
            before = parts["name"] or parts.get("name2") or ""
            value = parts["value"] or parts.get("value2") or ""
            shown_chars = self._shown_chars
        if value == self._mark or value.startswith(self._mark):
            return found.group()  # hidden already, as a known secret
        self.count += 1
        shown = "" if value.startswith("-----") else value[:shown_chars]
        return before + shown + self._mark
