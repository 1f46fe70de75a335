"""Soft wrapping: nothing is lost, nothing is wider than the row, the cursor finds its cell."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from pi_tui.tui.editor.buffer import EditorBuffer
from pi_tui.tui.editor.layout import EditorLayout, row_of

TEXTS = st.text(
    alphabet=st.sampled_from([*"ab  \n\t日本é", "\u0301", "\u200d", "👩", "💻", "\x1b", "\ufe0f"]),
    max_size=80,
)


def layout() -> EditorLayout:
    return EditorLayout(lambda character: None)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 30))
def test_rows_hold_the_whole_text_in_order(text: str, width: int) -> None:
    rows = layout().rows(text, width)
    seen = "".join(
        text[row.offset + cell.start : row.offset + cell.end] for row in rows for cell in row.cells
    )
    assert seen == text.replace("\n", "")
    for row in rows:
        visible = "".join(cell.shown for cell in row.cells).rstrip(" ")
        assert cell_len(visible) <= max(width, 4) or len(row.cells) == 1


@settings(deadline=None)
@given(TEXTS, st.integers(2, 30))
def test_every_cursor_position_has_a_row_and_comes_back(text: str, width: int) -> None:
    rows = layout().rows(text, width)
    buffer = EditorBuffer()
    buffer.text = text
    at = 0
    while True:
        row = rows[row_of(rows, at)]
        assert row.start <= at <= row.end
        x = row.x_of(at)
        if row.cells and x < sum(cell.cells for cell in row.cells):
            back = row.index_at(x)
            assert row.x_of(back) == x
        if at >= len(text):
            break
        step = buffer.next(at)
        assert step > at
        at = step


def test_words_wrap_and_wide_characters_stay_whole() -> None:
    rows = layout().rows("hello brave new world", 11)
    assert ["".join(c.shown for c in row.cells) for row in rows] == ["hello brave ", "new world"]
    rows = layout().rows("日本語日本語", 5)
    assert ["".join(c.shown for c in row.cells) for row in rows] == ["日本", "語日", "本語"]


def test_control_characters_are_shown_and_never_drawn() -> None:
    (row,) = layout().rows("\x1b[31m\x9b\u202e", 40)
    shown = "".join(cell.shown for cell in row.cells)
    assert shown.startswith("␛[31m")
    assert not {"\x1b", "\x9b", "\u202e"} & set(shown)
    assert row.x_of(len("\x1b[31m\x9b\u202e")) == cell_len(shown)


def test_only_the_changed_line_is_laid_out_again() -> None:
    made = layout()
    first = made.rows("one\ntwo", 20)
    second = made.rows("one\ntwo!", 20)
    assert first[0].cells is second[0].cells


@settings(deadline=None, max_examples=300)
@given(TEXTS, TEXTS, TEXTS, st.integers(0, 80), st.integers(1, 12))
def test_a_changed_line_is_laid_out_as_if_it_were_new(
    text: str, added: str, other: str, at: int, width: int
) -> None:
    kept = layout()
    for version in (text, text[:at] + added + text[at:], text[:at] + text[at + 3 :], other, text):
        assert kept.rows(version, width) == layout().rows(version, width)


def test_typing_a_long_line_costs_the_end_of_it_and_keeps_nothing_old() -> None:
    measured = 0

    def label(character: str) -> None:
        nonlocal measured
        measured += 1

    kept = EditorLayout(label)
    text = "word " * 2_000
    kept.rows(text, 80)
    measured = 0
    for _ in range(50):
        text += "x"
        kept.rows(text, 80)
    assert measured < 50 * 4 * 80
    assert list(kept._wrapped) == [text]
