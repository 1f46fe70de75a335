"""How long a server asks to wait: headers first, then its words. Seconds everywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from pi_tui.providers.error_bodies import ErrorBody

_SPAN = r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|sec|seconds?|m|min|minutes?|h|hours?)"


_LONGEST_S = 100 * 365 * 86_400.0


def find_retry_after_s(headers: Mapping[str, str], body: ErrorBody, now_s: float) -> float | None:
    """Seconds the server asks to wait, from headers first, then from its words; always finite."""
    asked_s = _asked_s(headers, body, now_s)
    return None if asked_s is None else min(asked_s, _LONGEST_S)


def _asked_s(headers: Mapping[str, str], body: ErrorBody, now_s: float) -> float | None:
    raw_ms = headers.get("retry-after-ms", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", raw_ms):
        return float(raw_ms) / 1000
    raw = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", raw):
        return float(raw)
    if raw:
        try:
            return max(0.0, parsedate_to_datetime(raw).timestamp() - now_s)
        except (ValueError, TypeError, OverflowError):
            pass  # no date either; the words may say more
    asked = body.retry_delay or _asked_in_words(body.detail)
    spans = re.findall(_SPAN, asked, re.IGNORECASE)
    if not spans:
        return None
    return sum(float(number) * _unit_s(unit.lower()) for number, unit in spans)


def _asked_in_words(detail: str) -> str:
    match = re.search(
        rf"(?:again|retry|wait)(?: in| after| for)? (?:about |another )?((?:{_SPAN}\s*)+)",
        detail,
        re.IGNORECASE,
    )
    return match.group(1) if match else ""


def _unit_s(unit: str) -> float:
    if unit.startswith("milli") or unit == "ms":
        return 0.001
    return {"s": 1.0, "m": 60.0, "h": 3600.0}[unit[0]]
