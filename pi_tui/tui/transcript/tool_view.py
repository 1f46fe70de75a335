"""A tool call and what came of it: head line, output or diff, duration.

Collapsed, each tool shows as much as is worth seeing without being asked; expanded, everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style

from pi_tui.core.numbers import short_duration
from pi_tui.core.sanitise import reveal, sanitise, sanitise_line
from pi_tui.core.transcript import ToolBlock
from pi_tui.tui.theme import TranscriptStyles
from pi_tui.tui.transcript.diff_lines import diff_column, parse_diff
from pi_tui.tui.transcript.highlight import highlight_file
from pi_tui.tui.transcript.lines_column import LinesColumn, clipped_lines, plain_lines
from pi_tui.tui.transcript.rows import Column, FixedColumn, Row, Span, StackedColumn
from pi_tui.tui.transcript.tool_header import (
    STATE_SIGNS,
    argument_details,
    argument_text,
    main_argument,
)
from pi_tui.tui.transcript.wrap import expand_tabs, wrap, wrap_text

COLLAPSED_LINES = {"read": 0, "bash": 5, "powershell": 5, "grep": 15, "ls": 20, "find": 20}
OTHER_COLLAPSED_LINES = 10
COLLAPSED_DIFF_LINES = 30
COLLAPSED_HEAD_ROWS = 3
COLLAPSED_ROWS_PER_LINE = 3
SHORTEST_SHOWN_MS = 50


@dataclass(frozen=True, slots=True)
class ToolView:
    """How tool blocks are drawn: styles, width, and how much of them."""

    styles: TranscriptStyles
    width: int
    expanded: bool
    expand_key: str

    def draw(self, block: ToolBlock, elapsed_ms: int | None) -> Column:
        """Draw a tool block; `elapsed_ms` is shown while it runs."""
        body = self._body(block)
        time_text = _time(block, elapsed_ms)
        own_line = bool(body) and block.name in ("bash", "powershell")
        parts: list[Column] = [FixedColumn(self._head(block, "" if own_line else time_text)), *body]
        if block.images:
            parts.append(self._remark(_count(block.images, "image")))
        if own_line and time_text:
            parts.append(self._remark(time_text))
        return StackedColumn(parts)

    def _head(self, block: ToolBlock, time_text: str) -> list[Row]:
        styles = self.styles
        sign_ink = {
            "ok": styles.success,
            "error": styles.error,
            "aborted": styles.error,
            "running": styles.warning,
        }.get(block.state, styles.dim)
        spans: list[Span] = [
            (f"{STATE_SIGNS[block.state]} ", sign_ink),
            (sanitise_line(block.name), styles.tool_title),
        ]
        argument = main_argument(block)
        if argument:
            spans.append((f" {expand_tabs(argument)}", styles.tool_output))
        notes = [argument_details(block), "aborted" if block.state == "aborted" else "", time_text]
        spans += [(f" · {note}", styles.dim) for note in notes if note]
        rows = wrap(spans, self.width)
        if not self.expanded and len(rows) > COLLAPSED_HEAD_ROWS:
            hidden = len(rows) - COLLAPSED_HEAD_ROWS
            hint = f"… {_count(hidden, 'more line')} ({self.expand_key})"
            rows = rows[:COLLAPSED_HEAD_ROWS] + wrap_text(hint, styles.dim, self.width)
        return rows

    def _body(self, block: ToolBlock) -> list[Column]:
        if block.state not in ("error", "aborted"):
            diff = block.details.get("diff") if isinstance(block.details, dict) else None
            if block.name == "edit" and isinstance(diff, str) and diff.strip():
                return self._diff(diff)
            if block.name == "write" and (content := argument_text(block, "content")):
                return self._written(block, content)
        output = sanitise(block.output).rstrip("\n")
        return self._output(block, output.split("\n")) if output else []

    def _output(self, block: ToolBlock, lines: Sequence[str]) -> list[Column]:
        limit = COLLAPSED_LINES.get(block.name, OTHER_COLLAPSED_LINES)
        ink = self.styles.tool_output
        if block.state == "error":
            ink, limit = self.styles.error, max(limit, OTHER_COLLAPSED_LINES)
        if self.expanded or (len(lines) <= limit and not _has_long(lines, self.width)):
            return [plain_lines(lines, ink, self.width)]
        if limit == 0:
            return []
        hidden = len(lines) - limit
        if block.name in ("bash", "powershell"):
            return [*self._hint(hidden, "earlier line"), self._clipped(lines[-limit:], ink)]
        return [self._clipped(lines[:limit], ink), *self._hint(hidden, "more line")]

    def _diff(self, diff: str) -> list[Column]:
        lines = parse_diff(reveal(diff))
        hidden = 0 if self.expanded else max(0, len(lines) - COLLAPSED_DIFF_LINES)
        shown = lines[: len(lines) - hidden]
        return [
            diff_column(shown, self.styles, self.width),
            *self._hint(hidden, "more line"),
        ]

    def _written(self, block: ToolBlock, content: str) -> list[Column]:
        lines = reveal(content).rstrip("\n").split("\n")
        hidden = 0 if self.expanded else max(0, len(lines) - OTHER_COLLAPSED_LINES)
        lines = lines[: len(lines) - hidden]
        hint = self._hint(hidden, "more line")
        ink = self.styles.code_block
        if not self.expanded and _has_long(lines, self.width):
            return [self._clipped(lines, ink), *hint]
        path = argument_text(block, "path") or argument_text(block, "file_path")
        code = expand_tabs("\n".join(lines))
        spans = highlight_file(code, path, self.styles.syntax, ink)
        return [LinesColumn(spans, self.width), *hint]

    def _clipped(self, lines: Sequence[str], ink: Style) -> Column:
        return clipped_lines(lines, ink, self.width, COLLAPSED_ROWS_PER_LINE)

    def _hint(self, hidden: int, what: str) -> list[Column]:
        if hidden <= 0:
            return []
        return [self._remark(f"… {_count(hidden, what)} ({self.expand_key})")]

    def _remark(self, text: str) -> Column:
        return FixedColumn(wrap_text(text, self.styles.dim, self.width))


def _time(block: ToolBlock, elapsed_ms: int | None) -> str:
    if block.duration_ms is not None:
        return short_duration(block.duration_ms) if block.duration_ms >= SHORTEST_SHOWN_MS else ""
    return short_duration(elapsed_ms) if block.state == "running" and elapsed_ms else ""


def _has_long(lines: Sequence[str], width: int) -> bool:
    return any(len(line) > COLLAPSED_ROWS_PER_LINE * width for line in lines)


def _count(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
