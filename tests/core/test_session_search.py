"""The query language, and regular expressions that cannot hang."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import UsageError
from pi_tui.core.linear_pattern import LinearPattern
from pi_tui.core.session_search import Match, hit_spans, match, match_any, parse_query


def spans_text(query: str, text: str) -> list[str] | None:
    found = match(parse_query(query), text)
    return None if found is None else [text[start:end] for start, end in found.spans]


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("", "anything", []),
        ("HELIO", "remember Heliotrope", ["Helio"]),
        ("helio remember", "remember heliotrope", ["remember", "helio"]),
        ("helio absent", "remember heliotrope", None),
        ("hltrp", "remember heliotrope", ["h", "l", "tr", "p"]),
        ("hltrp", "h, and after many other words l t r p", None),
        ("ab", "a b", None),
        ('"the word"', "Remember The Word now", ["The Word"]),
        ('"the word"', "the  word", None),
        ('"the wo', "the word", ["the wo"]),
        ('"', "the word", []),
        (r"re:he\w+pe", "remember heliotrope", ["heliotrope"]),
        (r're:"the \w+" remember', "remember the word", ["remember", "the word"]),
        ("re:^b", "a\nb", ["b"]),
        ("re:", "a", []),
        ("re:x*", "aaa", []),
        ("aa", "aaaa", ["aaaa"]),
        ("i", "İi", ["i"]),
        ("é", "CAFÉ", ["É"]),
    ],
)
def test_what_fits(query: str, text: str, expected: list[str] | None) -> None:
    assert spans_text(query, text) == expected


def test_better_places_score_more() -> None:
    texts = ["tree view", "the tree", "a subtree", "t r e e", "nothing"]
    scores = [m.score if (m := match(parse_query("tree"), text)) else 0.0 for text in texts]
    assert scores == sorted(scores, reverse=True)
    assert scores[2] > scores[3] > scores[4] == 0.0


def test_terms_may_fit_different_texts() -> None:
    query = parse_query("garden roses")
    number, found = match_any(query, ["The garden plan", "nothing", "water the roses and roses"])
    assert isinstance(found, Match)
    assert number in (0, 2)
    assert match_any(query, ["The garden plan", "nothing"])[1] is None
    assert match_any(parse_query("re:roses the"), ["x", "the roses"])[0] == 1


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "not closed"),
        (")", "without a ("),
        ("[a", "not closed"),
        ("*a", "nothing to repeat"),
        ("a**", "repeated"),
        ("a{5,2}", "smaller number"),
        ("a{9999}", "at most"),
        ("a\\", "ends with a backslash"),
        ("(?=a)", "ahead or behind"),
        (r"(a)\1", "references"),
        (r"\q", "means nothing"),
        ("[z-a]", "upside down"),
        (r"[a-\d]", "one character"),
        (r"\U99999999", "number of a character"),
        ("(" * 60 + ")" * 60, "too deeply"),
        ("((a{90}){90}){90}", "too large"),
    ],
)
def test_a_wrong_pattern_is_refused_in_words(pattern: str, words: str) -> None:
    with pytest.raises(UsageError, match="pattern") as caught:
        parse_query(f're:"{pattern}"')
    assert words in caught.value.message


@pytest.mark.parametrize(
    "pattern", ["(a+)+b", "(a|aa)+$x", "a*a*a*a*a*a*b", "(.*a){10}b", "(a?){30}a{30}b", "(x+x+)+y"]
)
def test_no_pattern_hangs(pattern: str) -> None:
    text = ("a" * 5_000 + "x" * 5_000) * 4
    query = parse_query(f're:"{pattern}"')
    before_s = time.process_time()
    try:
        match(query, text)
    except UsageError as error:
        assert "too costly" in error.message
    assert time.process_time() - before_s < 5


def test_states_that_explode_are_refused_or_bounded() -> None:
    text = "".join(random.Random(7).choices("ab", k=60_000))
    before_s = time.process_time()
    with pytest.raises(UsageError, match="too costly"):
        match(parse_query("re:(a|b)*a(a|b){60}c"), text)
    assert time.process_time() - before_s < 10


ATOMS = ["a", "b", "c", ".", "[ab]", "[^a]", r"\w", r"\s", r"\b", "^", "$", r"\d", "x", " "]


def patterns() -> st.SearchStrategy[str]:
    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        repeat = st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{,2}", "*?", "+?"])
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
            st.tuples(inner, repeat).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        )

    return st.recursive(st.sampled_from(ATOMS), grow, max_leaves=6)


@settings(max_examples=300, deadline=None)
@given(patterns(), st.text("abcx \n1A", max_size=12))
def test_it_finds_what_python_finds(pattern: str, text: str) -> None:
    expected = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    found = LinearPattern(pattern).find(text)
    theirs = expected.search(text)
    assert (found is None) == (theirs is None)
    if found is not None and theirs is not None:
        start, end = found
        assert expected.fullmatch(text, start, end) or _fits_in_place(expected, text, start, end)
        assert end >= theirs.start()


def _fits_in_place(pattern: re.Pattern[str], text: str, start: int, end: int) -> bool:
    """Anchors see the text around a match, which `fullmatch` with bounds hides."""
    anchored = re.compile(rf"(?:{pattern.pattern})(?<=\A[\s\S]{{{end}}})", pattern.flags)
    return anchored.match(text, start) is not None


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=20), st.text(max_size=30))
def test_any_query_gives_ordered_spans_or_words(query: str, text: str) -> None:
    try:
        found = match(parse_query(query), text)
    except UsageError as error:
        assert error.message
        return
    if found is not None:
        flat = [place for span in found.spans for place in span]
        assert flat == sorted(flat)
        assert all(0 <= start < end <= len(text) for start, end in found.spans)


def test_marked_hits_of_all_terms_never_lie_over_another() -> None:
    text = "remember heliotrope"
    spans = hit_spans(parse_query("helio heliotrope absent member"), text)
    assert [text[start:end] for start, end in spans] == ["member", "heliotrope"]


def test_a_pattern_that_is_too_costly_marks_nothing_and_the_others_are_marked() -> None:
    query = parse_query("re:(a|b)*a(a|b){60}c needle")
    text = "needle " + "".join(random.Random(7).choices("ab", k=60_000))
    with pytest.raises(UsageError, match="too costly"):
        match(query, text)
    assert hit_spans(query, text)[0] == (0, 6)
