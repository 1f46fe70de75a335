"""How a query fits an entry of the tree: as in a list of sessions, but stricter in long texts.

In names, labels and commands a word may be typed loosely. In a text of many words its letters are
found one after the other almost anywhere, so there the word, or a part of one, has to stand.
"""

from __future__ import annotations

from collections.abc import Sequence

from pi_tui.core.session_search import Query, Span, Term, hit_spans, match

SHORT_CHARS = 100
"""Up to this length, and on one line, a text may be found by scattered letters."""


class EntryQuery:
    """One query in both strictnesses. Without terms it fits nothing and is false."""

    def __init__(self, query: Query) -> None:
        strict = tuple(
            Term("exact", term.text) if term.kind == "fuzzy" else term for term in query.terms
        )
        self._loose, self._strict = query, Query(strict)
        self._terms = [
            (Query((loose,)), Query((exact,)))
            for loose, exact in zip(query.terms, strict, strict=True)
        ]

    def __bool__(self) -> bool:
        return bool(self._loose)

    def fits(self, texts: Sequence[str]) -> bool:
        """True when each term fits one of the texts. Raises UsageError for too costly patterns."""
        return all(
            any(match(loose if is_short(text) else strict, text) is not None for text in texts)
            for loose, strict in self._terms
        )

    def spans(self, text: str) -> list[Span]:
        """Where the terms fit one of the texts, in order."""
        return hit_spans(self._loose if is_short(text) else self._strict, text)


def is_short(text: str) -> bool:
    """True for names, labels, commands and the like."""
    return len(text) <= SHORT_CHARS and "\n" not in text
