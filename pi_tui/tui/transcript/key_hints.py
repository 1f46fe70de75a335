"""Names of the keys that are mentioned in the transcript."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyHints:
    """What people press to see more: tool output and summaries, thinking, the end."""

    expand: str = "ctrl+o"
    thinking: str = "ctrl+t"
    latest: str = "ctrl+end"
