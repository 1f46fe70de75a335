"""From a finished summary to the entry that is stored: checks, file lists, details.

Nothing here asks a model or writes. A summary that would not make the context smaller and an
extension's compaction that is not sound are refused with a CompactionError.
"""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType, structs

from pi_tui.agent.hooks import HookSummary
from pi_tui.agent.journal import Journal
from pi_tui.core.compaction.files import file_lists
from pi_tui.core.compaction.prepare import (
    CompactionPreparation,
    compaction_entry,
    kept_entry_problem,
    previous_lists,
)
from pi_tui.core.entries import CompactionEntry, Entry
from pi_tui.core.errors import CompactionError
from pi_tui.core.events import CompactionReason
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    CompactionSummaryMessage,
    ToolResultMessage,
    Usage,
)
from pi_tui.core.models import Model
from pi_tui.core.numbers import counted_tokens
from pi_tui.core.projection import project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import compact_json, estimate_context, sent_tokens


class CompactionFacts(Struct, frozen=True):
    """What the entry records about its making. `summary` holds the file lists already."""

    summary: str
    reason: CompactionReason
    model: Model
    usage: Usage
    parts: int
    retries: int
    duration_ms: int


class EntryMaker:
    """Makes the entry of one compaction; `path` is what was summarised, root to leaf.

    `coming_tokens`: what the next prompt adds to the stored system prompt and tools.
    """

    def __init__(
        self,
        prepared: CompactionPreparation,
        path: list[Entry],
        journal: Journal,
        estimator: TokenEstimator,
        coming_tokens: int = 0,
    ) -> None:
        self._coming_tokens = coming_tokens
        self._prepared = prepared
        self._path = path
        self._journal = journal
        self._estimator = estimator

    def from_summary(self, facts: CompactionFacts) -> CompactionEntry:
        """The entry for a summary the product made."""
        files = self._prepared.files
        entry = self._build(facts.summary, usage=facts.usage)
        details: dict[str, JSON] = {
            "readFiles": list(files.read_files),
            "modifiedFiles": list(files.modified_files),
            "estimatedTokensAfter": self.tokens_after(entry),
            "durationMs": facts.duration_ms,
            "parts": facts.parts,
            "reason": facts.reason,
            "model": facts.model.full_name,
        }
        if facts.retries:
            details["retries"] = facts.retries
        created = self._created_files()
        if created:
            details["createdFiles"] = created
        return structs.replace(entry, details=details)

    def from_hook(self, made: HookSummary) -> CompactionEntry:
        """The entry for a compaction an extension made. Raises CompactionError when unsound."""
        refused = "An extension's compaction was refused: "
        if not isinstance(made.summary, str) or not made.summary.strip():
            raise CompactionError(f"{refused}it has no summary text.")
        kept = made.first_kept_entry_id
        if not isinstance(kept, str):
            raise CompactionError(f"{refused}it names no entry to keep from.")
        problem = kept_entry_problem(project(self._path), kept)
        if problem is not None:
            raise CompactionError(f"{refused}{problem}")
        if made.details is not UNSET and not _is_json(made.details):
            raise CompactionError(f"{refused}its details cannot be written as JSON.")
        entry = self._build(made.summary, usage=made.usage, details=made.details, kept=kept)
        before = made.tokens_before
        if isinstance(before, int) and not isinstance(before, bool) and before >= 0:
            entry = structs.replace(entry, tokens_before=before)
        return structs.replace(entry, from_hook=True)

    def tokens_after(self, entry: CompactionEntry) -> int:
        """The estimated context with the entry."""
        path = [*self._path, entry]
        estimate = estimate_context(path, project(path), self._estimator)
        return estimate.tokens + self._coming_tokens

    def _build(
        self,
        summary: str,
        *,
        usage: Usage | None,
        details: JSON | UnsetType = UNSET,
        kept: str | None = None,
    ) -> CompactionEntry:
        fields = self._journal.next_fields()
        return compaction_entry(
            self._prepared,
            summary,
            entry_id=fields["id"],
            parent_id=fields["parent_id"],
            timestamp=fields["timestamp"],
            usage=usage,
            details=details,
            first_kept_entry_id=UNSET if kept is None else kept,
        )

    def _created_files(self) -> list[JSON]:
        """Paths that tool results say did not exist before; earlier compactions' included."""
        calls: dict[str, str] = {}
        created: set[str] = set()
        for projected in (*self._prepared.history, *self._prepared.turn_prefix):
            message = projected.message
            if isinstance(message, AssistantMessage):
                for call in message.tool_calls:
                    path = call.arguments.get("path")
                    if isinstance(path, str):
                        calls[call.id] = path
            elif isinstance(message, ToolResultMessage) and isinstance(message.details, dict):
                path = calls.get(message.tool_call_id)
                if message.details.get("created") is True and path:
                    created.add(path)
        earlier = previous_details(self._path, self._prepared)
        listed = earlier.get("createdFiles") if earlier is not None else None
        if isinstance(listed, list):
            created.update(path for path in listed if isinstance(path, str))
        return list(file_lists((), created).modified_files)


def replaced_tokens(prepared: CompactionPreparation, estimator: TokenEstimator) -> int:
    """What a summary would stand for: the messages, and the summary before it if it is updated."""
    replaced = sum(
        sent_tokens(p.message, estimator) for p in (*prepared.history, *prepared.turn_prefix)
    )
    if prepared.history or not prepared.is_split_turn:
        replaced += summary_tokens(prepared.previous_summary or "", estimator)
    return replaced


def summary_tokens(text: str, estimator: TokenEstimator) -> int:
    """What a text costs as a summary."""
    return estimator.message_tokens(CompactionSummaryMessage(text, 0, 0)) if text else 0


def check_smaller(made_tokens: int, replaced_tokens: int) -> None:
    """Raise CompactionError for a summary that is not smaller than what it would replace."""
    if made_tokens >= replaced_tokens:
        raise CompactionError(
            f"The summary (about {counted_tokens(made_tokens)}) is not smaller than what it would "
            f"replace (about {counted_tokens(replaced_tokens)}), so it was not stored.",
            hint="Nothing was changed. /compact --keep N with a smaller N summarises more.",
        )


def previous_details(path: list[Entry], prepared: CompactionPreparation) -> dict[str, JSON] | None:
    """The details of the compaction that leads the context, if the product made it."""
    for entry in path:
        if isinstance(entry, CompactionEntry) and entry.id == prepared.previous_compaction_id:
            return previous_lists(entry)
    return None


def _is_json(value: JSON) -> bool:
    try:
        compact_json(value)
    except (TypeError, ValueError):
        return False
    return True
