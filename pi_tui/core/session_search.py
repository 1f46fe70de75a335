"""The query language of lists of sessions and of the tree: what a person types, and what fits it.

Terms are separated by blanks and all of them must fit. A plain term is fuzzy: it fits where it
stands, or where its letters follow each other closely. `"a phrase"` fits only as it stands.
`re:pattern` is a regular expression (`re:"with blanks"` in quotes); it runs in time that follows
the length of the text, so no pattern can hang the program. Letter case never counts. Long texts
are searched up to a bound; see the constants. Spans are character offsets into the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.errors import UsageError
from pi_tui.core.linear_pattern import LinearPattern

MAX_SCATTERED_CHARS = 20_000
"""How far into a text the letters of a fuzzy term are looked for when it does not stand there."""
MAX_PATTERN_CHARS = 200_000
"""How far into a text a regular expression is looked for."""
MAX_SPANS = 50

_EXACT_SCORE = 100.0
_PLAIN_SCORE = 80.0
_PATTERN_SCORE = 60.0
_SCATTERED_SCORE = 40.0
_START_BONUS = 20.0
_WORD_BONUS = 10.0
_LOOSENESS = 2
"""The letters of a fuzzy term may be spread over this many times its length, and a bit more."""
_SLACK_CHARS = 4
_MIN_SCATTERED_CHARS = 3

Span: TypeAlias = tuple[int, int]


class Term(Struct, frozen=True):
    """One part of a query. `pattern` is set for the kind "pattern" only."""

    kind: Literal["fuzzy", "exact", "pattern"]
    text: str
    pattern: LinearPattern | None = None


class Query(Struct, frozen=True):
    """A parsed query; without terms everything fits."""

    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)


class Match(Struct, frozen=True):
    """How well a text fits (more is better) and where: spans in order, none touching another."""

    score: float = 0.0
    spans: tuple[Span, ...] = ()


_TERM = re.compile(
    r'\s*(?:re:"(?P<quoted>[^"]*+)"?|re:(?P<pattern>\S*+)|"(?P<exact>[^"]*+)"?|(?P<plain>[^\s"]++))'
)


def parse_query(text: str) -> Query:
    """Read a query. Raises UsageError for a pattern that cannot be used.

    A quote that is not closed reaches to the end, so that a query works while it is being typed.
    """
    terms: list[Term] = []
    for found in _TERM.finditer(text.rstrip()):
        pattern = found["quoted"] or found["pattern"]
        if pattern:
            terms.append(Term("pattern", pattern, LinearPattern(pattern)))
        elif found["exact"] and found["exact"].strip():
            terms.append(Term("exact", fold(found["exact"])))
        elif found["plain"]:
            terms.append(Term("fuzzy", fold(found["plain"])))
    return Query(tuple(terms))


def match(query: Query, text: str) -> Match | None:
    """How a text fits a query; None when one of the terms does not.

    Raises UsageError when a regular expression turns out to be too costly.
    """
    return match_any(query, (text,))[1]


def match_any(query: Query, texts: Iterable[str]) -> tuple[int, Match | None]:
    """Fit a query to several texts of one thing: each term must fit one of them.

    Returns the number of the text that fits best, with its own spans; the score counts all terms.
    """
    if not query.terms:
        return 0, Match()
    best = [0.0] * len(query.terms)
    shown: tuple[int, int, float] = (0, -1, 0.0)  # terms that fit, minus number, score
    spans: list[Span] = []
    for number, text in enumerate(texts):
        folded = fold(text)
        found = [_match_term(term, text, folded) for term in query.terms]
        best = [max(b, f[0] if f else 0.0) for b, f in zip(best, found, strict=True)]
        here = [f for f in found if f is not None]
        rank = len(here), -number, sum(score for score, _ in here)
        if here and (rank[0], rank[2]) > (shown[0], shown[2]):
            shown, spans = rank, [span for _, some in here for span in some]
    if not all(best):
        return 0, None
    return -shown[1], Match(sum(best) / len(best), tuple(_joined(spans)))


def hit_spans(query: Query, text: str) -> list[Span]:
    """Where any of the terms fits a text, in order, none over another: what is to be marked."""
    spans: list[Span] = []
    for term in query.terms:
        try:
            found = match(Query((term,)), text)
        except UsageError:  # too costly a pattern: the search has said so
            continue
        spans += found.spans if found is not None else ()
    return _joined(span for span in spans if span[0] < span[1])


def fold(text: str) -> str:
    """The text in small letters, with every character at the place it had."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _match_term(term: Term, text: str, folded: str) -> tuple[float, list[Span]] | None:
    if term.pattern is not None:
        spans = term.pattern.spans(text[:MAX_PATTERN_CHARS], MAX_SPANS)
        return None if spans is None else (_PATTERN_SCORE + _place_bonus(folded, spans), spans)
    spans = _occurrences(term.text, folded)
    if spans:
        score = _EXACT_SCORE if term.kind == "exact" else _PLAIN_SCORE
        return score + _place_bonus(folded, spans), spans
    if term.kind == "exact" or len(term.text) < _MIN_SCATTERED_CHARS:
        return None
    return _scattered(term.text, folded[:MAX_SCATTERED_CHARS])


def _occurrences(wanted: str, folded: str) -> list[Span]:
    spans: list[Span] = []
    at = folded.find(wanted)
    while at >= 0 and len(spans) < MAX_SPANS:
        spans.append((at, at + len(wanted)))
        at = folded.find(wanted, at + len(wanted))
    return spans


def _place_bonus(folded: str, spans: list[Span]) -> float:
    if not spans:
        return 0.0
    if spans[0][0] == 0:
        return _START_BONUS
    return max((_WORD_BONUS for start, _ in spans if _begins_word(folded, start)), default=0.0)


def _begins_word(folded: str, at: int) -> bool:
    return at == 0 or not folded[at - 1].isalnum()


def _scattered(wanted: str, folded: str) -> tuple[float, list[Span]] | None:
    """The letters in order within a few words' reach; the tightest place counts."""
    reach = len(wanted) * _LOOSENESS + _SLACK_CHARS
    best: list[int] | None = None
    start = folded.find(wanted[0])
    while start >= 0:
        places = _letters(wanted, folded, start, start + reach)
        if places is not None and (best is None or places[-1] - places[0] < best[-1] - best[0]):
            best = places
        start = folded.find(wanted[0], start + 1)
    if best is None:
        return None
    gaps = best[-1] - best[0] + 1 - len(wanted)
    score = _SCATTERED_SCORE - 20.0 * gaps / reach
    if _begins_word(folded, best[0]):
        score += _WORD_BONUS
    return score, [(place, place + 1) for place in best]


def _letters(wanted: str, folded: str, start: int, end: int) -> list[int] | None:
    places = [start]
    for letter in wanted[1:]:
        at = folded.find(letter, places[-1] + 1, end)
        if at < 0:
            return None
        places.append(at)
    return places


def _joined(spans: Iterable[Span]) -> list[Span]:
    """The same characters in as few spans as possible, in order."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
