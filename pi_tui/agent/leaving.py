"""Leaving a session: let nothing new begin, write what waits, say so, let go of the lock.

From the moment a session is left until another one is held, what would begin in it is refused with
one line: it would be lost, or would hold up the next session. `save_and_close` blocks; callers on
the event loop use a thread. `rescue` is for an end that waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from pi_tui.agent.journal import Journal
from pi_tui.core.errors import StorageError, UsageError
from pi_tui.core.protocols import SessionStore

BEING_LEFT = "this session is being left; nothing was sent and nothing was changed"
BEING_LEFT_HINT = "Try again in the session that is opened."


class LeavingGate:
    """Knows whether the session that is held now is being left.

    It is held for a journal, so it is open again as soon as another one is there.
    """

    def __init__(self, journal: Callable[[], Journal]) -> None:
        self._journal = journal
        self._holds: list[_Hold] = []

    @property
    def closed(self) -> bool:
        """True while nothing new may begin."""
        return self._hold_of_now() is not None

    def refuse(self) -> None:
        """Raise UsageError while nothing new may begin."""
        if self.closed:
            raise UsageError(BEING_LEFT, hint=BEING_LEFT_HINT)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep the gate closed. A task may do so again within; another one gets a UsageError."""
        task = asyncio.current_task()
        present = self._hold_of_now()
        if present is not None and present.task is not task:
            raise UsageError("this session is being left already; wait for that")
        hold = _Hold(self._journal(), task)
        self._holds.append(hold)
        try:
            yield
        finally:
            self._holds.remove(hold)

    def hold_for_good(self) -> None:
        """Close the gate: the program ends."""
        self._holds.append(_Hold(self._journal(), None))

    def _hold_of_now(self) -> _Hold | None:
        journal = self._journal()
        return next((hold for hold in self._holds if hold.journal is journal), None)


class _Hold:
    def __init__(self, journal: Journal, task: asyncio.Task[object] | None) -> None:
        self.journal = journal
        self.task = task


def save_and_close(store: SessionStore, rescue_directory: str) -> list[str]:
    """Save and close a store; returns what the user must know, nothing when all is well."""
    told: list[str] = []
    if store.pending:
        told += _save_waiting(store, rescue_directory)
    try:
        store.sync()
    except StorageError as error:
        told.append(f"the session file could not be put on the device: {error.text}")
    except OSError as error:
        told.append(f"the session file could not be put on the device: {error}")
    try:
        store.close()
    except StorageError as error:
        told.append(_lost(error, store.pending))
    return told


def _kind_of_fault(error: BaseException) -> str:
    return f"internal error: {type(error).__name__}"


def rescue(
    store: SessionStore,
    rescue_directory: str,
    limit_s: float,
    fault_words: Callable[[BaseException], str] = _kind_of_fault,
) -> list[str]:
    """Save what waits though the program ends at once; returns what the user must know.

    Blocks for `limit_s` at most, whatever the disk does, and may be called in a signal handler: the
    work is done in a thread, because the interrupted code may be using the store. `fault_words`
    says what went wrong without keys.
    """
    told: list[str] = []
    if store.pending:
        waiting = store.pending

        def save() -> None:
            try:
                told.extend(_save_waiting(store, rescue_directory))
            except Exception as error:  # noqa: BLE001 - nobody else is left to tell of it
                told.append(f"LOST: {fault_words(error)}")

        thread = Thread(target=save, name="rescue", daemon=True)
        thread.start()
        thread.join(limit_s)
        if thread.is_alive():
            return [f"LOST: {_entries(waiting)} could not be saved in the time that was left"]
    if not told and _is_below(store.path, rescue_directory):
        # The orderly end came so far, but can no longer tell.
        return [f"The whole session was saved to {store.path}."]
    return told


def _is_below(path: str | None, directory: str) -> bool:
    return bool(path and directory) and Path(path or "").is_relative_to(Path(directory).resolve())


def _save_waiting(store: SessionStore, rescue_directory: str) -> list[str]:
    try:
        store.flush()
        return []
    except StorageError as error:
        refused = error
    if not rescue_directory:
        return [refused.text]
    try:
        missing = store.relocate(rescue_directory)
    except StorageError as error:
        return [refused.text, error.text]
    why = refused.reason or refused.message.rstrip(".")
    return [
        f"The session could not be written to its file: {why}. The whole session was saved to "
        f"{store.path} instead; --session with that path opens it.",
        *missing,
    ]


def _lost(error: StorageError, waiting: int) -> str:
    """The words for entries that end with the program, so without what could still be done."""
    if not error.reason:
        return f"LOST: {error.text}"
    return f"LOST: {_entries(waiting)} could not be written anywhere: {error.reason}"


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"
