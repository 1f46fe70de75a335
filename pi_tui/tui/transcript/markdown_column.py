"""A Markdown text as rows, while it arrives and afterwards.

Finished chunks are drawn once. The open chunk is drawn again at each update, except an open fence,
to which lines are only added, and a long paragraph, which is drawn anew when it has grown by an
eighth and continued as plain text in between. So the cost of a text of any shape stays about
linear, and after `finish` the rows are those of the whole text drawn at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from pi_tui.core.sanitise import StreamSanitiser
from pi_tui.tui.transcript.chunks import Chunk, ChunkSplitter
from pi_tui.tui.transcript.markdown import MarkdownRenderer
from pi_tui.tui.transcript.rows import EMPTY_ROW, Row
from pi_tui.tui.transcript.wrap import wrap_text

LONG_CHUNK_CHARS = 3_000


class MarkdownColumn:
    """Rows of a Markdown text of fixed width. Foreign text goes in raw.

    `height` and `row` speak of the last `update`.
    """

    def __init__(self, renderer: MarkdownRenderer, width: int) -> None:
        self._renderer = renderer
        self._width = width
        self._sanitiser = StreamSanitiser()
        self._splitter = ChunkSplitter()
        self._arrived: list[str] = []
        self._partial = ""
        self._rows: list[Row] = []
        self._open_rows: list[Row] = []
        self._fence_lines = 0
        self._drawn_chars = 0
        self._drawn_rows: list[Row] = []

    def feed(self, text: str) -> None:
        """Add text; nothing is drawn yet."""
        self._arrived.append(text)

    def finish(self) -> None:
        """Draw the rest; no text may follow."""
        self._take("".join(self._arrived))
        self._arrived.clear()
        self._take_safe(self._sanitiser.finish())
        if self._partial:
            self._line(self._partial)
            self._partial = ""
        self._add(self._splitter.finish())
        self._open_rows = []

    def update(self) -> None:
        """Draw what has arrived."""
        if self._arrived:
            self._take("".join(self._arrived))
            self._arrived.clear()
            self._draw_open()

    @property
    def height(self) -> int:
        return len(self._rows) + len(self._open_rows)

    def row(self, index: int) -> Row:
        at = index - len(self._rows)
        return self._open_rows[at] if at >= 0 else self._rows[index]

    def rows(self) -> Iterable[Row]:
        yield from self._rows
        yield from self._open_rows

    def _take(self, text: str) -> None:
        self._take_safe(self._sanitiser.feed(text))

    def _take_safe(self, text: str) -> None:
        first, *lines = text.split("\n")
        self._partial += first
        for line in lines:
            self._line(self._partial)
            self._partial = line

    def _line(self, line: str) -> None:
        self._add(self._splitter.line(line))

    def _add(self, chunk: Chunk | None) -> None:
        if chunk is None:
            return
        rows = self._renderer.chunk(chunk, self._width)
        if rows:
            self._rows += self._gap(chunk)
            self._rows += rows
        self._fence_lines = self._drawn_chars = 0
        self._open_rows = []

    def _gap(self, chunk: Chunk) -> list[Row]:
        wanted = chunk.gap or chunk.kind == "heading"
        return [EMPTY_ROW] if wanted and self._rows else []

    def _draw_open(self) -> None:
        if self._splitter.in_fence and self._splitter.open is not None:
            self._draw_open_fence(self._splitter.open)
            return
        chunk = self._splitter.tentative(self._partial)
        if chunk is None:
            self._open_rows = []
            return
        text = chunk.text
        grown = len(text) - self._drawn_chars
        if self._drawn_chars < LONG_CHUNK_CHARS or grown < 0 or grown * 8 > self._drawn_chars:
            self._drawn_rows = [*self._gap(chunk), *self._renderer.chunk(chunk, self._width)]
            self._drawn_chars = len(text)
            self._open_rows = self._drawn_rows
            return
        rest = wrap_text(text[self._drawn_chars :], self._renderer.base, self._width)
        self._open_rows = self._drawn_rows + rest

    def _draw_open_fence(self, chunk: Chunk) -> None:
        """Add the lines that are new; the unfinished last one is drawn again each time."""
        if self._fence_lines == 0:
            label = self._renderer.fence_label(chunk.language, self._width)
            self._drawn_rows = [*self._gap(chunk), *label]
        for line in chunk.lines[max(0, self._fence_lines - 1) :]:
            self._drawn_rows += self._renderer.plain_code_line(line, self._width)
        self._fence_lines = len(chunk.lines) + 1
        partial = self._partial
        closing = partial.strip() and not partial.strip("`~ ")
        last = [] if closing else self._renderer.plain_code_line(partial, self._width)
        self._open_rows = self._drawn_rows + last


def draw_markdown(text: str, renderer: MarkdownRenderer, width: int) -> MarkdownColumn:
    """The rows of a text that is complete."""
    column = MarkdownColumn(renderer, width)
    column.feed(text)
    column.finish()
    return column
