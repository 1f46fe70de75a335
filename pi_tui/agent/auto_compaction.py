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
        self._after_tokens = 0
        self._judged = True
        self._in_row = 0
        self._resting = False

    @property
    def resting(self) -> bool:
        return self._resting

    def decide(
        self,
        context_tokens: int,
        window_tokens: int,
        *,
        reserve_tokens: int,
        enabled: bool,
        reply_tokens: int | None = None,
    ) -> Decision:
        """What to do now that the context has this size.

        `reply_tokens`: what the newest reply reported, when it is newer than the last compaction.
        By that an attempt is judged; what came in after the reply does not count against it. Above
        the window itself nothing rests: the next request could only be refused.
        """
        if not should_compact(
            context_tokens, window_tokens, reserve_tokens=reserve_tokens, enabled=enabled
        ):
            self.reset()
            return "no"
        useless = self._judge(reply_tokens, window_tokens - reserve_tokens)
        tried_at = self._tried_at_tokens
        grown = tried_at is None or context_tokens > tried_at + window_tokens // GROWTH_SHARE
        if grown and context_tokens > window_tokens:
            return "compact"
        if self._resting:
            return "no"
        if useless:
            if self._in_row >= ATTEMPTS_BEFORE_REST:
                self._resting = True
                return "rest"
            if not grown:
                return "no-help"
        return "compact" if grown else "no"

    def _judge(self, reply_tokens: int | None, limit_tokens: int) -> bool:
        """Judge the last attempt, once; True when it did not bring the context under the limit."""
        if self._judged:
            return False
        self._judged = True
        if (self._after_tokens if reply_tokens is None else reply_tokens) > limit_tokens:
            self._in_row += 1
            return True
        self.reset()
        return False

    def tried(self, context_tokens: int, after_tokens: int) -> None:
        """Remember an attempt that was made at this size, and what it left by estimate."""
        self._tried_at_tokens = context_tokens
        self._after_tokens = after_tokens
        self._judged = False

    def failed(self, context_tokens: int) -> None:
        """An attempt failed, which was told; the next that cannot help is the first told of."""
        self._tried_at_tokens = context_tokens
        self._judged = True
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
