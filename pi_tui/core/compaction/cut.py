"""Where a compaction cuts: which entries stay verbatim and whether a turn is split by that.

The cut is an index into the working range: the selected entries after the compaction that leads
the context. Sizes are tokens of the estimator given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from msgspec import Struct

from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    ContextEditEntry,
    CustomMessageEntry,
    Entry,
    MessageEntry,
)
from pi_tui.core.messages import (
    AssistantMessage,
    BashExecutionMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Message,
    SystemMessage,
    UserMessage,
)
from pi_tui.core.projection import Projection
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import sent_tokens

_TURN_STARTS = (
    UserMessage,
    BashExecutionMessage,
    CustomMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
)


_GIVE_MESSAGES = (MessageEntry, CustomMessageEntry, CompactionEntry)
_NOT_SUMMARISED = (SystemMessage, CompactionSummaryMessage)


class Row(Struct, frozen=True):
    """A selected entry and the message it gives now, if any."""

    entry: Entry
    message: Message | None


class Cut(Struct, frozen=True):
    """`index`: the first row that is kept. `turn_start`: the row of the turn that is split."""

    index: int
    turn_start: int | None = None


def working_range(projection: Projection) -> list[Row]:
    """The rows a compaction may summarise: what follows the previous compaction and the pins."""
    messages = {p.entry_id: p.message for p in projection.messages}
    leads = projection.compaction_id is not None and projection.compaction_id in messages
    return [
        Row(entry, messages.get(entry.id))
        for entry in projection.selected
        if entry.id not in projection.pinned_ids
        and not (leads and entry.id == projection.compaction_id)
    ]


def find_cut(rows: Sequence[Row], keep_recent_tokens: int, estimator: TokenEstimator) -> Cut:
    """Find the cut that keeps about the given number of tokens."""
    candidates = [i for i, row in enumerate(rows) if is_candidate(row)]
    if not candidates:
        return Cut(0)
    chosen, exceeded = _by_budget(rows, candidates, keep_recent_tokens, estimator)
    if exceeded and _only_abandoned_after(rows, chosen):
        chosen += 1
    return cut_at(rows, chosen)


def cut_at(rows: Sequence[Row], chosen: int) -> Cut:
    """The cut for a chosen first row: takes in what is adjacent and sees whether a turn is split.

    Entries without a message directly before the chosen row stay with it; they do not make a split
    of the turn before them.
    """
    index = chosen
    while index > 0 and _is_adjacent(rows[index - 1]):
        index -= 1
    if chosen >= len(rows) or starts_turn(rows[chosen]):
        return Cut(index)
    for i in reversed(range(index)):
        if starts_turn(rows[i]):
            return Cut(index, i)
    return Cut(index)


def is_candidate(row: Row) -> bool:
    """Whether a cut may fall directly before the row: never before a tool result."""
    if isinstance(row.entry, CompactionEntry):
        return False
    return isinstance(row.message, AssistantMessage) or starts_turn(row)


def starts_turn(row: Row) -> bool:
    """Whether a turn begins with the row. Shell output that is never sent begins nothing."""
    return isinstance(row.message, _TURN_STARTS) and not is_unsent(row.message)


def is_unsent(message: Message | None) -> bool:
    """Whether the message is shell output excluded from the context."""
    return isinstance(message, BashExecutionMessage) and message.excluded


def is_summarised(message: Message) -> bool:
    """Whether a message before the cut belongs to what is summarised."""
    return not isinstance(message, _NOT_SUMMARISED)


def _by_budget(
    rows: Sequence[Row],
    candidates: Sequence[int],
    keep_recent_tokens: int,
    estimator: TokenEstimator,
) -> tuple[int, bool]:
    """The candidate chosen by size, and whether the rows from there on reach the budget."""
    total = 0
    for i in reversed(range(len(rows))):
        message = rows[i].message
        tokens = 0 if message is None else sent_tokens(message, estimator)
        if tokens == 0:
            continue
        total += tokens
        if total >= keep_recent_tokens:
            later = bisect_left(candidates, i)
            return candidates[min(later, len(candidates) - 1)], True
    return candidates[0], False


def _only_abandoned_after(rows: Sequence[Row], chosen: int) -> bool:
    """Whether all that follows the chosen row is an attempt that was given up and left out."""
    suffix = rows[chosen + 1 :]
    omitted = {row.entry.id for row in suffix if row.message is None and _gives_message(row.entry)}
    if not any(_is_assistant(row.entry) and row.entry.id in omitted for row in suffix):
        return False
    for row in suffix:
        entry = row.entry
        if isinstance(entry, CompactionEntry):
            return False
        if _gives_message(entry) and entry.id not in omitted and not is_unsent(row.message):
            return False
        if (
            isinstance(entry, ContextEditEntry)
            and entry.replacement is not None
            and entry.target_id not in omitted
        ):
            return False
    return True


def _gives_message(entry: Entry) -> bool:
    """Whether an entry would give a message if no edit were there."""
    if isinstance(entry, BranchSummaryEntry):
        return bool(entry.summary)
    return isinstance(entry, _GIVE_MESSAGES)


def _is_assistant(entry: Entry) -> bool:
    return isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage)


def _is_adjacent(row: Row) -> bool:
    return row.message is None and not isinstance(row.entry, CompactionEntry)
