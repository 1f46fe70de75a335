"""Error texts of servers keep nothing of what a terminal would act on."""

from __future__ import annotations

import json

import pytest

from pi_tui.providers.error_bodies import one_line, read_error_body

HOSTILE = "no \x1b]0;PWN\x07such \x1b[2J\x1b[31mmodel\x1b[0m\r\nhere\x9b1m"


@pytest.mark.parametrize(
    "body", [HOSTILE, json.dumps({"error": {"message": HOSTILE}}), json.dumps({"detail": HOSTILE})]
)
def test_whole_sequences_go(body: str) -> None:
    assert read_error_body(body).detail == "no such model here"


def test_other_controls_are_no_part_of_a_line() -> None:
    assert one_line("a\tb\n\nc \u2028 d") == "a b c ‹U+2028› d"
