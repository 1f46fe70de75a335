"""A crash in words: a plain traceback for the normal screen, without values and without secrets."""

from __future__ import annotations

import traceback
from collections.abc import Iterable

from pi_tui.core.redaction import Redactor
from pi_tui.core.sanitise import sanitise

_HIDDEN = "<hidden>"


def hide_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """Replace known secret values, and what looks like one."""
    return Redactor(secrets, net="report", mark=_HIDDEN).redact(text)


def crash_report(error: BaseException, secrets: Iterable[str] = ()) -> str:
    """What to print after the terminal is back to normal."""
    trace = "".join(traceback.format_exception(error))
    return (
        f"{sanitise(hide_secrets(trace, secrets)).rstrip()}\n\n"
        "pi-tui stopped because of the internal error above. What was shown as finished is in the "
        "session file.\n"
    )
