"""Foreign text made fit for an answer: control characters as visible stand-ins, no surrogates.

The stand-ins of the C0 controls are one character each (U+2400 to U+241F, U+2421), so that an edit
can find the original character by its stand-in. Sizes are UTF-8 bytes.
"""

from __future__ import annotations

import re

_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")

CONTROL_PICTURES: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)},
    0x7F: "\u2421",
}


def _stand_in(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code >= 0xD800:
        return "\ufffd"
    return CONTROL_PICTURES.get(code) or f"\\x{code:02x}"


def visible(text: str) -> str:
    """Replace control characters but newline and tab by stand-ins, lone surrogates by U+FFFD."""
    return _UNFIT.sub(_stand_in, text)


def visible_line(text: str) -> str:
    """Like `visible`, for one line: newline and tab become stand-ins too."""
    return visible(text).replace("\n", "\u240a").replace("\t", "\u2409")


def size_bytes(text: str) -> int:
    """How many bytes the text takes in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def readable_size(count: int) -> str:
    """A number of bytes for people: `812 bytes`, `50 kB`, `1.4 MB`."""
    if count < 1024:
        return f"{count} byte" + ("" if count == 1 else "s")
    value = float(count)
    for unit in ("kB", "MB", "GB", "TB"):
        value /= 1024
        if value < 1024 or unit == "TB":
            break
    return f"{value:.0f} {unit}" if value >= 20 or value == int(value) else f"{value:.1f} {unit}"


def plural(count: int, noun: str) -> str:
    """`1 line`, `2 lines`, `1 match`, `2 matches`, `3 entries`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{count} {noun[:-1]}ies"
    return f"{count} {noun}" + ("es" if noun.endswith(("ch", "s")) else "s")
