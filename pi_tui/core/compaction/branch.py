"""What a branch summary covers: the entries of the branch that is left, within a token budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET, Struct

from pi_tui.core.compaction.files import FileLists, FileOps
from pi_tui.core.entries import BranchSummaryEntry, CompactionEntry, ContextEditEntry, Entry
from pi_tui.core.messages import JSON, Message, SystemMessage, ToolResultMessage
from pi_tui.core.projection import Projected, messages_of, summary_of, with_replacement
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import sent_tokens
from pi_tui.core.tree import SessionTree

SUMMARY_FILL = 0.9
"""A summary that does not fit is still taken while less than this part of the budget is used."""


class BranchEntries(Struct, frozen=True):
    """`entry_ids`: what lies after the common ancestor on the way to the old leaf, oldest first."""

    common_ancestor_id: str | None
    entry_ids: tuple[str, ...]


class BranchPreparation(Struct, frozen=True):
    """The messages to summarise, oldest first, their estimated tokens, and the files touched."""

    messages: tuple[Projected, ...]
    total_tokens: int
    files: FileLists


def collect_branch_entries(
    tree: SessionTree, old_leaf_id: str | None, target_id: str
) -> BranchEntries:
    """Find the entries that are left behind when the leaf moves from `old_leaf_id`."""
    if old_leaf_id is None:
        return BranchEntries(None, ())
    ancestor = tree.common_ancestor(old_leaf_id, target_id)
    path = tree.path_ids(old_leaf_id)
    start = 0 if ancestor is None else path.index(ancestor) + 1
    return BranchEntries(ancestor, tuple(path[start:]))


def prepare_branch_entries(
    entries: Sequence[Entry], token_budget: int, estimator: TokenEstimator
) -> BranchPreparation:
    """Choose what fits, newest first; a budget of 0 means no limit.

    Tool results are not repeated and system messages never; edits count only when they stand among
    the entries themselves. Files of branch summaries count whether the summary fits or not.
    """
    ops = FileOps()
    for entry in entries:
        if isinstance(entry, BranchSummaryEntry) and not entry.from_hook:
            ops.add_details(None if entry.details is UNSET else entry.details)
    taken: list[Projected] = []
    total = 0
    for entry, message in reversed(list(_given(entries))):
        tokens = sent_tokens(message, estimator)
        fits = token_budget <= 0 or total + tokens <= token_budget
        if not fits and not _is_worth_exceeding(entry, total, token_budget):
            break
        taken.append(Projected(entry.id, message))
        total += tokens
        ops.add_message(message, nested=False)
        if not fits:
            break
    taken.reverse()
    return BranchPreparation(tuple(taken), total, ops.lists())


def _given(entries: Sequence[Entry]) -> Iterable[tuple[Entry, Message]]:
    edits: dict[str, JSON] = {
        entry.target_id: entry.replacement
        for entry in entries
        if isinstance(entry, ContextEditEntry)
    }
    for entry in entries:
        if entry.id in edits and edits[entry.id] is None:
            continue
        for message in _messages(entry):
            if entry.id in edits:
                message = with_replacement(message, edits[entry.id])
            yield entry, message


def _messages(entry: Entry) -> tuple[Message, ...]:
    if isinstance(entry, CompactionEntry | BranchSummaryEntry):
        return (summary_of(entry),)
    return tuple(
        message
        for message in messages_of(entry)
        if not isinstance(message, SystemMessage | ToolResultMessage)
    )


def _is_worth_exceeding(entry: Entry, total: int, token_budget: int) -> bool:
    is_summary = isinstance(entry, CompactionEntry | BranchSummaryEntry)
    return is_summary and total < token_budget * SUMMARY_FILL
