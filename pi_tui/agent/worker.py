"""The one background task of a session: runs, their queues, and compactions asked for while idle.

At most one task works on a session. Whatever is submitted meanwhile waits in the queues and is
delivered by the same task when it is done, so nobody has to press a key for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from pi_tui.agent.bus import EventBus
from pi_tui.agent.compaction_control import CompactionControl
from pi_tui.agent.compaction_plan import CompactionOutcome, CompactRequest
from pi_tui.agent.context import ContextBuilder
from pi_tui.agent.journal import Journal
from pi_tui.agent.loop import RunOutcome, RunSettings
from pi_tui.agent.queues import Draft, MessageQueues
from pi_tui.agent.recovery import Recovery
from pi_tui.agent.signals import AbortSignal
from pi_tui.core.errors import PiTuiError
from pi_tui.core.events import Activity, AgentSettled, Notice, QueueUpdate
from pi_tui.core.projection import project


class SafePoints(Protocol):
    """What waits for a moment at which entries may be appended."""

    def store_waiting(self) -> None: ...


class Worker:
    """Does the work of one session, one thing at a time."""

    def __init__(
        self,
        *,
        bus: EventBus,
        queues: MessageQueues,
        recovery: Recovery,
        compaction: CompactionControl,
        context: ContextBuilder,
        shell: SafePoints,
        settings: RunSettings,
        journal: Callable[[], Journal],
        set_activity: Callable[[Activity], None],
    ) -> None:
        self._bus = bus
        self._queues = queues
        self._recovery = recovery
        self._compaction = compaction
        self._context = context
        self._shell = shell
        self._settings = settings
        self._journal = journal
        self._set_activity = set_activity
        self._signal = AbortSignal()
        self._task: asyncio.Task[Any] | None = None
        self._after_stop: list[Draft] = []
        self._stopped_by_user = False
        self._coming: tuple[tuple[Draft, ...], int] = ((), 0)

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def stopping(self) -> bool:
        """True while a run the user stopped is still putting its things in order."""
        return self.busy and self._signal.is_set and self._stopped_by_user

    def send_after_stop(self, draft: Draft) -> None:
        """Queue a draft that was written after the run was stopped: it starts the next run."""
        self._queues.add(draft, "steer")
        self._after_stop.append(draft)
        self._bus.emit(QueueUpdate(*self._queues.texts()))

    def start(self, drafts: Sequence[Draft]) -> asyncio.Task[RunOutcome | None]:
        """Start a run; the session must not be busy."""
        self._signal = AbortSignal()
        self._set_activity("running")
        return self._begin(self._work(tuple(drafts), self._signal))

    def start_compaction(self, request: CompactRequest) -> asyncio.Task[CompactionOutcome]:
        """Compact, then deliver what was queued meanwhile; the session must not be busy."""
        self._compaction.claim()
        self._signal = AbortSignal()
        self._set_activity("compacting")
        return self._begin(self._compact(request, self._signal))

    def stop(self) -> bool:
        """Stop the compaction in progress, else the run; False when nothing can be stopped."""
        if self._compaction.cancel():
            return True
        if not self.busy or self._signal.is_set:
            return False
        self._signal.set()
        self._stopped_by_user = True
        self._compaction.drop_waiting()
        return True

    def stop_everything(self) -> None:
        """Stop the run together with whatever it is doing."""
        while self._compaction.cancel():
            pass
        self._stopped_by_user = False
        self._after_stop.clear()
        self._signal.set()
        self._compaction.drop_waiting()

    async def wait(self) -> None:
        """Wait for the task in progress."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def _begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        self._task = asyncio.get_running_loop().create_task(work)
        self._task.add_done_callback(_take_notice)
        return self._task

    async def _work(self, drafts: tuple[Draft, ...], signal: AbortSignal) -> RunOutcome | None:
        outcome: RunOutcome | None = None
        try:
            outcome = await self._deliver(drafts, signal)
        except Exception as error:
            # An error of ours has words of its own, such as a session file that was damaged.
            words = error.text if isinstance(error, PiTuiError) else self._bus.fault_words(error)
            self._bus.emit(Notice("error", words))
            self._keep_unsent()
            raise
        finally:
            self._settle(aborted=outcome is None or outcome.aborted)
        return outcome

    async def _deliver(self, drafts: tuple[Draft, ...], signal: AbortSignal) -> RunOutcome | None:
        outcome: RunOutcome | None = None
        self._coming = (drafts, len(self._journal().tree))
        self._shell.store_waiting()
        while drafts:
            self._coming = (drafts, len(self._journal().tree))
            self._compaction.new_prompt()
            drafts = await self._make_room(drafts)
            if not drafts:  # taken back while the context was compacted
                break
            self._coming = (drafts, len(self._journal().tree))
            self._store_settings()
            self._context.store_system_message()
            settled = await self._recovery.drive(drafts, self._journal(), self._settings, signal)
            outcome = settled.outcome
            if not signal.is_set:
                await self._compaction.serve_waiting()
            if not settled.deliver or signal.is_set:
                break
            # Typed after the last poll of the run: nobody has to press a key for these.
            drafts = self.take_next()
        return outcome

    def _keep_unsent(self) -> None:
        """After a fault: what did not get into the session waits in the queue, to be taken back."""
        drafts, entries_before = self._coming
        self._coming = ((), 0)
        tree = self._journal().tree
        since = tuple(tree.ids())[entries_before:]
        stored = sum(tree.head(entry_id).role == "user" for entry_id in since)
        unsent = [d for d in drafts[stored:] if not self._queues.holds_any((d,))]
        if unsent:
            self._queues.hold(unsent)
            self._bus.emit(QueueUpdate(*self._queues.texts()))

    async def _make_room(self, drafts: tuple[Draft, ...]) -> tuple[Draft, ...]:
        """Compact where that is due before the drafts are sent; they wait in the queue for it.

        There they can be seen and taken back. Returns what is to be sent now.
        """
        held = False

        def hold() -> None:
            nonlocal held
            held = True
            self._queues.hold(drafts)
            self._bus.emit(QueueUpdate(*self._queues.texts()))

        await self._compaction.check(drafts, hold, new_prompt=True)
        if not held:
            return drafts
        left = self._queues.take_held(drafts)
        if not left:
            return self.take_next()
        self._bus.emit(QueueUpdate(*self._queues.texts()))
        return left

    async def _compact(self, request: CompactRequest, signal: AbortSignal) -> CompactionOutcome:
        delivered: RunOutcome | None = None
        try:
            outcome = await self._compaction.manual(request)
            if outcome.kind != "cancelled" and not signal.is_set and self._queues:
                self._set_activity("running")
                delivered = await self._deliver(self.take_next(), signal)
        finally:
            self._settle(aborted=delivered is not None and delivered.aborted)
        return outcome

    def take_next(self) -> tuple[Draft, ...]:
        """What is due when nothing runs: steering first, else a follow-up."""
        drafts = self._queues.take_steering() or self._queues.take_follow_up()
        if drafts:
            self._bus.emit(QueueUpdate(*self._queues.texts()))
        return drafts

    def _settle(self, *, aborted: bool) -> None:
        self._compaction.drop_waiting()
        self._set_activity("idle")
        self._shell.store_waiting()
        self._bus.emit(AgentSettled(aborted))
        written, self._after_stop = tuple(self._after_stop), []
        if self._queues.holds_any(written):  # those that nobody took back
            self.start(self.take_next())

    def _store_settings(self) -> None:
        """Record model and thinking level where the path does not say the same."""
        journal, model = self._journal(), self._settings.model
        projection = project(journal.tree.context_path())
        if projection.model != (model.provider, model.id):
            journal.model_change(model.provider, model.id)
        if projection.thinking_level != self._settings.thinking_level:
            journal.thinking_level_change(self._settings.thinking_level)


def _take_notice(task: asyncio.Task[Any]) -> None:
    """A fault was told already; asyncio need not report it when nobody waits for the task."""
    if not task.cancelled():
        task.exception()
