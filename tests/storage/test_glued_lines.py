"""Entries glued to others or to fragments: every whole one is found, however it is written."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.storage.glue import cuts_of
from pi_tui.storage.jsonl import open_session
from pi_tui.storage.lines import pieces_of
from pi_tui.storage.listing import list_sessions

Line = Callable[..., bytes]


def as_python_writes(line: bytes) -> bytes:
    return json.dumps(json.loads(line)).encode()


def as_sorted(line: bytes) -> bytes:
    return json.dumps(json.loads(line), sort_keys=True).encode()


def bare(line: bytes) -> bytes:
    return line.rstrip(b"\n")


STYLES = {"compact": bare, "blanks": as_python_writes, "another order": as_sorted}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("between", [b"", b" ", b"\0\0", b"\t\r"])
def test_glued_entries_are_all_read(
    session: Callable[..., Path], line: Line, style: str, between: bytes
) -> None:
    write = STYLES[style]
    glued = between.join(write(line(number, f'text {number} {{"type": "')) for number in (2, 3, 4))
    path = session(line(1), glued + b"\n", line(5))
    opened = open_session(path)
    assert [head.id for head in opened.heads] == [f"e{number:07x}" for number in range(1, 6)]
    for head in opened.heads:
        assert opened.store.load(head.id).id == head.id
    assert opened.notices == ("3 entries on damaged lines could be read.",)
    opened.store.close()


@pytest.mark.parametrize("style", STYLES)
def test_an_entry_after_a_fragment_cut_anywhere(
    session: Callable[..., Path], line: Line, style: str
) -> None:
    write = STYLES[style]
    call = {"type": "toolCall", "id": "c1", "name": "x", "arguments": {"a": [{"id": "c2"}]}}
    message = {"role": "assistant", "content": [call, {"type": "text", "text": 'é {"x": 1}'}]}
    torn = write(line(2, message=message))
    lost = []
    for size in range(1, len(torn)):
        path = session(line(1), torn[:size] + write(line(3)) + b"\n", line(4), name="torn.jsonl")
        opened = open_session(path, read_only=True)
        ids = [head.id for head in opened.heads]
        opened.store.close()
        assert set(ids) <= {"e0000001", "e0000003", "e0000004"}, (size, ids)
        if "e0000003" not in ids:
            lost.append(torn[:size].rstrip()[-1:])
    # There it could be a part of the value before.
    assert set(lost) <= {b"[", b",", b":"}
    assert len(lost) <= 34 < len(torn) / 6


def test_nothing_inside_a_value_is_taken_for_an_entry(
    session: Callable[..., Path], line: Line
) -> None:
    inner = [{"type": "message", "id": "inside", "parentId": None}] * 3
    torn = bare(line(2, data=inner))[:-1]
    opened = open_session(session(line(1), torn + b"\n", line(3)))
    assert [head.id for head in opened.heads] == ["e0000001", "e0000003"]
    opened.store.close()


def test_lists_count_what_is_glued(
    session: Callable[..., Path], tmp_path: Path, line: Line
) -> None:
    named = b'{"type": "session_info", "id": "n", "parentId": "e0000002", "name": "garden"}'
    glued = as_python_writes(line(1, "roses")) + as_python_writes(line(2)) + named
    session(glued + b"\n", line(3))
    (found,) = list_sessions(tmp_path)
    assert (found.message_count, found.name, found.first_text) == (3, "garden", "roses")


@pytest.mark.parametrize("before", [b"", b'{"type":"sess', b"\0\0", b"noise "])
def test_a_header_with_something_glued_to_it_is_found(
    session: Callable[..., Path], head_line: Line, line: Line, before: bytes
) -> None:
    first = before + as_python_writes(head_line()) + as_python_writes(line(1)) + b"\n"
    path = session(first, line(2), b"garbage\n", bare=True)
    opened = open_session(path)
    assert [head.id for head in opened.heads] == ["e0000001", "e0000002"]
    assert any("line 3" in notice for notice in opened.notices)
    opened.store.close()
    assert path.read_bytes().startswith(first)


def test_old_files_keep_what_is_glued(
    session: Callable[..., Path], stored: Callable[..., Any]
) -> None:
    old = '{"type": "message", "timestamp": "t", "message": {"role": "user", "content": "%s"}}'
    path = session(
        b'{"type":"session","id":"s","timestamp":"t","cwd":"/x"}\n',
        f'{old % "one"}{old % "two"}\n{{"type": "mess{old % "three"}\n'.encode(),
        bare=True,
    )
    opened = open_session(path)
    opened.store.close()
    texts = [entry["message"]["content"] for entry in stored(path)[1:]]
    assert texts == ["one", "two", "three"]
    assert "1 line could not be read" in " ".join(opened.notices)


def test_pieces_keep_bytes_and_places() -> None:
    whole = '{"a": "é\\u00e9 \U0001f600"}'.encode()
    line = b"\xff\xfe " + whole + b"\0" + whole + b"[1, 2]" + b'{"n": NaN}' + whole + b"}}"
    pieces = pieces_of(line)
    assert [body for _, body in pieces] == [
        b"\xff\xfe", whole, whole, b"[1, 2]", b'{"n": NaN}', whole, b"}}"
    ]  # fmt: skip
    assert all(line[start:].startswith(body) for start, body in pieces)


@pytest.mark.parametrize("size", [4_000, 4_096, 5_000, 33_000, 1_000_000])
@pytest.mark.parametrize("text", ["x", '\\"', "é", "\\u0041", "[", '{\\"a\\":'])
def test_long_values_are_found_after_long_fragments(text: str, size: int) -> None:
    whole = f'{{"n":123456,"a":"{text * (size // len(text))}","z":[true,-1.5e3]}}'.encode()
    for torn in (whole[: size // 2 + 30], whole[:-1], whole[:-3], whole[:8]):
        pieces = [body for _, body in pieces_of(torn + whole + whole + b"\0" + torn)]
        assert pieces[-3:] == [whole, whole, torn], (torn[-20:], len(torn))


def test_glued_entries_of_any_depth_are_found() -> None:
    deep = b'{"id":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert [len(body) for _, body in pieces_of(deep + deep + b"x")] == [len(deep), len(deep), 1]


HOSTILE = {
    "openings": "{",
    "empty keys": 'x{"":',
    "keys": 'x{"',
    "strings of openings": '"{",',
    "readings of both kinds": '{",":"',
    "nested": '{"a":',
    "lists": "[",
    "whole": '{"a":1}',
    "fragments": '{"a":{"b":[1,2,"',
    "entries after fragments": '{"type":"m","x":"aaaa{"b":[1]}',
    "escapes": '{"\\"x',
    "blanks": "   {",
    "quotes": '"',
    "numbers": '{"a":1' + "0" * 5000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_megabyte_takes_a_moment(kind: str) -> None:
    text = (HOSTILE[kind] * (1_000_000 // len(HOSTILE[kind]) + 1))[:1_000_000]
    before = time.process_time()
    cuts_of(text)
    assert time.process_time() - before < 6.0, "measured: at most 1.5 s"
