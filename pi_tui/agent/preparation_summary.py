"""The summary of a prepared compaction: its requests one after the other, merged into one text.

The engine and what extensions call share it, so that both ask the same, with the same bounds, and
keep file lists where they belong. It writes nothing. Tokens are estimates.
"""

from __future__ import annotations

from msgspec import Struct, structs

from pi_tui.agent.signals import AbortSignal
from pi_tui.agent.summariser import (
    Progress,
    Summariser,
    SummaryAsker,
    SummaryJob,
    SummaryTally,
)
from pi_tui.core.compaction.parts import LISTS_SHARE, fitting_lists_text
from pi_tui.core.compaction.prepare import CompactionPreparation
from pi_tui.core.compaction.prompts import without_file_lists


class PreparationSummary(Struct, frozen=True):
    """`text`: what is stored, file lists included. `written`: what the model wrote of it."""

    text: str
    written: tuple[str, ...]


async def summarise_preparation(
    summariser: Summariser,
    prepared: CompactionPreparation,
    asker: SummaryAsker,
    signal: AbortSignal,
    *,
    window_tokens: int,
    tally: SummaryTally,
    focus: str | None = None,
    progress: Progress | None = None,
) -> PreparationSummary:
    """Make all summaries of a preparation. Raises CompactionError, or Aborted.

    `window_tokens`: the window the text will stand in, of which file lists take a small share.
    `progress` counts the parts of all requests together.
    """
    if prepared.lists_in_details:
        # The lists are in the details and are appended anew; in the text they would pile up.
        bare = without_file_lists(prepared.previous_summary or "")
        prepared = structs.replace(prepared, previous_summary=bare or None)
    texts: dict[str, str] = {}
    requests = prepared.requests
    for later, request in zip(reversed(range(len(requests))), requests, strict=True):
        job = SummaryJob(
            kind="compaction" if request.span == "history" else "turn-prefix",
            messages=request.messages,
            previous_summary=request.previous_summary,
            focus=focus,
        )
        told = _counted_on(progress, tally.parts, later)
        summary = await summariser.summarise(job, asker, signal, told, tally)
        texts[request.span] = without_file_lists(summary.text)
    merged = prepared.merge(texts.get("history"), texts.get("turn-prefix"))
    lists = fitting_lists_text(prepared.files, window_tokens // LISTS_SHARE)
    return PreparationSummary(merged + lists, tuple(texts.values()))


def _counted_on(progress: Progress | None, done: int, later: int) -> Progress:
    """Progress of one request among several: parts done before it, requests after it."""

    def told(part: int, of: int, tokens: int) -> None:
        if progress is not None:
            progress(done + part, done + of + later, tokens)

    return told
