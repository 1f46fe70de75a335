"""When automatic compaction is due, and when it must rest because it cannot help.

A decision object: it remembers what the last attempts brought and does nothing itself. Tokens are
those of the context as measured at the moment of asking.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_tui.core.tokens import should_compact

Decision: TypeAlias = Literal["no", "compact", "no-help", "rest"]

ATTEMPTS_BEFORE_REST = 2


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
        if not self._judged:
            self._judged = True
            self._in_row += 1
            if self._in_row >= ATTEMPTS_BEFORE_REST:
                self._resting = True
                return "rest"
            if self._tried_at_tokens is not None and context_tokens <= self._tried_at_tokens:
                return "no-help"
        if self._tried_at_tokens is not None and context_tokens <= self._tried_at_tokens:
            return "no"
        return "compact"

    def tried(self, context_tokens: int) -> None:
        """Remember an attempt that was made at this size, whether it succeeded or not."""
        self._tried_at_tokens = context_tokens
        self._judged = False

    def reset(self) -> None:
        """Forget everything: the context fits, or model, settings or the user changed something."""
        self._tried_at_tokens = None
        self._judged = True
        self._in_row = 0
        self._resting = False

    def rest(self) -> None:
        """Stop trying until something changes: there was nothing to compact."""
        self._resting = True

    def wake(self) -> None:
        """A new user prompt: no longer resting, but what did not help is still known."""
        self._resting = False
        self._in_row = 0
