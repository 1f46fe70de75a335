"""Carries out compactions: one engine for /compact, the threshold and overflow.

The order is fixed: start, extensions, summaries, durable entry, end. Until the entry is on disk the
running conversation is untouched, so every failure and every Escape leaves things as they were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import UNSET, Struct, structs

from pi_tui.agent.bus import EventBus
from pi_tui.agent.hooks import (
    HookRunner,
    HookSummary,
    SessionBeforeCompact,
    SessionCompact,
    SessionCompactFailed,
    hook_summary,
)
from pi_tui.agent.journal import Journal
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.agent.summariser import Summariser, Summary, SummaryAsker, SummaryJob
from pi_tui.core.compaction.files import file_lists_text
from pi_tui.core.compaction.prepare import (
    AlreadyCompacted,
    CompactionPreparation,
    CompactionSettings,
    NothingToCompact,
    compaction_entry,
    kept_entry_problem,
    prepare_compaction,
)
from pi_tui.core.entries import CompactionEntry, Entry
from pi_tui.core.errors import CompactionError, StorageError
from pi_tui.core.events import (
    CompactionEnd,
    CompactionProgress,
    CompactionReason,
    CompactionResult,
    CompactionStart,
)
from pi_tui.core.messages import JSON, Usage
from pi_tui.core.projection import project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import estimate_context, sent_tokens

Prepared: TypeAlias = CompactionPreparation | AlreadyCompacted | NothingToCompact


class CompactRequest(Struct, frozen=True):
    """What is asked for. `keep_tokens` replaces the setting once; `keep_from` names the entry."""

    reason: CompactionReason
    instructions: str | None = None
    keep_tokens: int | None = None
    keep_from: str | None = None
    will_retry: bool = False


class CompactionOutcome(Struct, frozen=True):
    """How it ended; `message` is for people and empty for "done"."""

    kind: Literal["done", "nothing", "already", "cancelled", "failed"]
    result: CompactionResult | None = None
    message: str = ""


class CompactionPreview(Struct, frozen=True):
    """What a compaction would do, without a request. Tokens are estimates."""

    summarised_messages: int
    kept_messages: int
    first_kept_entry_id: str
    is_split_turn: bool
    tokens_before: int
    tokens_kept: int
    read_files: tuple[str, ...]
    modified_files: tuple[str, ...]


NOTHING = "There is nothing to compact: everything fits in what is kept."
ALREADY = "Already compacted: nothing was added since."


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

    async def prepare(
        self, request: CompactRequest, settings: CompactionSettings, journal: Journal
    ) -> Prepared:
        """Decide what would be summarised. Raises CompactionError for an entry not to keep from."""
        return (await self._prepare(request, settings, journal))[1]

    async def _prepare(
        self, request: CompactRequest, settings: CompactionSettings, journal: Journal
    ) -> tuple[list[Entry], Prepared]:
        if request.keep_tokens is not None:
            settings = structs.replace(settings, keep_recent_tokens=request.keep_tokens)
        path = journal.tree.context_path()

        def decide() -> Prepared:
            return prepare_compaction(
                path, project(path), settings, self._estimator, keep_from=request.keep_from
            )

        return path, await asyncio.to_thread(decide)

    async def preview(
        self, request: CompactRequest, settings: CompactionSettings, journal: Journal
    ) -> CompactionPreview | CompactionOutcome:
        """Say what a compaction would do; sends nothing."""
        path, prepared = await self._prepare(request, settings, journal)
        if not isinstance(prepared, CompactionPreparation):
            return _refusal(prepared)
        summarised = {p.entry_id for p in (*prepared.history, *prepared.turn_prefix)}
        kept = [p for p in project(path).messages if p.entry_id not in summarised]
        if prepared.previous_compaction_id is not None:
            kept = [p for p in kept if p.entry_id != prepared.previous_compaction_id]
        return CompactionPreview(
            summarised_messages=len(summarised),
            kept_messages=len(kept),
            first_kept_entry_id=prepared.first_kept_entry_id,
            is_split_turn=prepared.is_split_turn,
            tokens_before=prepared.tokens_before,
            tokens_kept=sum(sent_tokens(p.message, self._estimator) for p in kept),
            read_files=prepared.files.read_files,
            modified_files=prepared.files.modified_files,
        )

    async def compact(
        self,
        request: CompactRequest,
        settings: CompactionSettings,
        asker: SummaryAsker,
        journal: Journal,
        signal: AbortSignal,
    ) -> CompactionOutcome:
        """Do it, and tell everybody how it went. Raises nothing for failures."""
        started_s = journal.clock.monotonic_s()
        from_hook = False
        began = False

        def begin() -> None:
            nonlocal began
            began = True
            self._bus.emit(CompactionStart(request.reason))

        try:
            path, prepared = await self._prepare(request, settings, journal)
            if not isinstance(prepared, CompactionPreparation):
                return _refusal(prepared)
            begin()
            made = await signal.guard(self._ask_hooks(request, prepared, journal, signal))
            from_hook = made is not None
            work = _Work(request, prepared, path, started_s)
            if made is not None:
                entry = self._from_hook(work, made, journal)
                summary = Summary(entry.summary, entry.usage or Usage(), 0, 0)
            else:
                summary = await self._summarise(work, asker, signal)
                entry = self._entry(work, summary, journal)
            journal.append_or_fail(entry)
        except Aborted:
            return await self._failed(request, "", aborted=True, from_hook=from_hook)
        except (CompactionError, StorageError) as error:
            text = f"{error.message} {error.hint or ''}".rstrip()
            if isinstance(error, StorageError):
                text = f"The summary could not be saved, so the context is as it was. {text}"
            if not began:
                begin()
            return await self._failed(request, text, aborted=False, from_hook=from_hook)
        result = _result(entry, summary, started_s, journal)
        await self._hooks.ask(SessionCompact(entry, from_hook, request.reason, request.will_retry))
        self._bus.emit(CompactionEnd(request.reason, result, will_retry=request.will_retry))
        return CompactionOutcome("done", result)

    async def _ask_hooks(
        self,
        request: CompactRequest,
        prepared: CompactionPreparation,
        journal: Journal,
        signal: AbortSignal,
    ) -> HookSummary | None:
        if not self._hooks.listens(SessionBeforeCompact):
            return None
        answers = await self._hooks.ask(
            SessionBeforeCompact(
                preparation=prepared,
                branch_entries=tuple(journal.tree.path()),
                custom_instructions=request.instructions,
                reason=request.reason,
                will_retry=request.will_retry,
                signal=signal,
            )
        )
        if any(answer.get("cancel") is True for answer in answers):
            raise Aborted
        made = [answer["compaction"] for answer in answers if answer.get("compaction") is not None]
        if not made:
            return None
        summary = hook_summary(made[-1])
        if summary is None:
            raise CompactionError("An extension's compaction is not an object; it was refused.")
        return summary

    async def _summarise(self, work: _Work, asker: SummaryAsker, signal: AbortSignal) -> Summary:
        texts: dict[str, str] = {}
        usage, parts, retries = Usage(), 0, 0
        for request in work.prepared.requests:
            job = SummaryJob(
                kind="compaction" if request.span == "history" else "turn-prefix",
                messages=request.messages,
                previous_summary=request.previous_summary,
                focus=work.request.instructions,
            )
            base = parts

            def progress(part: int, of: int, tokens: int, base: int = base) -> None:
                self._bus.emit(CompactionProgress(base + part, base + of, tokens))

            summary = await self._summariser.summarise(job, asker, signal, progress)
            texts[request.span] = summary.text
            usage, parts = usage.plus(summary.usage), parts + summary.parts
            retries += summary.retries
        merged = work.prepared.merge(texts.get("history"), texts.get("turn-prefix"))
        text = merged + file_lists_text(work.prepared.files)
        return Summary(text, usage, parts, retries)

    def _entry(self, work: _Work, summary: Summary, journal: Journal) -> CompactionEntry:
        files = work.prepared.files
        details: dict[str, JSON] = {
            "readFiles": list(files.read_files),
            "modifiedFiles": list(files.modified_files),
        }
        entry = self._build(work, summary.text, journal, usage=summary.usage, details=details)
        self._check_smaller(work, entry)
        details |= {
            "estimatedTokensAfter": self._tokens_after(work, entry),
            "durationMs": _elapsed_ms(work.started_s, journal),
            "parts": summary.parts,
        }
        return structs.replace(entry, details=details)

    def _from_hook(self, work: _Work, made: HookSummary, journal: Journal) -> CompactionEntry:
        if not isinstance(made.summary, str) or not made.summary.strip():
            raise CompactionError("An extension's compaction has no summary text; it was refused.")
        kept = made.first_kept_entry_id
        if not isinstance(kept, str):
            raise CompactionError("An extension's compaction names no entry to keep from.")
        problem = kept_entry_problem(project(work.path), kept)
        if problem is not None:
            raise CompactionError(f"An extension's compaction was refused. {problem}")
        entry = self._build(
            work, made.summary, journal, usage=made.usage, details=made.details, kept=kept
        )
        if isinstance(made.tokens_before, int) and not isinstance(made.tokens_before, bool):
            entry = structs.replace(entry, tokens_before=made.tokens_before)
        return structs.replace(entry, from_hook=True)

    def _build(
        self,
        work: _Work,
        summary: str,
        journal: Journal,
        *,
        usage: Usage | None,
        details: JSON,
        kept: str | None = None,
    ) -> CompactionEntry:
        fields = journal.next_fields()
        return compaction_entry(
            work.prepared,
            summary,
            entry_id=fields["id"],
            parent_id=fields["parent_id"],
            timestamp=fields["timestamp"],
            usage=usage,
            details=details,
            first_kept_entry_id=UNSET if kept is None else kept,
        )

    def _check_smaller(self, work: _Work, entry: CompactionEntry) -> None:
        estimate = self._estimator.message_tokens
        prepared = work.prepared
        replaced = (
            sum(estimate(p.message) for p in (*prepared.history, *prepared.turn_prefix))
            + len(prepared.previous_summary or "") // 4
        )
        summary_tokens = len(entry.summary) // 4
        if summary_tokens >= replaced:
            raise CompactionError(
                f"The summary (about {summary_tokens:,} tokens) is not smaller than what it would "
                f"replace (about {replaced:,} tokens), so it was not stored. Nothing was changed."
            )

    def _tokens_after(self, work: _Work, entry: CompactionEntry) -> int:
        path = [*work.path, entry]
        return estimate_context(path, project(path), self._estimator).tokens

    async def _failed(
        self, request: CompactRequest, message: str, *, aborted: bool, from_hook: bool
    ) -> CompactionOutcome:
        self._bus.emit(
            CompactionEnd(
                request.reason,
                None,
                aborted=aborted,
                will_retry=False,
                error_message=None if aborted else message,
            )
        )
        await self._hooks.ask(
            SessionCompactFailed(
                reason=request.reason,
                error_message=None if aborted else message,
                aborted=aborted,
                will_retry=False,
                from_extension=from_hook,
            )
        )
        if aborted:
            return CompactionOutcome("cancelled", message="compaction cancelled; nothing changed")
        return CompactionOutcome("failed", message=message)


class _Work(Struct, frozen=True):
    """One compaction under way."""

    request: CompactRequest
    prepared: CompactionPreparation
    path: list[Entry]
    started_s: float


def _refusal(prepared: AlreadyCompacted | NothingToCompact) -> CompactionOutcome:
    if isinstance(prepared, AlreadyCompacted):
        return CompactionOutcome("already", message=ALREADY)
    return CompactionOutcome("nothing", message=NOTHING)


def _elapsed_ms(started_s: float, journal: Journal) -> int:
    return round((journal.clock.monotonic_s() - started_s) * 1000)


def _result(
    entry: CompactionEntry, summary: Summary, started_s: float, journal: Journal
) -> CompactionResult:
    details = entry.details if isinstance(entry.details, dict) else {}
    after = details.get("estimatedTokensAfter")
    return CompactionResult(
        summary=entry.summary,
        first_kept_entry_id=entry.first_kept_entry_id or "",
        tokens_before=entry.tokens_before,
        estimated_tokens_after=after if isinstance(after, int) else 0,
        usage=entry.usage,
        details=entry.details,
        duration_ms=_elapsed_ms(started_s, journal),
        parts=summary.parts,
        retries=summary.retries,
    )


SettingsFor: TypeAlias = Callable[[str, str], CompactionSettings]
"""Resolves the settings of a model: (provider, model id) -> numbers. Raises SettingsError."""
