"""What follows a run that failed or was cut: wait, send less, compact, or give up in clear words.

`plan_recovery` decides from the outcome alone; `Recovery.drive` carries it out. Every retry is a
fresh run without new messages: the failed answer stays in the session and is left out of the
request. There is one compact-and-retry per user prompt, so nothing here can go round for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.agent.bus import EventBus
from pi_tui.agent.compaction_control import CompactionControl
from pi_tui.agent.context import RequestLimits
from pi_tui.agent.journal import Journal
from pi_tui.agent.loop import RunLoop, RunOutcome, RunSettings
from pi_tui.agent.queues import Draft
from pi_tui.agent.retry_policy import RetryPolicy, WaitAndRetry, plan_wait, too_long_a_wait
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import Activity, AutoRetryEnd, AutoRetryStart, Notice
from pi_tui.core.messages import AssistantMessage, UserMessage, images_in
from pi_tui.core.models import Model
from pi_tui.core.projection import convert_to_llm, project


class SendLess(Struct, frozen=True):
    """Retry at once without something the model's server does not accept; kept for the session."""

    what: Literal["thinking", "images"]


class CompactAndRetry(Struct, frozen=True):
    """Leave the last answer out of the context, compact, make the request again.

    `why` is for people: what was refused or cut, as the beginning of a sentence. The provider's own
    words stand at the end of the answer already.
    """

    why: str


class GiveUp(Struct, frozen=True):
    """`advice` is told when it is not empty."""

    advice: str = ""


class Settled(Struct, frozen=True):
    """The last outcome of a prompt. `deliver`: what is queued may follow though it is an error."""

    outcome: RunOutcome
    deliver: bool


Step: TypeAlias = WaitAndRetry | SendLess | CompactAndRetry | GiveUp

STILL_TOO_LONG = (
    "The conversation is still too long after a compaction, so nothing more is tried; nothing is "
    "lost. Reduce it (/tree back to an earlier point, /compact with a smaller --keep, fewer tools) "
    "or use a larger model."
)

TOO_LARGE_AS_TEXT = (
    "The request is larger than the server takes, and there are no images to leave out. Nothing is "
    "lost: /compact makes the conversation shorter, /tree goes back to an earlier point."
)


def plan_recovery(
    outcome: RunOutcome,
    attempts_made: int,
    policy: RetryPolicy,
    limits: RequestLimits,
    *,
    compacted: bool,
    may_compact: bool = True,
    has_images: bool = True,
) -> Step:
    """What to do about a run. `attempts_made`: retries since the last success.

    `compacted`: the one compact-and-retry of this prompt was used. `may_compact` False: the user
    turned automatic compaction off. `has_images`: the request carried some.
    """
    if outcome.aborted or outcome.not_sent:
        return GiveUp()
    error, model = outcome.error, outcome.model
    if error is None:
        if not cut_early(outcome.last_answer, model, limits):
            return GiveUp()
        if compacted:
            return GiveUp("the answer was cut again after a compaction; nothing more is tried.")
        return _compact_and_retry("The answer was cut before the model's own limit", may_compact)
    if error.kind == ErrorKind.OVERFLOW:
        if compacted:
            return GiveUp(STILL_TOO_LONG)
        return _compact_and_retry(
            f"The conversation is too long for {model.full_name}", may_compact
        )
    if error.kind == ErrorKind.BAD_SIGNATURE and model.full_name not in limits.without_thinking:
        return SendLess("thinking")
    too_large = error.kind == ErrorKind.PAYLOAD_TOO_LARGE
    if too_large and model.full_name not in limits.without_images:
        return SendLess("images") if has_images else GiveUp(TOO_LARGE_AS_TEXT)
    wait = plan_wait(error, attempts_made, policy)
    return wait or GiveUp(too_long_a_wait(error, attempts_made, policy))


def _compact_and_retry(why: str, may_compact: bool) -> Step:
    if may_compact:
        return CompactAndRetry(why)
    return GiveUp(f"{why}, and automatic compaction is off (compaction.enabled). {BY_HAND}")


BY_HAND = (
    "Nothing is lost and nothing was changed: /compact makes room, then a message such as `go on` "
    "makes the request again."
)


def _has_images(outcome: RunOutcome, journal: Journal) -> bool:
    """Whether the context holds images; looked for only where it matters."""
    if outcome.error is None or outcome.error.kind != ErrorKind.PAYLOAD_TOO_LARGE:
        return False
    sent = convert_to_llm(p.message for p in project(journal.tree.context_path()).messages)
    return any(images_in(m.content) for m in sent if not isinstance(m.content, str))


def cut_early(answer: AssistantMessage, model: Model, limits: RequestLimits) -> bool:
    """True for a final answer that stopped at "length" though the model could have gone on.

    That happens when the window is full. Without a reported count it cannot be told apart from an
    answer that reached the model's own output limit, and is left alone.
    """
    if answer.stop_reason != "length" or answer.tool_calls or answer.usage is None:
        return False
    output = answer.usage.output or 0
    limit = limits.max_output_tokens.get(model.full_name, model.max_tokens)
    return 0 < output < min(limit, model.max_tokens)


_SENT_LESS = {
    "thinking": "the provider refused a thinking signature; earlier thinking is no longer sent to "
    "{model} in this session",
    "images": "the request was too large; images are no longer sent to {model} in this session",
}


class Recovery:
    """Drives runs until one settles."""

    def __init__(
        self,
        *,
        bus: EventBus,
        loop: RunLoop,
        limits: Callable[[], RequestLimits],
        compaction: CompactionControl,
        policy: Callable[[], RetryPolicy],
        set_activity: Callable[[Activity], None],
    ) -> None:
        self._bus = bus
        self._loop = loop
        self._limits = limits
        self._compaction = compaction
        self._policy = policy
        self._set_activity = set_activity

    async def drive(
        self,
        drafts: Sequence[Draft],
        journal: Journal,
        settings: RunSettings,
        signal: AbortSignal,
    ) -> Settled:
        """Run, recover, run again; returns the last outcome."""
        attempts = 0
        compacted = False
        while True:
            self._set_activity("running")
            outcome = await self._loop.run(drafts, journal, settings, signal)
            if not drafts and any(isinstance(m, UserMessage) for m in outcome.messages):
                compacted = False  # a queued prompt was delivered, and this failure is of that one
            drafts = ()
            if outcome.answered and attempts:
                self._bus.emit(AutoRetryEnd(True, attempts))
                attempts = 0
            learnt = self._learn_limit(outcome.error, outcome.model)
            step = plan_recovery(
                outcome,
                attempts,
                self._policy(),
                self._limits(),
                compacted=compacted,
                may_compact=self._compaction.automatic,
                has_images=_has_images(outcome, journal),
            )
            self._loop.end_run(outcome, will_retry=not isinstance(step, GiveUp))
            if isinstance(step, SendLess):
                self._send_less(step, outcome.model)
            elif isinstance(step, CompactAndRetry):
                compacted = True
                if not await self._compact(step, outcome, journal, signal, learnt=learnt):
                    return Settled(outcome, deliver=not signal.is_set)
            elif isinstance(step, WaitAndRetry):
                attempts += 1
                if not await self._wait(step, attempts, outcome, journal, signal):
                    return Settled(outcome, deliver=False)
            else:
                self._give_up(step, attempts, outcome)
                return Settled(outcome, deliver=not outcome.aborted and outcome.error is None)

    def _learn_limit(self, error: ProviderError | None, model: Model) -> bool:
        """Keep to a limit the server named from now on; True when that is a window."""
        if error is None or not error.limit_tokens:
            return False
        limit = error.limit_tokens
        if error.kind == ErrorKind.BAD_REQUEST:
            self._limits().max_output_tokens[model.full_name] = limit
        if error.kind != ErrorKind.OVERFLOW or not self._compaction.believes_window(limit):
            return False
        self._limits().learn_window(model, limit)
        self._bus.emit(
            Notice(
                "warning",
                f"{model.full_name} takes {limit:,} tokens in a request, not the "
                f"{model.context_window:,} of its contextWindow; this session keeps to that. "
                "A contextWindow in models.json makes it last.",
            )
        )
        return True

    def _give_up(self, step: GiveUp, attempts: int, outcome: RunOutcome) -> None:
        if step.advice:
            self._bus.emit(Notice("error", step.advice))
        if attempts and outcome.error is not None:
            self._bus.emit(AutoRetryEnd(False, attempts, outcome.error.text))

    def _send_less(self, step: SendLess, model: Model) -> None:
        limits = self._limits()
        refused = limits.without_thinking if step.what == "thinking" else limits.without_images
        refused.add(model.full_name)
        told = _SENT_LESS[step.what].format(model=model.full_name)
        self._bus.emit(Notice("warning", told))

    async def _compact(
        self,
        step: CompactAndRetry,
        outcome: RunOutcome,
        journal: Journal,
        signal: AbortSignal,
        *,
        learnt: bool,
    ) -> bool:
        """Make room and say whether to try again.

        `learnt`: the window was not known before, so a smaller output limit may be all it needs.
        """
        if learnt and self._compaction.fits:
            self._bus.emit(Notice("info", f"{step.why}; trying once more with a shorter answer"))
            journal.omit(outcome.last_entry_id)
            return not signal.is_set
        self._bus.emit(Notice("info", f"{step.why}; compacting, then trying once more"))
        journal.omit(outcome.last_entry_id)
        return await self._compaction.recover(step.why) and not signal.is_set

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
            AutoRetryStart(
                attempt, self._policy().max_retries, step.delay_ms, outcome.error.message
            )
        )
        try:
            await signal.guard(journal.clock.sleep(step.delay_ms / 1000))
        except Aborted:
            self._bus.emit(AutoRetryEnd(False, attempt, "the retry was cancelled"))
            return False
        return True
