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
from pi_tui.agent.compaction_plan import (
    CompactionOutcome,
    CompactionPreview,
    CompactionTerms,
    CompactRequest,
    OutcomeKind,
)
from pi_tui.agent.compaction_record import CompactionRecord
from pi_tui.agent.compactor import CompactionSignals, Compactor
from pi_tui.agent.context_room import ContextRoom, reserve_tokens_of
from pi_tui.agent.journal import Journal
from pi_tui.agent.queues import Draft
from pi_tui.agent.summariser import SummaryAsker
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.errors import CompactionError, PiTuiError
from pi_tui.core.events import Activity, Notice
from pi_tui.core.models import Model


class CompactionWorld(Struct, frozen=True):
    """What a session tells its compactions; each is asked anew every time.

    `model` has the window its server was found to have. `settings` raises SettingsError for wrong
    values; `asker` raises ModelError when the model of the setting `compaction.model` cannot be
    used.
    """

    journal: Callable[[], Journal]
    model: Callable[[], Model]
    settings: Callable[[Model], CompactionSettings]
    asker: Callable[[], SummaryAsker]
    set_activity: Callable[[Activity], None]


ALREADY_RUNNING = "a compaction is already running; Escape cancels it"
ALREADY_WAITING = "a compaction already waits for the end of this turn"
TURN_STOPPED = "the turn was stopped, and with it the compaction that waited for its end"


class CompactionControl:
    """Starts compactions for one session."""

    def __init__(
        self,
        compactor: Compactor,
        world: CompactionWorld,
        room: ContextRoom,
        bus: EventBus,
    ) -> None:
        self._compactor = compactor
        self._world = world
        self._room = room
        self._bus = bus
        self._auto = AutoCompaction()
        self._signals: CompactionSignals | None = None
        self._waiting: tuple[CompactRequest, asyncio.Future[CompactionOutcome]] | None = None
        self._told_settings: str | None = None
        self._told_no_room = False
        self._tried: tuple[str | None, OutcomeKind] | None = None
        self._seen: tuple[str, CompactionSettings] | None = None

    @property
    def running(self) -> bool:
        """True while a compaction is being made, from the moment it was asked for."""
        return self._signals is not None

    def refuse_second(self) -> None:
        """Raise CompactionError when one runs or waits already."""
        if self.running:
            raise CompactionError(ALREADY_RUNNING)
        if self._waiting is not None:
            raise CompactionError(ALREADY_WAITING)

    def cancel(self) -> bool:
        """Stop the compaction in progress; False when there is none or it is ending already."""
        if self._signals is None:
            return False
        if not self._signals.work.is_set:
            self._signals.work.set()
            return True
        if not self._signals.telling.is_set:
            # Extensions that are told of the end must not hold everything up.
            self._signals.telling.set()
            return True
        return False

    def forget(self) -> None:
        """Another session, model or setting: what did not help before may help now."""
        self._auto.reset()
        self._seen = None
        self._tried = None

    def new_prompt(self) -> None:
        """The user sent a prompt: automatic compaction no longer rests."""
        self._auto.wake()
        self._told_no_room = False

    @property
    def unstored_records(self) -> tuple[CompactionRecord, ...]:
        """The compactions of this run of which no entry tells."""
        return tuple(self._compactor.unstored)

    def forget_records(self) -> None:
        """Another session: what was not stored belongs to the one before."""
        self._compactor.unstored.clear()

    # ------------------------------------------------------------ automatic

    @property
    def automatic(self) -> bool:
        """False when the setting `compaction.enabled` turns off what nobody asked for."""
        try:
            return self._world.settings(self._world.model()).enabled
        except PiTuiError:
            return True  # a compaction that begins tells what is wrong

    async def check(
        self,
        coming: tuple[Draft, ...] = (),
        hold: Callable[[], None] | None = None,
        *,
        new_prompt: bool = False,
    ) -> None:
        """Compact when the context, with the drafts that are about to be sent, is too full.

        `hold` is called before a compaction begins, so that those drafts can be shown to wait.
        `new_prompt`: they begin a run, and the system prompt may change with it.
        """
        if self._waiting is not None:
            if hold is not None:
                hold()
            await self._serve_waiting()
            return
        model = self._world.model()
        settings = self._settings(model)
        if settings is None:
            return
        tokens = self._room.tokens(coming, new_prompt=new_prompt)
        decision = self._auto.decide(
            tokens,
            model.context_window,
            reserve_tokens=reserve_tokens_of(settings, model),
            enabled=settings.enabled,
            reply_tokens=self._room.reply_tokens(),
        )
        if decision == "compact":
            if hold is not None:
                hold()
            await self._try(tokens, model, settings, coming)
        elif decision in ("no-help", "rest"):
            text = self._room.no_help(model, reserve_tokens_of(settings, model))
            self._bus.emit(Notice("warning", text + (RESTS if decision == "rest" else "")))

    async def refuse_hopeless(self) -> str:
        """Before each request: what to say when it is above the window and nothing helps, else "".

        Where something came in since the last compaction, another is tried first. Whoever cancels
        it wants the request to be made.
        """
        model = self._world.model()
        settings = self._settings(model)
        if settings is None or not settings.enabled:
            return ""
        tokens = self._room.tokens()
        if tokens <= model.context_window:
            return ""
        tried = self._tried
        if tried is None or tried[0] != self._world.journal().tree.leaf_id:
            await self._try(tokens, model, settings)
            tried = self._tried
        kind = tried[1] if tried is not None else "nothing"
        if kind == "cancelled" or self._room.tokens() <= model.context_window:
            return ""
        why = "The next request would be longer than the window"
        if kind == "failed":
            return self._room.not_compacted(model, why)
        return self._room.no_room(model, reserve_tokens_of(settings, model), why)

    async def _try(
        self,
        tokens: int,
        model: Model,
        settings: CompactionSettings,
        coming: tuple[Draft, ...] = (),
    ) -> None:
        outcome = await self._run(CompactRequest("threshold"))
        if self._world.model() == model:
            self._learn(outcome, tokens, model, settings, coming)
        self._tried = self._world.journal().tree.leaf_id, outcome.kind

    def _settings(self, model: Model) -> CompactionSettings | None:
        """The settings of the model; what was learnt under others is forgotten."""
        try:
            settings = self._world.settings(model)
        except PiTuiError as error:
            if error.message != self._told_settings:
                self._told_settings = error.message
                text = f"automatic compaction is off until this is mended: {error.text}"
                self._bus.emit(Notice("error", text))
            return None
        self._told_settings = None
        seen = (model.full_name, settings)
        if self._seen is not None and self._seen != seen:
            self._auto.reset()
        self._seen = seen
        return settings

    def _learn(
        self,
        outcome: CompactionOutcome,
        tokens: int,
        model: Model,
        settings: CompactionSettings,
        coming: tuple[Draft, ...],
    ) -> None:
        if outcome.kind == "done":
            self._auto.tried(tokens, _tokens_after(outcome))
        elif outcome.kind == "failed":
            self._auto.failed(tokens)
            if self._auto.resting:
                self._bus.emit(Notice("warning", f"compaction failed again.{RESTS}"))
        elif outcome.kind == "cancelled":
            self._auto.rest(tokens)
        else:
            self._auto.found_nothing(tokens)
            if (
                not self._told_no_room
                and model.context_window // 2 < tokens <= model.context_window
            ):
                self._told_no_room = True
                self._tell_no_room(model, settings, "The context is nearly full", coming)

    # ------------------------------------------------------------ on request

    def claim(self) -> None:
        """Begin a compaction on request: from now on Escape cancels it and a second is refused.

        Raises CompactionError when one runs or waits. `manual` must follow.
        """
        self.refuse_second()
        self._signals = CompactionSignals()

    async def manual(self, request: CompactRequest) -> CompactionOutcome:
        """Carry out the compaction that was claimed."""
        assert self._signals is not None
        self._auto.reset()
        return await self._carry_out(request, self._signals)

    def at_safe_point(self, request: CompactRequest) -> asyncio.Future[CompactionOutcome]:
        """Compact when the running turn has its tool results, or at the end of the run.

        Raises CompactionError when one runs or waits already.
        """
        self.refuse_second()
        self._auto.reset()
        future: asyncio.Future[CompactionOutcome] = asyncio.get_running_loop().create_future()
        self._waiting = (request, future)
        self._bus.emit(Notice("info", "the context is compacted when this turn has its results"))
        return future

    async def serve_waiting(self) -> None:
        """At the end of a run: do what was asked for and found no safe point before."""
        if self._waiting is not None:
            await self._serve_waiting()

    def drop_waiting(self) -> None:
        """The run is over or stopped: what still waits for a safe point of it is not done."""
        if self._waiting is None:
            return
        (_, future), self._waiting = self._waiting, None
        if not future.done():
            self._bus.emit(Notice("info", TURN_STOPPED))
            future.set_result(CompactionOutcome("cancelled", message=TURN_STOPPED))

    async def _serve_waiting(self) -> None:
        assert self._waiting is not None
        (request, future), self._waiting = self._waiting, None
        outcome = CompactionOutcome("failed", message="the compaction was interrupted")
        try:
            outcome = await self._run(request)
        finally:
            if not future.done():
                future.set_result(outcome)

    async def preview(self, request: CompactRequest) -> CompactionPreview | CompactionOutcome:
        """What a compaction would do now. Raises SettingsError and CompactionError."""
        model = self._world.model()
        return await self._compactor.preview(request, self._terms(model), self._world.journal())

    def _terms(self, model: Model) -> CompactionTerms:
        """What holds for a compaction that begins now. Raises SettingsError."""
        settings = self._world.settings(model)
        return CompactionTerms(
            settings,
            model.context_window,
            reserve_tokens_of(settings, model),
            self._room.coming_system(),
        )

    # ------------------------------------------------------------ after an overflow

    def believes_window(self, window_tokens: int) -> bool:
        """Whether a window a refusal named is news, and nothing speaks against it."""
        window = self._world.model().context_window
        reply = self._room.reply_tokens() or 0
        return max(_LEAST_WINDOW_TOKENS, reply) <= window_tokens < window

    @property
    def fits(self) -> bool:
        """Whether the context is under the limit from which a compaction is due."""
        model = self._world.model()
        settings = self._settings(model) or CompactionSettings()
        limit = model.context_window - reserve_tokens_of(settings, model)
        return self._room.tokens() <= limit

    async def recover(self, why: str) -> bool:
        """Compact because a request was refused as too long or an answer was cut early.

        `why`: what happened, for people, as the beginning of a sentence. False when the request
        should not be made again; why not was told then, unless the user cancelled.
        """
        model = self._world.model()
        settings = self._settings(model) or CompactionSettings()
        tokens = self._room.tokens()
        outcome = await self._run(CompactRequest("overflow", will_retry=True, why=why))
        if outcome.kind in ("nothing", "already"):
            self._tell_no_room(model, settings, why)
        if outcome.kind != "done":
            return False
        self._auto.tried(tokens, _tokens_after(outcome))
        if _tokens_after(outcome) > model.context_window:
            self._tell_no_room(model, settings, why)
            return False
        return True

    # ------------------------------------------------------------ inside

    async def _run(self, request: CompactRequest) -> CompactionOutcome:
        """A compaction in the middle of a run, which goes on afterwards."""
        self._signals = CompactionSignals()
        self._world.set_activity("compacting")
        try:
            return await self._carry_out(request, self._signals)
        finally:
            self._world.set_activity("running")

    async def _carry_out(
        self, request: CompactRequest, signals: CompactionSignals
    ) -> CompactionOutcome:
        journal = self._world.journal()
        try:
            model = self._world.model()
            try:
                terms = self._terms(model)
                asker = self._world.asker()
            except PiTuiError as error:
                return await self._compactor.refuse(request, error, journal)
            return await self._compactor.compact(request, terms, asker, journal, signals)
        finally:
            self._signals = None

    def _tell_no_room(
        self, model: Model, settings: CompactionSettings, why: str, coming: tuple[Draft, ...] = ()
    ) -> None:
        reserve = reserve_tokens_of(settings, model)
        self._bus.emit(Notice("error", self._room.no_room(model, reserve, why, coming)))


def _tokens_after(outcome: CompactionOutcome) -> int:
    return outcome.result.estimated_tokens_after if outcome.result is not None else 0


_LEAST_WINDOW_TOKENS = 1024
"""No model of today has less; a smaller number in a refusal means something else."""

RESTS = " Automatic compaction rests until the next prompt, another model or /compact."
