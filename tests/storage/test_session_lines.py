"""Lines of a session file: what is read, what is written, how deep."""

from __future__ import annotations

import json

import pytest

from pi_tui.storage.lines import decode_line, encode_line, pieces_of
from pi_tui.storage.nesting import MAX_DEPTH, decode_capped, is_deep


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"x":"\\ud83d"}', {"x": "\ufffd"}),
        (b'{"x":"a\\ude00b"}', {"x": "a\ufffdb"}),
        (b'{"x":"\\ud83d\\ude00"}', {"x": "\U0001f600"}),
        (b'{"x":"\xff"}', {"x": "\ufffd"}),
        (b'{"x":1e400}', {"x": float("inf")}),
        (b'{"x":1}\r', {"x": 1}),
        ('{"x":"a\u2028b\u0085c"}'.encode(), {"x": "a\u2028b\u0085c"}),
        (b'{"x":"\\u0000\\u001c\\r"}', {"x": "\0\x1c\r"}),
    ],
)
def test_odd_but_readable_lines(line: bytes, value: object) -> None:
    assert decode_line(line) == value


@pytest.mark.parametrize(
    "line", [b"", b"{", b'{"x":NaN}', b'{"x":1}}', b'{"x":"\x01"}', b"\xef\xbb\xbf{}", b"[1,]"]
)
def test_what_is_no_json(line: bytes) -> None:
    with pytest.raises(ValueError):
        decode_line(line)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":[1,-2.5e3,true,false,null,"q\\"\\u00e9"],"b":{},"c":[],"":{"d":[[]]}}',
        ' [ 1 , { "a" : 2 } ] ',
        '"plain"',
        "0",
    ],
)
def test_the_iterative_reader_agrees_with_json(text: str) -> None:
    assert decode_capped(text) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ["", "[", "]", "{]", "[}", "[1 2]", "[,1]", "[1,]", '{"a"}', '{"a":}', '{"a":1,}', "{1:2}",
     '{"a":1}x', "[1]]", "nul", "01", '{"a" 1}', ":", '{"a":1 "b":2}'],
)  # fmt: skip
def test_the_iterative_reader_refuses_what_json_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        json.loads(text)
    with pytest.raises(ValueError):
        decode_capped(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, 400, 900, 100_000])
def test_any_depth_is_read_and_ends_as_text(depth: int) -> None:
    value = decode_line(b'{"id":"a","x":' + b"[" * depth + b'"end"' + b"]" * depth + b"}")
    assert value["id"] == "a"
    assert not is_deep(value)
    level, item = 0, value["x"]
    while isinstance(item, list):
        level, item = level + 1, item[0]
    rest = depth - level
    assert item == ("end" if rest == 0 else "[" * rest + '"end"' + "]" * rest)


@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c\u0085d", "\0\x1c\r\n\v", "\ud83d", "\ud83d\ude00", "é😀"]
)
def test_whatever_is_written_is_one_line_for_every_reader(text: str) -> None:
    line = encode_line({"text": text})
    assert line.endswith(b"\n")
    assert len(line.decode().splitlines()) == 1
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert json.loads(line)["text"] == joined


def test_writing_is_compact_and_not_escaped() -> None:
    assert encode_line({"a": [1, 2], "b": "é"}) == '{"a":[1,2],"b":"é"}\n'.encode()


def test_writing_never_fails_for_values_json_lacks() -> None:
    data = json.loads(encode_line({"a": {1}, "b": float("nan"), "c": object}))
    assert data["b"] is None
    assert isinstance(data["c"], str)


def test_glued_entries_are_cut_apart_and_blocks_of_json_are_not() -> None:
    whole = b'{"type":"message","content":[{"type":"text"},{"type":"image"}],"x":{"type":"y"}}'
    assert pieces_of(whole) == [(0, whole)]
    glued = b'\0\0{"type":"a","id":"1","par' + whole + whole + b"\0"
    pieces = pieces_of(glued)
    assert [body for _, body in pieces] == [b'{"type":"a","id":"1","par', whole, whole]
    assert all(glued[start:].startswith(body) for start, body in pieces)
