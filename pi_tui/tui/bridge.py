"""Carries events from the session to the screen, at most 30 times a second.

The session calls the listener synchronously for every token; here events are only collected. They
are folded in batches on the event loop: the first one at once, the rest at the pace of the screen.
A timer exists only while something waits to be drawn or something on the status line moves.
Times are seconds of the monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from pi_tui.agent.session import AgentSession
from pi_tui.core.events import (
    AgentSettled,
    AutoRetryEnd,
    CompactionEnd,
    EntryAppended,
    Event,
    LeafMoved,
    ModelChanged,
    Notice,
    QueueUpdate,
    SessionInfoChanged,
    SessionReplaced,
    ThinkingLevelChanged,
)
from pi_tui.core.tree import SessionTree
from pi_tui.tui.live_transcript import LiveTranscript
from pi_tui.tui.view_state import SPINNER_PERIOD_S, StatusState

FRAME_S = 1 / 30

_FOOTER_EVENTS = (
    EntryAppended,
    LeafMoved,
    ModelChanged,
    SessionInfoChanged,
    SessionReplaced,
    ThinkingLevelChanged,
)


class Rebuild(Struct, frozen=True):
    """The path as it was when the leaf moved; later entries follow as events."""

    tree: SessionTree
    path_ids: tuple[str, ...]


class BridgeView(Protocol):
    """What the bridge tells the app."""

    def status_changed(self) -> None: ...
    def footer_changed(self) -> None: ...
    def queue_changed(self, steering: tuple[str, ...], follow_up: tuple[str, ...]) -> None: ...
    def path_changed(self, rebuild: Rebuild) -> None: ...
    def settled(self) -> None: ...


class SessionBridge:
    """Listens to one session as long as the app runs."""

    def __init__(
        self,
        session: AgentSession,
        live: LiveTranscript,
        status: StatusState,
        view: BridgeView,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._session = session
        self._live = live
        self._status = status
        self._view = view
        self._clock = clock
        self._waiting: list[Event | Rebuild] = []
        self._flush: asyncio.Handle | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._flushed_s = 0.0
        self._folding = False
        self._unsubscribe: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._context = contextvars.copy_context()

    def start(self) -> None:
        """Subscribe; call it on the event loop, in the app's context."""
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._unsubscribe = self._session.subscribe(self._listen)
        self._keep_ticking()

    def stop(self) -> None:
        """Listen no longer; what was not drawn yet is dropped."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for handle in (self._flush, self._tick):
            if handle is not None:
                handle.cancel()
        self._flush = self._tick = None

    def catch_up(self) -> None:
        """Draw what waits, now.

        For whoever is about to write a line about something that has just happened: a path that
        is still to be put on the screen would wipe the line.
        """
        if self._flush is not None and not self._folding:
            self._flush.cancel()
            self._context.run(self._fold)

    def _listen(self, event: Event) -> None:
        if isinstance(event, LeafMoved | SessionReplaced):
            tree = self._session.tree
            self._waiting.append(Rebuild(tree, tuple(tree.path_ids())))
        self._waiting.append(event)
        if self._flush is not None or self._loop is None:
            return
        due_s = self._flushed_s + FRAME_S - self._clock()
        if due_s <= 0:
            self._flush = self._loop.call_soon(self._fold, context=self._context)
        else:
            self._flush = self._loop.call_later(due_s, self._fold, context=self._context)

    def _fold(self) -> None:
        self._flush = None
        self._folding = True
        try:
            self._fold_waiting()
        finally:
            self._folding = False

    def _fold_waiting(self) -> None:
        events, self._waiting = self._waiting, []
        now_s = self._flushed_s = self._clock()
        status = footer = False
        for event in events:
            if isinstance(event, Rebuild):
                self._view.path_changed(event)
                continue
            self._live.handle(event)
            status = self._status.handle(event, now_s) or status
            footer = footer or isinstance(event, _FOOTER_EVENTS)
            self._tell(event)
        self._live.flush()
        if status:
            self._view.status_changed()
            self._keep_ticking()
        if footer:
            self._view.footer_changed()

    def _tell(self, event: Event) -> None:
        """What becomes a line or a list of its own."""
        if isinstance(event, QueueUpdate):
            self._view.queue_changed(event.steering, event.follow_up)
        elif isinstance(event, AgentSettled):
            self._view.settled()
        elif isinstance(event, Notice):
            self._live.notice(event.level, event.text)
        elif isinstance(event, CompactionEnd):
            if event.aborted:
                self._live.notice("info", "compaction cancelled; nothing was changed", "compaction")
            elif event.error_message:
                self._live.notice("error", event.error_message)
        elif isinstance(event, AutoRetryEnd) and not event.success:
            if self._status.activity == "retrying":  # Escape while waiting
                self._live.notice("info", "the retry was cancelled", "retry")
            else:  # the error itself stands at the end of the answer
                tries = "retry" if event.attempt == 1 else "retries"
                self._live.notice("error", f"gave up after {event.attempt} {tries}")

    def _keep_ticking(self) -> None:
        if self._status.busy and self._tick is None and self._loop is not None:
            self._tick = self._loop.call_later(
                SPINNER_PERIOD_S, self._on_tick, context=self._context
            )

    def _on_tick(self) -> None:
        self._tick = None
        self._view.status_changed()
        self._keep_ticking()
