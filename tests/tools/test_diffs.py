"""Readable differences: form, bounds, and that they are differences at all."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.tools.diffs import MAX_DIFF_LINES, line_changes, readable_diff


def applied(old: Sequence[str], new: Sequence[str]) -> list[str]:
    result: list[str] = []
    position = 0
    for a, b, c, d in line_changes(old, new):
        assert a >= position
        result += old[position:a]
        result += new[c:d]
        position = b
    return result + list(old[position:])


LINES = st.lists(st.sampled_from("abcde"), max_size=30)


@settings(max_examples=300, deadline=None)
@given(LINES, LINES)
def test_the_changes_lead_from_old_to_new(old: list[str], new: list[str]) -> None:
    assert applied(old, new) == new


def test_the_form() -> None:
    old = "".join(f"{i}\n" for i in range(1, 31))
    new = old.replace("\n5\n", "\nfive\nextra\n").replace("\n25\n", "\n")
    diff = readable_diff(old, new)
    assert diff.text.split("\n") == [
        "    2 2",
        "    3 3",
        "    4 4",
        "-   5 5",
        "+   5 five",
        "+   6 extra",
        "    6 6",
        "    7 7",
        "    8 8",
        "...",
        "   22 22",
        "   23 23",
        "   24 24",
        "-  25 25",
        "   26 26",
        "   27 27",
        "   28 28",
    ]
    assert (diff.added, diff.removed, diff.first_changed_line) == (2, 2, 5)


def test_last_lines_without_newline() -> None:
    diff = readable_diff("a\nb", "a\nb\n")
    assert diff.text == "    1 a\n-   2 b  (no newline at the end)\n+   2 b"
    assert readable_diff("", "").text == ""
    assert readable_diff("", "a\n").text == "+   1 a"
    assert readable_diff("a\r\nb\r\n", "a\nb\n") == readable_diff("x", "x")


def test_foreign_characters_are_made_visible() -> None:
    assert readable_diff("", "\x1b[2J\udc80\n").text == "+   1 \u241b[2J\ufffd"


def test_big_differences_are_bounded_and_quick() -> None:
    old = [f"old {i}" for i in range(60_000)]
    new = [f"new {i}" if i % 3 else f"old {i}" for i in range(60_000)]
    start = time.monotonic()
    diff = readable_diff("\n".join(old), "\n".join(new))
    assert (diff.added, diff.removed) == (40_000, 40_000)
    lines = diff.text.split("\n")
    assert len(lines) <= MAX_DIFF_LINES + 300
    assert lines[-1].endswith("more changed lines")
    same = readable_diff("x\n" * 50_000, "x\n" * 20_000 + "y\n" * 20_000 + "x\n" * 20_000)
    assert same.added - same.removed == 10_000
    assert time.monotonic() - start < 10
