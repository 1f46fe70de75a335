"""Draws one session of the picker: thread, marks, title, place, hits, and columns.

Made for the rows in sight only. Names, texts and paths are foreign: each piece is sanitised before
it is measured. Widths are cells, times Unix milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.commands.sessions import age_text
from pi_tui.core.numbers import compact_count
from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.session_library import SessionHit, SessionRow
from pi_tui.core.session_search import Query, Span, hit_spans
from pi_tui.tui.palette import Palette
from pi_tui.tui.sessions.line_field import end_of
from pi_tui.tui.sessions.session_view import ShownSession

WIDE_FROM_CELLS = 56
"""Narrower lists leave the size out."""
PLACE_FROM_CELLS = 30
"""Narrower rows only say when a directory is gone; the line below the list names it."""
COUNT_CELLS = 6
AGE_CELLS = 8
SIZE_CELLS = 9
THREAD_CELLS = 3
TITLE_CHARS = 400
GONE = "(gone)"


class SessionPainter:
    """Draws rows of one library."""

    def __init__(
        self,
        palette: Palette,
        shown_path: Callable[[str], str],
        here: str,
        is_open: Callable[[SessionRow], bool],
        now_ms: Callable[[], int],
    ) -> None:
        """`here` is the present directory; `shown_path` writes a path as the person knows it."""
        self._palette = palette
        self._shown_path = shown_path
        self._here = here
        self._is_open = is_open
        self._now_ms = now_ms
        self.query = Query()
        self.everywhere = False
        self.paths = False

    # ------------------------------------------------------------ a row

    def draw(self, shown: ShownSession, width: int, *, selected: bool) -> Strip:
        left = self._gutter(shown, width, selected=selected)
        columns = self._columns(shown.row, width)
        room = max(0, width - left.cell_length - columns.cell_length)
        text = self._text(shown, room, selected=selected).adjust_cell_length(room)
        strip = Strip.join([left, text, columns]).adjust_cell_length(width)
        return strip.apply_style(self._palette.ground("selectedBg")) if selected else strip

    def draw_field(self, shown: ShownSession, width: int, field: Strip) -> Strip:
        """A row whose name is being typed."""
        left = self._gutter(shown, width, selected=True)
        label = Strip([Segment("name: ", self._palette.ink("accent"))])
        return Strip.join([left, label, field]).adjust_cell_length(width)

    def _gutter(self, shown: ShownSession, width: int, *, selected: bool) -> Strip:
        ink = self._palette.ink
        deepest = max(1, width // 4 // THREAD_CELLS)
        depth = min(shown.depth, deepest)
        thread = " " * (THREAD_CELLS * (depth - 1)) + "└─ " if depth else ""
        pieces = [
            Segment("› " if selected else "  ", ink("accent")),
            Segment(thread, ink("dim")),
            Segment("✓ " if self._is_open(shown.row) else "", ink("success")),
        ]
        return Strip([piece for piece in pieces if piece.text])

    def _columns(self, row: SessionRow, width: int) -> Strip:
        text = f"{compact_count(row.message_count):>{COUNT_CELLS}}{self.age(row):>{AGE_CELLS}}"
        if width >= WIDE_FROM_CELLS:
            text += f"{size_text(row.size_bytes):>{SIZE_CELLS}}"
        return Strip([Segment(text, self._palette.ink("dim"))])

    def _text(self, shown: ShownSession, room: int, *, selected: bool) -> Strip:
        ink = self._palette.ink
        row = shown.row
        style = ink("accent") if selected else ink("text")
        if row.name:
            style += Style(bold=True)
        title = sanitise_line(row.title[:TITLE_CHARS])
        hit = shown.hit if shown.hit is not None and _tells_more(shown.hit, row) else None
        place = self._place(row, room, short=hit is not None)
        room = max(0, room - place.cell_length)
        text = Strip(_marked(title, hit_spans(self.query, title), style, self._found))
        if hit is not None:
            excerpt_room = max(room - text.cell_length, room * 3 // 5)
            excerpt = self._excerpt(hit, excerpt_room)
            text = _clipped(text, max(0, room - min(excerpt.cell_length, excerpt_room)))
            text = Strip.join([text, excerpt])
        return Strip.join([_clipped(text, room).adjust_cell_length(room), place])

    @property
    def _found(self) -> Style:
        return self._palette.ink("searchMatchText") + self._palette.ground("searchMatchBg")

    def _excerpt(self, hit: SessionHit, room: int) -> Strip:
        """What was found in the conversation, so that the hit itself has room."""
        muted = self._palette.ink("muted")
        first = hit.spans[0][0] if hit.spans else 0
        start = max(0, first - room // 4)
        if start:  # not in the middle of a word, unless that is long
            start = hit.excerpt.find(" ", start, first) + 1 or first
        spans = [(low - start, high - start) for low, high in hit.spans]
        pieces = _marked(hit.excerpt[start:], spans, muted, self._found)
        return Strip([Segment("  ⋯ ", muted), *pieces])

    def _place(self, row: SessionRow, room: int, *, short: bool) -> Strip:
        """Where it belongs, or its file; in a list of one directory nothing unless asked for."""
        if not (self.paths or self.everywhere):
            return Strip([])
        text, role = self.place(row)
        if short or room < PLACE_FROM_CELLS:
            text = GONE if role == "warning" else ""
        text = from_end(text, max(0, room * 2 // 5 - 2))
        return Strip([Segment(f"  {text}" if text else "", self._palette.ink(role))])

    # ------------------------------------------------------------ words, also for other lines

    def place(self, row: SessionRow) -> tuple[str, str]:
        """The directory of a session, or its file, and the colour to write that in."""
        if self.paths:
            return sanitise_line(self._shown_path(row.path)), "muted"
        if not row.cwd:
            return "(no directory)", "warning"
        text = sanitise_line(self._shown_path(row.cwd))
        if not row.cwd_exists:
            return f"{text} {GONE}", "warning"
        return text, "dim" if row.cwd == self._here else "muted"

    def age(self, row: SessionRow) -> str:
        return age_text(max(0, self._now_ms() - row.modified_ms))

    def facts(self, row: SessionRow) -> str:
        """All about a session in one line."""
        count = row.message_count
        said = [
            self.place(row)[0],
            "1 message" if count == 1 else f"{count:,} messages",
            self.age(row),
            size_text(row.size_bytes),
        ]
        if row.branch_count > 1:
            said.insert(2, f"{row.branch_count} branches")
        if self._is_open(row):
            said.append("open here")
        elif row.cwd != self._here and row.cwd_exists:
            said.append("another directory")
        if row.parent:
            said.append("a fork")
        return " · ".join(said)


def _tells_more(hit: SessionHit, row: SessionRow) -> bool:
    """True when the hit is in the conversation, and the title does not show it."""
    return hit.excerpt.strip() not in row.title


def size_text(size_bytes: int) -> str:
    """`512 B`, `4 kB`, `1.2 MB`."""
    if size_bytes < 1000:
        return f"{size_bytes} B"
    if size_bytes < 999_500:
        return f"{round(size_bytes / 1000)} kB"
    return f"{size_bytes / 1_000_000:.1f} MB"


def from_end(text: str, width: int) -> str:
    """A text cut at its start, because its end tells more."""
    return text if cell_len(text) <= width else f"…{end_of(text, max(0, width - 1))}"


def _marked(text: str, spans: Sequence[Span], style: Style, found: Style) -> list[Segment]:
    """A text with its hits marked. Each piece is sanitised by itself, so the spans stay right."""
    pieces: list[Segment] = []
    at = 0
    for start, end in spans:
        pieces += [Segment(sanitise_line(text[at:start]), style)]
        pieces += [Segment(sanitise_line(text[start:end]), found)]
        at = end
    pieces.append(Segment(sanitise_line(text[at:]), style))
    return [piece for piece in pieces if piece.text]


def _clipped(strip: Strip, room: int) -> Strip:
    """The strip cut to a width, with an ellipsis when something is left out."""
    if strip.cell_length <= room:
        return strip
    if room < 2:
        return strip.crop(0, max(0, room))
    style = next((segment.style for segment in strip if segment.text), None)
    return Strip.join([strip.crop(0, room - 1), Strip([Segment("…", style)])])
