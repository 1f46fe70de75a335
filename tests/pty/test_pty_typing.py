"""Keys and pastes as a real terminal delivers them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

Start = Callable[..., Any]


def test_a_burst_in_one_write_is_handled_in_order(start: Start) -> None:
    terminal = start()
    terminal.send(b"ab\x7fcd\x01x\x05y\x1b[D\x1b[Dz\x1bbw\x17 q")
    terminal.wait_text("q")
    assert "xacd" not in terminal.text
    terminal.wait_text(" qxaczdy")


@pytest.mark.parametrize("newline", [b"\n", b"\x1b[27;2;13~", b"\x1b[13;2u", b"\\\r"])
def test_ways_to_a_new_line(start: Start, newline: bytes) -> None:
    terminal = start()
    terminal.send(b"one" + newline + b"two\r")
    terminal.wait_text("you said: one")
    terminal.wait_text("two")


def test_alt_enter_queues_and_escape_alone_interrupts(start: Start) -> None:
    terminal = start("busy")
    terminal.wait_text("Working")
    terminal.send(b"later\x1b\r")
    terminal.wait_text("Follow-up: later")
    terminal.send(b"\x1b")
    terminal.wait_text("one queued message is back")


def test_a_command_and_more_in_one_write(start: Start) -> None:
    terminal = start()
    terminal.send(b"!ls\rnext")
    terminal.wait_text("output of ls")
    terminal.wait_text("next")


def test_a_paste_in_small_pieces_with_a_split_end(start: Start) -> None:
    terminal = start()
    text = "\r\n".join(f"\tline {n} é 👨‍👩‍👧 [paste #1 +25 lines] {'x' * 20}" for n in range(25))
    stream = b"\x1b[200~" + text.encode() + b"\x1b[201~"
    cut = len(stream) - 3  # the end mark falls apart
    for at in range(0, cut, 64):
        terminal.send(stream[at : min(at + 64, cut)])
        terminal.pump()
    terminal.send(stream[cut:] + b"\r")
    terminal.wait_text("line 24 é")
    terminal.send(b"\x1b[1;5H")  # the transcript's first line
    terminal.wait_text("line 0 é")
    terminal.send(b"\x1b[A\x05!")  # history: the same paste, still collapsed
    terminal.wait_text("[paste #1 +25 lines]!")


def test_a_megabyte_is_pasted_within_a_second(start: Start) -> None:
    terminal = start()
    text = b"0123456789abcde\r" * 65_536
    started = time.monotonic()
    terminal.send(b"\x1b[200~" + text + b"\x1b[201~")
    terminal.wait_text("[paste #1 +65537 lines]")
    assert time.monotonic() - started < 3  # one second on a quiet machine
    terminal.send(b"!")
    terminal.wait_text("lines]!")
    terminal.send(b"\x7f\x7fempty")
    terminal.wait_text("empty")
    assert "[paste" not in terminal.text


def test_keys_echo_while_an_answer_streams(start: Start) -> None:
    terminal = start("busy")
    terminal.wait_text("streamed text")
    slow = []
    for character in "абвгдежзиклмноп":
        started = time.monotonic()
        terminal.send(character.encode())
        terminal.wait_bytes(character.encode())
        slow.append(time.monotonic() - started)
    assert sorted(slow)[len(slow) // 2] < 0.25
