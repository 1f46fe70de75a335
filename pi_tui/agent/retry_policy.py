"""How long to wait before a failed request is made again. Pure; the same for answers and summaries.

Times are milliseconds.
"""

from __future__ import annotations

from msgspec import Struct

from pi_tui.core.errors import ProviderError


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
    if not (policy.enabled and error.retryable and attempts_made < policy.max_retries):
        return None
    delay_ms = min(policy.base_delay_ms * 2**attempts_made, policy.max_delay_ms)
    asked_ms = round((error.retry_after_s or 0) * 1000)
    return WaitAndRetry(max(delay_ms, asked_ms)) if asked_ms <= policy.max_delay_ms else None
