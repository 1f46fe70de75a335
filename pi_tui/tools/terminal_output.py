"""Turns what a program writes for a terminal into plain text, as it comes in, in linear time.

`EscapeRemover` drops escape sequences, also when they are split between pieces. `OutputTail` keeps
the end of the text in bounded memory and carries out carriage returns and backspaces, so that of a
progress bar only its last state stays. Sizes are characters and UTF-8 bytes.
"""

from __future__ import annotations

import re
from collections import deque

from pi_tui.tools.visible_text import size_bytes

_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x18\x1a\x1b\n\x80-\x9f]*+"
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # control sequence: colours, cursor
    rf"|{_STRING}(?:\x07|\x1b\\|\x9c)"  # string: title, link, clipboard, device control
    r"|\x1b[ -/]*+[0-~]"  # short sequences, and the beginning of unfinished ones
    r"|[\x80-\x9f]"
)
_UNFINISHED = re.compile(rf"(?:(?:\x1b\[|\x9b)[0-?]*+[ -/]*+|{_STRING}\x1b?|\x1b[ -/]*+)\Z")
_HOLD_CHARS = 64 * 1024
_REST = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]")


class EscapeRemover:
    """Removes escape sequences and control characters but tab, newline, CR and backspace."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Clean one piece; an unfinished sequence at its end waits for the next piece."""
        text = self._held + text
        self._held = ""
        start = self._unfinished(text)
        if start is not None:
            self._held, text = text[start:], text[:start]
        return self._clean(text)

    def finish(self) -> str:
        """What is left when nothing follows."""
        text, self._held = self._held, ""
        return self._clean(text)

    def _unfinished(self, text: str) -> int | None:
        if text.isascii() and "\x1b" not in text[-_HOLD_CHARS:]:
            return None
        offset = max(0, len(text) - _HOLD_CHARS)
        match = _UNFINISHED.search(text, offset)
        return match.start() if match else None

    def _clean(self, text: str) -> str:
        if not text.isascii() or "\x1b" in text:
            text = _ESCAPE.sub("", text)
        return _REST.sub("", text)


def settle(line: str) -> str:
    """What a line with carriage returns and backspaces ends up as: its last written state."""
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part), "")
    if "\b" not in line:
        return line
    kept: list[str] = []
    for char in line:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)


class OutputTail:
    """The last `keep_chars` or more characters of a text, and counts of all of it."""

    def __init__(self, keep_chars: int) -> None:
        self._keep_chars = keep_chars
        self._blocks: deque[str] = deque()
        self._chars = 0
        self._open: list[str] = []  # the line that has no newline yet
        self._open_chars = 0
        self._open_bytes_cut = 0
        self._lines = 0
        self._bytes = 0
        self.dropped = False

    def feed(self, text: str) -> None:
        """Add text that is free of escape sequences."""
        ended, newline, rest = text.rpartition("\n")
        if newline:
            block = self._take_open() + ended
            if "\r" in block or "\b" in block:
                block = "\n".join(map(settle, block.split("\n")))
            self._push(block + "\n")
        if rest:
            self._extend_open(rest)

    @property
    def lines(self) -> int:
        """All lines so far, the unfinished one too."""
        return self._lines + (1 if self._open else 0)

    @property
    def bytes(self) -> int:
        """Bytes of all settled text so far."""
        return self._bytes + self._open_bytes_cut + size_bytes(settle("".join(self._open)))

    def text(self) -> str:
        """The end of the text: everything, unless `dropped`."""
        return "".join(self._blocks) + settle("".join(self._open))

    def _push(self, block: str) -> None:
        self._lines += block.count("\n")
        self._bytes += size_bytes(block)
        if len(block) > 2 * self._keep_chars:
            block = block[-self._keep_chars :]
            self.dropped = True
        self._blocks.append(block)
        self._chars += len(block)
        while self._chars - len(self._blocks[0]) >= self._keep_chars:
            self._chars -= len(self._blocks.popleft())
            self.dropped = True

    def _take_open(self) -> str:
        line = "".join(self._open)
        self._open.clear()
        self._open_chars = 0
        self._bytes += self._open_bytes_cut
        self._open_bytes_cut = 0
        return line

    def _extend_open(self, text: str) -> None:
        if "\r" in text:
            line = "".join(self._open) + text
            # A CR at the end may be half of a line end; it must not erase the line yet.
            begin = line.rstrip("\r").rfind("\r") + 1
            self._open = [line[begin:]]
            self._open_chars = len(self._open[0])
            self._open_bytes_cut = 0 if begin else self._open_bytes_cut
        else:
            self._open.append(text)
            self._open_chars += len(text)
        if self._open_chars > 2 * self._keep_chars:
            line = "".join(self._open)
            cut = len(line) - self._keep_chars
            self._open_bytes_cut += size_bytes(line[:cut])
            self._open = [line[cut:]]
            self._open_chars = self._keep_chars
            self.dropped = True
