"""Goes from one session to another, and leaves the last one.

The order is fixed: nothing new begins, what runs is stopped, the next session is read and the
present one written and closed, both in threads, and only then, in one step, the next one is held
and everybody is told. Until that step every failure leaves the present session as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from pi_tui.agent.accounting import SessionNumbers
from pi_tui.agent.assembly import AgentWorld, SessionParts
from pi_tui.agent.bus import EventBus
from pi_tui.agent.journal import Journal
from pi_tui.agent.leaving import LeavingGate, save_and_close
from pi_tui.agent.queues import MessageQueues
from pi_tui.core.events import (
    ModelChanged,
    Notice,
    QueueUpdate,
    SessionInfoChanged,
    SessionReplaced,
    ThinkingLevelChanged,
)
from pi_tui.core.leaf import stored_leaf
from pi_tui.core.messages import ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.protocols import OpenedSession
from pi_tui.core.tree import SessionTree

ReplaceReason: TypeAlias = Literal["startup", "reload", "new", "resume", "fork"]


class HeldSession:
    """The session that is open now, and what it is worked on with."""

    def __init__(self, journal: Journal, model: Model, thinking_level: ThinkingLevel) -> None:
        self.journal = journal
        self.numbers = SessionNumbers(journal)
        self.model = model
        self.asked_level: ThinkingLevel = thinking_level

    @property
    def thinking_level(self) -> ThinkingLevel:
        """The level asked for; a model that does not reason runs with "off"."""
        return self.asked_level if self.model.reasoning else "off"


def open_journal(opened: OpenedSession, world: AgentWorld, bus: EventBus) -> Journal:
    """The journal of an opened session, at the leaf it was left at. Blocks for a large one."""
    leaf_id = stored_leaf(opened.heads, opened.store.load)
    tree = SessionTree(opened.heads, opened.store, leaf_id)
    return Journal(opened.store, tree, world.clock, world.ids, bus)


class Switching:
    """Stops, leaves, adopts and closes for one session object."""

    def __init__(
        self,
        *,
        world: AgentWorld,
        bus: EventBus,
        queues: MessageQueues,
        held: HeldSession,
        gate: LeavingGate,
        parts: SessionParts,
    ) -> None:
        self._world = world
        self._bus = bus
        self._queues = queues
        self._held = held
        self._gate = gate
        self._shell = parts.shell
        self._navigator = parts.navigator
        self._worker = parts.worker
        self._compaction = parts.compaction
        self._change: asyncio.Future[None] | None = None
        self._to_tell: list[Notice] = []

    @property
    def working(self) -> bool:
        """True while the agent works or a move in the tree is under way."""
        return self._worker.busy or self._navigator.busy

    async def wait_idle(self) -> None:
        """Wait until neither the agent nor a user command runs."""
        while self.working or self._shell.running:
            await self._shell.wait()
            await self._navigator.wait()
            await self._worker.wait()

    @asynccontextmanager
    async def leaving(self) -> AsyncIterator[None]:
        """Stop what runs, say what was queued, and let nothing begin until the block ends.

        Raises UsageError when another task is leaving the session already.
        """
        with self._gate.held():
            await self._stop()
            self._to_tell += [Notice("warning", line) for line in self._unsent()]
            try:
                yield
            finally:
                # Not before: a front end clears its screen when it gets another session.
                told, self._to_tell = self._to_tell, []
                for notice in told:
                    self._bus.emit(notice)

    async def new(self) -> None:
        """Leave this session and begin an empty one in the same directory."""
        async with self.leaving():
            await self.adopt(self._world.sessions.create(), "new")

    async def adopt(
        self,
        opened: OpenedSession,
        reason: ReplaceReason,
        *,
        model: Model | None = None,
        thinking_level: ThinkingLevel | None = None,
    ) -> None:
        """Hold another session from now on, with another model and level where they are given.

        Raises StorageError when it cannot be read; then the present one is still held. Once begun
        it is done whatever becomes of the caller: a session half left would be nobody's.
        """
        async with self.leaving():
            self._change = asyncio.ensure_future(
                self._carry_out(opened, reason, model, thinking_level)
            )
            try:
                await asyncio.shield(self._change)
            except asyncio.CancelledError:
                await asyncio.wait((self._change,))
                raise

    async def _carry_out(
        self,
        opened: OpenedSession,
        reason: ReplaceReason,
        model: Model | None,
        thinking_level: ThinkingLevel | None,
    ) -> None:
        held = self._held
        journal, numbers = await asyncio.to_thread(self._read, opened)
        rescue_directory = self._world.rescue_directory
        told = await asyncio.to_thread(save_and_close, held.journal.store, rescue_directory)
        self._to_tell += [Notice("error", line) for line in told]
        self._to_tell += [Notice("warning", line) for line in opened.notices]
        held.journal, held.numbers = journal, numbers
        held.model = model or held.model
        held.asked_level = thinking_level or held.asked_level
        self._compaction.forget()
        self._compaction.forget_records()
        self._bus.emit(SessionReplaced(reason))
        self._bus.emit(SessionInfoChanged(journal.tree.session_name))
        self._bus.emit(ModelChanged(held.model.provider, held.model.id))
        self._bus.emit(ThinkingLevelChanged(held.thinking_level))

    def _read(self, opened: OpenedSession) -> tuple[Journal, SessionNumbers]:
        journal = open_journal(opened, self._world, self._bus)
        return journal, SessionNumbers(journal)

    async def close(self) -> tuple[str, ...]:
        """Stop all work, keep what was done, give up the session's lock; nothing begins any more.

        Returns lines to tell on the normal screen: messages that were still waiting, commands that
        were ended, entries that could not be saved where they belong.
        """
        if self._change is not None:
            await asyncio.wait((self._change,))
        self._gate.hold_for_good()
        told = self._unsent()
        await self._stop()
        told += self._unsent()
        left = await asyncio.to_thread(self._shell.close)
        if left:
            told.append(f"ended in the background: {', '.join(left)}")
        store, rescue_directory = self._held.journal.store, self._world.rescue_directory
        told += await asyncio.to_thread(save_and_close, store, rescue_directory)
        if self._world.on_close is not None:
            await self._world.on_close()
        return tuple(told)

    async def _stop(self) -> None:
        """Stop until nothing runs: the end of one thing may have let another begin."""
        while self.working or self._shell.running:
            self._shell.cancel()
            self._navigator.stop()
            self._worker.stop_everything()
            await self._shell.wait()
            await self._navigator.wait()
            await self._worker.wait()

    def _unsent(self) -> list[str]:
        drafts = self._queues.take_all()
        if drafts:
            self._bus.emit(QueueUpdate((), ()))
        return [f"not sent, it was still waiting: {draft.described}" for draft in drafts]
