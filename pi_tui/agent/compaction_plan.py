"""What a compaction is asked for, and what it would do: decided before any model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from pi_tui.agent.compaction_entry import replaced_tokens, summary_tokens
from pi_tui.core.compaction.parts import fitting_keep_tokens
from pi_tui.core.compaction.prepare import (
    AlreadyCompacted,
    CompactionPreparation,
    CompactionSettings,
    NothingToCompact,
    compaction_entry,
    prepare_compaction,
)
from pi_tui.core.entries import Entry, head_of
from pi_tui.core.errors import PiTuiError
from pi_tui.core.events import CompactionReason, CompactionResult
from pi_tui.core.messages import CompactionSummaryMessage, SystemMessage
from pi_tui.core.pins import pin_targets, with_pin_partners
from pi_tui.core.projection import Projected, project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import estimate_messages, sent_tokens

Prepared: TypeAlias = CompactionPreparation | AlreadyCompacted | NothingToCompact


class CompactRequest(Struct, frozen=True):
    """What is asked for. `keep_tokens` replaces the setting once; `keep_from` names the entry.

    `why`: the beginning of a sentence that says what went wrong, when a failed answer is to be made
    again afterwards.
    """

    reason: CompactionReason
    instructions: str | None = None
    keep_tokens: int | None = None
    keep_from: str | None = None
    will_retry: bool = False
    why: str = ""


class CompactionTerms(Struct, frozen=True):
    """The settings and the window in force when a compaction begins."""

    settings: CompactionSettings
    window_tokens: int


class CompactionOutcome(Struct, frozen=True):
    """How it ended; `message` is for people and empty for "done".

    "nothing" and "already" were not told by any event; the others were, by CompactionEnd.
    """

    kind: Literal["done", "nothing", "already", "cancelled", "failed"]
    result: CompactionResult | None = None
    message: str = ""


class KeptPin(Struct, frozen=True):
    """A pinned entry that stays word for word, with the calls or results that go with it."""

    entry_id: str
    messages: int
    tokens: int


class CompactionPreview(Struct, frozen=True):
    """What a compaction would do, without a request. Tokens are estimates.

    `tokens_kept` are all that stays: system prompt, tools, pins and the kept messages; a summary
    is added to them. `summarised_tokens` are what it would stand for.
    """

    summarised_messages: int
    summarised_tokens: int
    kept_messages: int
    first_kept_entry_id: str
    is_split_turn: bool
    tokens_before: int
    tokens_kept: int
    read_files: tuple[str, ...]
    modified_files: tuple[str, ...]
    pins: tuple[KeptPin, ...] = ()


NOTHING = (
    "There is nothing to compact: everything fits in what is kept. /compact --keep N keeps about "
    "N tokens instead."
)
ALREADY = "Already compacted: nothing was added since."


def decide(
    path: list[Entry], request: CompactRequest, terms: CompactionTerms, estimator: TokenEstimator
) -> Prepared:
    projection = project(path)
    settings = terms.settings
    keep_tokens = request.keep_tokens
    if keep_tokens is None:
        system = projection.system_message
        keep_tokens = fitting_keep_tokens(
            settings.keep_recent_tokens,
            settings.reserve_tokens,
            terms.window_tokens,
            estimator.message_tokens(system) if system is not None else 0,
        )
    used = structs.replace(settings, keep_recent_tokens=keep_tokens)
    prepared = prepare_compaction(path, projection, used, estimator, keep_from=request.keep_from)
    if request.reason == "manual" or not isinstance(prepared, CompactionPreparation):
        return prepared
    headings = structs.replace(prepared, previous_summary=None).merge(
        "" if prepared.history else None, "" if prepared.is_split_turn else None
    )
    if replaced_tokens(prepared, estimator) <= summary_tokens(headings.strip(), estimator):
        return NothingToCompact()  # its headings alone would be longer: not worth a request
    return prepared


def preview_of(
    prepared: CompactionPreparation, path: list[Entry], estimator: TokenEstimator
) -> CompactionPreview:
    summarised = (*prepared.history, *prepared.turn_prefix)
    # What would be sent, but for the text of the summary.
    marker = compaction_entry(prepared, "", entry_id="preview", parent_id=None, timestamp="")
    left = [
        p
        for p in project([*path, marker]).messages
        if not isinstance(p.message, CompactionSummaryMessage)
    ]
    return CompactionPreview(
        summarised_messages=len(summarised),
        summarised_tokens=sum(sent_tokens(p.message, estimator) for p in summarised),
        kept_messages=sum(not isinstance(p.message, SystemMessage) for p in left),
        first_kept_entry_id=prepared.first_kept_entry_id,
        is_split_turn=prepared.is_split_turn,
        tokens_before=prepared.tokens_before,
        tokens_kept=estimate_messages(left, estimator),
        read_files=prepared.files.read_files,
        modified_files=prepared.files.modified_files,
        pins=_kept_pins(path, left, estimator),
    )


def _kept_pins(
    path: Sequence[Entry], left: Sequence[Projected], estimator: TokenEstimator
) -> tuple[KeptPin, ...]:
    """The pins among what is left, in path order."""
    targets = pin_targets(path)
    if not targets:
        return ()
    heads = [head_of(entry) for entry in path]
    messages = {p.entry_id: p.message for p in left}
    pins = []
    for head in heads:
        if head.id not in targets or head.id not in messages:
            continue
        group = [heads[i].id for i in with_pin_partners(heads, frozenset({head.id}))]
        kept = [messages[entry_id] for entry_id in group if entry_id in messages]
        tokens = sum(sent_tokens(message, estimator) for message in kept)
        pins.append(KeptPin(head.id, len(kept), tokens))
    return tuple(pins)


NOT_RECOVERED = (
    "Nothing is lost; only the failed answer is no longer sent. Try /compact again, choose a "
    "larger model (/model, or the setting compaction.model for summaries), or go back to an "
    "earlier point with /tree; then a message such as `go on` makes the request again."
)


def failure_text(request: CompactRequest, error: PiTuiError) -> str:
    """What to tell of a compaction that failed.

    In a recovery that is all there is to tell: what happened, what is safe, what to do.
    """
    if not request.why:
        return error.text
    cause = PiTuiError(f"{error.message[:1].upper()}{error.message[1:]}", hint=NOT_RECOVERED).text
    return f"{request.why}, and compacting to make room failed. {cause}"


def refusal_of(prepared: AlreadyCompacted | NothingToCompact) -> CompactionOutcome:
    if isinstance(prepared, AlreadyCompacted):
        return CompactionOutcome("already", message=ALREADY)
    return CompactionOutcome("nothing", message=NOTHING)
