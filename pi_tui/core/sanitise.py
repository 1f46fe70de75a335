"""Foreign text made safe for a terminal: the one choke point in front of every screen.

Foreign is whatever this program did not write itself: model replies, tool output and arguments,
file names, pasted text, error texts. `sanitise` is for text people read: whole escape sequences
vanish, other control characters and those that turn or hide text become visible stand-ins.
`reveal` is for text somebody must judge before it runs (a command, a path): there nothing vanishes,
because a shell executes what a terminal would swallow. All functions are linear in the text.
This module knows nothing of styles, widths or markup; lengths are in characters.
"""

from __future__ import annotations

import re

MAX_STRING_SEQUENCE_CHARS = 8_192
"""Longest OSC, DCS, APC, PM or SOS body taken for a sequence; a longer one is shown as text.

So is an OSC that does not end on its line: an opener without an end must not swallow a page.
"""

_SUSPICIOUS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

# A body holds no ESC and no C1, so that no scan runs over the start of another sequence: that
# keeps a text of a million openers linear.
_OSC = r"(?:\x1b\]|\x9d)" + rf"[^\n\x07\x1b\x80-\x9f]{{0,{MAX_STRING_SEQUENCE_CHARS}}}+"
_DCS = r"(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])" + (
    rf"[^\x07\x1b\x80-\x9f]{{0,{MAX_STRING_SEQUENCE_CHARS}}}+"
)
_STRING = rf"(?:{_OSC}|{_DCS})"
_CSI_OPENER = r"(?:\x1b\[|\x9b)"
_CSI_INSIDE = r"[0-?]{0,256}+[ -/]{0,16}+"

_SEQUENCE = (
    rf"{_CSI_OPENER}{_CSI_INSIDE}[@-~]"
    rf"|{_STRING}(?:\x07|\x9c|\x1b\\)"
    r"|\x1b[ -/]{0,16}+[0-~]"
)
_PAIR = r"[\ud800-\udbff][\udc00-\udfff]"
_OTHER = _SUSPICIOUS.pattern

_TOKEN = re.compile(rf"(?P<gone>{_SEQUENCE})|(?P<cr>\r{{1,1024}}+\n?)|(?P<pair>{_PAIR})|{_OTHER}")
_SHOWN_TOKEN = re.compile(rf"(?P<cr>\r{{1,1024}}+\n?)|(?P<pair>{_PAIR})|{_OTHER}")

# Alternatives that reach the end of what has arrived and could mean something else with more.
_OPEN_TAIL = (
    rf"(?:{_CSI_OPENER}{_CSI_INSIDE}|{_STRING}\x1b?+"
    r"|\x1b[ -/]{0,16}+|\r{1,1024}+|[\ud800-\udbff])\Z"
)
_STREAM_TOKEN = re.compile(rf"(?P<open>{_OPEN_TAIL})|{_TOKEN.pattern}")

_FLATTEN = str.maketrans({"\n": " ", "\t": " "})
_FLATTEN_VISIBLY = str.maketrans({"\n": "␊", "\t": "␉"})


def sanitise(text: str) -> str:
    """Return the text with escape sequences removed and other controls shown; keep \\n and \\t."""
    if _SUSPICIOUS.search(text) is None:
        return text
    return _TOKEN.sub(_replacement, text)


def sanitise_line(text: str) -> str:
    """Sanitise a text for one line: line ends and tabs become spaces."""
    return sanitise(text).translate(_FLATTEN)


def reveal(text: str) -> str:
    """Return the text with every control character shown and nothing removed; keep \\n and \\t."""
    if _SUSPICIOUS.search(text) is None:
        return text
    return _SHOWN_TOKEN.sub(_replacement, text)


def reveal_line(text: str) -> str:
    """Reveal a text on one line: line ends and tabs are shown as well."""
    return reveal(text).translate(_FLATTEN_VISIBLY)


class StreamSanitiser:
    """Sanitise a text that arrives in pieces.

    The outputs joined equal `sanitise` of the inputs joined, wherever they were cut. At most one
    unfinished sequence is held back, bounded by `MAX_STRING_SEQUENCE_CHARS`.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, chunk: str) -> str:
        """Return what is certain so far of the text up to the end of `chunk`."""
        text = self._held + chunk if self._held else chunk
        self._held = ""
        if _SUSPICIOUS.search(text) is None:
            return text
        return _STREAM_TOKEN.sub(self._replacement, text)

    def finish(self) -> str:
        """Return the rest; the sanitiser is empty afterwards."""
        held, self._held = self._held, ""
        return sanitise(held)

    def _replacement(self, match: re.Match[str]) -> str:
        if match["open"] is not None:
            self._held = match["open"]
            return ""
        return _replacement(match)


def _replacement(match: re.Match[str]) -> str:
    found = match.group()
    kind = match.lastgroup
    if kind == "gone":
        return ""
    if kind == "cr":
        # "\r\n", and the "\r\r\n" a pseudo-terminal makes of it, is one line end.
        return "\n" if found[-1] == "\n" else "␍" * len(found)
    if kind == "pair":
        return chr(0x10000 + ((ord(found[0]) - 0xD800) << 10) + (ord(found[1]) - 0xDC00))
    code = ord(found)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    if 0xD800 <= code <= 0xDFFF:
        return "\N{REPLACEMENT CHARACTER}"
    return f"‹U+{code:04X}›"
