"""One line that is edited with the editor's keys: the search, the new name of a session.

Text from outside is sanitised when it comes in, so that what is edited is what is drawn. Widths are
cells.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from pi_tui.core.sanitise import sanitise_line
from pi_tui.tui.editor.buffer import EditorBuffer
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.transcript.wrap import clusters

MAX_CHARS = 2_000
_SCOPE = ("tui.editor.",)


class LineField:
    """A line of text with a cursor."""

    def __init__(self, text: str = "") -> None:
        self._buffer = EditorBuffer()
        self.insert(text)
        b = self._buffer
        editor: dict[str, Callable[[], None]] = {
            "cursorLeft": b.left,
            "cursorRight": b.right,
            "cursorWordLeft": b.word_left,
            "cursorWordRight": b.word_right,
            "cursorLineStart": b.line_start,
            "cursorLineEnd": b.line_end,
            "deleteCharBackward": b.delete_left,
            "deleteCharForward": b.delete_right,
            "deleteWordBackward": b.kill_word_left,
            "deleteWordForward": b.kill_word_right,
            "deleteToLineStart": b.kill_to_line_start,
            "deleteToLineEnd": b.kill_to_line_end,
            "yank": b.yank,
            "yankPop": b.yank_pop,
            "undo": b.undo,
        }
        self._actions = {f"tui.editor.{name}": action for name, action in editor.items()}

    @property
    def text(self) -> str:
        return self._buffer.expanded()

    def clear(self) -> None:
        self._buffer.clear()

    def insert(self, text: str) -> None:
        """Add typed or pasted text at the cursor."""
        room = MAX_CHARS - len(self._buffer.text)
        shown = sanitise_line(text)[:room]
        if shown:
            self._buffer.insert(shown)

    def key(self, name: str, character: str | None, keys: KeyMap) -> bool:
        """Handle a key; False when it means nothing in a line."""
        for action in keys.actions(name, _SCOPE):
            change = self._actions.get(action)
            if change is not None:
                change()
                return True
        if character is not None and character.isprintable():
            self.insert(character)
            return True
        return False

    def draw(self, width: int, style: Style) -> Strip:
        """The part around the cursor."""
        buffer = self._buffer
        at, text = buffer.cursor, buffer.text
        under = buffer.expand(text[at : buffer.next(at)]) or " "
        before = buffer.expand(text[:at])
        shown = end_of(before, max(0, width - 2))
        if shown != before:
            shown = f"…{end_of(before, max(0, width - 3))}"
        after = buffer.expand(text[buffer.next(at) :])[:width]
        pieces = [
            Segment(shown, style),
            Segment(under, style + Style(reverse=True)),
            Segment(after, style),
        ]
        return Strip([piece for piece in pieces if piece.text]).crop(0, max(0, width))


def end_of(text: str, width: int) -> str:
    """The longest end of a text that takes at most `width` cells."""
    start, used = len(text), 0
    for begin, _, cells in reversed(list(clusters(text[-4 * width :] if width else ""))):
        if used + cells > width:
            break
        used += cells
        start = max(0, len(text) - 4 * width) + begin
    return text[start:]
