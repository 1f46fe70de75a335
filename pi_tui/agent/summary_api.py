"""Summaries for extensions: what a hook needs to make a compaction of its own.

A hook gets a `CompactionPreparation`, changes or replaces what is asked of the model, and answers
with the result of `compact`. These functions write nothing and know no session; they ask the model
of the caller's choice with the product's own requests, bounds and checks.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, to_builtins

from pi_tui.agent.bus import EventBus
from pi_tui.agent.preparation_summary import summarise_preparation
from pi_tui.agent.retry_policy import RetryPolicy
from pi_tui.agent.signals import AbortSignal
from pi_tui.agent.summariser import (
    Source,
    Summariser,
    Summary,
    SummaryAsker,
    SummaryJob,
    SummaryTally,
)
from pi_tui.agent.system_clock import SystemClock
from pi_tui.core.compaction.branch import (
    BranchEntries,
    BranchPreparation,
    collect_branch_entries,
)
from pi_tui.core.compaction.parts import LISTS_SHARE, fitting_lists_text
from pi_tui.core.compaction.prepare import CompactionPreparation
from pi_tui.core.compaction.prompts import without_file_lists
from pi_tui.core.messages import JSON, Message, ThinkingLevel, Usage
from pi_tui.core.models import Model
from pi_tui.core.protocols import Clock, ModelSource, TokenEstimator
from pi_tui.core.tokens import CharsEstimator, sent_tokens
from pi_tui.core.tree import SessionTree


class SummaryModel(Struct, frozen=True):
    """Who makes a summary. `models` is `AgentSession.models`."""

    models: ModelSource
    model: Model
    thinking_level: ThinkingLevel = "off"
    retry: RetryPolicy = RetryPolicy()
    clock: Clock = SystemClock()


def estimate_tokens(message: Message, estimator: TokenEstimator | None = None) -> int:
    """Estimate what a message costs in a context."""
    return sent_tokens(message, estimator or CharsEstimator(cjk=True))


async def generate_summary(
    messages: Sequence[Message],
    by: SummaryModel,
    *,
    custom_instructions: str | None = None,
    previous_summary: str | None = None,
    signal: AbortSignal | None = None,
) -> str:
    """Summarise messages. Raises CompactionError, or Aborted when the signal is set."""
    text, _ = await generate_summary_with_usage(
        messages,
        by,
        custom_instructions=custom_instructions,
        previous_summary=previous_summary,
        signal=signal,
    )
    return text


async def generate_summary_with_usage(
    messages: Sequence[Message],
    by: SummaryModel,
    *,
    custom_instructions: str | None = None,
    previous_summary: str | None = None,
    signal: AbortSignal | None = None,
) -> tuple[str, Usage]:
    """Like `generate_summary`; also gives the priced usage of all requests."""
    job = SummaryJob("compaction", tuple(messages), previous_summary, custom_instructions)
    summary = await _summarise(job, by, signal)
    return summary.text, summary.usage


async def compact(
    preparation: CompactionPreparation,
    by: SummaryModel,
    *,
    custom_instructions: str | None = None,
    signal: AbortSignal | None = None,
) -> dict[str, JSON]:
    """Make the compaction a preparation describes, as the product would.

    The result is what a `session_before_compact` hook answers under the key "compaction". Raises
    CompactionError, or Aborted when the signal is set.
    """
    tally = SummaryTally()
    summary = await summarise_preparation(
        _summariser(by),
        preparation,
        _asker(by, "compaction"),
        signal or AbortSignal(),
        window_tokens=by.model.context_window,
        tally=tally,
        focus=custom_instructions,
    )
    files = preparation.files
    return {
        "summary": summary.text,
        "first_kept_entry_id": preparation.first_kept_entry_id,
        "tokens_before": preparation.tokens_before,
        "usage": to_builtins(tally.usage),
        "details": {
            "readFiles": list(files.read_files),
            "modifiedFiles": list(files.modified_files),
        },
    }


def collect_entries_for_branch_summary(
    tree: SessionTree, old_leaf_id: str | None, target_id: str
) -> BranchEntries:
    """The entries left behind when the leaf moves, oldest first, and the common ancestor."""
    return collect_branch_entries(tree, old_leaf_id, target_id)


async def generate_branch_summary(
    preparation: BranchPreparation,
    by: SummaryModel,
    *,
    custom_instructions: str | None = None,
    replace_instructions: bool = False,
    signal: AbortSignal | None = None,
) -> dict[str, JSON]:
    """Summarise a branch from what `prepare_branch_entries` chose.

    The result is what a `session_before_tree` hook answers under the key "summary". Raises
    CompactionError, or Aborted when the signal is set.
    """
    messages = tuple(projected.message for projected in preparation.messages)
    job = SummaryJob("branch", messages, focus=custom_instructions, replace=replace_instructions)
    summary = await _summarise(job, by, signal)
    files = preparation.files
    return {
        "summary": without_file_lists(summary.text)
        + fitting_lists_text(files, by.model.context_window // LISTS_SHARE),
        "usage": to_builtins(summary.usage),
        "details": {
            "readFiles": list(files.read_files),
            "modifiedFiles": list(files.modified_files),
        },
    }


async def _summarise(job: SummaryJob, by: SummaryModel, signal: AbortSignal | None) -> Summary:
    source: Source = "branchSummary" if job.kind == "branch" else "compaction"
    return await _summariser(by).summarise(
        job, _asker(by, source), signal or AbortSignal(), _unseen
    )


def _summariser(by: SummaryModel) -> Summariser:
    return Summariser(by.models, EventBus(), by.clock, lambda: by.retry)


def _asker(by: SummaryModel, source: Source) -> SummaryAsker:
    return SummaryAsker(by.model, by.thinking_level, "", source)


def _unseen(part: int, parts: int, received_tokens: int) -> None:
    """Progress of an extension's own summary is not shown."""
