"""What a compaction would do, decided before any model is asked.

`prepare_compaction` is pure: it takes a path, its projection and the resolved settings, and says
what to summarise, what stays and which summary requests to make. The summaries themselves are made
by `agent/compactor.py`, which then builds the entry with `compaction_entry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from pi_tui.core.compaction.cut import (
    Cut,
    Row,
    cut_at,
    find_cut,
    is_candidate,
    is_summarised,
    is_unsent,
    working_range,
)
from pi_tui.core.compaction.files import FileLists, FileOps
from pi_tui.core.entries import CompactionEntry, Entry
from pi_tui.core.errors import CompactionError
from pi_tui.core.messages import JSON, Message, SystemMessage, ToolResultMessage, Usage
from pi_tui.core.projection import Projected, Projection
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import estimate_context

NO_EARLIER_HISTORY = "Nothing came before the turn described below."
TURN_PREFIX_HEADING = "## Start of the turn that is still going on"


class CompactionSettings(Struct, frozen=True):
    """The settings resolved for one model, in tokens."""

    enabled: bool = True
    reserve_tokens: int = 16_384
    keep_recent_tokens: int = 20_000


class AlreadyCompacted(Struct, frozen=True):
    """The newest entry is a compaction; `entry_id` is its id."""

    entry_id: str


class NothingToCompact(Struct, frozen=True):
    """Everything is kept, so a summary would stand for nothing."""


class SummaryRequest(Struct, frozen=True):
    """One summary to ask for. `previous_summary` None: the request carries none."""

    span: Literal["history", "turn-prefix"]
    messages: tuple[Message, ...]
    previous_summary: str | None = None


class CompactionPreparation(Struct, frozen=True):
    """A compaction, ready to be carried out.

    `history` and `turn_prefix` are summarised, in path order; `first_kept_entry_id` and everything
    after it stays. `previous_summary` is the text of the compaction that leads the context.
    `system_message` is what the new entry must carry for the system prompt to survive.
    `lists_in_details`: the file lists at the end of `previous_summary` are in `files` as well.
    """

    first_kept_entry_id: str
    history: tuple[Projected, ...]
    turn_prefix: tuple[Projected, ...]
    is_split_turn: bool
    turn_start_entry_id: str | None
    tokens_before: int
    previous_compaction_id: str | None
    previous_summary: str | None
    files: FileLists
    settings: CompactionSettings
    system_message: SystemMessage | None = None
    lists_in_details: bool = False

    @property
    def messages_to_summarize(self) -> tuple[Message, ...]:
        """The messages of the history part."""
        return tuple(p.message for p in self.history)

    @property
    def turn_prefix_messages(self) -> tuple[Message, ...]:
        """The messages of the early part of a split turn."""
        return tuple(p.message for p in self.turn_prefix)

    @property
    def file_ops(self) -> FileLists:
        """The files, under the name hooks know."""
        return self.files

    @property
    def requests(self) -> tuple[SummaryRequest, ...]:
        """The summaries to ask for, one after the other."""
        requests = []
        if self.history or not self.is_split_turn:
            previous = self.previous_summary or None
            requests.append(SummaryRequest("history", self.messages_to_summarize, previous))
        if self.is_split_turn:
            requests.append(SummaryRequest("turn-prefix", self.turn_prefix_messages))
        return tuple(requests)

    def merge(self, history: str | None, turn_prefix: str | None) -> str:
        """Join the texts of the requests, history first.

        A split turn without history takes the old summary over unchanged.
        """
        first = history if history is not None else self.previous_summary or NO_EARLIER_HISTORY
        if turn_prefix is None:
            return first
        return f"{first}\n\n---\n\n{TURN_PREFIX_HEADING}\n\n{turn_prefix}"


def prepare_compaction(
    path: Sequence[Entry],
    projection: Projection,
    settings: CompactionSettings,
    estimator: TokenEstimator,
    *,
    keep_from: str | None = None,
) -> CompactionPreparation | AlreadyCompacted | NothingToCompact:
    """Decide a compaction of a path, entries root to leaf.

    `keep_from` names the first entry to keep instead of a budget. Raises CompactionError when a
    compaction cannot begin to keep there.
    """
    if path and isinstance(path[-1], CompactionEntry):
        return AlreadyCompacted(path[-1].id)
    rows = working_range(projection)
    if keep_from is not None:
        problem = kept_entry_problem(projection, keep_from)
        if problem is not None:
            raise CompactionError(problem)
        cut = cut_at(rows, _first_sent(rows, keep_from))
    else:
        cut = find_cut(rows, settings.keep_recent_tokens, estimator)
    history, turn_prefix = _parts(rows, cut)
    if all(is_unsent(p.message) for p in (*history, *turn_prefix)):
        return NothingToCompact()
    previous = _previous(projection)
    split = cut.turn_start is not None
    return CompactionPreparation(
        first_kept_entry_id=rows[cut.index].entry.id,
        history=history,
        turn_prefix=turn_prefix,
        is_split_turn=split,
        turn_start_entry_id=rows[cut.turn_start].entry.id if cut.turn_start is not None else None,
        tokens_before=estimate_context(path, projection, estimator).tokens,
        previous_compaction_id=None if previous is None else previous.id,
        previous_summary=None if previous is None else previous.summary,
        files=_files((*history, *turn_prefix), previous),
        settings=settings,
        system_message=projection.system_message,
        lists_in_details=previous is not None and previous_lists(previous) is not None,
    )


def previous_lists(previous: CompactionEntry) -> dict[str, JSON] | None:
    """The details of a compaction the product made, which hold its file lists."""
    return (
        previous.details if isinstance(previous.details, dict) and not previous.from_hook else None
    )


def kept_entry_problem(projection: Projection, entry_id: str) -> str | None:
    """Why a compaction cannot keep from this entry on; None when it can.

    For entries the user chose, and to check what a hook answered.
    """
    rows = working_range(projection)
    if all(row.entry.id != entry_id for row in rows):
        return "The first entry to keep is not in the present context of this branch."
    at = _first_sent(rows, entry_id)
    if at < len(rows) and isinstance(rows[at].message, ToolResultMessage):
        return (
            "Nothing can be kept from that entry on: a tool result may not be separated from its "
            "call. Choose the answer that made the call, or a message of the user."
        )
    if at < len(rows) and not is_candidate(rows[at]):
        return "Nothing can be kept from that entry on. Choose a message of the user or an answer."
    return None


def _first_sent(rows: Sequence[Row], entry_id: str) -> int:
    """Index of the first row from an entry on that gives a message."""
    at = next(i for i, row in enumerate(rows) if row.entry.id == entry_id)
    while at < len(rows) and rows[at].message is None:
        at += 1
    return at


def compaction_entry(
    preparation: CompactionPreparation,
    summary: str,
    *,
    entry_id: str,
    parent_id: str | None,
    timestamp: str,
    usage: Usage | None = None,
    details: JSON | UnsetType = UNSET,
    first_kept_entry_id: str | UnsetType | None = UNSET,
    from_hook: bool = False,
) -> CompactionEntry:
    """Build the entry of a compaction whose summary is there.

    `first_kept_entry_id` replaces the prepared one; None keeps nothing, which the format writes as
    the entry's own id.
    """
    kept = preparation.first_kept_entry_id if first_kept_entry_id is UNSET else first_kept_entry_id
    return CompactionEntry(
        id=entry_id,
        parent_id=parent_id,
        timestamp=timestamp,
        summary=summary,
        first_kept_entry_id=entry_id if kept is None else kept,
        tokens_before=preparation.tokens_before,
        system_message=preparation.system_message,
        usage=usage,
        details=details,
        from_hook=from_hook,
    )


def _parts(rows: Sequence[Row], cut: Cut) -> tuple[tuple[Projected, ...], tuple[Projected, ...]]:
    """History and turn prefix of a cut."""
    start = cut.index if cut.turn_start is None else cut.turn_start
    return _summarised(rows[:start]), _summarised(rows[start : cut.index])


def _summarised(rows: Sequence[Row]) -> tuple[Projected, ...]:
    return tuple(
        Projected(row.entry.id, row.message)
        for row in rows
        if row.message is not None and is_summarised(row.message)
    )


def _previous(projection: Projection) -> CompactionEntry | None:
    """The compaction that leads the context, unless an edit leaves it out."""
    lead = projection.selected[0] if projection.selected else None
    if not isinstance(lead, CompactionEntry):
        return None
    given = any(p.entry_id == lead.id for p in projection.messages[:2])
    return lead if given else None


def _files(summarised: Sequence[Projected], previous: CompactionEntry | None) -> FileLists:
    ops = FileOps()
    if previous is not None and not previous.from_hook and previous.details is not UNSET:
        ops.add_details(previous.details)
    for projected in summarised:
        ops.add_message(projected.message)
    return ops.lists()
