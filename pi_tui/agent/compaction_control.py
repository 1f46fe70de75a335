"""When compactions happen in a session: at the threshold, on request, after an overflow.

`Compactor` knows how; this knows when and for whom: the model and settings in force, what the last
automatic attempts brought, and that only one compaction runs at a time. Its own abort signal means
that Escape cancels the compaction and not the run around it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct

from pi_tui.agent.auto_compaction import AutoCompaction
from pi_tui.agent.bus import EventBus
from pi_tui.agent.compactor import CompactionOutcome, CompactionPreview, Compactor, CompactRequest
from pi_tui.agent.context_size import estimate_leaf_context
from pi_tui.agent.journal import Journal
from pi_tui.agent.queues import Draft
from pi_tui.agent.signals import AbortSignal
from pi_tui.agent.summariser import SummaryAsker
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.errors import CompactionError, PiTuiError
from pi_tui.core.events import Activity, Notice
from pi_tui.core.messages import SystemMessage
from pi_tui.core.models import Model
from pi_tui.core.projection import project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import sent_tokens


class CompactionWorld(Struct, frozen=True):
    """What a session tells its compactions; each is asked anew every time.

    `settings` raises SettingsError for wrong values; `asker` raises ModelError when the model of
    the setting `compaction.model` cannot be used.
    """

    journal: Callable[[], Journal]
    model: Callable[[], Model]
    settings: Callable[[Model], CompactionSettings]
    asker: Callable[[], SummaryAsker]
    activity: Callable[[], Activity]
    set_activity: Callable[[Activity], None]


class CompactionControl:
    """Starts compactions for one session."""

    def __init__(
        self,
        compactor: Compactor,
        world: CompactionWorld,
        estimator: TokenEstimator,
        bus: EventBus,
    ) -> None:
        self._compactor = compactor
        self._world = world
        self._estimator = estimator
        self._bus = bus
        self._auto = AutoCompaction()
        self._signal: AbortSignal | None = None
        self._waiting: tuple[CompactRequest, asyncio.Future[CompactionOutcome]] | None = None
        self._told_settings: str | None = None

    @property
    def running(self) -> bool:
        """True while a compaction is being made."""
        return self._signal is not None

    def cancel(self) -> bool:
        """Stop the compaction in progress; False when there is none."""
        if self._signal is None or self._signal.is_set:
            return False
        self._signal.set()
        return True

    def forget(self) -> None:
        """Another session, model or setting: what did not help before may help now."""
        self._auto.reset()

    def new_prompt(self) -> None:
        """The user sent a prompt: automatic compaction no longer rests."""
        self._auto.wake()

    # ------------------------------------------------------------ automatic

    async def check(self, coming: tuple[Draft, ...] = ()) -> None:
        """Compact when the context, with the drafts that are about to be sent, is too full."""
        if self._waiting is not None:
            await self._serve_waiting()
            return
        model = self._world.model()
        settings = self._settings(model)
        if settings is None:
            return
        tokens = self._context_tokens(coming)
        decision = self._auto.decide(
            tokens,
            model.context_window,
            reserve_tokens=settings.reserve_tokens,
            enabled=settings.enabled,
        )
        if decision == "compact":
            outcome = await self._run(CompactRequest("threshold"), settings)
            self._auto.tried(tokens)
            if outcome.kind in ("nothing", "already"):
                self._auto.rest()
                self._tell_no_room(model, settings)
        elif decision in ("no-help", "rest"):
            self._tell_no_help(model, settings, resting=decision == "rest")

    def _settings(self, model: Model) -> CompactionSettings | None:
        try:
            return self._world.settings(model)
        except PiTuiError as error:
            if error.message != self._told_settings:
                self._told_settings = error.message
                self._bus.emit(
                    Notice("error", f"automatic compaction is off until this is mended: {error}")
                )
            return None

    def _context_tokens(self, coming: tuple[Draft, ...]) -> int:
        journal = self._world.journal()
        now_ms = journal.clock.now_ms()
        return estimate_leaf_context(journal.tree, self._estimator).tokens + sum(
            self._estimator.message_tokens(draft.message(now_ms)) for draft in coming
        )

    # ------------------------------------------------------------ on request

    async def manual(self, request: CompactRequest) -> CompactionOutcome:
        """Compact now. Raises CompactionError when one is running, SettingsError, ModelError."""
        if self.running or self._waiting is not None:
            raise CompactionError("a compaction is already running; Escape cancels it")
        self._auto.reset()
        return await self._run(request, self._world.settings(self._world.model()))

    def at_safe_point(self, request: CompactRequest) -> asyncio.Future[CompactionOutcome]:
        """Compact when the running turn has its tool results, or at the end of the run."""
        if self.running or self._waiting is not None:
            raise CompactionError("a compaction is already running; Escape cancels it")
        self._auto.reset()
        future: asyncio.Future[CompactionOutcome] = asyncio.get_running_loop().create_future()
        self._waiting = (request, future)
        return future

    async def serve_waiting(self) -> None:
        """At the end of a run: do what was asked for and found no safe point before."""
        if self._waiting is not None:
            await self._serve_waiting()

    async def _serve_waiting(self) -> None:
        assert self._waiting is not None
        (request, future), self._waiting = self._waiting, None
        try:
            outcome = await self._run(request, self._world.settings(self._world.model()))
        except PiTuiError as error:
            outcome = CompactionOutcome("failed", message=error.message)
        if not future.done():
            future.set_result(outcome)

    async def preview(self, request: CompactRequest) -> CompactionPreview | CompactionOutcome:
        """What a compaction would do now."""
        settings = self._world.settings(self._world.model())
        return await self._compactor.preview(request, settings, self._world.journal())

    # ------------------------------------------------------------ after an overflow

    async def recover(self) -> CompactionOutcome:
        """Compact because a request was refused as too long or an answer was cut early."""
        model = self._world.model()
        settings = self._settings(model) or CompactionSettings()
        outcome = await self._run(CompactRequest("overflow", will_retry=True), settings)
        if outcome.kind in ("nothing", "already"):
            self._tell_no_room(model, settings)
        return outcome

    # ------------------------------------------------------------ inside

    async def _run(
        self, request: CompactRequest, settings: CompactionSettings
    ) -> CompactionOutcome:
        before = self._world.activity()
        self._signal = AbortSignal()
        self._world.set_activity("compacting")
        try:
            return await self._compactor.compact(
                request, settings, self._world.asker(), self._world.journal(), self._signal
            )
        finally:
            self._signal = None
            self._world.set_activity("running" if before != "idle" else "idle")

    def _sizes(self) -> tuple[int, int]:
        """Tokens of system prompt and tools, and of everything else in the context."""
        messages = project(self._world.journal().tree.context_path()).messages
        fixed = kept = 0
        for projected in messages:
            tokens = sent_tokens(projected.message, self._estimator)
            if isinstance(projected.message, SystemMessage):
                fixed += tokens
            else:
                kept += tokens
        return fixed, kept

    def _tell_no_help(self, model: Model, settings: CompactionSettings, *, resting: bool) -> None:
        fixed, kept = self._sizes()
        limit = max(0, model.context_window - settings.reserve_tokens)
        rest = (
            " Automatic compaction rests until the next prompt, another model or /compact."
            if resting
            else ""
        )
        self._bus.emit(
            Notice(
                "warning",
                f"compaction did not bring the context under the limit of {limit:,} tokens: system "
                f"prompt and tools take about {fixed:,}, kept messages about {kept:,}. A larger "
                "model, fewer tools (--tools) or a lower compaction.reserveTokens or "
                f"compaction.keepRecentTokens helps.{rest}",
            )
        )

    def _tell_no_room(self, model: Model, settings: CompactionSettings) -> None:
        fixed, kept = self._sizes()
        self._bus.emit(
            Notice(
                "error",
                "the context is nearly full and nothing can be compacted: of the "
                f"{model.context_window:,} tokens of {model.full_name} the system prompt and tools "
                f"take about {fixed:,}, the messages about {kept:,}, and "
                f"{settings.reserve_tokens:,} are reserved. Use a larger model, fewer tools, or go "
                "back to an earlier point with /tree.",
            )
        )
