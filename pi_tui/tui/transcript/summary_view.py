"""A summary as it is drawn: one line with its numbers; open, its text and the files it names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pi_tui.core.messages import JSON
from pi_tui.core.numbers import compact_count, short_duration
from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.transcript import SummaryBlock
from pi_tui.tui.theme import TranscriptStyles
from pi_tui.tui.transcript.markdown import MarkdownRenderer
from pi_tui.tui.transcript.markdown_column import draw_markdown
from pi_tui.tui.transcript.rows import EMPTY_ROW, Column, FixedColumn, Row, Span, StackedColumn
from pi_tui.tui.transcript.wrap import wrap, wrap_text

_FILE_LIST = re.compile(
    r"^<(read-files|modified-files)>\n(.*?)\n</\1>[ \t]*$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class SummaryView:
    """How summaries are drawn: styles, width, and the key that opens them."""

    styles: TranscriptStyles
    markdown: MarkdownRenderer
    width: int
    expand_key: str

    def draw(self, block: SummaryBlock, *, expanded: bool) -> Column:
        """Draw a compaction or a branch summary."""
        styles, width = self.styles, self.width
        line, hint = summary_line(block), f"  {self.expand_key} shows it"
        title: list[Span] = [(line, styles.custom_label)]
        if not expanded:
            if len(line) + len(hint) <= width:  # it stays one line
                title.append((hint, styles.dim))
            return FixedColumn(wrap(title, width))
        text, files = summary_parts(block)
        parts: list[Column] = [
            FixedColumn([*wrap(title, width), EMPTY_ROW]),
            draw_markdown(text, self.markdown, width),
        ]
        for heading, paths in files:
            parts.append(FixedColumn(self._files(heading, paths)))
        return StackedColumn(parts)

    def _files(self, heading: str, paths: Iterable[str]) -> list[Row]:
        rows = [EMPTY_ROW, *wrap_text(heading, self.styles.heading, self.width)]
        for path in paths:
            listed = wrap_text(sanitise_line(path), self.styles.tool_output, self.width - 2)
            rows += [row.indented([("  ", self.styles.dim)]) for row in listed]
        return rows


def summary_line(block: SummaryBlock) -> str:
    """One line about a summary, e.g. `compacted 84k → 9k tokens · 12s · $0.03`."""
    size = _size(_tokens_before(block), block.tokens_after)
    if block.kind == "branch":
        parts = ["branch summary", size] if size else ["branch summary"]
    else:
        parts = [f"compacted {size}" if size else "compacted"]
    if block.duration_ms is not None:
        parts.append(short_duration(block.duration_ms))
    if block.cost:
        parts.append(f"${block.cost:.2f}" if block.cost >= 0.01 else f"${block.cost:.4f}")
    return " · ".join(parts)


def summary_parts(block: SummaryBlock) -> tuple[str, list[tuple[str, list[str]]]]:
    """The text of a summary without its file lists, and these as headings with paths.

    The details have them complete; a summary without details has them in its text.
    """
    details = block.details if isinstance(block.details, dict) else {}
    listed = {name: found.split("\n") for name, found in _FILE_LIST.findall(block.summary)}
    changed = _paths(details.get("modifiedFiles")) or listed.get("modified-files", [])
    read = _paths(details.get("readFiles")) or listed.get("read-files", [])
    created = set(_paths(details.get("createdFiles")))
    deleted = set(_paths(details.get("deletedFiles")))
    notes = {path: " (deleted)" if path in deleted else " (new)" for path in created | deleted}
    files = [
        ("Files changed", [path + notes.get(path, "") for path in changed]),
        ("Files read", read),
    ]
    return _FILE_LIST.sub("", block.summary).strip(), [row for row in files if row[1]]


def _tokens_before(block: SummaryBlock) -> int | None:
    """How large what was summarised was; of a branch the details say it."""
    details = block.details if isinstance(block.details, dict) else {}
    noted = details.get("estimatedTokens") if block.kind == "branch" else None
    return noted if isinstance(noted, int) and not isinstance(noted, bool) else block.tokens_before


def _size(before: int | None, after: int | None) -> str:
    """Tokens before and after, "" when the former are not known."""
    if before is None:
        return ""
    to = f" → {_count(after)}" if after is not None else ""
    return (
        f"{_count(before)}{to} {'token' if (before if after is None else after) == 1 else 'tokens'}"
    )


def _paths(value: JSON) -> list[str]:
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []


def _count(tokens: int) -> str:
    return compact_count(tokens).replace(".0", "")
