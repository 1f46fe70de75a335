"""Makes the summary of a branch that is left: what it covers, asking for it, the entry to store.

Nothing here moves the leaf or writes. Like a compaction it is a summary with file lists the program
appends itself; unlike one it takes the newest messages that fit a budget, and stands for messages
that are no longer in the context. Tokens are estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UNSET, Struct, UnsetType

from pi_tui.agent.bus import EventBus
from pi_tui.agent.counting import LentEstimator, count_in_thread
from pi_tui.agent.hooks import HookSummary
from pi_tui.agent.signals import AbortSignal
from pi_tui.agent.summariser import Summariser, SummaryAsker, SummaryJob, SummaryTally
from pi_tui.core.compaction.branch import (
    BranchPreparation,
    collect_branch_entries,
    prepare_branch_entries,
)
from pi_tui.core.compaction.parts import LISTS_SHARE, fitting_lists_text
from pi_tui.core.compaction.prompts import BRANCH_PREAMBLE, without_file_lists
from pi_tui.core.entries import Entry
from pi_tui.core.errors import CompactionError, ModelError
from pi_tui.core.events import BranchSummaryProgress
from pi_tui.core.messages import JSON, BranchSummaryMessage, Usage
from pi_tui.core.navigation import is_said
from pi_tui.core.protocols import Clock, SessionStore, TokenEstimator
from pi_tui.core.tokens import compact_json, sent_tokens
from pi_tui.core.tree import SessionTree
from pi_tui.core.tree_answers import is_quiet

BRANCH_WAY_OUT = (
    "Nothing was changed and you are where you were. Try again, go there without a summary, or "
    "use another model or the setting compaction.model."
)


class LeftBranch(Struct, frozen=True):
    """What a move leaves behind: entries after the common ancestor, oldest first."""

    leaf_id: str | None
    ancestor_id: str | None
    entry_ids: tuple[str, ...]


class BranchMeasure(Struct, frozen=True):
    """A branch prepared as a whole, and how many of its oldest messages do not fit a summary.

    `seen_entries`: how many of its entries people see in the tree.
    """

    everything: BranchPreparation
    left_out_messages: int
    seen_entries: int


class SummaryWish(Struct, frozen=True):
    """The user's own instructions; with `replace` they stand in place of the product's."""

    instructions: str | None = None
    replace: bool = False


class MadeSummary(Struct, frozen=True):
    """What the entry will hold, but for its place. `text` is what the model will be given."""

    text: str
    usage: Usage | None
    details: JSON | UnsetType
    from_hook: bool = False


def left_branch(tree: SessionTree, target_id: str | None) -> LeftBranch:
    """Find what lies between the leaf and what it shares with the target; decodes nothing."""
    leaf_id = tree.leaf_id
    if target_id is None:
        ancestor, ids = None, tuple(tree.path_ids())
    else:
        collected = collect_branch_entries(tree, leaf_id, target_id)
        ancestor, ids = collected.common_ancestor_id, collected.entry_ids
    return LeftBranch(leaf_id, ancestor, ids)


def budget_tokens(window_tokens: int, reserve_tokens: int) -> int:
    """What a branch summary may be made from; half the window where the reserve takes all."""
    if reserve_tokens >= window_tokens:
        reserve_tokens = window_tokens // 2
    return max(1, window_tokens - reserve_tokens)


class BranchSummariser:
    """Summarises branches with the model in force when it is asked.

    `asker` raises ModelError when the model of the setting `compaction.model` cannot be used.
    """

    def __init__(
        self,
        *,
        bus: EventBus,
        summariser: Summariser,
        estimator: TokenEstimator,
        clock: Clock,
        asker: Callable[[], SummaryAsker],
        reserve_tokens: Callable[[], int],
    ) -> None:
        self._bus = bus
        self._summariser = summariser
        self._estimator = estimator
        self._clock = clock
        self._asker = asker
        self._reserve_tokens = reserve_tokens

    def asker(self) -> SummaryAsker:
        """Who would be asked now. Raises ModelError."""
        return self._asker()

    async def entries_of(self, branch: LeftBranch, store: SessionStore) -> tuple[Entry, ...]:
        """The entries of a branch, read in a thread. Raises StorageError."""
        return await count_in_thread(
            self._estimator, lambda lent: _loaded(branch.entry_ids, store, lent)
        )

    async def prepare(
        self, branch: LeftBranch, store: SessionStore, window_tokens: int
    ) -> BranchPreparation:
        """Choose what a summary is made from, newest first, in a thread. Raises StorageError."""
        budget = budget_tokens(window_tokens, self._reserve_tokens())

        def count(lent: LentEstimator) -> BranchPreparation:
            return prepare_branch_entries(_loaded(branch.entry_ids, store, lent), budget, lent)

        return await count_in_thread(self._estimator, count)

    async def measure(self, branch: LeftBranch, store: SessionStore) -> BranchMeasure:
        """Say how large a branch is, in a thread. Raises StorageError."""
        budget: int | None = None
        try:
            budget = budget_tokens(self._asker().model.context_window, self._reserve_tokens())
        except ModelError:
            pass  # a summary would fail and say why

        def count(lent: LentEstimator) -> BranchMeasure:
            entries = _loaded(branch.entry_ids, store, lent)
            everything = prepare_branch_entries(entries, 0, lent)
            seen = sum(is_said(entry.type) and not is_quiet(entry) for entry in entries)
            if budget is None or everything.total_tokens <= budget:
                return BranchMeasure(everything, 0, seen)
            fitting = prepare_branch_entries(entries, budget, lent)  # each message counted once
            left_out = len(everything.messages) - len(fitting.messages)
            return BranchMeasure(everything, left_out, seen)

        return await count_in_thread(self._estimator, count)

    async def summarise(
        self,
        prepared: BranchPreparation,
        wish: SummaryWish,
        asker: SummaryAsker,
        signal: AbortSignal,
        tally: SummaryTally,
    ) -> MadeSummary:
        """Make the summary. Raises CompactionError, or Aborted when the signal is set."""
        started_s = self._clock.monotonic_s()
        job = SummaryJob(
            kind="branch",
            messages=tuple(projected.message for projected in prepared.messages),
            focus=wish.instructions,
            replace=wish.replace,
        )
        try:
            summary = await self._summariser.summarise(job, asker, signal, self._progress, tally)
        except CompactionError as error:
            raise CompactionError(error.message, hint=BRANCH_WAY_OUT) from error
        lists = fitting_lists_text(prepared.files, asker.model.context_window // LISTS_SHARE)
        text = f"{BRANCH_PREAMBLE}\n\n{without_file_lists(summary.text)}{lists}"
        details: dict[str, JSON] = {
            "readFiles": list(prepared.files.read_files),
            "modifiedFiles": list(prepared.files.modified_files),
            "estimatedTokens": prepared.total_tokens,
            "estimatedTokensAfter": sent_tokens(BranchSummaryMessage(text, "", 0), self._estimator),
            "durationMs": round((self._clock.monotonic_s() - started_s) * 1000),
            "parts": tally.parts,
            "model": asker.model.full_name,
        }
        if tally.retries:
            details["retries"] = tally.retries
        return MadeSummary(text, tally.usage, details)

    def _progress(self, part: int, parts: int, received_tokens: int) -> None:
        self._bus.emit(BranchSummaryProgress(part, parts, received_tokens))


def _loaded(
    entry_ids: Sequence[str], store: SessionStore, lent: LentEstimator
) -> tuple[Entry, ...]:
    entries = []
    for entry_id in entry_ids:
        lent.check()
        entries.append(store.load(entry_id))
    return tuple(entries)


def summary_from_hook(made: HookSummary) -> MadeSummary:
    """Check a summary an extension made. Raises CompactionError when it is unsound."""
    refused = "An extension's branch summary was refused: "
    if not isinstance(made.summary, str) or not made.summary.strip():
        raise CompactionError(f"{refused}it has no text.", hint=BRANCH_WAY_OUT)
    if made.details is not UNSET:
        try:
            compact_json(made.details)
        except (TypeError, ValueError) as error:
            raise CompactionError(
                f"{refused}its details cannot be written as JSON.", hint=BRANCH_WAY_OUT
            ) from error
    return MadeSummary(made.summary, made.usage, made.details, from_hook=True)
