import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len, get_character_cell_size
from rich.style import Style

from pi_tui.tui.transcript.wrap import chop, clip, clusters, cut_hard, is_simple, wrap

BOLD = Style(bold=True)
PLAIN = Style()
AWKWARD = [
    "日本語のテキスト",
    "👩‍👩‍👧‍👦",
    "❤️",
    "e\u0301",
    "\u200d",
    "\u200da",
    "\ufe0f",
    "שלום עולם",
    " ",
    "  ",
    "word",
    "averyveryverylongwordwithoutanyblank",
    "🇩🇪",
    "한국어",
    "„quotes“ — dash …",
]
texts = st.lists(
    st.one_of(st.sampled_from(AWKWARD), st.text(" aé日\u0301\u200d\ufe0f👍")), max_size=8
)


def test_simple_characters_take_one_cell() -> None:
    wrong = [
        chr(code)
        for code in range(0x20, 0x2600)
        if is_simple(chr(code)) and get_character_cell_size(chr(code)) != 1
    ]
    assert wrong == []


@given(texts, st.integers(2, 30))
@example(["a", "日", "日"], 2)
@example(["a 日日日"], 3)
@example(["日\u200d  ", "\u200da", " "], 2)
@settings(deadline=None, max_examples=60)
def test_rows_fit_and_nothing_but_blanks_is_lost(parts: list[str], width: int) -> None:
    spans = [(part, BOLD if n % 2 else PLAIN) for n, part in enumerate(parts)]
    rows = wrap(spans, width)
    assert max(sum(cell_len(text) for text, _ in row.spans) for row in rows) <= width
    whole = "".join(parts)
    assert "".join(row.text for row in rows).replace(" ", "") == whole.replace(" ", "")


@given(texts, st.integers(2, 30))
@example(["👩", "\u200d", "👩", "text"], 3)
@settings(deadline=None, max_examples=60)
def test_code_is_cut_alike_with_and_without_colours(parts: list[str], width: int) -> None:
    rows = cut_hard([(part, BOLD if n % 2 else PLAIN) for n, part in enumerate(parts)], width)
    assert [row.text for row in rows] == chop("".join(parts), width)
    assert max(sum(cell_len(text) for text, _ in row.spans) for row in rows) <= width


@given(texts.map("".join), st.integers(2, 30))
@settings(deadline=None, max_examples=60)
def test_chopped_pieces_fit_and_lose_nothing(text: str, width: int) -> None:
    pieces = chop(text, width)
    assert "".join(pieces) == text
    assert max(map(cell_len, pieces)) <= width
    assert cell_len(clip(text, width)) <= width


@given(texts.map("".join))
@settings(deadline=None, max_examples=60)
def test_clusters_measure_as_the_whole(text: str) -> None:
    found = list(clusters(text))
    assert "".join(text[a:b] for a, b, _ in found) == text
    assert sum(cells for _, _, cells in found) == cell_len(text)


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 8, ["one two", "three"]),
        ("  indented text", 10, ["  indented", "text"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("a abcdefghij", 4, ["a", "abcd", "efgh", "ij"]),
        ("a\n\nb", 5, ["a", "", "b"]),
        ("", 5, [""]),
        ("end blanks    ", 10, ["end blanks"]),
        ("日本語 text", 6, ["日本語", "text"]),
        ("ab日本", 4, ["ab日", "本"]),
        ("é one two", 5, ["é one", "two"]),
        ("👍 one two", 6, ["👍 one", "two"]),
    ],
)
def test_where_rows_break(text: str, width: int, rows: list[str]) -> None:
    assert [row.text for row in wrap([(text, PLAIN)], width)] == rows


def test_joins_restore_the_text() -> None:
    text = "one two three abcdefghijkl\nnext 日本語日本語"
    rows = wrap([(text, PLAIN)], 6)
    copied = rows[0].text + "".join(row.join + row.text for row in rows[1:])
    assert copied == text


@pytest.mark.parametrize("unit", ["x", "日", " ", "é", "e\u0301", "👩‍👩‍👧‍👦", "\u200d", "a "])
def test_one_enormous_line_is_linear(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    start = time.process_time()
    rows = wrap([(text, PLAIN)], 80)
    chop(text, 80)
    assert time.process_time() - start < 2.0
    assert max(cell_len(row.text) for row in rows) <= 80
