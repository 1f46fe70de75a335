"""The event bus: one list of listeners, called in order on the event loop.

A listener that raises is a fault of the listener: it is handed to the event loop's exception
handler and never stops the run or the other listeners. Faults are worded here for everybody who
tells of one, so that no key that stands in a fault reaches a screen or a file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeAlias

from pi_tui.core.events import Event
from pi_tui.core.redaction import Redactor

Listener: TypeAlias = Callable[[Event], None]


class EventBus:
    """Delivers events synchronously, in the order they are emitted.

    `secrets`: values that must not be told; read anew for each fault.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._secrets = secrets

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function removes it."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def fault_words(self, error: BaseException) -> str:
        """An internal error as people are told of it, without keys."""
        return f"internal error: {self.fault_details(error)}"

    def fault_details(self, error: BaseException) -> str:
        """The kind of an unexpected exception and its words, without keys."""
        redactor = Redactor(self._secrets, net="report", mark="<hidden>")
        return redactor.redact(f"{type(error).__name__}: {error}")

    def emit(self, event: Event) -> None:
        """Tell every listener."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - a front end's fault must not end the run
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"an event listener failed on {event!r}", "exception": error}
                )
