"""What a compaction is asked for, and what it would do: decided before any model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from msgspec import Struct, structs

from pi_tui.agent.compaction_entry import replaced_tokens, summary_tokens
from pi_tui.agent.context import ComingSystem
from pi_tui.core.compaction.cut import is_unsent
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
from pi_tui.core.errors import CompactionError, ModelError, PiTuiError, SettingsError
from pi_tui.core.events import CompactionReason, CompactionResult
from pi_tui.core.messages import (
    AssistantMessage,
    CompactionSummaryMessage,
    SystemMessage,
    UserMessage,
)
from pi_tui.core.numbers import counted_tokens
from pi_tui.core.pins import pin_targets, with_pin_partners
from pi_tui.core.projection import Projected, Projection, project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import estimate_context, estimate_messages, sent_tokens

OutcomeKind: TypeAlias = Literal["done", "nothing", "already", "cancelled", "failed"]
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
    """What is in force when a compaction begins; `reserve_tokens` is the reserve for the window."""

    settings: CompactionSettings
    window_tokens: int
    reserve_tokens: int
    coming_system: ComingSystem = ComingSystem()

    @property
    def limit_tokens(self) -> int:
        """Above it a compaction is due."""
        return max(0, self.window_tokens - self.reserve_tokens)


class CompactionOutcome(Struct, frozen=True):
    """How it ended; `message` is for people.

    "nothing" and "already" were not told by any event; the others were, by CompactionEnd. With
    "done" it is empty, or says that less was kept than a setting asks for.
    """

    kind: OutcomeKind
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
    system = projection.system_message
    fixed = estimator.message_tokens(system) if system is not None else 0
    fixed += terms.coming_system.tokens
    used = structs.replace(terms.settings, keep_recent_tokens=_kept_tokens(request, terms, fixed))
    prepared = prepare_compaction(path, projection, used, estimator, keep_from=request.keep_from)
    if not isinstance(prepared, CompactionPreparation):
        return prepared
    prompt = _unanswered_prompt(projection)
    if request.reason != "manual" and prompt is not None and _summarises(prepared, prompt):
        # The request is made again for that prompt, so it must not be summarised where it fits.
        fits = sent_tokens(prompt.message, estimator) < terms.limit_tokens - fixed
        kept = prepare_compaction(path, projection, used, estimator, keep_from=prompt.entry_id)
        if fits and isinstance(kept, CompactionPreparation):
            prepared = kept
    reported = estimate_context(path, projection, estimator).usage_entry_id is not None
    before = prepared.tokens_before + terms.coming_system.beyond(reported=reported)
    prepared = structs.replace(prepared, tokens_before=before)
    if request.reason == "manual":
        return prepared
    headings = structs.replace(prepared, previous_summary=None).merge(
        "" if prepared.history else None, "" if prepared.is_split_turn else None
    )
    if replaced_tokens(prepared, estimator) <= summary_tokens(headings.strip(), estimator):
        return NothingToCompact()  # its headings alone would be longer: not worth a request
    return prepared


def _kept_tokens(request: CompactRequest, terms: CompactionTerms, fixed_tokens: int) -> int:
    """How much is kept: what was asked for, else the setting where that can help at all.

    On request a number that somebody set is taken as it is. The built-in one was chosen by nobody,
    and automatic compactions are made to get under the limit.
    """
    if request.keep_tokens is not None:
        return request.keep_tokens
    keep = terms.settings.keep_recent_tokens
    if request.reason == "manual" and keep != _DEFAULT_KEEP_TOKENS:
        return keep
    return fitting_keep_tokens(keep, terms.reserve_tokens, terms.window_tokens, fixed_tokens)


_DEFAULT_KEEP_TOKENS = CompactionSettings().keep_recent_tokens


def kept_less(prepared: CompactionPreparation, terms: CompactionTerms) -> str:
    """What to say when less was kept than somebody's setting asks for; "" otherwise."""
    asked, used = terms.settings.keep_recent_tokens, prepared.settings.keep_recent_tokens
    if used >= asked or asked == _DEFAULT_KEEP_TOKENS:
        return ""
    return (
        f"about {counted_tokens(used)} of the newest messages were kept instead of the {asked:,} "
        "of compaction.keepRecentTokens: with so much the context would have stayed above its "
        f"limit of {counted_tokens(terms.limit_tokens)}"
    )


def _unanswered_prompt(projection: Projection) -> Projected | None:
    """The newest message, when it is one of the user; failed answers are not sent and not seen."""
    for projected in reversed(projection.messages):
        message = projected.message
        if isinstance(message, SystemMessage) or is_unsent(message):
            continue
        if isinstance(message, AssistantMessage) and message.stop_reason in ("error", "aborted"):
            continue
        return projected if isinstance(message, UserMessage) else None
    return None


def _summarises(prepared: CompactionPreparation, projected: Projected) -> bool:
    return projected in (*prepared.history, *prepared.turn_prefix)


def preview_of(
    prepared: CompactionPreparation,
    path: list[Entry],
    estimator: TokenEstimator,
    coming_tokens: int = 0,
) -> CompactionPreview:
    """`coming_tokens`: what the next prompt adds to the stored system prompt and tools."""
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
        tokens_kept=estimate_messages(left, estimator) + coming_tokens,
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
    """What to tell of a compaction that failed: what happened, what is safe, what to do.

    In a recovery that is all there is to tell.
    """
    message = f"{error.message[:1].upper()}{error.message[1:]}"
    if request.why:
        cause = PiTuiError(message, hint=NOT_RECOVERED).text
        return f"{request.why}, and compacting to make room failed. {cause}"
    if isinstance(error, CompactionError):
        return error.text if error.hint else PiTuiError(message, hint=NOTHING_CHANGED).text
    hint = error.hint
    if isinstance(error, ModelError):
        hint = (
            f"{NOTHING_CHANGED} {hint or ''} Choose another model with /model or in the setting "
            "compaction.model, or take that setting out, then try again."
        ).replace("  ", " ")
    elif isinstance(error, SettingsError):
        hint = f"{NOTHING_CHANGED} {hint or 'Correct the setting, then try again.'}"
    else:
        hint = f"{NOTHING_CHANGED} {hint or 'Try again.'}"
    return f"The context was not compacted. {PiTuiError(message, hint=hint).text}"


NOTHING_CHANGED = "Nothing was changed."


def refusal_of(prepared: AlreadyCompacted | NothingToCompact) -> CompactionOutcome:
    if isinstance(prepared, AlreadyCompacted):
        return CompactionOutcome("already", message=ALREADY)
    return CompactionOutcome("nothing", message=NOTHING)
