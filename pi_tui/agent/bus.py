"""The event bus: one list of listeners, called in order on the event loop.

A listener that raises is a fault of the listener: it is handed to the event loop's exception
handler and never stops the run or the other listeners.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from pi_tui.core.events import Event

Listener: TypeAlias = Callable[[Event], None]


class EventBus:
    """Delivers events synchronously, in the order they are emitted."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; the returned function removes it."""
        self._listeners = (*self._listeners, listener)

        def unsubscribe() -> None:
            self._listeners = tuple(one for one in self._listeners if one is not listener)

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Tell every listener."""
        for listener in self._listeners:
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - a front end's fault must not end the run
                asyncio.get_running_loop().call_exception_handler(
                    {"message": f"an event listener failed on {event!r}", "exception": error}
                )
