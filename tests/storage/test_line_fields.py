"""Fields of a stored line are changed and nothing else of it."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_tui.storage.line_fields import with_fields
from pi_tui.storage.lines import decode_line

ODD = (
    b'{ "zzz" : 1.50 , "zzz":{"parentId":"inner"},"t":"\\ud83d \\"parentId\\":\\"x\\" }",'
    b'"parentId" :\t"e0000001" , "n":1E2,"deep":[[{"a":["]","}"]}]], "bad":"\xff\xc3" }\r'
)


def test_only_the_bytes_of_the_value_change() -> None:
    changed = with_fields(ODD, {"parentId": "e0000009"})
    assert changed == ODD.replace(b'"e0000001"', b'"e0000009"')
    assert with_fields(ODD, {"parentId": None}) == ODD.replace(b'"e0000001"', b"null")


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        (b'{"a":1,"a":2}', b'{"a":1,"a":"x"}'),
        (b'{"\\u0061":1}', b'{"\\u0061":"x"}'),
        (b'{"a":[1,{"a":2}],"b":3}', b'{"a":"x","b":3}'),
        (b'{"b":{"a":2}}', b'{"b":{"a":2},"a":"x"}'),
        (b'{"b":1 }', b'{"b":1 ,"a":"x"}'),
        (b"{ }", b'{ "a":"x"}'),
        (b'{"b":"a","a":"b"}', b'{"b":"a","a":"x"}'),
        (b'{"a":""}', b'{"a":"x"}'),
        (b'{"b":"\\\\","a":"\\\\\\""}', b'{"b":"\\\\","a":"x"}'),
    ],
)
def test_the_field_that_counts_is_changed(line: bytes, changed: bytes) -> None:
    assert with_fields(line, {"a": "x"}) == changed


def test_several_fields_at_once() -> None:
    line = b'{"c": 1, "a": 2, "b": 3}'
    assert with_fields(line, {"a": "long value", "c": "", "d": None}) == (
        b'{"c": "", "a": "long value", "b": 3,"d":null}'
    )
    assert with_fields(line, {}) == line


def test_a_directory_that_is_no_text_is_written_all_the_same() -> None:
    assert decode_line(with_fields(b'{"cwd":"x"}', {"cwd": "/a\udcff"})) == {"cwd": "/a\ufffd"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), VALUES), st.text(max_size=3), st.none() | st.text())
def test_it_agrees_with_decoding(data: dict[str, object], name: str, value: str | None) -> None:
    for ascii_only in (False, True):
        line = json.dumps(data, ensure_ascii=ascii_only, indent=1).encode("utf-8", "replace")
        line = line.replace(b"\n", b" ")
        assert decode_line(with_fields(line, {name: value})) == {**decode_line(line), name: value}


@pytest.mark.parametrize(
    "inside",
    [
        b"[" * 100_000 + b"]" * 100_000,
        b'"' + b'\\"' * 500_000 + b'"',
        b'"' + b"a" * 10**7 + b'"',
    ],
    ids=["deep", "escapes", "long"],
)
def test_deep_and_long_lines_take_a_moment(inside: bytes) -> None:
    before = time.process_time()
    line = b'{"x":' + inside + b',"a":1}'
    assert with_fields(line, {"a": 2}) == line[:-2] + b"2}"
    assert time.process_time() - before < 2.0, "measured: 0.1 s"
