"""Cutting text to the limits of an answer, from its beginning or its end, by lines and bytes.

A cut never falls inside a character. Lines are counted by newlines; a last line without one counts.
"""

from __future__ import annotations

from msgspec import Struct

from pi_tui.tools.visible_text import size_bytes


class Kept(Struct, frozen=True):
    """What a cut leaves. `partial_line`: not even one whole line fitted, a part of it is given."""

    text: str
    lines: int
    whole: bool
    partial_line: bool = False


def count_lines(text: str) -> int:
    """Lines of a text; an unfinished last line counts."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def keep_end(text: str, max_lines: int, max_bytes: int) -> Kept:
    """Keep the last lines that fit both limits; of one too long line, its end."""
    if len(text) <= max_bytes and size_bytes(text) <= max_bytes and count_lines(text) <= max_lines:
        return Kept(text, count_lines(text), True)
    # A character takes at least one byte, so nothing before this window can be kept.
    window = text[-max_bytes:]
    starts_whole = len(window) == len(text) or text[-len(window) - 1] == "\n"
    end = "\n" if window.endswith("\n") else ""
    lines = (window[:-1] if end else window).split("\n")
    kept: list[str] = []
    used = len(end) - 1
    for index in range(len(lines) - 1, -1, -1):
        if index == 0 and not starts_whole:
            break
        cost = size_bytes(lines[index]) + 1
        if len(kept) == max_lines or used + cost > max_bytes:
            break
        kept.append(lines[index])
        used += cost
    if kept:
        return Kept("\n".join(reversed(kept)) + end, len(kept), False)
    room = max_bytes - len(end)
    last = lines[-1].encode("utf-8", "surrogatepass")[-room:].decode("utf-8", "ignore")
    return Kept(last + end, 1, False, partial_line=True)


def keep_start(lines: list[str], max_lines: int, max_bytes: int) -> list[str]:
    """The first lines that fit both limits, joined by newlines."""
    used = -1
    for index, line in enumerate(lines):
        used += size_bytes(line) + 1
        if index == max_lines or used > max_bytes:
            return lines[:index]
    return lines


def cut_line(line: str, max_chars: int, *, around: int = 0) -> str:
    """Shorten one line to about `max_chars` characters so that the character `around` is shown."""
    if len(line) <= max_chars:
        return line
    start = 0 if around < max_chars * 4 // 5 else around - max_chars // 5
    end = min(len(line), start + max_chars)
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
