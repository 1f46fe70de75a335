"""How a query fits an entry of the tree: as in a list of sessions, but stricter in what was said.

In names, labels and commands a word may be typed loosely. In sentences its letters are found one
after the other almost anywhere, so there the word, or a part of one, has to stand.
"""

from __future__ import annotations

from collections.abc import Iterable

from pi_tui.core.session_search import Query, Span, Term, hit_spans, match
from pi_tui.core.tree_rows import EntryTexts

NAME_CHARS = 100
"""A longer name, such as the text of a file among the arguments of a call, is no name."""


class EntryQuery:
    """One query in both strictnesses; false without terms."""

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

    def fits(self, texts: EntryTexts) -> bool:
        """True when each term fits one of the texts. Raises UsageError for too costly patterns."""
        return all(
            any(match(loose if _is_name(name) else strict, name) for name in texts.names)
            or any(match(strict, body) for body in texts.bodies)
            for loose, strict in self._terms
        )

    def row_spans(self, row: str) -> list[Span]:
        """Where the terms fit the line of a row: strictly, else as a name."""
        return hit_spans(self._strict, row) or (
            hit_spans(self._loose, row) if _is_name(row) else []
        )

    def first_place(self, texts: EntryTexts) -> tuple[str, Span] | None:
        """The first text in which a term is found, and where."""
        for query, some in ((self._strict, texts.names + texts.bodies), (self._loose, texts.names)):
            found = _first(query, some)
            if found is not None:
                return found
        return None


def _first(query: Query, texts: Iterable[str]) -> tuple[str, Span] | None:
    for text in texts:
        spans = hit_spans(query, text)
        if spans:
            return text, spans[0]
    return None


def _is_name(text: str) -> bool:
    return len(text) <= NAME_CHARS
