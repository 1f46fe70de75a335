"""Copying to the clipboard through the terminal (OSC 52): over SSH too, and without a program."""

from __future__ import annotations

import base64

MAX_COPY_BYTES = 1_000_000
"""Terminals drop longer sequences, some of them without a sign."""


def copy_sequence(text: str, *, inside_tmux: bool = False) -> str | None:
    """The bytes that make the terminal take the text; None when it is too long for that."""
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_COPY_BYTES:
        return None
    sequence = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    if inside_tmux:  # tmux passes it on only wrapped, with every ESC doubled
        wrapped = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{wrapped}\x1b\\{sequence}"
    return sequence
