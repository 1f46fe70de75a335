"""Counts of tokens in a thread, which end when nobody waits for them any more.

A thread cannot be cancelled, and the program cannot end before its threads do. So the estimator
that is lent to a thread refuses to go on once the wait for it was given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pi_tui.core.messages import Message
from pi_tui.core.protocols import TokenEstimator

T = TypeVar("T")


class CountGivenUp(Exception):
    """Raised in the thread only; nobody sees it."""


class LentEstimator:
    """An estimator for one piece of work: it can be stopped, and counts each message once."""

    def __init__(self, estimator: TokenEstimator) -> None:
        self._estimator = estimator
        self._counted: dict[int, tuple[Message, int]] = {}
        self._given_up = False

    def give_up(self) -> None:
        """End the work in the thread at its next message."""
        self._given_up = True

    def check(self) -> None:
        """Raise CountGivenUp when nobody waits any more."""
        if self._given_up:
            raise CountGivenUp

    def message_tokens(self, message: Message) -> int:
        self.check()
        known = self._counted.get(id(message))
        if known is None:
            # The message is kept with its count, so that its identity is not given to another.
            known = self._counted[id(message)] = (
                message,
                self._estimator.message_tokens(message),
            )
        return known[1]


async def count_in_thread(estimator: TokenEstimator, count: Callable[[LentEstimator], T]) -> T:
    """Run a count in a thread; cancelling the caller ends it there too, a moment later."""
    lent = LentEstimator(estimator)
    try:
        return await asyncio.to_thread(count, lent)
    except asyncio.CancelledError:
        lent.give_up()
        raise
