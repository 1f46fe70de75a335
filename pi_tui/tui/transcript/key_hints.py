"""Names of the keys that are mentioned in the transcript."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyHints:
    """What people press to see more: tool output and summaries, thinking, the end.

    `more` is what stands on the last line in place of the way to the end, where that is not wanted.
    `focus` goes to a block that can be opened; `toggle`, `copy`, `origin` (of a branch summary) and
    `leave` are for the one that has the focus.
    """

    expand: str = "ctrl+o"
    thinking: str = "ctrl+t"
    latest: str = "ctrl+end"
    more: str = ""
    focus: str = "alt+shift+up"
    toggle: str = "enter"
    copy: str = "ctrl+x"
    origin: str = "tab"
    leave: str = "esc"
