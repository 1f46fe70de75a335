"""What the status line and the footer say: values folded from events, worded without a widget.

Times are seconds of a monotonic clock given by the caller; widths are cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from pi_tui.core.events import (
    Activity,
    ActivityChanged,
    AutoRetryStart,
    BashExecutionEnd,
    BashExecutionStart,
    BranchSummaryEnd,
    BranchSummaryProgress,
    BranchSummaryStart,
    CompactionEnd,
    CompactionProgress,
    CompactionReason,
    CompactionStart,
    Event,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
)
from pi_tui.core.numbers import compact_count, short_duration

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPINNER_PERIOD_S = 0.1

_COMPACTING: dict[CompactionReason, str] = {
    "manual": "compacting the context",
    "threshold": "auto-compacting the context",
    "overflow": "the context was too long: compacting, then trying again",
}

_SUMMARISING: frozenset[Activity] = frozenset({"compacting", "summarising_branch"})


class RetryWait(Struct, frozen=True):
    attempt: int
    max_attempts: int
    due_s: float


class StatusState:
    """What the session is busy with."""

    def __init__(self, activity: Activity, now_s: float) -> None:
        self.activity: Activity = activity
        self._since_s = now_s
        self._retry: RetryWait | None = None
        self._compaction: CompactionReason | None = None
        self._progress: CompactionProgress | BranchSummaryProgress | None = None
        self._commands = 0

    @property
    def busy(self) -> bool:
        """True while the line has something that moves."""
        return self.activity != "idle" or self._compaction is not None or self._commands > 0

    def handle(self, event: Event, now_s: float) -> bool:
        """Take in one event; True when the line may read differently now."""
        if isinstance(event, ActivityChanged):
            if (self.activity == "idle") != (event.activity == "idle"):
                self._since_s = now_s
            self.activity = event.activity
            if event.activity != "retrying" and self._compaction is None:
                self._retry = None
        elif isinstance(event, AutoRetryStart | SummarizationRetryScheduled):
            self._retry = RetryWait(
                event.attempt, event.max_attempts, now_s + event.delay_ms / 1000
            )
        elif isinstance(event, SummarizationRetryAttemptStart | SummarizationRetryFinished):
            self._retry = None
        elif isinstance(event, CompactionStart):
            self._compaction, self._progress, self._since_s = event.reason, None, now_s
        elif isinstance(event, BranchSummaryStart):
            self._progress, self._since_s = None, now_s
        elif isinstance(event, CompactionProgress | BranchSummaryProgress):
            self._progress = event
        elif isinstance(event, BranchSummaryEnd):
            self._progress = self._retry = None
        elif isinstance(event, CompactionEnd):
            self._compaction = self._progress = self._retry = None
            self._since_s = now_s
        elif isinstance(event, BashExecutionStart):
            if not self.busy:
                self._since_s = now_s
            self._commands += 1
        elif isinstance(event, BashExecutionEnd):
            self._commands = max(0, self._commands - 1)
        else:
            return False
        return True

    def text(self, now_s: float, cancel_key: str, room_cells: int | None = None) -> str:
        """The line, without spinner, as much of it as fits; "" when idle."""
        wordings = self._wordings(now_s)
        if not wordings:
            return ""
        summarising = self._compaction is not None or self.activity in _SUMMARISING
        cancel = "cancel" if summarising or self._retry is not None else "interrupt"
        key = f" · {cancel_key} to {cancel}" if cancel_key else ""
        lines = [what + key for what in wordings]
        lines.append(wordings[-1] + (f" · {cancel_key}" if cancel_key else ""))
        fitting = (line for line in lines if room_cells is None or len(line) <= room_cells)
        return next(fitting, lines[-1])

    def _wordings(self, now_s: float) -> list[str]:
        """What is going on, the longest wording first."""
        elapsed = _whole_seconds(now_s - self._since_s)
        retry = self._waiting_for(now_s)
        if self._compaction is not None or self.activity == "compacting":
            words = _COMPACTING[self._compaction or "manual"]
            return self._summary_wordings(words, "compacting", elapsed, retry)
        if self.activity == "summarising_branch":
            return self._summary_wordings("summarising the branch", "summarising", elapsed, retry)
        if retry:
            return [retry]
        if self.activity == "retrying":
            return ["retrying"]
        if self.activity == "running":
            return [f"Working {elapsed}"]
        return [f"running a command {elapsed}"] if self._commands else []

    def _waiting_for(self, now_s: float) -> str:
        """The retry that is waited for; "" when none is."""
        retry = self._retry
        if retry is None or retry.due_s <= now_s:
            return ""
        return f"retrying ({retry.attempt}/{retry.max_attempts}) in {ceil(retry.due_s - now_s)}s"

    def _summary_wordings(self, words: str, word: str, elapsed: str, retry: str) -> list[str]:
        """A summary is being made: what for, how long, which part, and what it waits for."""
        progress = self._progress
        after = f", {retry}" if retry else ""
        wordings = [f"{begin} {elapsed}{self._part()}{after}" for begin in (words, word)]
        if progress is not None and progress.parts > 1:
            wordings.append(f"{word} {elapsed}, {progress.part}/{progress.parts}{after}")
        return [*wordings, f"{word} {elapsed}{after}", f"{word} {elapsed}"]

    def _part(self) -> str:
        progress = self._progress
        if progress is None:
            return ""
        part = f", part {progress.part} of {progress.parts}" if progress.parts > 1 else ""
        tokens = progress.received_tokens
        unit = "token" if tokens == 1 else "tokens"
        return part + (f", {compact_count(tokens)} {unit}" if tokens else "")


def _whole_seconds(seconds: float) -> str:
    whole = max(0, int(seconds))
    return f"{whole}s" if whole < 60 else short_duration(whole * 1000)


def spinner(now_s: float) -> str:
    """The frame of the spinner at a time."""
    return SPINNER[int(now_s / SPINNER_PERIOD_S) % len(SPINNER)]


class FooterFacts(Struct, frozen=True):
    """Everything the footer shows. `cost` in dollars, `window` in tokens; None: not known."""

    directory: str
    branch: str | None
    session_name: str | None
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost: float
    context_tokens: int | None
    window: int
    context_estimated: bool
    model: str
    thinking: str | None
    auto_compaction: bool = False
    unsaved_entries: int = 0
    read_only: bool = False
    model_id: str = ""
    """The model without its provider, for where there is no room for both."""

    @property
    def context_percent(self) -> float | None:
        if self.context_tokens is None or self.window <= 0:
            return None
        return self.context_tokens * 100 / self.window


ESSENTIAL_RANK = 6
"""Parts below this are left out before one of the others is shortened."""
LEAST_DIRECTORY_CELLS = 14
LEAST_BRANCH_CELLS = 9
LEAST_NAME_CELLS = 12
LEAST_MODEL_CELLS = 14


class FooterPart(Struct, frozen=True):
    """A piece of a footer line; the lowest `rank` is dropped first when room is short.

    Before that the part is shortened to `least_cells`, 0 for one that says nothing when it is cut.
    `keeps_end`: its end says more than its beginning. `short` is shown where `text` does not fit.
    """

    text: str
    rank: int
    role: str = "dim"
    least_cells: int = 0
    keeps_end: bool = False
    short: str = ""


def place_parts(facts: FooterFacts) -> list[FooterPart]:
    """Line one: where we are."""
    directory = FooterPart(facts.directory, 8, least_cells=LEAST_DIRECTORY_CELLS, keeps_end=True)
    parts = [directory]
    if facts.unsaved_entries:
        parts.insert(0, FooterPart("NOT SAVED", 9, "error"))
    elif facts.read_only:
        parts.insert(0, FooterPart("read-only", 9, "warning"))
    if facts.branch:
        parts.append(FooterPart(f"({facts.branch})", 7, least_cells=LEAST_BRANCH_CELLS))
    if facts.session_name:
        parts.append(FooterPart(f"• {facts.session_name}", 6, least_cells=LEAST_NAME_CELLS))
    return parts


def number_parts(facts: FooterFacts) -> list[FooterPart]:
    """Line two, left: what was used; parts that are zero are left out."""
    parts = []
    for sign, count, rank in (
        ("↑", facts.input_tokens, 4),
        ("↓", facts.output_tokens, 5),
        ("R", facts.cache_read_tokens, 2),
        ("W", facts.cache_write_tokens, 1),
    ):
        if count:
            parts.append(FooterPart(f"{sign}{compact_count(count)}", rank))
    if facts.cost:
        parts.append(FooterPart(f"${facts.cost:.3f}", 6))
    parts.append(FooterPart(_context(facts), 7, _context_role(facts.context_percent)))
    return parts


def model_parts(facts: FooterFacts) -> list[FooterPart]:
    """Line two, right: who answers."""
    parts = [FooterPart(facts.model, 9, least_cells=LEAST_MODEL_CELLS, short=facts.model_id)]
    if facts.thinking is not None:
        level = "thinking off" if facts.thinking == "off" else facts.thinking
        parts.append(FooterPart(f"• {level}", 3))
    return parts


def _context(facts: FooterFacts) -> str:
    percent = facts.context_percent
    window = compact_count(facts.window)
    auto = " (auto)" if facts.auto_compaction else ""
    if percent is None:
        return f"?/{window}{auto}"
    about = "~" if facts.context_estimated and facts.context_tokens else ""
    return f"{about}{percent:.1f}%/{window}{auto}"


def _context_role(percent: float | None) -> str:
    if percent is None or percent <= 70:
        return "dim"
    return "warning" if percent <= 90 else "error"


def fitting(parts: Sequence[FooterPart], width_cells: int, cells: Sequence[int]) -> dict[int, int]:
    """The parts that fit side by side, one blank between: their indexes, in order, and their room.

    `cells` are the widths of the whole parts. What is less important is left out, what is more
    important shortened; the most important part always stays, even if it has to be cropped.
    """
    kept = list(range(len(parts)))
    least = [
        min(whole, part.least_cells or whole) for part, whole in zip(parts, cells, strict=True)
    ]

    def last_out() -> int:
        return min(kept, key=lambda i: parts[i].rank)

    def spare(widths: Sequence[int]) -> int:
        return width_cells - sum(widths[i] for i in kept) - len(kept) + 1

    while len(kept) > 1 and spare(cells) < 0 and parts[last_out()].rank < ESSENTIAL_RANK:
        kept.remove(last_out())
    while len(kept) > 1 and spare(least) < 0:
        kept.remove(last_out())
    room = dict.fromkeys(kept, 0)
    left = spare(least)
    for i in sorted(kept, key=lambda i: -parts[i].rank):
        more = min(cells[i] - least[i], max(0, left))
        room[i] = max(0, least[i] + more + min(0, left))
        left -= more
    return room


def short_directory(path: str, home: str) -> str:
    """The path with the home directory as `~`."""
    if home and home != "/" and (path == home or path.startswith(home.rstrip("/") + "/")):
        return "~" + path[len(home.rstrip("/")) :]
    return path
