"""The text being edited, the cursor, undo and the kill ring. Pure; knows no keys and no widths.

Positions are indexes into `text`. A collapsed paste is one character of the text, an *atom*: a
private-use character that stands for the pasted text and shows as a label. Characters of that range
which come from outside become atoms of their own, so what is sent is always what was put in.
"""

from __future__ import annotations

import re

from msgspec import Struct
from rich.cells import split_graphemes

PASTE_LINES = 10
PASTE_CHARS = 1000
"""A paste of more lines or more characters is collapsed."""

INSERT_CHARS = 20_000
"""Longer texts put in by the program are collapsed too: every key would lay them out again."""

_FIRST_ATOM = 0x100000
_LAST_ATOM = 0x10FFFD
_ATOM = re.compile("[\U00100000-\U0010fffd]")
_LINE_END = re.compile("\r\n?")
_UNDO_STEPS = 200
_KILLS = 20


class Atom(Struct, frozen=True):
    """What one character of the text stands for."""

    label: str
    text: str


class Snapshot(Struct, frozen=True):
    """A state of the editor that can be put back; atoms stay known."""

    text: str
    cursor: int


class EditorBuffer:
    """Text with a cursor. Every method leaves the cursor between two whole graphemes."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._atoms: dict[str, Atom] = {}
        self._paste_number = 0
        self._undo: list[Snapshot] = []
        self._kills: list[str] = []
        self._last = ""
        self._yanked: tuple[int, int] | None = None

    # ------------------------------------------------------------ reading

    @property
    def is_blank(self) -> bool:
        """True when there is nothing but white space."""
        return not self.text.strip()

    def atom(self, character: str) -> Atom | None:
        """What a character of the text stands for, if it is an atom."""
        return self._atoms.get(character)

    def expanded(self) -> str:
        """The text to send: every atom replaced by what it stands for."""
        return self.expand(self.text)

    def expand(self, text: str) -> str:
        """Replace the atoms of a piece of the text."""
        if not self._atoms:
            return text
        return _ATOM.sub(lambda match: self._atoms[match[0]].text, text)

    def snapshot(self) -> Snapshot:
        return Snapshot(self.text, self.cursor)

    # ------------------------------------------------------------ replacing everything

    def put_back(self, snapshot: Snapshot) -> None:
        """Make an earlier state the present one; undoable."""
        self._remember("replace")
        self.text, self.cursor = snapshot.text, snapshot.cursor

    def set_text(self, text: str) -> None:
        """Replace the text from outside; cursor at the end; undoable."""
        self.put_back(self.composed(text))

    def composed(self, text: str, attached: str = "") -> Snapshot:
        """A state with a text from outside and, behind it, characters that `attachment` gave."""
        text = _LINE_END.sub("\n", text)
        whole = self._new_atom(text) if len(text) > INSERT_CHARS else self._protect(text)
        return Snapshot(whole + attached, len(whole + attached))

    def set_edited_text(self, text: str) -> None:
        """Take the text back from another editor.

        Pastes that are still in it stay collapsed; what is attached goes to its end.
        """
        text = _LINE_END.sub("\n", text)
        if text == self.expanded():
            return
        attached = ""
        for character in self.text:
            atom = self._atoms.get(character)
            if atom is not None and not atom.text:
                attached += character
            if atom is None or len(atom.text) < 2:
                continue
            before, found, after = text.partition(atom.text)
            if found:
                text = self._protect(before) + character + after
        self._remember("replace")
        plain = len(text) > INSERT_CHARS and not _ATOM.search(text)
        self.text = (self._new_atom(text) if plain else self._protect(text)) + attached
        self.cursor = len(self.text)

    def clear(self) -> None:
        """Empty the editor; undoable."""
        if self.text:
            self._remember("replace")
        self.text, self.cursor = "", 0

    def forget(self) -> None:
        """Empty the editor for good: after sending there is nothing to undo."""
        self.text, self.cursor = "", 0
        self._undo.clear()
        self._last = ""
        self._paste_number = 0

    # ------------------------------------------------------------ inserting

    def insert(self, text: str) -> None:
        """Insert typed text at the cursor; words that came together are one step of undo."""
        blank = any(character.isspace() for character in text)
        self._remember("insert-blank" if blank else "insert")
        self._splice(self.cursor, self.cursor, self._protect(text))

    def paste(self, text: str) -> None:
        """Insert pasted text; a long one collapses to one character."""
        text = _LINE_END.sub("\n", text)
        if not text:
            return
        self._remember("paste")
        if text.count("\n") >= PASTE_LINES or len(text) > PASTE_CHARS:
            self._splice(self.cursor, self.cursor, self._new_atom(text))
        else:
            self._splice(self.cursor, self.cursor, self._protect(text))

    def replace(self, start: int, end: int, text: str) -> None:
        """Put text in the place of a part of the text; undoable."""
        self._remember("replace")
        self._splice(start, end, self._protect(text))

    def attachment(self, label: str) -> str:
        """A character for something that shows as `label` and adds no text; not inserted yet."""
        return self._add_atom(Atom(label, ""))

    def attach(self, characters: str) -> None:
        """Insert characters that `attachment` gave."""
        if characters:
            self._remember("attach")
            self._splice(self.cursor, self.cursor, characters)

    def put_before(self, texts: list[str]) -> None:
        """Put messages in front of the draft, blank lines between; cursor at the end."""
        self._remember("replace")
        pieces = []
        for text in texts:
            whole = _LINE_END.sub("\n", text)
            pieces.append(
                self._new_atom(whole) if len(whole) > INSERT_CHARS else self._protect(whole)
            )
        if self.text.strip():
            pieces.append(self.text)
        self.text = "\n\n".join(pieces)
        self.cursor = len(self.text)

    def _new_atom(self, text: str) -> str:
        if not any(len(self._atoms[c].text) > 1 for c in _ATOM.findall(self.text)):
            self._paste_number = 0
        self._paste_number += 1
        lines = text.count("\n") + 1
        size = f"+{lines} lines" if lines > PASTE_LINES else f"{len(text)} chars"
        return self._add_atom(Atom(f"[paste #{self._paste_number} {size}]", text)) or text

    def _add_atom(self, atom: Atom) -> str:
        code = _FIRST_ATOM + len(self._atoms)
        if code > _LAST_ATOM:  # 65,534 pastes in one run: the oldest are surely gone
            self._atoms = {c: a for c, a in self._atoms.items() if c in self.text}
            code = next(c for c in range(_FIRST_ATOM, _LAST_ATOM + 1) if chr(c) not in self._atoms)
            self._undo.clear()
            self._kills.clear()
        self._atoms[chr(code)] = atom
        return chr(code)

    def _protect(self, text: str) -> str:
        """Outside text for the buffer: its private-use characters become atoms."""
        if not _ATOM.search(text):
            return text
        known = set(_ATOM.findall(self.text))

        def protected(match: re.Match[str]) -> str:
            character = match[0]
            if character in known:  # an atom of ours that comes back
                return character
            return self._add_atom(Atom(f"[U+{ord(character):06X}]", character))

        return _ATOM.sub(protected, text)

    # ------------------------------------------------------------ moving

    def left(self) -> None:
        self._moved()
        self.cursor = self.previous(self.cursor)

    def right(self) -> None:
        self._moved()
        self.cursor = self.next(self.cursor)

    def word_left(self) -> None:
        self._moved()
        self.cursor = self._word_start(self.cursor)

    def word_right(self) -> None:
        self._moved()
        self.cursor = self._word_end(self.cursor)

    def line_start(self) -> None:
        self._moved()
        self.cursor = self.text.rfind("\n", 0, self.cursor) + 1

    def line_end(self) -> None:
        self._moved()
        self.cursor = self._line_end(self.cursor)

    def move_to(self, index: int) -> None:
        self._moved()
        self.cursor = min(max(0, index), len(self.text))

    def jump(self, character: str, *, forward: bool) -> bool:
        """Move onto the next (or previous) such character; False when there is none."""
        self._moved()
        if forward:
            at = self.text.find(character, self.cursor + 1)
        else:
            at = self.text.rfind(character, 0, self.cursor)
        if at < 0:
            return False
        self.cursor = at
        return True

    def previous(self, index: int) -> int:
        """The start of the grapheme before a position."""
        if index <= 0:
            return 0
        start = max(0, index - 32, self.text.rfind("\n", 0, index - 1) + 1)
        spans, _ = split_graphemes(self.text[start:index])
        return start + spans[-1][0] if spans else index - 1

    def next(self, index: int) -> int:
        """The end of the grapheme after a position."""
        if index >= len(self.text):
            return len(self.text)
        if self.text[index] == "\n":
            return index + 1
        piece = self.text[index : index + 32].partition("\n")[0]
        spans, _ = split_graphemes(piece)
        return index + spans[0][1]

    def _line_end(self, index: int) -> int:
        end = self.text.find("\n", index)
        return len(self.text) if end < 0 else end

    def _word_start(self, index: int) -> int:
        while index > 0 and not self._in_word(index - 1):
            if self.text[index - 1] in self._atoms:
                return index - 1
            index -= 1
        while index > 0 and self._in_word(index - 1):
            index -= 1
        return index

    def _word_end(self, index: int) -> int:
        while index < len(self.text) and not self._in_word(index):
            if self.text[index] in self._atoms:
                return index + 1
            index += 1
        while index < len(self.text) and self._in_word(index):
            index += 1
        return index

    def _in_word(self, index: int) -> bool:
        character = self.text[index]
        return (
            character.isalnum()
            or character in "_\u200d\ufe0f"
            or (
                not character.isascii()
                and (character not in self._atoms and not character.isspace())
            )
        )

    # ------------------------------------------------------------ deleting

    def delete_left(self) -> None:
        self._delete(self.previous(self.cursor), self.cursor)

    def delete_right(self) -> None:
        self._delete(self.cursor, self.next(self.cursor))

    def _delete(self, start: int, end: int) -> None:
        if start == end:
            return
        self._remember("delete")
        self._splice(start, end, "")

    def kill_word_left(self) -> None:
        self._kill(self._word_start(self.cursor), self.cursor, before=True)

    def kill_word_right(self) -> None:
        self._kill(self.cursor, self._word_end(self.cursor))

    def kill_to_line_start(self) -> None:
        start = self.text.rfind("\n", 0, self.cursor) + 1
        if start == self.cursor and start > 0:
            start -= 1  # at the start of a line: join it to the one above
        self._kill(start, self.cursor, before=True)

    def kill_to_line_end(self) -> None:
        end = self._line_end(self.cursor)
        if end == self.cursor and end < len(self.text):
            end += 1
        self._kill(self.cursor, end)

    def _kill(self, start: int, end: int, *, before: bool = False) -> None:
        if start == end:
            return
        killed = self.text[start:end]
        again = self._last == "kill"
        self._remember("kill")
        if again and self._kills:
            last = self._kills[-1]
            self._kills[-1] = killed + last if before else last + killed
        else:
            self._kills.append(killed)
            del self._kills[:-_KILLS]
        self._splice(start, end, "")

    def yank(self) -> None:
        """Insert the newest killed text."""
        if not self._kills:
            return
        self._remember("yank")
        start = self.cursor
        self._splice(start, start, self._kills[-1])
        self._yanked = (start, self.cursor)

    def yank_pop(self) -> None:
        """Right after a yank: replace what it inserted by the kill before it."""
        if self._last != "yank" or self._yanked is None or len(self._kills) < 2:
            return
        start, end = self._yanked
        self._kills.insert(0, self._kills.pop())
        self._splice(start, end, self._kills[-1])
        self._yanked = (start, self.cursor)

    # ------------------------------------------------------------ undo

    def undo(self) -> None:
        """Go back to the state before the last change."""
        if self._undo:
            earlier = self._undo.pop()
            self.text, self.cursor = earlier.text, earlier.cursor
        self._last = "undo"

    def _remember(self, change: str) -> None:
        """Keep the present state for undo, unless the change goes on with the last one."""
        if change != self._last or change not in ("insert", "delete"):
            self._undo.append(self.snapshot())
            del self._undo[:-_UNDO_STEPS]
        self._last = change

    def _moved(self) -> None:
        self._last = "move"

    def _splice(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]
        self.cursor = start + len(text)
