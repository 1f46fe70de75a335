"""Sends prompts to a session one after the other and says how that ended.

Knows of a session only what `PromptSession` names. Stops at the first prompt that fails, because
the later ones were written for a conversation in which it had not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import UNSET, Struct

from pi_tui.core.errors import PiTuiError
from pi_tui.core.events import (
    ActivityChanged,
    AgentSettled,
    AutoRetryStart,
    CompactionEnd,
    Event,
    MessageEnd,
    Notice,
    SummarizationRetryScheduled,
)
from pi_tui.core.messages import AssistantMessage, ImageContent
from pi_tui.core.protocols import SessionStore
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.output import Diagnostics
from pi_tui.headless.stop_signals import StopSignals

GRACE_S = 10.0
"""How long a run may take to end itself after it was asked to; killing a tool takes up to a few."""


class PromptSession(Protocol):
    """The part of `AgentSession` that is needed here."""

    @property
    def store(self) -> SessionStore: ...

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]: ...

    async def prompt(self, text: str, images: Sequence[ImageContent] = ()) -> object: ...

    def abort(self) -> bool: ...


class CommandRunner(Protocol):
    """Runs prompts that are slash commands; see `headless.commands`."""

    def knows(self, text: str) -> bool: ...

    async def run(self, text: str) -> bool: ...


class Ending(Struct, frozen=True):
    """How a run ended. `answer` is the last one of the model; `unsent` prompts were left over."""

    answer: AssistantMessage | None
    aborted: bool = False
    error: PiTuiError | None = None
    unsent: int = 0
    command_done: bool | None = None

    @property
    def complete(self) -> bool:
        """True when the last answer came to its own end, or the command did what it says."""
        if self.error is not None or self.aborted:
            return False
        if self.command_done is not None:
            return self.command_done
        return self.answer is not None and self.answer.stop_reason not in (
            "error",
            "aborted",
            "length",
        )


class HeadlessRun:
    """One run over some prompts. `stop()` ends it early and keeps what was done."""

    def __init__(
        self,
        session: PromptSession,
        on_event: Callable[[Event], None],
        signals: StopSignals,
        commands: CommandRunner | None = None,
    ) -> None:
        self._session = session
        self._commands = commands
        self._on_event = on_event
        self._signals = signals
        self._stopping = False
        self._stop = asyncio.Event()
        self._answer: AssistantMessage | None = None
        self._aborted = False
        self._command_done: bool | None = None

    def stop(self) -> None:
        """Ask the run to end."""
        self._stop.set()

    async def send(self, prompts: Sequence[Prompt]) -> Ending:
        """Send the prompts; returns when the session has settled."""
        ending = Ending(None)
        unsubscribe = self._session.subscribe(self._listen)
        try:
            for count, prompt in enumerate(prompts, start=1):
                self._answer, self._aborted, self._command_done = None, False, None
                error = None
                if self._stop.is_set() or self._signals.received is not None:
                    self._aborted = True
                else:
                    error = await self._send(prompt)
                left = len(prompts) - count
                ending = Ending(self._answer, self._aborted, error, left, self._command_done)
                if not ending.complete:
                    break
            return ending
        finally:
            unsubscribe()

    async def _send(self, prompt: Prompt) -> PiTuiError | None:
        work = asyncio.ensure_future(self._work(prompt))
        waits = [asyncio.ensure_future(e.wait()) for e in (self._stop, self._signals.first)]
        try:
            await asyncio.wait((work, *waits), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await self._end_early(work)
        finally:
            for wait in waits:
                wait.cancel()
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)
        if work.cancelled():
            self._aborted = True
            return None
        try:
            work.result()
        except PiTuiError as error:
            return error
        return None

    async def _work(self, prompt: Prompt) -> object:
        if self._commands is None or not self._commands.knows(prompt.text):
            return await self._session.prompt(prompt.text, prompt.images)
        self._command_done = False
        self._command_done = await self._commands.run(prompt.text)
        return None

    async def _end_early(self, work: asyncio.Future[object]) -> None:
        self._stopping = True
        self._session.abort()
        impatient = asyncio.ensure_future(self._signals.second.wait())
        try:
            await asyncio.wait(
                (work, impatient), timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            impatient.cancel()
        self._aborted = True

    def _listen(self, event: Event) -> None:
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage):
            self._answer = event.message
        elif isinstance(event, AgentSettled):
            self._aborted = self._aborted or event.aborted
        elif isinstance(event, ActivityChanged) and self._stopping and event.activity != "idle":
            # Ending one thing may have let the next begin: a compaction, a waiting retry.
            asyncio.get_running_loop().call_soon(self._session.abort)
        self._on_event(event)


def tell(event: Event, diagnostics: Diagnostics) -> None:
    """Write what people should hear of an event."""
    if isinstance(event, Notice):
        diagnostics.say(event.level, event.text)
    elif isinstance(event, AutoRetryStart | SummarizationRetryScheduled):
        diagnostics.say(
            "warning",
            f"{event.error_message} (attempt {event.attempt} of {event.max_attempts}"
            f" in {event.delay_ms / 1000:g} s)",
        )
    elif isinstance(event, CompactionEnd) and event.error_message:
        diagnostics.say("error", f"compaction failed: {event.error_message}")


def tell_ending(
    ending: Ending, signals: StopSignals, diagnostics: Diagnostics, store: SessionStore
) -> int:
    """Write why a run did not end well, if so, and give the exit code."""
    answer = ending.answer
    stop_reason = answer.stop_reason if answer is not None else None
    if ending.error is not None:
        diagnostics.say("error", ending.error.text)
    elif signals.received is not None:
        diagnostics.say("info", f"stopped; {_kept(store)}")
    elif answer is not None and stop_reason == "error":
        text = "" if answer.error_message is UNSET else answer.error_message
        diagnostics.say("error", text or "the model request failed")
    elif ending.aborted or stop_reason == "aborted":
        diagnostics.say("error", "the run was aborted")
    elif answer is None and ending.command_done is None:
        diagnostics.say("error", "the run ended without an answer")
    elif stop_reason == "length":
        diagnostics.say("error", "the answer was cut at the output limit of the model")
    if ending.unsent and not ending.complete:
        what = "message was" if ending.unsent == 1 else "messages were"
        diagnostics.say("info", f"{ending.unsent} further {what} not sent")
    if signals.exit_code is not None:
        return signals.exit_code
    return 0 if ending.complete else 1


def _kept(store: SessionStore) -> str:
    if store.path is None:
        return "this session has no file, so nothing of it is kept"
    if not Path(store.path).exists():
        return "nothing was done yet"
    return "the session keeps what was done"
