"""Where a compaction cuts, what it summarises, and the context after it."""

import hashlib

from pi_tui.core.compaction.prepare import (
    AlreadyCompacted,
    CompactionSettings,
    NothingToCompact,
    compaction_entry,
    prepare_compaction,
)
from pi_tui.core.entries import MessageEntry
from pi_tui.core.messages import BashExecutionMessage
from pi_tui.core.projection import project
from pi_tui.core.tokens import CharsEstimator, estimate_context

GROUP = "cutpoint"
ESTIMATOR = CharsEstimator()


def prepare(path, keep_recent_tokens):
    settings = CompactionSettings(keep_recent_tokens=keep_recent_tokens)
    return prepare_compaction(path, project(path), settings, ESTIMATOR)


def after(path, prepared):
    entry = compaction_entry(
        prepared,
        "x" * 40,
        entry_id="NEW",
        parent_id=path[-1].id,
        timestamp="2030-01-01T00:00:00.000Z",
    )
    longer = [*path, entry]
    projection = project(longer)
    ids = ",".join(p.entry_id for p in projection.messages)
    return {
        "messageCount": len(projection.messages),
        "idsSha256_16": hashlib.sha256(ids.encode()).hexdigest()[:16],
        "tokens": estimate_context(longer, projection, ESTIMATOR).tokens,
    }


def summary_has_previous(prepared):
    spans = {request.span for request in prepared.requests}
    merged = prepared.merge(
        "history text" if "history" in spans else None,
        "prefix text" if "turn-prefix" in spans else None,
    )
    return bool(prepared.previous_summary) and merged.startswith(prepared.previous_summary)


def result_of(path, keep_recent_tokens):
    prepared = prepare(path, keep_recent_tokens)
    if isinstance(prepared, AlreadyCompacted):
        return {"result": "already-compacted"}
    if isinstance(prepared, NothingToCompact):
        return {"result": "nothing-to-compact"}
    return {
        "result": "ok",
        "firstKeptEntryId": prepared.first_kept_entry_id,
        "isSplitTurn": prepared.is_split_turn,
        "turnStartEntryId": prepared.turn_start_entry_id,
        "summarizeEntryIds": [p.entry_id for p in prepared.history],
        "turnPrefixEntryIds": [p.entry_id for p in prepared.turn_prefix],
        "previousCompactionId": prepared.previous_compaction_id,
        "hasPreviousSummary": prepared.previous_summary is not None,
        "tokensBefore": prepared.tokens_before,
        "readFiles": list(prepared.files.read_files),
        "modifiedFiles": list(prepared.files.modified_files),
        "requests": [
            {"span": r.span, "previousSummaryGiven": r.previous_summary is not None}
            for r in prepared.requests
        ],
        "summaryHasPreviousVerbatim": summary_has_previous(prepared),
        "after": after(path, prepared),
    }


def test_cutpoint(case, expected, check, tree_for):
    given = case["input"]
    path = tree_for(given["session"]).path(given["leafId"])
    found = result_of(path, given["keepRecentTokens"])
    check(found, expected)
    if "excluded-bash-counted" in case.get("quirks", ()):
        cut = next((e for e in path if e.id == found.get("firstKeptEntryId")), None)
        message = cut.message if isinstance(cut, MessageEntry) else None
        assert not (isinstance(message, BashExecutionMessage) and message.excluded)
