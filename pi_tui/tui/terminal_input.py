"""From the terminal's characters to keys, pastes and typed text.

Textual's parser does the escape sequences. It sees neither the inside of a bracketed paste nor runs
of plain text, because it takes microseconds for each character; and it is not hurried where a
sequence has fallen apart on its way. Knows no app. Times are seconds of a monotonic clock.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from textual import events
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.message import Message

PASTE_START = "\x1b[200~"
PASTE_END = "\x1b[201~"

PASTE_SILENCE_S = 5.0
"""A paste in which nothing has come for so long is over: its end was lost."""
SEQUENCE_WAIT_S = 0.5
"""How long the rest of a sequence may take that nobody can have typed: it began with `ESC [ 2`."""
LATE_START_S = 2.0
"""How long after its first characters were taken for keys a paste's start mark is recognised."""
LATE_PASTE_CHARS = 16
"""So much in one piece, after a paste was given up, is its continuation and not a key."""

_ESC = "\x1b"
_TYPED = re.compile("[^\x00-\x1f\x7f-\x9f]{2,}")
_BEGUN = re.compile(r"\x1b\[[0-?]+[ -/]*")
_COMPLETE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-Z\\-~]")
_MOUSE_X10 = "\x1b[M"  # three more characters follow
_JOINERS = "\u200c\u200d"


class TypedText(events.InputEvent, bubble=False):
    """Two or more characters that came at once, none of them a control character."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


InputItem: TypeAlias = events.Key | events.Paste | TypedText


class TerminalInput(events.InputEvent, bubble=False):
    """What one read has brought, in order: handled together, without a queue between the keys."""

    def __init__(self, items: tuple[InputItem, ...]) -> None:
        super().__init__()
        self.items = items


def types(character: str | None) -> bool:
    """True for one character that a key may put into a text."""
    if character is None or len(character) != 1:
        return False
    if character.isprintable() or character in _JOINERS:
        return True
    return unicodedata.category(character) == "Zs"  # the ideographic space, for one


class PasteSplitter:
    """Feeds a parser, but keeps pastes and plain text away from it.

    `feed` is called with each read, `tick` when nothing has come until `due_s`.
    """

    def __init__(self, parser: XTermParser, clock: Callable[[], float] = get_time) -> None:
        self._parser = parser
        self._clock = clock
        self._inside = False
        self._parts: list[str] = []
        self._tail = ""
        self._held = ""
        self._read_s = clock()
        self._lost: tuple[str, float] | None = None
        self._given_up = False

    @property
    def due_s(self) -> float | None:
        """When to call `tick`, if nothing comes before."""
        if self._inside:
            return self._read_s + PASTE_SILENCE_S
        due_s = self._parser._timeout_time
        if due_s is not None and _BEGUN.fullmatch(self._held):
            return due_s + SEQUENCE_WAIT_S
        return due_s

    def tick(self) -> Iterator[Message]:
        """The events of having waited in vain."""
        now_s = self._clock()
        due_s = self.due_s
        if due_s is None or now_s < due_s:
            return
        if self._inside:
            yield from self._end_paste("".join([*self._parts, self._tail]))
            self._given_up = True
            return
        self._lost = self._held, now_s
        self._held = ""
        yield from self._parser.tick()

    def feed(self, data: str) -> Iterator[Message]:
        """The events of the next piece of input, in order."""
        if not data:
            return
        self._read_s = self._clock()
        data = self._mend(data)
        while data:
            if self._inside:
                whole, data = self._paste(data)
                if whole is not None:
                    yield from self._end_paste(whole)
                continue
            # A mark may be split over two reads: look for it in what the parser holds, too.
            seen = self._held + data
            at = seen.find(PASTE_START)
            if at < 0:
                yield from self._keys(data)
                return
            end = at + len(PASTE_START) - len(self._held)
            yield from self._keys(data[:end])
            self._inside = True
            self._held = ""
            data = data[end:]

    # ------------------------------------------------------------ pastes

    def _mend(self, data: str) -> str:
        """Put a start mark in the place of one that fell apart, or that a paste has lost."""
        lost, self._lost = self._lost, None
        given_up, self._given_up = self._given_up, False
        if lost is not None and PASTE_START.startswith(lost[0]):
            rest = PASTE_START[len(lost[0]) :]
            if data.startswith(rest) and self._read_s - lost[1] < LATE_START_S:
                return PASTE_START + data[len(rest) :]
        if given_up:
            before_end, end, _ = data.partition(PASTE_END)
            goes_on = end != "" or (len(data) >= LATE_PASTE_CHARS and data[0] != _ESC)
            if goes_on and PASTE_START not in before_end:
                return PASTE_START + data
        return data

    def _paste(self, data: str) -> tuple[str | None, str]:
        """Take paste text; returns the whole once it has ended, and what follows its end."""
        seen = self._tail + data
        at = seen.find(PASTE_END)
        if at < 0:
            self._tail = _unfinished(seen, PASTE_END)
            self._parts.append(seen[: len(seen) - len(self._tail)])
            return None, ""
        return "".join([*self._parts, seen[:at]]), seen[at + len(PASTE_END) :]

    def _end_paste(self, text: str) -> Iterator[Message]:
        self._parts.clear()
        self._tail = ""
        self._inside = False
        for event in self._parser.feed(PASTE_END):
            yield _with_text(event, text)

    # ------------------------------------------------------------ keys

    def _keys(self, data: str) -> Iterable[Message]:
        at = 0
        while at < len(data):
            if not self._held:
                run = _TYPED.match(data, at)
                if run is not None:
                    yield TypedText(run[0])
                    at = run.end()
                    continue
            character = data[at]
            at += 1
            yield from self._parser.feed(character)
            if self._parser._timeout_time is None:
                self._held = ""
            else:
                self._held = _ESC if character == _ESC else self._held + character
                self._drop_unknown()

    def _drop_unknown(self) -> None:
        """Let a complete sequence go that the parser does not know.

        It would wait for more, and take the next keys for it.
        """
        if _COMPLETE.fullmatch(self._held) and self._held != _MOUSE_X10:
            self._held = ""
            self._parser._timeout_time = 0.0
            for _ in self._parser.tick():
                pass  # its characters are nobody's keys


def _with_text(event: Message, text: str) -> Message:
    return events.Paste(text.replace("\x00", "")) if isinstance(event, events.Paste) else event


def _unfinished(text: str, mark: str) -> str:
    """The longest end of the text that could be the beginning of the mark."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-length:]):
            return text[-length:]
    return ""
