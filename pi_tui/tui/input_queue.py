"""Hands input on in order, and waits where a key has started what may take the next key.

A command opens its panel a few turns of the event loop after Enter, and a closed panel goes away as
late. Keys of the same read belong to what is there then. The wait is bounded, so that a command
which opens nothing costs a moment at most. Times are seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from pi_tui.tui.terminal_input import InputItem

HOLD_S = 0.25
"""How long keys wait for a command that neither ends nor opens a panel."""
MOUNT_S = 2.0
"""The same for a panel that is being put on the screen."""
SETTLE_TURNS = 4
"""Turns of the event loop in which one task may start another, or be told of a result."""

Deliver = Callable[[InputItem], Sequence[InputItem]]
"""Takes an item; what it gives back comes next, in its place."""


class InputQueue:
    """One per app; all methods are called on the event loop."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._waiting: deque[InputItem] = deque()
        self._held = False
        self._handing_on = False
        self._until: asyncio.Future[object] | None = None
        self._next: asyncio.Handle | None = None
        self._deadline: asyncio.Handle | None = None

    def add(self, items: Iterable[InputItem]) -> None:
        """Take input that came after all other."""
        self._waiting.extend(items)
        self._hand_on()

    def hold(self, until: asyncio.Future[object] | None = None, at_most_s: float = HOLD_S) -> None:
        """Let no further item through until a future is done and its consequences are drawn.

        A later call takes the place of an earlier one.
        """
        self._forget_hold()
        self._held = True
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(at_most_s, self._release)
        self._until = until
        if until is None or until.done():
            self._settle(SETTLE_TURNS)
        else:
            until.add_done_callback(self._done)

    def _done(self, future: asyncio.Future[object]) -> None:
        if future is self._until:
            self._settle(SETTLE_TURNS)

    def _settle(self, turns: int) -> None:
        if turns:
            loop = asyncio.get_running_loop()
            self._next = loop.call_soon(self._settle, turns - 1)
        else:
            self._release()

    def _release(self) -> None:
        self._forget_hold()
        self._hand_on()

    def _forget_hold(self) -> None:
        self._held = False
        self._until = None
        for handle in (self._next, self._deadline):
            if handle is not None:
                handle.cancel()
        self._next = self._deadline = None

    def _hand_on(self) -> None:
        if self._handing_on:  # an item that adds items: they come in their turn
            return
        self._handing_on = True
        try:
            while self._waiting and not self._held:
                self._waiting.extendleft(reversed(self._deliver(self._waiting.popleft())))
        finally:
            self._handing_on = False
