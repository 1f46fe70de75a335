"""Chunks of Markdown to rows, by the tokens of markdown-it (imported at the first use).

Foreign text stays text: no HTML, no reference definitions, and a backslash before a bracket or a
dollar stays, because models write mathematics that way. Line ends of a paragraph are kept. Input is
sanitised, and so is again what an entity (`&#27;`) stands for; widths are cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.style import Style

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.theme import TranscriptStyles
from pi_tui.tui.transcript.chunks import Chunk
from pi_tui.tui.transcript.highlight import highlight
from pi_tui.tui.transcript.inline import inline_spans
from pi_tui.tui.transcript.rows import EMPTY_ROW, Row, Span
from pi_tui.tui.transcript.table import Alignment, Cell, table_rows
from pi_tui.tui.transcript.wrap import clip, cut_hard, expand_tabs, wrap

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

CODE_BAR = "▏ "
QUOTE_BAR = "▎ "
BULLETS = "•◦▪"
MIN_CELLS = 8
DEEPEST_LEVEL = 18

# Nothing in such a paragraph can mean more than itself, so no parser is needed.
_PROSE = re.compile(r"(?:[^\W\d_][^*_`\[\]<>!\\~|\n]*(?:\n(?=[^\W\d_])|$))+")
_KEPT_ESCAPES = frozenset("[](){}$")


class MarkdownRenderer:
    """Draws chunks in one set of styles. `base` is beneath everything (thinking is quiet)."""

    def __init__(self, styles: TranscriptStyles, base: Style | None = None) -> None:
        self.base = styles.text if base is None else base
        if base is not None:
            quiet = base + Style(bold=True)
            styles = replace(
                styles,
                heading=quiet,
                code=base,
                code_block=base,
                quote=base,
                link=base,
                bullet=base,
            )
        self.styles = styles

    def chunk(self, chunk: Chunk, width: int) -> list[Row]:
        """The rows of a finished or open chunk; none for one without content."""
        width = max(MIN_CELLS, width)
        if chunk.kind == "fence":
            return [
                *self.fence_label(chunk.language, width),
                *self.code(chunk.text, chunk.language, width),
            ]
        text = chunk.text
        if chunk.kind == "paragraph" and _PROSE.fullmatch(text):
            return wrap([(expand_tabs(text), self.base)], width)
        tokens = _parser().parse(text)
        if any(token.level >= DEEPEST_LEVEL for token in tokens):
            # markdown-it leaves out what is nested deeper than it goes.
            return wrap([(expand_tabs(text), self.base)], width)
        return _Drawing(self, chunk, tokens).blocks(width)

    def fence_label(self, language: str, width: int) -> list[Row]:
        """The line above code with what its opening line says, usually the language."""
        name = clip(expand_tabs(sanitise_line(language)), width - len(CODE_BAR))
        if not name:
            return []
        label = Row(((name, self.base + self.styles.code_border),))
        return [label.indented([(CODE_BAR, self.styles.code_border)])]

    def code(self, code: str, language: str, width: int) -> list[Row]:
        """Code with a bar at its left, coloured by its language."""
        spans = highlight(
            expand_tabs(code),
            language.split()[0] if language else "",
            self.styles.syntax,
            self.base + self.styles.code_block,
        )
        return [row for line in spans for row in self.code_line(line, width)]

    def plain_code_line(self, line: str, width: int) -> list[Row]:
        return self.code_line([(expand_tabs(line), self.base + self.styles.code_block)], width)

    def code_line(self, spans: Sequence[Span], width: int) -> list[Row]:
        bar = [(CODE_BAR, self.styles.code_border)]
        return [row.indented(bar) for row in cut_hard(spans, width - len(CODE_BAR))]


class _Drawing:
    """Walks the tokens of one chunk."""

    def __init__(self, renderer: MarkdownRenderer, chunk: Chunk, tokens: Sequence[Token]) -> None:
        self._renderer = renderer
        self._styles = renderer.styles
        self._lines = chunk.lines
        self._number = chunk.number if chunk.kind == "ordered" else None
        self._tokens = tokens
        self._at = 0

    def blocks(self, width: int, depth: int = 0, base: Style | None = None) -> list[Row]:
        """Draw blocks until the container closes or the tokens end."""
        base = self._renderer.base if base is None else base
        rows: list[Row] = []
        tokens = self._tokens
        while self._at < len(tokens) and not tokens[self._at].type.endswith("_close"):
            token = tokens[self._at]
            drawn = self._block(token, width, depth, base)
            if rows and self._blank_before(token):
                rows.append(EMPTY_ROW)
            rows += drawn
        return rows

    def _blank_before(self, token: Token) -> bool:
        line = token.map[0] - 1 if token.map else -1
        return 0 <= line < len(self._lines) and not self._lines[line].strip("> \t")

    def _block(self, token: Token, width: int, depth: int, base: Style) -> list[Row]:
        """Draw one block and step past it."""
        kind = token.type
        self._at += 1
        if kind in ("paragraph_open", "heading_open"):
            return self._text(token, width, base)
        if kind in ("bullet_list_open", "ordered_list_open"):
            return self._list(token, width, depth, base)
        if kind == "blockquote_open":
            bar = [(QUOTE_BAR, self._styles.quote_border)]
            room = width - len(QUOTE_BAR) >= MIN_CELLS
            inner = width - len(QUOTE_BAR) if room else width
            inside = self.blocks(inner, depth, base + self._styles.quote)
            self._at += 1
            return [row.indented(bar) for row in inside] if room else inside
        if kind == "table_open":
            return self._table(width, base)
        if kind == "hr":
            return [Row((("─" * width, self._styles.rule),))]
        if kind in ("fence", "code_block"):
            code = token.content.removesuffix("\n")
            language = token.info.strip()
            label = self._renderer.fence_label(language, width)
            return [*label, *self._renderer.code(code, language, width)]
        return wrap([(expand_tabs(token.content), base)], width)

    def _text(self, token: Token, width: int, base: Style) -> list[Row]:
        if token.type == "heading_open":
            base = base + self._styles.heading
            if token.tag == "h1":
                base += Style(underline=True)
            elif token.tag not in ("h1", "h2"):
                base += Style(italic=True)
        inline = self._tokens[self._at]
        self._at += 2
        return wrap(inline_spans(inline.children or [], base, self._styles), width)

    def _list(self, token: Token, width: int, depth: int, base: Style) -> list[Row]:
        number = int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None
        if number is not None and depth == 0 and self._number is not None:
            number, self._number = self._number, None
        rows: list[Row] = []
        while self._tokens[self._at].type == "list_item_open":
            item = self._tokens[self._at]
            marker = f"{BULLETS[depth % 3]} " if number is None else f"{number}{item.markup} "
            self._at += 1
            room = width - cell_len(marker) >= MIN_CELLS
            inner = width - cell_len(marker) if room else width
            inside = self.blocks(inner, depth + 1, base) or [EMPTY_ROW]
            self._at += 1
            if rows and self._blank_before(item):
                rows.append(EMPTY_ROW)
            ink = base + self._styles.bullet
            rows += _hung(marker, ink, inside) if room else [Row(((marker, ink),)), *inside]
            if number is not None:
                number += 1
        self._at += 1
        return rows

    def _table(self, width: int, base: Style) -> list[Row]:
        header: list[Cell] = []
        body: list[list[Cell]] = []
        alignments: list[Alignment] = []
        in_header = True
        while (token := self._tokens[self._at]).type != "table_close":
            self._at += 1
            if token.type == "tbody_open":
                in_header = False
            elif token.type == "tr_open" and not in_header:
                body.append([])
            elif token.type in ("th_open", "td_open"):
                children = self._tokens[self._at].children or []
                style = base + Style(bold=True) if in_header else base
                cell = inline_spans(children, style, self._styles)
                (header if in_header else body[-1]).append(cell)
                if in_header:
                    alignments.append(_alignment(token))
        self._at += 1
        return table_rows(header, body, alignments, self._styles.code_border, width)


def _hung(marker: str, style: Style, rows: Iterable[Row]) -> list[Row]:
    """Rows with a marker before the first and blanks before the others."""
    first, *rest = rows
    blanks = [(" " * cell_len(marker), style)]
    return [Row(((marker, style), *first.spans)), *(row.indented(blanks) for row in rest)]


def _alignment(token: Token) -> Alignment:
    style = str(token.attrs.get("style", ""))
    if style.endswith("right"):
        return "right"
    return "center" if style.endswith("center") else "left"


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["reference"])
    parser.inline.ruler.at("escape", _escape)
    return parser


def _escape(state: StateInline, silent: bool) -> bool:
    """A backslash takes the meaning off marks of emphasis and code; elsewhere it is text."""
    at, text = state.pos, state.src
    if text[at] != "\\" or at + 1 >= state.posMax:
        return False
    char = text[at + 1]
    if char in _KEPT_ESCAPES:
        shown = "\\" + char
    elif char.isascii() and char.isprintable() and not char.isalnum() and char != " ":
        shown = char
    else:
        return False
    if not silent:
        state.pending += shown
    state.pos += 2
    return True
