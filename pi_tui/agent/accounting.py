"""What a session has used: totals over the whole file, and how full the context is.

Totals cover every branch, answers, tools and summaries alike; the context belongs to the current
path. Totals are kept up by each appended entry once the stored ones were counted.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from pi_tui.agent.compaction_record import RECORDED_TYPES, CompactionRecord, record_of
from pi_tui.agent.journal import Journal
from pi_tui.core.entries import (
    BranchSummaryEntry,
    CompactionEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    UsageEntry,
)
from pi_tui.core.errors import StorageError
from pi_tui.core.events import BranchSummaryEnd
from pi_tui.core.messages import AssistantMessage, ToolResultMessage, Usage
from pi_tui.core.protocols import SessionStore

COUNTED_TYPES = frozenset({"compaction", "branch_summary", "usage"})
COUNTED_ROLES = frozenset({"assistant", "toolResult"})


class ContextUsage(Struct, frozen=True):
    """Tokens of the next request; `estimated` when no provider's count covers the path."""

    tokens: int
    window: int
    estimated: bool

    @property
    def percent(self) -> float:
        return self.tokens * 100 / self.window if self.window else 0.0


class SessionStats(Struct, frozen=True):
    """`usage` over all branches; `messages` counts stored messages by role."""

    usage: Usage
    messages: dict[str, int]
    entries: int
    cost_by_model: dict[str, float]
    last_input_tokens: int
    last_cache_read_tokens: int


class UsageTotals:
    """Adds up what entries report."""

    def __init__(self) -> None:
        self._usage = Usage()
        self._cost: defaultdict[str, float] = defaultdict(float)
        self._last = Usage()

    @property
    def usage(self) -> Usage:
        return self._usage

    @property
    def last_answer(self) -> Usage:
        """The usage of the newest answer that was added."""
        return self._last

    def copy(self) -> UsageTotals:
        """The same numbers, to go on adding to."""
        other = UsageTotals()
        other._usage, other._last = self._usage, self._last
        other._cost.update(self._cost)
        return other

    def cost_by_model(self) -> dict[str, float]:
        """Dollars by `provider/model`; summaries and tools under names of their own."""
        return dict(self._cost)

    def add_all(self, entries: Iterable[Entry]) -> None:
        """Add many entries."""
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Add what one entry used; entries without usage add nothing."""
        if isinstance(entry, MessageEntry):
            message = entry.message
            if isinstance(message, AssistantMessage) and message.usage is not None:
                self._add(f"{message.provider}/{message.model}", message.usage)
                if message.usage.sum_tokens:
                    self._last = message.usage
            elif isinstance(message, ToolResultMessage) and isinstance(message.usage, Usage):
                self._add(f"tool {message.tool_name}", message.usage)
        elif isinstance(entry, CompactionEntry | BranchSummaryEntry):
            if entry.usage is not None:
                self.add_summary(entry.usage)
        elif isinstance(entry, UsageEntry) and entry.usage is not None:
            self._add(f"{entry.provider}/{entry.model}", entry.usage)
        elif isinstance(entry, CustomEntry):
            record = record_of(entry)  # a compaction that failed was billed all the same
            if record is not None:
                self.add_record(record)

    def add_record(self, record: CompactionRecord) -> None:
        """Add what a compaction used of which no entry with usage tells."""
        if record.usage is not None:
            self.add_summary(record.usage)

    def add_summary(self, usage: Usage) -> None:
        """Add what a summary used."""
        self._add("summaries", usage)

    def _add(self, name: str, usage: Usage) -> None:
        self._usage = self._usage.plus(usage)
        self._cost[name] += usage.cost.total


def counted(entry_type: str, role: str) -> bool:
    """True when an entry of this type (and role) can carry usage."""
    return entry_type in COUNTED_TYPES or role in COUNTED_ROLES


class SessionNumbers:
    """Counts of one session: stored entries once asked, appended ones as they come."""

    def __init__(self, journal: Journal) -> None:
        self._tree = journal.tree
        self._store = journal.store
        self._totals = UsageTotals()
        self._messages: dict[str, int] = {}
        self._records: list[CompactionRecord] = []
        self._uncounted: list[str] = []
        self._hurried = False
        self._counting = asyncio.Lock()
        for entry_id in self._tree.ids():
            head = self._tree.head(entry_id)
            self._count_role(head.role)
            if counted(head.type, head.role) or head.type in RECORDED_TYPES:
                self._uncounted.append(entry_id)

    def add(self, entry: Entry) -> None:
        """Count an entry that was appended."""
        self._totals.add(entry)
        self._records += _records_of((entry,))
        self._count_role(self._tree.head(entry.id).role)

    def add_branch_summary(self, event: BranchSummaryEnd) -> None:
        """Count one that failed or was cancelled: no entry tells of it, but it was billed."""
        if event.entry_id is None and event.usage is not None:
            self._totals.add_summary(event.usage)

    def _count_role(self, role: str) -> None:
        if role:
            self._messages[role] = self._messages.get(role, 0) + 1

    async def count_stored(self, *, gently: bool = False) -> None:
        """Read what the stored entries used, in a thread, some hundred at a time.

        `gently`: with rests, so that keys are not slowed down; somebody who asks without it while
        a count is under way hurries it and waits for its end. Raises StorageError once when there
        are entries that cannot be read; the others are counted all the same.
        """
        failure: StorageError | None = None
        self._hurried = self._hurried or not gently
        async with self._counting:
            while self._uncounted:
                part = self._uncounted[: _COUNTED_AT_ONCE if self._hurried else _COUNTED_GENTLY]
                entries, error = await asyncio.to_thread(_load_all, self._store, part)
                self._totals.add_all(entries)
                self._records += _records_of(entries)
                del self._uncounted[: len(part)]
                failure = failure or error
                if not self._hurried:
                    await asyncio.sleep(_REST_S)
            self._hurried = False
        if failure is not None:
            raise failure

    def compactions(self) -> list[CompactionRecord]:
        """How the compactions of all branches went, in no order.

        Entries that were not counted yet are read now. Raises StorageError.
        """
        waiting = (i for i in self._uncounted if self._tree.head(i).type in RECORDED_TYPES)
        return [*self._records, *_records_of(map(self._store.load, waiting))]

    def stats(self, unstored: Iterable[CompactionRecord] = ()) -> SessionStats:
        """What was counted so far, with the compactions of which no entry tells."""
        last = self._totals.last_answer
        totals = self._totals.copy()
        for record in unstored:
            totals.add_record(record)
        return SessionStats(
            usage=totals.usage,
            messages=dict(self._messages),
            entries=len(self._tree),
            cost_by_model=totals.cost_by_model(),
            last_input_tokens=last.input or 0,
            last_cache_read_tokens=last.cache_read or 0,
        )


_COUNTED_AT_ONCE = 500
_COUNTED_GENTLY = 100
_REST_S = 0.005
"""About twice what a hundred entries take: the thread is busy a third of the time."""


def _records_of(entries: Iterable[Entry]) -> list[CompactionRecord]:
    return [record for entry in entries if (record := record_of(entry)) is not None]


def _load_all(store: SessionStore, ids: Sequence[str]) -> tuple[list[Entry], StorageError | None]:
    """The entries that can be read, and the first error of those that cannot."""
    entries: list[Entry] = []
    failure: StorageError | None = None
    for entry_id in ids:
        try:
            entries.append(store.load(entry_id))
        except StorageError as error:
            failure = failure or error
    return entries, failure
