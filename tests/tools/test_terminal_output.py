"""Escape sequences and progress bars removed from a stream, however it is cut into pieces."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.tools.limits import count_lines, cut_line, keep_end
from pi_tui.tools.terminal_output import EscapeRemover, OutputTail


def plain(*pieces: str, keep: int = 10_000) -> str:
    remover, tail = EscapeRemover(), OutputTail(keep)
    for piece in pieces:
        tail.feed(remover.feed(piece))
    tail.feed(remover.finish())
    return tail.text()


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\x1b]52;c;aGk=\x07clip", "clip"),
        ("\x1b]0;x\x07title", "title"),
        ("\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\", "text"),
        ("a\x1b[2Jb\x1b[10Ac", "abc"),
        ("\x1b[6n\x1b[c\x1b]11;?\x07", ""),
        ("\x1bPq data\x1b\\\x1b_x\x1b\\\x1b^y\x1b\\z", "z"),
        ("\x1bcreset", "reset"),
        ("\x9b2Ja\x9d0;x\x9cb\x90q\x9cc", "abc"),
        ("\x1b]never ended\nnext", "never ended\nnext"),
        ("one\rtwo\n", "two\n"),
        ("one\r\ntwo\r\r\n", "one\ntwo\n"),
        ("a\b\bbc\b \n", "b \n"),
        ("a\x0bb\x00\x7fc\x07\td", "abc\td"),
        ("\x1b(Bx\x1b=y", "xy"),
        ("end\x1b", "end"),
        ("end\x1b[3", "end3"),
        ("50%\r100%\r", "100%"),
    ],
)
def test_what_is_left(written: str, read: str) -> None:
    assert plain(written) == read
    assert plain(*written) == read


ALPHABET = st.sampled_from(["\x1b", "[", "]", "\\", "m", "0", ";", "a", "\n", "\r", "\b", "\x07",
                            "\x9b", "\x9c", "\x90", "P"])  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.lists(st.lists(ALPHABET, max_size=6).map("".join), max_size=8))
def test_pieces_make_no_difference_and_nothing_harmful_is_left(pieces: list[str]) -> None:
    text = plain(*pieces)
    assert text == plain("".join(pieces))
    assert not set(text) & set("\x1b\x07\x08\r\x90\x9b\x9c")


def test_the_tail_is_bounded_and_counts_everything() -> None:
    tail = OutputTail(1000)
    for i in range(10_000):
        tail.feed(f"line {i}\n")
    assert tail.dropped
    assert 1000 <= len(tail.text()) < 3000
    assert tail.text().endswith("line 9999\n")
    assert tail.lines == 10_000
    assert tail.bytes == sum(len(f"line {i}\n") for i in range(10_000))


def test_a_line_without_end_is_bounded() -> None:
    tail = OutputTail(1000)
    for _ in range(10_000):
        tail.feed("xyz")
    assert 1000 <= len(tail.text()) <= 2003
    assert tail.bytes == 30_000
    tail.feed("\rshort\n")
    assert tail.text() == "short\n"


def test_the_work_is_linear() -> None:
    start = time.monotonic()
    plain(*["\rstep"] * 50_000)
    plain(*["."] * 50_000)
    plain("\x1b]" * 100_000)
    plain("\x1b" * 200_000)
    plain("\x1b]" + "x" * 300_000)
    plain("\b" * 100_000 + "\n")
    assert time.monotonic() - start < 10


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="aé😀\n", max_size=60), st.integers(1, 8), st.integers(4, 40))
def test_keeping_the_end(text: str, max_lines: int, max_bytes: int) -> None:
    kept = keep_end(text, max_lines, max_bytes)
    assert text.endswith(kept.text)
    assert len(kept.text.encode()) <= max_bytes
    assert count_lines(kept.text) <= max_lines
    assert kept.whole == (kept.text == text)
    if not kept.whole and not kept.partial_line:
        assert text[-len(kept.text) - 1] == "\n"


def test_cutting_a_line_around_a_place() -> None:
    assert cut_line("short", 10) == "short"
    assert cut_line("a" * 20, 10) == "a" * 10 + "…"
    assert "X" in cut_line("a" * 50 + "X" + "b" * 50, 10, around=50)
