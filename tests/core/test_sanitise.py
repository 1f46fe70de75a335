import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pi_tui.core.sanitise import (
    MAX_STRING_SEQUENCE_CHARS,
    StreamSanitiser,
    reveal,
    reveal_line,
    sanitise,
    sanitise_line,
)

FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

SEQUENCES = [
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]0;x\x07",
    "\x1b]8;;http://evil\x1b\\",
    "\x1b]8;;\x1b\\",
    "\x1b[2J",
    "\x1b[10A",
    "\x1b[6n",
    "\x1b[c",
    "\x1b]11;?\x07",
    "\x1bPq#0;2;0;0;0\n#0~~\x1b\\",
    "\x1b_Gf=100;AAAA\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bXstring\x1b\\",
    "\x1bc",
    "\x1b(B",
    "\x1b[38;2;1;2;3m",
    "\x1b[?1049h",
    "\x1b[0 q",
    "\x9b2J",
    "\x9d52;c;ZXZpbA==\x9c",
    "\x90payload\x9c",
    "\x9d0;t\x07",
]


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_whole_sequences_vanish(sequence: str) -> None:
    assert sanitise(f"before{sequence}after") == "beforeafter"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\rb", "a␍b"),
        ("a\r\nb", "a\nb"),
        ("a\r\r\nb", "a\nb"),
        ("a\r\rb", "a␍␍b"),
        ("a\bb", "a␈b"),
        ("a\x0bb", "a␋b"),
        ("a\x0cb", "a␌b"),
        ("a\x00b", "a␀b"),
        ("a\x7fb", "a␡b"),
        ("a\x85b", "a‹U+0085›b"),
        ("a\x9b", "a‹U+009B›"),
        ("a\x1b", "a␛"),
        ("a\x1b\x00", "a␛␀"),
        ("a\u202eb", "a‹U+202E›b"),
        ("a\u2066b\u2069", "a‹U+2066›b‹U+2069›"),
        ("a\u061cb\u200f", "a‹U+061C›b‹U+200F›"),
        ("a\u2028b", "a‹U+2028›b"),
        ("a\ud800b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("日本 👩‍👩‍👧 é שלום", "日本 👩‍👩‍👧 é שלום"),
    ],
)
def test_other_controls_are_shown(raw: str, shown: str) -> None:
    assert sanitise(raw) == shown


def test_an_unfinished_sequence_swallows_nothing() -> None:
    assert (
        sanitise("a\x1b]0;title and\nthe rest of the frame")
        == "a0;title and\nthe rest of the frame"
    )
    assert sanitise("a\x1b[12\nb") == "a12\nb"
    assert sanitise("a\x1b]0;title\nb\x07c") == "a0;title\nb␇c"
    too_long = "\x1b]" + "x" * (MAX_STRING_SEQUENCE_CHARS + 1) + "\x07"
    assert sanitise(too_long) == "x" * (MAX_STRING_SEQUENCE_CHARS + 1) + "␇"


def test_nested_passthrough_leaves_no_control() -> None:
    text = sanitise("\x1bPtmux;\x1b\x1b]52;c;AAAA\x07\x1b\\ok")
    assert FORBIDDEN.search(text) is None
    assert text.endswith("ok")


def test_sanitise_line_is_one_line() -> None:
    assert sanitise_line("a\nb\tc\r\nd\x1b[31m") == "a b c d"


def test_reveal_hides_nothing_that_a_shell_would_run() -> None:
    command = "echo \x1b]; rm -rf x ;\x07 ok\rrm -rf y"
    assert reveal(command) == "echo ␛]; rm -rf x ;␇ ok␍rm -rf y"
    assert reveal("a\r\nb\tc") == "a\nb\tc"
    assert reveal_line("a\nb\tc") == "a␊b␉c"


pieces = st.one_of(
    st.sampled_from(
        [*SEQUENCES, "\x1b", "\x1b]", "\x1b[", "\x9d", "\x9b", "\r", "\n", "\x07", "\x9c", "\x1b\\"]
    ),
    st.text(max_size=6),
    st.sampled_from(["\ud83d", "\ude00", "plain", "12;3"]),
)


@given(st.lists(pieces, max_size=12).map("".join), st.lists(st.integers(0, 80), max_size=8))
@example("\x1b]0;x\x1b\\y", [1, 2, 5, 6])
@example("a\r\r\nb", [2, 3])
@settings(deadline=None, max_examples=60)
def test_a_stream_equals_the_whole_wherever_it_is_cut(text: str, cuts: list[int]) -> None:
    stream = StreamSanitiser()
    out, start = [], 0
    for cut in sorted(min(c, len(text)) for c in cuts):
        out.append(stream.feed(text[start:cut]))
        start = cut
    out += [stream.feed(text[start:]), stream.finish()]
    assert "".join(out) == sanitise(text)
    assert FORBIDDEN.search("".join(out)) is None


@given(st.lists(pieces, max_size=12).map("".join))
@settings(deadline=None, max_examples=60)
def test_sanitising_twice_changes_nothing(text: str) -> None:
    assert sanitise(sanitise(text)) == sanitise(text)
    assert FORBIDDEN.search(reveal(text)) is None


def test_one_character_at_a_time() -> None:
    text = "".join(f"w{n}{s}" for n, s in enumerate(SEQUENCES))
    stream = StreamSanitiser()
    assert "".join(map(stream.feed, text)) + stream.finish() == sanitise(text)


def test_what_is_held_back_is_bounded() -> None:
    stream = StreamSanitiser()
    stream.feed("\x1b]")
    shown = "".join(stream.feed("x" * 1000) for _ in range(9))
    assert len(shown) == 9_000


@pytest.mark.parametrize(
    "unit", ["\x1b]", "\x9d", "\x1b[", "\x1b[1;", "\r", "\x1bP;", "\x1b", "\x1b "]
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    def cost(length: int) -> float:
        text = unit * (length // len(unit))
        start = time.process_time()
        sanitise(text)
        StreamSanitiser().feed(text)
        return time.process_time() - start

    cost(20_000)
    small = min(cost(20_000) for _ in range(3))
    large = min(cost(160_000) for _ in range(2))
    assert large < 8 * 6 * max(small, 0.001)
