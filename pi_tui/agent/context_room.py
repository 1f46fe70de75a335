"""How much room the context leaves, and what to say when it is not enough.

The context here is that of the next request: what is on the path, the system prompt and tools as
they will be sent, and the messages about to be sent. Tokens are a provider's count where one
covers the path, estimates elsewhere. Nothing is decided and nothing written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pi_tui.agent.context import ComingSystem, ContextBuilder
from pi_tui.agent.context_size import estimate_leaf_context
from pi_tui.agent.journal import Journal
from pi_tui.agent.queues import Draft
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import SystemMessage
from pi_tui.core.models import Model
from pi_tui.core.numbers import counted_tokens
from pi_tui.core.projection import Projected, project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import ContextEstimate, estimate_messages
from pi_tui.core.tree import SessionTree

LARGE_SHARE = 2
"""A message that surely takes less than this part of the window is not looked at more closely."""

_MOST_TOKENS_A_CHAR = 4
_MOST_TOKENS_AN_IMAGE = 5_000
"""More than anything costs by estimate."""


class ContextRoom:
    """Measures the context of one session."""

    def __init__(
        self, journal: Callable[[], Journal], context: ContextBuilder, estimator: TokenEstimator
    ) -> None:
        self._journal = journal
        self._context = context
        self._estimator = estimator
        self._known: tuple[SessionTree, str | None, int, ContextEstimate] | None = None

    def coming_system(self) -> ComingSystem:
        """What the next prompt adds to the stored system prompt and tools."""
        return self._context.coming_system(self._estimator)

    def estimate(self) -> ContextEstimate:
        """The context at the leaf, as it is stored; counted again when something was appended."""
        tree = self._journal().tree
        known = self._known
        if known is None or known[:3] != (tree, tree.leaf_id, len(tree)):
            found = estimate_leaf_context(tree, self._estimator)
            known = self._known = (tree, tree.leaf_id, len(tree), found)
        return known[3]

    def reply_tokens(self) -> int | None:
        """What the newest reply reported; None when the context has changed otherwise since."""
        estimate = self.estimate()
        return estimate.usage_tokens if estimate.usage_entry_id is not None else None

    def tokens(self, drafts: Sequence[Draft] = (), *, new_prompt: bool = False) -> int:
        """The next request with these drafts.

        `new_prompt`: it begins a run, which stores the system prompt as it is wanted now.
        """
        estimate = self.estimate()
        tokens = estimate.tokens + self.draft_tokens(drafts)
        if new_prompt:
            tokens += self.coming_system().beyond(reported=estimate.usage_entry_id is not None)
        return tokens

    def draft_tokens(self, drafts: Sequence[Draft]) -> int:
        now_ms = self._journal().clock.now_ms()
        return sum(self._estimator.message_tokens(draft.message(now_ms)) for draft in drafts)

    def sizes(self) -> tuple[int, int]:
        """Tokens of system prompt and tools, and of everything else in the context."""
        messages = project(self._journal().tree.context_path()).messages
        kept = [p for p in messages if not isinstance(p.message, SystemMessage)]
        return self._fixed_tokens(messages), estimate_messages(kept, self._estimator)

    def _fixed_tokens(self, messages: Sequence[Projected]) -> int:
        fixed = [p for p in messages if isinstance(p.message, SystemMessage)]
        return estimate_messages(fixed, self._estimator) + self.coming_system().tokens

    def refuse_too_large(self, draft: Draft, model: Model) -> None:
        """Raise UsageError for a message that fits into no request of the model.

        Everything else could be summarised away, but not the message, the system prompt and tools.
        """
        most = _MOST_TOKENS_A_CHAR * len(draft.text) + _MOST_TOKENS_AN_IMAGE * len(draft.images)
        if most <= model.context_window // LARGE_SHARE:
            return  # the context is not read for an ordinary message: a key waits for this
        fixed = self._fixed_tokens(project(self._journal().tree.context_path()).messages)
        if fixed + most <= model.context_window:
            return  # without counting, as nearly always
        tokens = self.draft_tokens((draft,))
        if fixed + tokens <= model.context_window:
            return
        raise UsageError(
            f"There is no room for this message: it takes about {counted_tokens(tokens)}, system "
            f"prompt and tools about {fixed:,}, and the window of {model.full_name} has "
            f"{counted_tokens(model.context_window)}. It was not sent, and nothing was changed.",
            hint="Shorten it or put long material into a file, use a larger model (/model), or "
            "fewer tools (--tools).",
        )

    # ------------------------------------------------------------ words

    def no_help(self, model: Model, reserve_tokens: int) -> str:
        """A compaction did not bring the context under the limit."""
        fixed, kept = self.sizes()
        limit = max(0, model.context_window - reserve_tokens)
        return (
            f"compaction did not bring the context under the limit of {counted_tokens(limit)}: "
            f"system prompt and tools take about {fixed:,}, kept messages about {kept:,}. A larger "
            "model, fewer tools (--tools) or a lower compaction.reserveTokens or "
            "compaction.keepRecentTokens helps."
        )

    def no_room(
        self, model: Model, reserve_tokens: int, why: str, drafts: Sequence[Draft] = ()
    ) -> str:
        """Nothing can be summarised that would help. `why` begins the sentence."""
        fixed, kept = self.sizes()
        coming = self.draft_tokens(drafts)
        of_them = f" and the message to be sent about {coming:,}" if drafts else ""
        return (
            f"{why}, and compaction cannot make room: of the {counted_tokens(model.context_window)}"
            f" of {model.full_name} the system prompt and tools take about {fixed:,}, the messages "
            f"about {kept:,}{of_them}, and {reserve_tokens:,} are reserved. Nothing is lost. Use a "
            "larger model, fewer tools (--tools), or go back to an earlier point with /tree."
        )

    def not_compacted(self, model: Model, why: str) -> str:
        """The compaction that would have made room failed, which was told by itself."""
        return (
            f"{why}: about {self.tokens():,} of the {counted_tokens(model.context_window)} of "
            f"{model.full_name}, and the compaction failed, so it was not sent. Nothing is lost. "
            "When /compact works again, a message such as `go on` makes the request; so does a "
            "larger model (/model)."
        )


_DEFAULT_RESERVE_TOKENS = CompactionSettings().reserve_tokens


def reserve_tokens_of(settings: CompactionSettings, model: Model) -> int:
    """The reserve; in a window that the default one would fill on its own, half the window.

    A reserve that somebody chose holds as it is, whatever the window.
    """
    reserve = settings.reserve_tokens
    if reserve == _DEFAULT_RESERVE_TOKENS and reserve >= model.context_window:
        return model.context_window // 2
    return reserve
