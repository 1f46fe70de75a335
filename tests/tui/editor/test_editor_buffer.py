"""The editor's text: what is put in comes out, whatever happens in between."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.tui.editor.buffer import EditorBuffer
from pi_tui.tui.editor.history import PromptHistory

MARKER = "[paste #1 +25 lines]"
LONG = "\r\n".join(f"\tline {n} é 👨‍👩‍👧 {MARKER} " + "x" * 30 for n in range(25))
LONG_LF = LONG.replace("\r\n", "\n")


def typed(buffer: EditorBuffer, text: str) -> None:
    for character in text:
        buffer.insert(character)


def test_a_long_paste_is_one_character_and_sends_whole() -> None:
    buffer = EditorBuffer()
    typed(buffer, f"{MARKER} ")
    buffer.paste(LONG)
    assert len(buffer.text) == len(MARKER) + 2
    atom = buffer.atom(buffer.text[-1])
    assert atom is not None and atom.label == MARKER
    assert buffer.expanded() == f"{MARKER} {LONG_LF}"


def test_one_backspace_deletes_a_paste() -> None:
    buffer = EditorBuffer()
    buffer.paste(LONG)
    buffer.delete_left()
    assert buffer.text == "" and buffer.expanded() == ""


def test_of_two_pastes_the_first_can_go() -> None:
    buffer = EditorBuffer()
    buffer.paste(LONG)
    typed(buffer, " and ")
    buffer.paste("z" * 2000)
    buffer.move_to(1)
    buffer.delete_left()
    assert buffer.expanded() == " and " + "z" * 2000


@pytest.mark.parametrize(
    ("text", "collapses"),
    [
        ("a\n" * 9 + "a", False),
        ("a\n" * 10 + "a", True),
        ("x" * 1000, False),
        ("x" * 1001, True),
    ],
)
def test_when_a_paste_collapses(text: str, collapses: bool) -> None:
    buffer = EditorBuffer()
    buffer.paste(text)
    assert (len(buffer.text) == 1) is collapses
    assert buffer.expanded() == text


@given(st.text(), st.text(alphabet=st.characters(min_codepoint=0x10FFF0, max_codepoint=0x10FFFF)))
def test_private_use_characters_come_out_as_they_went_in(plain: str, private: str) -> None:
    buffer = EditorBuffer()
    buffer.paste(plain + private)
    buffer.insert("a")
    expected = (plain + private).replace("\r\n", "\n").replace("\r", "\n") + "a"
    assert buffer.expanded() == expected


METHODS = [
    *("left", "right", "word_left", "word_right", "line_start", "line_end"),
    *("delete_left", "delete_right", "kill_word_left", "kill_word_right"),
    *("kill_to_line_start", "kill_to_line_end", "yank", "yank_pop", "undo"),
]
OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), st.sampled_from(["a", " ", "\n", "日", "e\u0301", "👩‍💻"])),
        st.tuples(st.just("paste"), st.sampled_from(["short", LONG, "y" * 1500])),
        st.sampled_from([(name, "") for name in METHODS]),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(OPERATIONS)
def test_cursor_stays_inside_and_undo_comes_back_to_nothing(
    operations: list[tuple[str, str]],
) -> None:
    buffer = EditorBuffer()
    for name, argument in operations:
        method = getattr(buffer, name)
        method(argument) if argument else method()
        assert 0 <= buffer.cursor <= len(buffer.text)
        buffer.expanded()
    for _ in range(len(operations) + 1):
        buffer.undo()
    assert buffer.text == ""


def test_graphemes_are_one_step() -> None:
    buffer = EditorBuffer()
    buffer.paste("e\u0301👨‍👩‍👧日")
    stops = []
    for _ in range(4):
        stops.append(buffer.cursor)
        buffer.left()
    assert stops == [8, 7, 2, 0]
    buffer.line_end()
    buffer.left()
    buffer.delete_left()
    assert buffer.text == "e\u0301日"


def test_kills_join_and_yank_pop_goes_back() -> None:
    buffer = EditorBuffer()
    typed(buffer, "one two three")
    buffer.kill_word_left()
    buffer.kill_word_left()
    assert buffer.text == "one "
    buffer.left()
    buffer.line_end()
    buffer.kill_to_line_start()
    buffer.yank()
    assert buffer.text == "one "
    buffer.yank_pop()
    assert buffer.text == "two three"
    buffer.yank_pop()
    assert buffer.text == "one "


def test_killing_a_paste_and_yanking_it_keeps_it_whole() -> None:
    buffer = EditorBuffer()
    buffer.paste(LONG)
    buffer.kill_to_line_start()
    assert buffer.text == ""
    buffer.yank()
    assert buffer.expanded() == LONG_LF


def test_undo_takes_back_a_typed_word_at_once() -> None:
    buffer = EditorBuffer()
    typed(buffer, "hello world")
    buffer.undo()
    assert buffer.text == "hello "
    buffer.clear()
    buffer.undo()
    assert buffer.text == "hello "


def test_the_external_editor_without_a_change_keeps_the_paste() -> None:
    buffer = EditorBuffer()
    typed(buffer, "see: ")
    buffer.paste(LONG)
    before = buffer.text
    buffer.set_edited_text(buffer.expanded())
    assert buffer.text == before
    buffer.set_edited_text(buffer.expanded() + "\nmore")
    assert buffer.text == before + "\nmore"
    assert buffer.expanded() == f"see: {LONG_LF}\nmore"


def test_queued_messages_come_back_in_front_of_the_draft() -> None:
    buffer = EditorBuffer()
    buffer.paste(LONG)
    buffer.put_before(["first", "x" * 30_000])
    assert buffer.expanded() == "first\n\n" + "x" * 30_000 + "\n\n" + LONG_LF
    assert len(buffer.text) < 30


def test_history_walk_returns_to_the_draft_with_its_paste() -> None:
    buffer, history = EditorBuffer(), PromptHistory(["older", "newer"])
    typed(buffer, "draft ")
    buffer.paste(LONG)
    assert history.previous(buffer) and buffer.text == "newer"
    assert history.previous(buffer) and buffer.text == "older"
    assert not history.previous(buffer)
    assert history.next(buffer) and history.next(buffer)
    assert buffer.expanded() == f"draft {LONG_LF}"
    assert not history.next(buffer)


def test_a_sent_prompt_comes_back_collapsed_and_whole() -> None:
    buffer, history = EditorBuffer(), PromptHistory()
    buffer.paste(LONG)
    history.add(buffer.snapshot())
    buffer.forget()
    history.previous(buffer)
    assert len(buffer.text) == 1 and buffer.expanded() == LONG_LF


def test_a_megabyte_is_pasted_whole() -> None:
    buffer = EditorBuffer()
    text = "word " * 200_000
    buffer.paste(text)
    buffer.insert("a")
    assert buffer.expanded() == text + "a"
