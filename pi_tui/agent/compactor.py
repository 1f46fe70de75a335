"""Carries out compactions: one engine for /compact, the threshold and overflow.

The order is fixed: start, extensions, summaries, durable entry, end. Until the entry is on disk the
running conversation is untouched, so every failure and every Escape leaves things as they were.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from pi_tui.agent.bus import EventBus
from pi_tui.agent.compaction_entry import (
    CompactionFacts,
    EntryMaker,
    check_smaller,
    replaced_tokens,
    summary_tokens,
)
from pi_tui.agent.compaction_plan import (
    CompactionOutcome,
    CompactionPreview,
    CompactionTerms,
    CompactRequest,
    Prepared,
    decide,
    failure_text,
    kept_less,
    preview_of,
    refusal_of,
)
from pi_tui.agent.compaction_record import FAILED_TYPE, CompactionRecord, failure_data
from pi_tui.agent.counting import count_in_thread
from pi_tui.agent.hooks import (
    HookRunner,
    HookSummary,
    SessionBeforeCompact,
    SessionCompact,
    SessionCompactFailed,
    hook_summary,
)
from pi_tui.agent.journal import Journal
from pi_tui.agent.path_entries import PathEntries, load_context_path
from pi_tui.agent.preparation_summary import summarise_preparation
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.agent.summariser import Summariser, SummaryAsker, SummaryTally
from pi_tui.core.compaction.prepare import CompactionPreparation
from pi_tui.core.entries import CompactionEntry, CustomEntry, Entry, iso_timestamp
from pi_tui.core.errors import CompactionError, PiTuiError, StorageError
from pi_tui.core.events import (
    CompactionEnd,
    CompactionProgress,
    CompactionResult,
    CompactionStart,
    Notice,
)
from pi_tui.core.protocols import TokenEstimator

__all__ = [
    "CompactRequest",
    "CompactionOutcome",
    "CompactionPreview",
    "CompactionSignals",
    "CompactionTerms",
    "Compactor",
]

CANCELLED = "compaction cancelled; nothing was changed"
AFTER_A_FAULT = (
    "Nothing was changed and the conversation goes on. That is a fault of the program: try again, "
    "or go on in a new session with /new."
)
CANCELLED_BY_EXTENSION = "an extension cancelled the compaction; nothing was changed"


class Compactor:
    """Compacts the session a journal holds."""

    def __init__(
        self,
        *,
        bus: EventBus,
        hooks: HookRunner,
        summariser: Summariser,
        estimator: TokenEstimator,
    ) -> None:
        self._bus = bus
        self._hooks = hooks
        self._summariser = summariser
        self._estimator = estimator
        self.unstored: list[CompactionRecord] = []
        """Cancelled ones, and failures of which no entry could be stored."""
        self._told_less: set[str] = set()

    async def prepare(
        self, request: CompactRequest, terms: CompactionTerms, journal: Journal
    ) -> tuple[list[Entry], Prepared]:
        """Decide what would be summarised; also gives the path it was decided for.

        Raises CompactionError for an entry not to keep from, StorageError for an unreadable file.
        """
        path = await load_context_path(journal.tree, journal.store)
        return path, await count_in_thread(
            self._estimator, lambda lent: decide(path, request, terms, lent)
        )

    async def preview(
        self, request: CompactRequest, terms: CompactionTerms, journal: Journal
    ) -> CompactionPreview | CompactionOutcome:
        """Say what a compaction would do; sends nothing."""
        path, prepared = await self.prepare(request, terms, journal)
        if not isinstance(prepared, CompactionPreparation):
            return refusal_of(prepared)
        coming = terms.coming_system.tokens
        return await count_in_thread(
            self._estimator, lambda lent: preview_of(prepared, path, lent, coming)
        )

    async def compact(
        self,
        request: CompactRequest,
        terms: CompactionTerms,
        asker: SummaryAsker,
        journal: Journal,
        signals: CompactionSignals,
    ) -> CompactionOutcome:
        """Do it, and tell everybody how it went. Raises nothing for failures."""
        work = _Work(request, asker, journal, signals)
        work.coming_tokens = terms.coming_system.tokens
        try:
            work.path, prepared = await signals.work.guard(self.prepare(request, terms, journal))
            if not isinstance(prepared, CompactionPreparation):
                return refusal_of(prepared)
            work.prepared = prepared
            self._begin(work)
            entry = await self._make(work, prepared, terms)
            self._append(work, entry)
        except Aborted:
            return await self._cancelled(work)
        except PiTuiError as error:
            return await self._failed(work, error)
        except Exception as error:  # noqa: BLE001 - whatever went wrong, the conversation goes on
            told = self._bus.fault_words(error)
            return await self._failed(work, CompactionError(told, hint=AFTER_A_FAULT))
        less = kept_less(prepared, terms) if request.reason != "manual" else ""
        return await self._done(work, entry, less)

    async def refuse(
        self, request: CompactRequest, error: PiTuiError, journal: Journal
    ) -> CompactionOutcome:
        """Tell of a compaction that could not even begin."""
        work = _Work(request, None, journal, CompactionSignals())
        return await self._failed(work, error)

    # ------------------------------------------------------------ making the entry

    def _begin(self, work: _Work) -> None:
        if not work.began:
            work.began = True
            self._bus.emit(CompactionStart(work.request.reason))

    async def _make(
        self, work: _Work, prepared: CompactionPreparation, terms: CompactionTerms
    ) -> CompactionEntry:
        made = await work.signals.work.guard(self._ask_hooks(work, prepared))
        maker = self._maker(work)
        if made is not None:
            work.from_hook = True
            return maker.from_hook(made)
        assert work.asker is not None
        summary = await summarise_preparation(
            self._summariser,
            prepared,
            work.asker,
            work.signals.work,
            window_tokens=terms.window_tokens,
            tally=work.tally,
            focus=work.request.instructions,
            progress=self._progress,
        )
        written = sum(summary_tokens(text, self._estimator) for text in summary.written)
        replaced = await work.signals.work.guard(
            count_in_thread(self._estimator, lambda lent: replaced_tokens(prepared, lent))
        )
        check_smaller(written, replaced)
        facts = CompactionFacts(
            summary=summary.text,
            reason=work.request.reason,
            model=work.asker.model,
            usage=work.tally.usage,
            parts=work.tally.parts,
            retries=work.tally.retries,
            duration_ms=work.elapsed_ms(),
        )
        return maker.from_summary(facts)

    def _maker(self, work: _Work) -> EntryMaker:
        return EntryMaker(
            work.preparation, work.path, work.journal, self._estimator, work.coming_tokens
        )

    async def _ask_hooks(self, work: _Work, prepared: CompactionPreparation) -> HookSummary | None:
        if not self._hooks.listens(SessionBeforeCompact):
            return None
        request, journal = work.request, work.journal
        answers = await self._hooks.ask(
            SessionBeforeCompact(
                preparation=prepared,
                branch_entries=PathEntries(journal.tree.path_ids(), journal.store),
                custom_instructions=request.instructions,
                reason=request.reason,
                will_retry=request.will_retry,
                signal=work.signals.work,
            )
        )
        if any(answer.get("cancel") is True for answer in answers):
            work.from_hook = True
            raise Aborted
        made = [answer["compaction"] for answer in answers if answer.get("compaction") is not None]
        if not made:
            return None
        work.from_hook = True
        summary = hook_summary(made[-1])
        if summary is None:
            raise CompactionError("An extension's compaction was refused: it is not an object.")
        return summary

    def _progress(self, part: int, parts: int, tokens: int) -> None:
        self._bus.emit(CompactionProgress(part, parts, tokens))

    def _append(self, work: _Work, entry: CompactionEntry) -> None:
        """Make the entry durable at the place it was made for."""
        tree = work.journal.tree
        if work.path and work.path[-1].id not in tree.path_ids():
            raise CompactionError(
                "The conversation moved to another branch meanwhile, so the summary was not stored."
            )
        try:
            work.journal.append_or_fail(entry)
        except StorageError as error:
            work.disk_refused = True
            raise CompactionError(
                f"The summary could not be saved, so the context is as it was. {error.text}",
                hint="The conversation goes on; try again when that is mended.",
            ) from error

    # ------------------------------------------------------------ how it ended

    async def _done(self, work: _Work, entry: CompactionEntry, less: str) -> CompactionOutcome:
        request = work.request
        details = entry.details if isinstance(entry.details, dict) else {}
        maker = self._maker(work)
        after = details.get("estimatedTokensAfter")
        result = CompactionResult(
            summary=entry.summary,
            first_kept_entry_id=entry.first_kept_entry_id or "",
            tokens_before=entry.tokens_before,
            estimated_tokens_after=after if isinstance(after, int) else maker.tokens_after(entry),
            usage=entry.usage,
            details=entry.details,
            duration_ms=work.elapsed_ms(),
            parts=work.tally.parts,
            retries=work.tally.retries,
        )
        told = SessionCompact(entry, work.from_hook, request.reason, request.will_retry)
        with suppress(Aborted):
            await work.signals.telling.guard(self._hooks.tell(told))
        self._bus.emit(
            CompactionEnd(
                request.reason,
                result,
                will_retry=request.will_retry,
                tokens_before=entry.tokens_before,
                duration_ms=result.duration_ms,
                retries=result.retries,
                parts=result.parts,
                usage=result.usage,
            )
        )
        if less and less not in self._told_less:
            self._told_less.add(less)
            self._bus.emit(Notice("info", less))
        return CompactionOutcome("done", result, message=less)

    async def _cancelled(self, work: _Work) -> CompactionOutcome:
        message = CANCELLED_BY_EXTENSION if work.from_hook else CANCELLED
        self._begin(work)
        self.unstored.append(work.record("cancelled", message))
        await self._tell_failure(work, None)
        return CompactionOutcome("cancelled", message=message)

    async def _failed(self, work: _Work, error: PiTuiError) -> CompactionOutcome:
        self._begin(work)
        record = work.record("failed", error.text)
        if work.disk_refused:
            self.unstored.append(record)
        else:
            work.journal.append(
                CustomEntry(
                    custom_type=FAILED_TYPE,
                    data=failure_data(record),
                    **work.journal.next_fields(),
                )
            )
        message = failure_text(work.request, error)
        await self._tell_failure(work, message)
        return CompactionOutcome("failed", message=message)

    async def _tell_failure(self, work: _Work, message: str | None) -> None:
        """Tell front ends, then extensions; without a message it was cancelled."""
        reason = work.request.reason
        self._bus.emit(
            CompactionEnd(
                reason,
                None,
                aborted=message is None,
                error_message=message,
                tokens_before=work.tokens_before,
                duration_ms=work.elapsed_ms(),
                retries=work.tally.retries,
                parts=work.tally.parts,
                usage=work.tally.usage,
            )
        )
        told = SessionCompactFailed(
            reason=reason,
            error_message=message,
            aborted=message is None,
            will_retry=False,
            from_extension=work.from_hook,
        )
        with suppress(Aborted):
            await work.signals.telling.guard(self._hooks.tell(told))


class CompactionSignals:
    """`work` stops the compaction; `telling` stops waiting for extensions that are told of it."""

    def __init__(self) -> None:
        self.work = AbortSignal()
        self.telling = AbortSignal()


class _Work:
    """One compaction under way."""

    def __init__(
        self,
        request: CompactRequest,
        asker: SummaryAsker | None,
        journal: Journal,
        signals: CompactionSignals,
    ) -> None:
        self.request = request
        self.asker = asker
        self.journal = journal
        self.signals = signals
        self.path: list[Entry] = []
        self.prepared: CompactionPreparation | None = None
        self.coming_tokens = 0
        self.tally = SummaryTally()
        self.from_hook = False
        self.began = False
        self.disk_refused = False
        self._started_s = journal.clock.monotonic_s()

    @property
    def preparation(self) -> CompactionPreparation:
        """The preparation of a compaction that got so far."""
        assert self.prepared is not None
        return self.prepared

    @property
    def tokens_before(self) -> int:
        return self.prepared.tokens_before if self.prepared is not None else 0

    def elapsed_ms(self) -> int:
        return round((self.journal.clock.monotonic_s() - self._started_s) * 1000)

    def record(self, ending: Literal["failed", "cancelled"], message: str) -> CompactionRecord:
        """What is remembered of one that brought nothing."""
        return CompactionRecord(
            timestamp=iso_timestamp(self.journal.clock.now_ms()),
            ending=ending,
            reason=self.request.reason,
            tokens_before=self.tokens_before,
            parts=self.tally.parts,
            retries=self.tally.retries,
            duration_ms=self.elapsed_ms(),
            usage=self.tally.usage,
            model=self.asker.model.full_name if self.asker is not None else "",
            from_hook=self.from_hook,
            message=message,
        )
