"""When automatic compaction is due, and when it must rest because it cannot help.

A decision object: it remembers what the last attempts brought and does nothing itself. Tokens are
those of the context as measured at the moment of asking.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_tui.core.tokens import should_compact

Decision: TypeAlias = Literal["no", "compact", "no-help", "rest"]

ATTEMPTS_BEFORE_REST = 2
GROWTH_SHARE = 512
"""Growth by less than this part of the window is noise of the estimate, not growth."""


class AutoCompaction:
    """Decides for one session.

    "no-help" and "rest" are each given once: the moment to tell the user that a compaction did not
    bring the context under the limit, and that automatic compaction now rests.
    """

    def __init__(self) -> None:
        self._tried_at_tokens: int | None = None
        self._judged = True
        self._in_row = 0
        self._resting = False

    @property
    def resting(self) -> bool:
        return self._resting

    def decide(
        self, context_tokens: int, window_tokens: int, *, reserve_tokens: int, enabled: bool
    ) -> Decision:
        """What to do now that the context has this size."""
        if not should_compact(
            context_tokens, window_tokens, reserve_tokens=reserve_tokens, enabled=enabled
        ):
            self.reset()
            return "no"
        if self._resting:
            return "no"
        tried_at = self._tried_at_tokens
        grown = tried_at is None or context_tokens > tried_at + window_tokens // GROWTH_SHARE
        if not self._judged:
            self._judged = True
            self._in_row += 1
            if self._in_row >= ATTEMPTS_BEFORE_REST:
                self._resting = True
                return "rest"
            if not grown:
                return "no-help"
        return "compact" if grown else "no"

    def tried(self, context_tokens: int, *, helped: bool = True) -> None:
        """Remember an attempt that was made at this size.

        `helped` False: it failed, which was told already, so the next one that cannot help is the
        first to be told of.
        """
        self._tried_at_tokens = context_tokens
        self._judged = not helped
        if not helped:
            self._in_row += 1
            self._resting = self._in_row >= ATTEMPTS_BEFORE_REST

    def reset(self) -> None:
        """Forget everything: the context fits, or model, settings or the user changed something."""
        self._tried_at_tokens = None
        self._judged = True
        self._in_row = 0
        self._resting = False

    def found_nothing(self, context_tokens: int) -> None:
        """Nothing could be summarised yet; that cost nothing, so it is tried when it has grown."""
        self._tried_at_tokens = context_tokens
        self._judged = True

    def rest(self, context_tokens: int) -> None:
        """Stop trying until the next prompt: the user cancelled."""
        self._tried_at_tokens = context_tokens
        self._judged = True
        self._resting = True

    def wake(self) -> None:
        """A new user prompt: no longer resting, but what did not help is still known."""
        self._resting = False
        self._in_row = 0
