"""One line that is typed: text at its end is added and taken away. Pure."""

from __future__ import annotations

from rich.cells import split_graphemes

MAX_CHARS = 2_000


class LineInput:
    """The text of a search or a label."""

    def __init__(self) -> None:
        self.text = ""

    def set(self, text: str) -> None:
        self.text = " ".join(text.split("\n"))[:MAX_CHARS]

    def insert(self, text: str) -> None:
        """Add typed or pasted text; line ends become blanks."""
        self.set(self.text + text.replace("\r", "\n").replace("\t", " "))

    def clear(self) -> None:
        self.text = ""

    def delete_left(self) -> None:
        """Take away the last character as a person sees it."""
        tail_start = max(0, len(self.text) - 32)
        spans, _ = split_graphemes(self.text[tail_start:])
        self.text = self.text[: tail_start + spans[-1][0]] if spans else self.text[:-1]

    def delete_word(self) -> None:
        kept = self.text.rstrip()
        self.text = kept[: kept.rfind(" ") + 1]
