"""A crash in words: a plain traceback for the normal screen, without values and without secrets."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable

from pi_tui.core.sanitise import sanitise

_HIDDEN = "<hidden>"
_SECRET_CHARS = 6
"""Shorter values are words that occur anywhere."""

_SECRETS = re.compile(
    r"""(?ix)
    (?P<name> (?:api[-_ ]?key | token | secret | passw(?:or)?d | authorization | x-api-key)
      ["']? \s* [:=] \s* ["']? (?:bearer\s+)? ) (?P<value> [^\s"',;)}\]]+ )
    | (?P<bearer> bearer \s+ ) (?P<bearer_value> [\w.~+/=-]{8,} )
    | \b (?: sk | pk | rk | gsk | xai | ghp | gho | github_pat | AKIA | AIza ) [-_]? [\w-]{12,}
    | (?P<url> ://[^/\s:@]+: ) (?P<url_value> [^@\s/]+ ) (?= @ )
    """
)


def hide_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace known secret values, and what looks like one."""
    for secret in secrets:
        if len(secret) >= _SECRET_CHARS:
            text = text.replace(secret, _HIDDEN)
    return _SECRETS.sub(_hidden, text)


def _hidden(match: re.Match[str]) -> str:
    kept = match["name"] or match["bearer"] or match["url"] or ""
    return kept + _HIDDEN


def crash_report(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """What to print after the terminal is back to normal."""
    trace = "".join(traceback.format_exception(error))
    return (
        f"{sanitise(hide_secrets(trace, secrets)).rstrip()}\n\n"
        "pi-tui stopped because of the internal error above. What was shown as finished is in the "
        "session file.\n"
    )
