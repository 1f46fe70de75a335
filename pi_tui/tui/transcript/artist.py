"""Draws blocks: decides what is said about each kind and how much of it.

The one place where foreign text of a block meets a style; everything is sanitised here or in the
column it goes to, nothing is parsed as markup. Widths are cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style

from pi_tui.core.numbers import short_duration
from pi_tui.core.sanitise import reveal_line, sanitise, sanitise_line
from pi_tui.core.transcript import (
    AssistantBlock,
    CoveredBlock,
    CoveredEndBlock,
    CustomBlock,
    NoticeBlock,
    ShellBlock,
    ShownBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.tui.theme import ThemeSource, TranscriptStyles, transcript_styles
from pi_tui.tui.transcript.block_text import covered_title
from pi_tui.tui.transcript.drawn import RIGHT_MARGIN_CELLS, Drawn
from pi_tui.tui.transcript.key_hints import KeyHints
from pi_tui.tui.transcript.lines_column import clipped_lines, plain_lines
from pi_tui.tui.transcript.markdown import MarkdownRenderer
from pi_tui.tui.transcript.markdown_column import MarkdownColumn, draw_markdown
from pi_tui.tui.transcript.rows import (
    EMPTY_ROW,
    Column,
    FixedColumn,
    Row,
    Span,
    StackedColumn,
)
from pi_tui.tui.transcript.summary_view import SummaryView
from pi_tui.tui.transcript.tool_view import ToolView
from pi_tui.tui.transcript.wrap import wrap, wrap_text

LEAD_CELLS = 2
SHELL_COLLAPSED_LINES = 20
COLLAPSED_ROWS_PER_LINE = 3
_BAR = "▌ "


class Artist:
    """Draws blocks in the styles of one theme."""

    def __init__(self, theme: ThemeSource, keys: KeyHints) -> None:
        self._keys = keys
        self.styles: TranscriptStyles = transcript_styles(theme)
        self._markdown = MarkdownRenderer(self.styles)
        self._thinking = MarkdownRenderer(self.styles, self.styles.thinking)

    def draw(
        self, block: ShownBlock, width: int, *, expanded: bool, elapsed_ms: int | None
    ) -> Drawn:
        """Draw a block that is complete or changes only as a whole."""
        inner = self._inner(width)
        styles = self.styles
        if isinstance(block, UserBlock):
            return self._barred(self._user(block, inner), styles.accent, styles.user_ground, width)
        if isinstance(block, AssistantBlock):
            return self._plain(draw_markdown(block.text, self._markdown, inner), width)
        if isinstance(block, ThinkingBlock):
            return self._plain(self._thoughts(block, inner, expanded), width)
        if isinstance(block, ToolBlock):
            column = ToolView(styles, inner, expanded, self._keys.expand).draw(block, elapsed_ms)
            ink, ground = self._tool_styles(block)
            return self._barred(column, ink, ground, width)
        if isinstance(block, ShellBlock):
            return self._plain(self._shell(block, inner, expanded, elapsed_ms), width)
        if isinstance(block, SummaryBlock):
            summary = SummaryView(styles, self._markdown, inner, self._keys.expand)
            column = summary.draw(block, expanded=expanded)
            return self._barred(column, styles.custom_label, styles.custom_ground, width)
        if isinstance(block, CustomBlock):
            column = self._custom(block, inner)
            return self._barred(column, styles.custom_label, styles.custom_ground, width)
        if isinstance(block, CoveredBlock):
            return self._plain(self._covered(block, inner, expanded), width)
        if isinstance(block, CoveredEndBlock):
            return self._plain(self._covered_end(block, inner), width)
        return self._plain(self._notice(block, inner), width)

    def streaming_column(self, block: AssistantBlock | ThinkingBlock, width: int) -> MarkdownColumn:
        """A column that text can be fed to; it holds the text of the block so far."""
        renderer = self._thinking if isinstance(block, ThinkingBlock) else self._markdown
        column = MarkdownColumn(renderer, self._inner(width))
        column.feed(block.text)
        column.update()
        return column

    def draw_streaming(self, column: MarkdownColumn, width: int) -> Drawn:
        return self._plain(column, width)

    def _inner(self, width: int) -> int:
        return max(4, width - LEAD_CELLS - RIGHT_MARGIN_CELLS)

    def _plain(self, column: Column, width: int) -> Drawn:
        return Drawn(column, [(" " * LEAD_CELLS, Style())], Style(), width)

    def _barred(self, column: Column, ink: Style, ground: Style, width: int) -> Drawn:
        return Drawn(column, [(_BAR, ink)], ground, width)

    def _tool_styles(self, block: ToolBlock) -> tuple[Style, Style]:
        styles = self.styles
        if block.state == "ok":
            return styles.success, styles.ok_ground
        if block.state in ("error", "aborted"):
            return styles.error, styles.error_ground
        return (styles.warning if block.state == "running" else styles.dim), styles.pending_ground

    def _user(self, block: UserBlock, width: int) -> Column:
        rows = wrap_text(sanitise(block.text), self.styles.user, width)
        if block.images:
            rows += wrap_text(_images(block.images), self.styles.dim, width)
        return FixedColumn([EMPTY_ROW, *rows, EMPTY_ROW])

    def _thoughts(self, block: ThinkingBlock, width: int, shown: bool) -> Column:
        style = self.styles.thinking
        if block.redacted:
            return FixedColumn(wrap_text("thinking (hidden by the provider)", style, width))
        if not shown:
            dots = " …" if block.streaming else ""
            return FixedColumn(
                wrap_text(f"thinking{dots} ({self._keys.thinking} shows it)", style, width)
            )
        return draw_markdown(block.text, self._thinking, width)

    def _shell(
        self, block: ShellBlock, width: int, expanded: bool, elapsed_ms: int | None
    ) -> Column:
        styles = self.styles
        ink = styles.bash + Style(dim=True) if block.excluded else styles.bash
        text_ink = styles.dim if block.excluded else styles.tool_output
        rule = Row((("─" * width, ink),))
        command = f"$ {reveal_line(block.command)}"
        head: list[Span] = [(command, ink + Style(bold=True))]
        if block.excluded:
            head.append(("  not sent to the model", styles.dim))
        parts: list[Column] = [FixedColumn([rule, *wrap(head, width)])]
        lines = _lines(block.output)
        if expanded or len(lines) <= SHELL_COLLAPSED_LINES:
            parts.append(plain_lines(lines, text_ink, width))
        else:
            hidden = len(lines) - SHELL_COLLAPSED_LINES
            parts.append(
                FixedColumn(wrap_text(earlier_lines(hidden, self._keys.expand), styles.dim, width))
            )
            tail = lines[-SHELL_COLLAPSED_LINES:]
            parts.append(clipped_lines(tail, text_ink, width, COLLAPSED_ROWS_PER_LINE))
        parts.append(FixedColumn([*self._shell_end(block, width, elapsed_ms), rule]))
        return StackedColumn(parts)

    def _shell_end(self, block: ShellBlock, width: int, elapsed_ms: int | None) -> list[Row]:
        styles = self.styles
        words: list[Span] = []
        if block.running:
            running = f"running {short_duration(elapsed_ms)}" if elapsed_ms else "running"
            words.append((running, styles.dim))
        if block.cancelled:
            words.append(("cancelled", styles.warning))
        elif block.exit_code:
            words.append((f"exit {block.exit_code}", styles.error))
        if block.truncated:
            where = sanitise_line(block.full_output_path or "")
            full = f", all of it is in {where}" if where else ""
            words.append((f"output cut{full}", styles.warning))
        spans: list[Span] = []
        for word in words:
            spans += [(" · ", styles.dim), word] if spans else [word]
        return wrap(spans, width) if spans else []

    def _covered(self, block: CoveredBlock, width: int, expanded: bool) -> Column:
        """A divider that says what is behind it, and how to get there."""
        dim = self.styles.dim
        sign = "▾" if expanded else "▸"
        title: list[Span] = [(f"── {sign} {covered_title(block)} ", dim)]
        used = sum(len(text) for text, _ in title)
        hint = f"({self._keys.focus}, {self._keys.toggle}) "
        if self._keys.focus and self._keys.toggle and used + len(hint) + 2 <= width:
            title.append((hint, dim))
            used += len(hint)
        if used > width:
            return FixedColumn(wrap_text(f"{sign} {covered_title(block)}", dim, width))
        return FixedColumn([Row((*title, ("─" * (width - used), dim)))])

    def _covered_end(self, block: CoveredEndBlock, width: int) -> Column:
        title = "── ▴ end of what the summary stands for "
        if len(title) > width:
            title = "── ▴ "
        return FixedColumn([Row(((title + "─" * (width - len(title)), self.styles.dim),))])

    def _custom(self, block: CustomBlock, width: int) -> Column:
        label = wrap_text(sanitise_line(block.custom_type), self.styles.custom_label, width)
        return StackedColumn([FixedColumn(label), draw_markdown(block.text, self._markdown, width)])

    def _notice(self, block: NoticeBlock, width: int) -> Column:
        text = sanitise(block.text)
        if block.level == "info":
            return FixedColumn(wrap_text(text, self.styles.dim, width))
        error = block.level == "error"
        ink = self.styles.error if error else self.styles.warning
        spans: list[Span] = [("Error: " if error else "Warning: ", ink + Style(bold=True))]
        return FixedColumn(wrap([*spans, (text.expandtabs(4), ink)], width))


def earlier_lines(count: int, key: str) -> str:
    return f"… {count} earlier {'line' if count == 1 else 'lines'} ({key})"


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count} images"


def _lines(output: str) -> Sequence[str]:
    text = sanitise(output).rstrip("\n")
    return text.split("\n") if text else []
