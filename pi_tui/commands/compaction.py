"""`/compact`, `/context`, `/pin` and `/unpin`: what the model still knows, and how to decide it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from pi_tui.agent.compaction_plan import (
    CompactionOutcome,
    CompactionPreview,
    CompactRequest,
    KeptPin,
)
from pi_tui.agent.compaction_record import CompactionRecord
from pi_tui.agent.path_entries import load_context_path
from pi_tui.agent.session import AgentSession
from pi_tui.commands.facts import as_data, show
from pi_tui.commands.registry import Command, CommandCall
from pi_tui.commands.ui import CommandUI, ShowsContext
from pi_tui.core.context_report import ContextPart, ContextReport, NotSentReason, context_report
from pi_tui.core.entries import Entry
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import (
    AssistantMessage,
    CustomMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
    role_of,
    text_of,
)
from pi_tui.core.numbers import compact_count, counted_tokens, short_duration
from pi_tui.core.projection import messages_of, project
from pi_tui.core.tokens import sent_tokens

Preview: TypeAlias = CompactionPreview | CompactionOutcome

COMPACT_HINT = "[--preview|--undo|--keep N] [instructions]"


def compaction_commands() -> tuple[Command, ...]:
    """The commands of this module."""
    return (
        Command("compact", "summarise what came before, to free context", _compact, COMPACT_HINT),
        Command("context", "show what fills the context window", _context),
        Command("pin", "keep a message word for word through compactions", _pin, "[id]"),
        Command("unpin", "no longer keep a message", _unpin, "[id]"),
    )


# ---------------------------------------------------------------- /compact


class CompactOptions(Struct, frozen=True):
    """What was typed after `/compact`."""

    preview: bool = False
    undo: bool = False
    keep_tokens: int | None = None
    instructions: str | None = None


_NUMBER = re.compile(r"(\d[\d_,]*)(k?)", re.IGNORECASE)


def parse_compact(argument: str) -> CompactOptions:
    """Read the options, which stand before the instructions. Raises UsageError."""
    rest = argument.strip()
    preview = undo = False
    keep: int | None = None
    while rest.startswith("--"):
        word, _, rest = rest.partition(" ")
        rest = rest.lstrip()
        if word == "--":
            break
        if word == "--preview":
            preview = True
        elif word == "--undo":
            undo = True
        elif word == "--keep" or word.startswith("--keep="):
            value = word.removeprefix("--keep").removeprefix("=")
            if not value:
                value, _, rest = rest.partition(" ")
                rest = rest.lstrip()
            keep = _token_count(value)
        else:
            raise UsageError(f"/compact has no option {word}", hint=f"/compact {COMPACT_HINT}")
    if undo and (preview or keep is not None or rest):
        raise UsageError("--undo stands alone: it goes back to before the last compaction")
    return CompactOptions(preview, undo, keep, rest or None)


def _token_count(text: str) -> int:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise UsageError(
            f"--keep needs a number of tokens, not {text!r}", hint="For example /compact --keep 8k"
        )
    return int(re.sub("[_,]", "", match[1])) * (1000 if match[2] else 1)


async def _compact(call: CommandCall) -> None:
    options = parse_compact(call.argument)
    session = call.session
    if options.undo:
        _undo(call)
        return
    request = CompactRequest(
        "manual", instructions=options.instructions, keep_tokens=options.keep_tokens
    )
    if options.preview:
        preview = await session.preview_compaction(request)
        if isinstance(preview, CompactionPreview):
            text = preview_text(preview, session, command_without_preview(options))
            show(call.ui, "Compaction preview", text, preview)
        else:
            call.ui.notify("info", preview.message)
        return
    tell_compaction(call.ui, await session.compact(request))


def command_without_preview(options: CompactOptions) -> str:
    """The command that does what these options preview."""
    parts = ["/compact"]
    if options.keep_tokens is not None:
        parts.append(f"--keep {options.keep_tokens}")
    if options.instructions:
        # Instructions that begin like an option stood behind a lone `--`.
        parts += (
            ["--", options.instructions]
            if options.instructions.startswith("--")
            else [options.instructions]
        )
    return " ".join(parts)


def tell_compaction(ui: CommandUI, outcome: CompactionOutcome) -> None:
    """Say that there was nothing to do; everything else is told by the compaction's own events."""
    if outcome.kind in ("nothing", "already"):
        ui.notify("info", outcome.message)


def _undo(call: CommandCall) -> None:
    session = call.session
    left = session.undo_compaction()
    after = (
        f"; {left} later {'message stays' if left == 1 else 'messages stay'} on the branch that "
        "was left, see /tree"
        if left
        else ""
    )
    call.ui.notify("info", f"back to before the last compaction{after}")


def preview_text(
    preview: CompactionPreview, session: AgentSession, command: str = "/compact"
) -> str:
    """What a compaction would do, as lines of plain text; `command` would do it."""
    window = session.context_usage().window
    rows = [
        ("context now", f"about {preview.tokens_before:,} of {counted_tokens(window)}"),
        (
            "would be summarised",
            f"{_messages(preview.summarised_messages)}, "
            f"about {counted_tokens(preview.summarised_tokens)}",
        ),
        ("would be kept", f"{_messages(preview.kept_messages)}, word for word"),
        ("context after", f"about {counted_tokens(preview.tokens_kept)} and the summary"),
        ("first kept entry", preview.first_kept_entry_id),
    ]
    text = _columns(rows)
    if preview.is_split_turn:
        text += (
            "\n\nThe cut falls inside a long turn: its earlier part gets notes of its own, its "
            "latest steps are kept."
        )
    if preview.pins:
        text += "\n\nPinned, kept word for word:\n" + _columns(
            [(f"  {pin.entry_id}", _pin_text(pin, session)) for pin in preview.pins]
        )
    for title, paths in (
        ("Files changed", preview.modified_files),
        ("Files read", preview.read_files),
    ):
        if paths:
            text += f"\n\n{title} (named in the summary):\n" + "\n".join(f"  {p}" for p in paths)
    return f"{text}\n\nNothing was sent. {command} carries it out."


def _pin_text(pin: KeptPin, session: AgentSession) -> str:
    others = pin.messages - 1
    more = f", with {_messages(others)} that {'belongs' if others == 1 else 'belong'} to it"
    what = _excerpt(session.tree.entry(pin.entry_id))
    return f"{what} (about {counted_tokens(pin.tokens)}{more if others else ''})"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _columns(rows: Sequence[tuple[str, str]]) -> str:
    width = max((len(left) for left, _ in rows), default=0)
    return "\n".join(f"{left:<{width}}  {right}".rstrip() for left, right in rows)


# ---------------------------------------------------------------- /session


def compaction_rows(records: Sequence[CompactionRecord]) -> list[tuple[str, str]]:
    """The compactions of a session for a table: how many, and each of the latest."""
    if not records:
        return [("compactions", "none")]
    endings = [record.ending for record in records]
    counts = [
        f"{endings.count(ending)} {ending}"
        for ending in ("done", "failed", "cancelled")
        if ending in endings
    ]
    rows = [("compactions", ", ".join(counts))]
    rows += [(f"  {r.timestamp[:19].replace('T', ' ')}", record_text(r)) for r in records[-5:]]
    return rows


def record_text(record: CompactionRecord) -> str:
    """One compaction in a line."""
    parts = [record.reason] if record.reason else []
    if record.ending == "done":
        after = "?" if record.tokens_after is None else compact_count(record.tokens_after)
        unit = "token" if record.tokens_after == 1 else "tokens"
        parts.append(f"{compact_count(record.tokens_before)} → {after} {unit}")
        parts.append(f"kept from {record.first_kept_entry_id}")
    else:
        parts.append(record.ending)
    if record.parts > 1:
        parts.append(f"{record.parts} parts")
    if record.retries:
        parts.append("1 retry" if record.retries == 1 else f"{record.retries} retries")
    if record.duration_ms:
        parts.append(short_duration(record.duration_ms))
    if record.cost:
        parts.append(f"${record.cost:.4f}")
    if record.from_hook:
        parts.append("by an extension")
    if record.ending == "failed":
        parts.append(record.message)
    return " · ".join(parts)


# ---------------------------------------------------------------- /context

BAR_CELLS = 40
ROW_BAR_CELLS = 20

_REASONS: dict[NotSentReason, str] = {
    "summarised": "summarised by a compaction: the summary is sent instead",
    "left-out": "left out of the context: an attempt that was made again, or an edit",
    "failed": "an answer that failed or was aborted: no provider takes half an answer back",
    "excluded": "output of !!: kept from the model because you asked for it",
    "thinking-only": "an answer of nothing but thinking",
    "empty": "an empty answer",
}


async def _context(call: CommandCall) -> None:
    session = call.session
    tree = session.tree
    path_ids = tree.path_ids()  # before the wait: an entry that comes meanwhile is in neither
    path = await load_context_path(tree, session.store)
    whole = session.coming_context(path)

    def make() -> ContextReport:
        heads = [tree.head(entry_id) for entry_id in path_ids]
        return context_report(heads, whole, project(whole), session.estimator)

    report = await asyncio.to_thread(make)
    preview = await session.preview_compaction(CompactRequest("manual"))
    window_tokens = session.context_usage().window
    if isinstance(call.ui, ShowsContext):
        call.ui.show_context(report, window_tokens, context_notes(report, preview))
    else:
        facts = {
            "windowTokens": window_tokens,
            **as_data(report),
            "compaction": preview if isinstance(preview, CompactionPreview) else None,
        }
        show(call.ui, "Context", context_text(report, window_tokens, preview), facts)


def context_text(report: ContextReport, window_tokens: int, preview: Preview) -> str:
    """A report as lines of plain text, with bars. `preview`: what a compaction would do."""
    percent = report.tokens * 100 / window_tokens if window_tokens else 0.0
    mark = "" if report.is_reported else "about "
    text = (
        f"{_bar(report.tokens, window_tokens, BAR_CELLS, free='·')}  {mark}{report.tokens:,} of "
        f"{counted_tokens(window_tokens)} ({percent:.1f} %)\n\n"
    )
    text += _parts_table(report.parts, report.estimated_tokens) if report.parts else "Nothing yet."
    return f"{text}\n\n{context_notes(report, preview)}"


def context_notes(report: ContextReport, preview: Preview) -> str:
    """What is to be said besides the numbers: what a compaction would free, what is not sent."""
    text = _compaction_line(preview)
    if report.is_reported:
        text = f"The total is what the provider counted; the parts are estimates.\n\n{text}"
    if report.not_sent:
        text += "\n\nOn the screen, but not sent:"
        for row in report.not_sent:
            text += f"\n  {row.count:>5}  {_REASONS[row.reason]}"
    return text


def _compaction_line(preview: Preview) -> str:
    if not isinstance(preview, CompactionPreview):
        return "A compaction now would free nothing."
    # Both sides by estimate: a provider's count of the whole would not go with them.
    freed = counted_tokens(preview.summarised_tokens)
    return (
        f"A compaction now would free up to about {freed} (less its summary): it would summarise "
        f"{_messages(preview.summarised_messages)} and keep {_messages(preview.kept_messages)}."
    )


def _parts_table(parts: Sequence[ContextPart], total_tokens: int) -> str:
    labels = [part.label if part.count == 1 else f"{part.label} ({part.count})" for part in parts]
    width = max(map(len, labels))
    largest = max(part.tokens for part in parts)
    return "\n".join(
        f"{label:<{width}}  {part.tokens:>9,}  {part.tokens * 100 / max(1, total_tokens):>5.1f} %  "
        f"{_bar(part.tokens, largest, ROW_BAR_CELLS)}".rstrip()
        for label, part in zip(labels, parts, strict=True)
    )


def _bar(tokens: int, of: int, cells: int, free: str = "") -> str:
    filled = min(cells, round(tokens * cells / of)) if of else 0
    return "█" * filled + free * (cells - filled)


# ---------------------------------------------------------------- /pin, /unpin


async def _pin(call: CommandCall) -> None:
    _set_pin(call, pinned=True)


async def _unpin(call: CommandCall) -> None:
    _set_pin(call, pinned=False)


def _set_pin(call: CommandCall, *, pinned: bool) -> None:
    session = call.session
    entry_id = session.pin(call.argument or None, pinned=pinned)
    entry = session.tree.entry(entry_id)
    what = f"{entry_id} ({_excerpt(entry)})"
    if not pinned:
        call.ui.notify("info", f"no longer pinned: {what}")
        return
    tokens = sum(sent_tokens(message, session.estimator) for message in messages_of(entry))
    call.ui.notify(
        "info",
        f"pinned: {what}; it stays word for word, about {counted_tokens(tokens)} in each request",
    )


_EXCERPT_CHARS = 50


def _excerpt(entry: Entry) -> str:
    for message in messages_of(entry):
        text = " ".join(_text(message).split())
        short = text if len(text) <= _EXCERPT_CHARS else text[:_EXCERPT_CHARS] + "…"
        return f"{role_of(message)}: {short}" if short else role_of(message)
    return entry.type


def _text(message: Message) -> str:
    """What a message says; "" for those whose text is not a content."""
    if isinstance(
        message, UserMessage | AssistantMessage | ToolResultMessage | CustomMessage | SystemMessage
    ):
        return text_of(message.content)
    return ""
