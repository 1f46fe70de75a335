"""What follows a failed run: wait and retry, send less, or give up with clear words.

`plan_recovery` decides from the error alone; `Recovery.drive` carries it out. Every retry is a
fresh run without new messages: the failed answer stays in the session and is left out of the
request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.agent.bus import EventBus
from pi_tui.agent.context import RequestLimits
from pi_tui.agent.journal import Journal
from pi_tui.agent.loop import RunLoop, RunOutcome, RunSettings
from pi_tui.agent.queues import Draft
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import Activity, AutoRetryEnd, AutoRetryStart, Notice


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


class SendLess(Struct, frozen=True):
    """Retry at once without something the provider does not accept; kept for the session."""

    what: Literal["thinking", "images"]


class GiveUp(Struct, frozen=True):
    pass


Step: TypeAlias = WaitAndRetry | SendLess | GiveUp


def plan_recovery(
    error: ProviderError, attempts_made: int, policy: RetryPolicy, limits: RequestLimits
) -> Step:
    """What to do about a failed run. `attempts_made` counts the retries since the last success."""
    if error.kind == ErrorKind.BAD_SIGNATURE and not limits.without_thinking:
        return SendLess("thinking")
    if error.kind == ErrorKind.PAYLOAD_TOO_LARGE and not limits.without_images:
        return SendLess("images")
    if not (policy.enabled and error.retryable and attempts_made < policy.max_retries):
        return GiveUp()
    delay_ms = min(policy.base_delay_ms * 2**attempts_made, policy.max_delay_ms)
    asked_ms = round((error.retry_after_s or 0) * 1000)
    if asked_ms > policy.max_delay_ms:
        return GiveUp()
    return WaitAndRetry(max(delay_ms, asked_ms))


_SENT_LESS = {
    "thinking": "the provider refused a thinking signature; earlier thinking is no longer sent in "
    "this session",
    "images": "the request was too large; images are no longer sent in this session",
}


class Recovery:
    """Drives runs until one settles."""

    def __init__(
        self,
        *,
        bus: EventBus,
        loop: RunLoop,
        limits: RequestLimits,
        policy: RetryPolicy,
        set_activity: Callable[[Activity], None],
    ) -> None:
        self._bus = bus
        self._loop = loop
        self._limits = limits
        self.policy = policy
        self._set_activity = set_activity

    async def drive(
        self,
        drafts: Sequence[Draft],
        journal: Journal,
        settings: RunSettings,
        signal: AbortSignal,
    ) -> RunOutcome:
        """Run, recover, run again; returns the last outcome."""
        attempts = 0
        while True:
            self._set_activity("running")
            outcome = await self._loop.run(drafts, journal, settings, signal)
            drafts = ()
            if outcome.answered and attempts:
                self._bus.emit(AutoRetryEnd(True, attempts))
                attempts = 0
            step = self._plan(outcome, attempts, settings)
            self._loop.end_run(outcome, will_retry=not isinstance(step, GiveUp))
            if isinstance(step, SendLess):
                self._send_less(step)
            elif isinstance(step, WaitAndRetry):
                attempts += 1
                if not await self._wait(step, attempts, outcome, journal, signal):
                    return outcome
            else:
                if attempts and outcome.error is not None:
                    self._bus.emit(AutoRetryEnd(False, attempts, outcome.error.message))
                return outcome

    def _plan(self, outcome: RunOutcome, attempts: int, settings: RunSettings) -> Step:
        error = outcome.error
        if error is None or outcome.aborted:
            return GiveUp()
        if error.kind == ErrorKind.BAD_REQUEST and error.limit_tokens:
            # The server named its own output limit: the next request keeps to it.
            self._limits.max_output_tokens[settings.model.full_name] = error.limit_tokens
        return plan_recovery(error, attempts, self.policy, self._limits)

    def _send_less(self, step: SendLess) -> None:
        if step.what == "thinking":
            self._limits.without_thinking = True
        else:
            self._limits.without_images = True
        self._bus.emit(Notice("warning", _SENT_LESS[step.what]))

    async def _wait(
        self,
        step: WaitAndRetry,
        attempt: int,
        outcome: RunOutcome,
        journal: Journal,
        signal: AbortSignal,
    ) -> bool:
        assert outcome.error is not None
        self._set_activity("retrying")
        self._bus.emit(
            AutoRetryStart(attempt, self.policy.max_retries, step.delay_ms, outcome.error.message)
        )
        try:
            await signal.guard(journal.clock.sleep(step.delay_ms / 1000))
        except Aborted:
            self._bus.emit(AutoRetryEnd(False, attempt, "the retry was cancelled"))
            return False
        return True
