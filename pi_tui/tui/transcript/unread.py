"""Parts of a conversation that are read only when somebody looks at them.

A transcript is given them among its blocks; it reads one when it comes into sight, and may forget
it again. Here stands only what a transcript asks of such a part, not where it is kept.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from msgspec import Struct

from pi_tui.core.transcript import ABORTED_NOTICE, NO_RESULT, Block

ROWS_PER_ENTRY = 6
"""A guess at the height of what was never read."""

_RUN = re.compile(r"[A-Za-z_]+")
_MADE_WORDS = frozenset(
    _RUN.findall(
        f"{ABORTED_NOTICE} {NO_RESULT} the model request failed the answer was cut at the output "
        "limit empty answer image in not JSON".lower()
    )
)
"""Words that are shown without standing in the stored line."""


class Unread(ABC):
    """Blocks that stand elsewhere; reading gives the same ones each time.

    `key` differs from those of all blocks; `entries`: how many it is read from.
    """

    __slots__ = ("entries", "key")

    def __init__(self, key: str, entries: int) -> None:
        self.key = key
        self.entries = entries

    @property
    def rows(self) -> int:
        """A guess at its height."""
        return self.entries * ROWS_PER_ENTRY

    @property
    @abstractmethod
    def has_user_messages(self) -> bool: ...

    @property
    @abstractmethod
    def has_outputs(self) -> bool:
        """True when there is surely something that can be opened; False: that is not known."""

    @abstractmethod
    def holds(self, block_key: str) -> bool:
        """True when the block of that key is one of these."""

    @abstractmethod
    def read(self) -> list[Block]:
        """The blocks, root to leaf; one that says so when they cannot be read."""

    @abstractmethod
    def read_if(self, clue: Clue) -> list[Block] | None:
        """The blocks, or None when the clue says they need not be read. For another thread."""


class Clue(Struct, frozen=True):
    """What a stored line has to contain for a search to find something in it; "" : anything."""

    word: bytes = b""
    ignore_case: bool = True

    def fits(self, line: bytes) -> bool:
        """False when what the line says cannot be found; it is not decoded for that."""
        if not self.word or b"\\u" in line:
            return True
        if not self.ignore_case:
            return self.word in line
        if self.word in line.lower():
            return True
        # Letters outside ASCII that count as k, s or i when case does not matter.
        return not line.isascii() and any(letter in line for letter in _KIN)


_KIN = tuple(letter.encode() for letter in "\u212a\u017f\u0130\u0131")


def clue_of(query: str, *, ignore_case: bool) -> Clue:
    """The longest word of a query that stands in a line as it is shown."""
    runs = (run for run in _RUN.findall(query) if len(run) > 2)
    plain = (run for run in runs if run.lower() not in _MADE_WORDS and run.lower().strip("abcdef"))
    word = max(plain, key=len, default="")
    return Clue((word.lower() if ignore_case else word).encode(), ignore_case)
