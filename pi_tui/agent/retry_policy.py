"""How long to wait before a failed request is made again. Pure; the same for answers and summaries.

Times are milliseconds.
"""

from __future__ import annotations

from msgspec import Struct

from pi_tui.core.errors import ProviderError
from pi_tui.core.numbers import short_duration

_DAY_MS = 24 * 60 * 60 * 1000


class RetryPolicy(Struct, frozen=True):
    """Delays are `base_delay_ms` doubled for each attempt, `max_delay_ms` at most.

    A server's Retry-After wins when it is longer; one beyond `max_delay_ms` ends the retries.
    """

    enabled: bool = True
    max_retries: int = 3
    base_delay_ms: int = 2000
    max_delay_ms: int = 60_000


class WaitAndRetry(Struct, frozen=True):
    delay_ms: int


def plan_wait(error: ProviderError, attempts_made: int, policy: RetryPolicy) -> WaitAndRetry | None:
    """The wait before the next attempt; None when another one is not worth it."""
    if not _may_retry(error, attempts_made, policy):
        return None
    delay_ms = min(policy.base_delay_ms * 2**attempts_made, policy.max_delay_ms)
    asked_ms = _asked_ms(error)
    return WaitAndRetry(max(delay_ms, asked_ms)) if asked_ms <= policy.max_delay_ms else None


def too_long_a_wait(error: ProviderError, attempts_made: int, policy: RetryPolicy) -> str:
    """Why another attempt is not made, when that is only the wait the server asks for; else ""."""
    asked_ms = _asked_ms(error)
    if not _may_retry(error, attempts_made, policy) or asked_ms <= policy.max_delay_ms:
        return ""
    asked = short_duration(asked_ms) if asked_ms < _DAY_MS else "more than a day"
    return (
        f"the server asks to wait {asked}, which is longer than retry.maxAgentDelayMs "
        f"({short_duration(policy.max_delay_ms)}), so the request is not made again by itself."
    )


def _may_retry(error: ProviderError, attempts_made: int, policy: RetryPolicy) -> bool:
    return policy.enabled and error.retryable and attempts_made < policy.max_retries


def _asked_ms(error: ProviderError) -> int:
    return round((error.retry_after_s or 0) * 1000)
