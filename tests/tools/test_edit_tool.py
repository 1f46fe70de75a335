"""Cases EDIT-01 to EDIT-03: bytes on disk, tolerant matching, ambiguity."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import ToolError
from pi_tui.tools.edit_matching import Edit, apply_regions, plan_edits

THREE = "one\ntwo\nthree\n"


def pairs(*edits: tuple[str, str]) -> list[dict[str, str]]:
    return [{"oldText": old, "newText": new} for old, new in edits]


async def edited(bench: Any, content: str | bytes, *edits: tuple[str, str]) -> bytes:
    path = bench.put("f.txt", content)
    await bench.output("edit", path="f.txt", edits=pairs(*edits))
    return bytes(path.read_bytes())


async def refused(bench: Any, content: str | bytes, *edits: tuple[str, str]) -> str:
    path = bench.put("f.txt", content)
    before = path.read_bytes(), path.stat().st_mtime_ns
    with pytest.raises(ToolError) as caught:
        await bench.output("edit", path="f.txt", edits=pairs(*edits))
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert [entry.name for entry in path.parent.iterdir()] == ["f.txt"]
    return str(caught.value.message)


# ---------------------------------------------------------------- EDIT-01

CRLF = bytes.fromhex("EFBBBF613D310D0A623D320D0A633D330D0A")
CRLF_AFTER = bytes.fromhex("EFBBBF613D310D0A623D32320D0A62623D300D0A633D330D0A")


@pytest.mark.parametrize(
    "edit",
    [
        ("a=1\nb=2", "a=1\nb=22\nbb=0"),
        ("a=1\r\nb=2", "a=1\r\nb=22\r\nbb=0"),
        ("a=1\nb=2\n", "a=1\r\nb=22\nbb=0\n"),
        ("\ufeffa=1\nb=2", "\ufeffa=1\nb=22\nbb=0"),
    ],
)
async def test_mark_and_line_ends_are_kept(bench: Any, edit: tuple[str, str]) -> None:
    assert await edited(bench, CRLF, edit) == CRLF_AFTER


async def test_the_difference_shows_the_changed_lines_only(bench: Any) -> None:
    bench.put("f.txt", CRLF)
    output = await bench.output("edit", path="f.txt", edits=pairs(("b=2", "b=22\nbb=0")))
    assert output.details["diff"].split("\n") == [
        "    1 a=1",
        "-   2 b=2",
        "+   2 b=22",
        "+   3 bb=0",
        "    3 c=3",
    ]
    assert output.details["firstChangedLine"] == 2
    assert (output.details["added"], output.details["removed"]) == (2, 1)


async def test_the_start_of_a_file_with_a_mark_is_found(bench: Any) -> None:
    assert (await edited(bench, CRLF, ("a=1", "z=1"))).startswith(b"\xef\xbb\xbfz=1\r\n")


@pytest.mark.parametrize(
    ("content", "edit", "after"),
    [
        (b"a\nb\n", ("a\r\nb", "c\r\nd\r\ne"), b"c\nd\ne\n"),
        (b"a\nb", ("a", "c"), b"c\nb"),
        (b"a\nb", ("b", "c\n"), b"a\nc\n"),
        (b"a\r\nb\nc\r\n", ("a\nb\nc", "a\nB\nc"), b"a\r\nB\nc\r\n"),
        (b"a\r\nb\r\n", ("\nb", "\nx\nb"), b"a\r\nx\r\nb\r\n"),
        (b"a\r\nb\r\n", ("a\nb\n", "a\n"), b"a\r\n"),
        (b"a\r\nb\r\nc\r\n", ("b\n", ""), b"a\r\nc\r\n"),
        (b"caf\xe9 one\n", ("one", "two"), b"caf\xe9 two\n"),
        ("a\nü\n".encode("utf-16"), ("ü", "ö\nx"), "a\nö\nx\n".encode("utf-16")),
    ],
)
async def test_bytes_after_an_edit(
    bench: Any, content: bytes, edit: tuple[str, str], after: bytes
) -> None:
    assert await edited(bench, content, edit) == after


async def test_occurrences_that_differ_in_line_ends_count_as_two(bench: Any) -> None:
    message = await refused(bench, b"a\r\nb\nx\na\nb\n", ("a\nb", "c"))
    assert "2 places" in message and "1-2, 4-5" in message


# ---------------------------------------------------------------- EDIT-02

LOOSE = (
    "title = \u201cHello\u201d  \nkeep\u2014me   \n\tx = 1\t\n"
    "\ufb01nal \u201cline\u201d \u2026 end\n"
).encode()


async def test_a_loose_match_leaves_other_lines_alone(bench: Any) -> None:
    path = bench.put("f.txt", LOOSE)
    text = await bench.text("edit", path="f.txt", edits=pairs(('title = "Hello"', 'title = "Bye"')))
    assert "not exact" in text
    first, rest = path.read_bytes().split(b"\n", 1)
    assert first.startswith(b'title = "Bye"')
    assert rest == LOOSE.split(b"\n", 1)[1]


async def test_context_lines_of_a_loose_match_keep_their_bytes(bench: Any) -> None:
    content = "say(\u201ca\u201d)  \r\nold \u2013 one\r\nsay(\u201cb\u201d)\t\r\n"
    after = await edited(
        bench, content, ('say("a")\nold - one\nsay("b")', 'say("a")\nnew - one\nmore\nsay("b")')
    )
    assert after.decode() == (
        "say(\u201ca\u201d)  \r\nnew - one\r\nmore\r\nsay(\u201cb\u201d)\t\r\n"
    )


async def test_a_loose_match_of_two_places_is_refused(bench: Any) -> None:
    message = await refused(bench, "\u201ca\u201d\nx\n\u2018a\u2019 \u201ca\u201d\n", ('"a"', "b"))
    assert "2 places" in message and "1 (column 1), 3 (column 5)" in message


async def test_an_exact_match_wins_over_an_earlier_loose_one(bench: Any) -> None:
    after = await edited(bench, 'x = \u201ca\u201d\nx = "a"\n', ('x = "a"', "y"))
    assert after.decode() == "x = \u201ca\u201d\ny\n"


async def test_indentation_is_not_guessed(bench: Any) -> None:
    message = await refused(bench, "def area():\n    w = 3\n    h = 4\n", ("w  =  3", "w = 5"))
    assert "Lines 2-2 differ from it only in white space" in message


@pytest.mark.parametrize(
    ("content", "edit", "after"),
    [
        ("a\u00a0b\n", ("a b", "a c"), "a c\n"),
        ("a  \nb\n", ("a\nb", "a\nc"), "a  \nc\n"),
        ("x = 1\n", ("x =\t", "y =\t"), "y = 1\n"),
        ("a\nb\n", ("1\ta\n2\tb", "1\ta\n2\tc"), "a\nc\n"),
        ("a\nb\n", (" 9\ta\n10\tb\n", "a\nc\n"), "a\nc\n"),
        ("go \x1b[1m now\n", ("go \u241b[1m now", "go \u241b[1m later"), "go \x1b[1m later\n"),
    ],
)
async def test_what_counts_as_alike(
    bench: Any, content: str, edit: tuple[str, str], after: str
) -> None:
    assert (await edited(bench, content, edit)).decode() == after


# ---------------------------------------------------------------- EDIT-03


@pytest.mark.parametrize(
    ("content", "edits", "words"),
    [
        ("row\nrow\nrow\n", [("row\nrow\n", "x")], ["2 places", "1-2, 2-3", "Give more"]),
        ("aXa\n", [("a", "b")], ["2 places", "1 (column 1), 1 (column 3)"]),
        (THREE, [("one\ntwo", "1"), ("two\nthree", "2")], ["Edits 1 and 2 overlap", "Join"]),
        (THREE, [("two\nthree", "1"), ("one\ntwo", "2")], ["Edits 1 and 2 overlap"]),
        (THREE, [("one", "1"), ("nope", "x")], ["Edit 2 of 2", "not found", "Read that part"]),
        (THREE, [("", "x")], ["empty"]),
        (THREE, [("two", "two")], ["changes nothing"]),
        (THREE, [("tow", "x")], ["`two`"]),
        (THREE, [(" \n", "x")], ["not found"]),
        (THREE, [("two", "2"), ("two", "zwei")], ["1 and 2 replace the same text (line 2)"]),
        ("", [("x", "y")], ["f.txt is empty", "Use write"]),
        ("a\n" * 3000, [("a", "y")], ["more than 999 places", "…"]),
    ],
)
async def test_refusals_say_what_to_do(
    bench: Any, content: str, edits: list[tuple[str, str]], words: list[str]
) -> None:
    message = await refused(bench, content, *edits)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("content", "edits", "after"),
    [
        (THREE, [("one", "1"), ("three", "3")], "1\ntwo\n3\n"),
        (THREE, [("three", "3"), ("one", "1")], "1\ntwo\n3\n"),
        (THREE, [("one", "two"), ("two", "2")], "two\n2\nthree\n"),
        (THREE, [("one\n", ""), ("two\n", "")], "three\n"),
        ("x", [("x", "y")], "y"),
        ("x", [("x", "")], ""),
    ],
)
async def test_edits_that_fit(
    bench: Any, content: str, edits: list[tuple[str, str]], after: str
) -> None:
    assert (await edited(bench, content, *edits)).decode() == after


async def test_other_ways_to_write_the_arguments(bench: Any) -> None:
    for arguments in (
        {"file_path": "f.txt", "old_string": "one", "new_string": "1"},
        {"path": "f.txt", "oldText": "one", "newText": "1", "edits": None},
        {"path": "@f.txt", "edits": {"oldText": "one", "newText": "1"}},
        {"path": "f.txt", "edits": '[{"oldText": "one", "newText": "1"}]'},
    ):
        path = bench.put("f.txt", THREE)
        await bench.output("edit", **arguments)
        assert path.read_text() == "1\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"edits": []}, '"path" is missing'),
        ({"path": "f"}, '"edits" is missing'),
        ({"path": "f", "edits": []}, "at least one {oldText, newText}, got an empty list"),
        ({"path": "f", "edits": 3}, '"edits" must be a list'),
        ({"path": "f", "edits": "x"}, '"edits" must be a list'),
        ({"path": "f", "edits": ["x"]}, '"edits[1]" must be an object'),
        ({"path": "f", "edits": [{"oldText": "x"}]}, 'number 1 of edits: the argument "newText"'),
        ({"path": "f", "edits": [{"oldText": 1, "newText": ""}]}, '"oldText" must be a string'),
        ({"path": "f", "oldText": "\ud800", "newText": ""}, "surrogate"),
    ],
)
def test_wrong_arguments(bench: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        bench.tools["edit"].check(arguments)
    assert words in caught.value.message


async def test_files_that_cannot_be_edited(bench: Any) -> None:
    bench.put("data.bin", b"\x7fELF\0\0")
    bench.put("settings.toml", "x")
    for path, words in (
        ("data.bin", "ELF"),
        ("setings.toml", "settings.toml"),
        (".", "directory"),
        ("no/such.txt", "nearest one that does is the working directory."),
        ("/dev/null", "character device"),
    ):
        with pytest.raises(ToolError) as caught:
            await bench.output("edit", path=path, oldText="x", newText="y")
        assert words in caught.value.message


async def test_a_big_file_is_edited_quickly(bench: Any) -> None:
    lines = [f"line {i} {'x' * 60}" for i in range(200_000)]
    path = bench.put("big.txt", "\n".join(lines))
    start = time.monotonic()
    output = await bench.output(
        "edit",
        path="big.txt",
        edits=pairs(("line 5 x", "LINE 5 x"), ("line 199990 x", "a\nb x")),
    )
    assert time.monotonic() - start < 10
    assert (output.details["added"], output.details["removed"]) == (3, 2)
    assert path.read_text().count("\n") == 200_000


# ---------------------------------------------------------------- properties

TEXTS = st.text(alphabet="ab \t\n\r\u2014\u201c\u00a0", max_size=40)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.integers(0, 40), st.integers(1, 12), st.text(alphabet="xy\n", max_size=6))
def test_text_outside_the_match_is_untouched(text: str, at: int, size: int, new: str) -> None:
    old = text[at : at + size]
    try:
        regions = plan_edits(text, [Edit(old, new)], "f")
    except ToolError:
        return
    (region,) = regions
    after = apply_regions(text, regions)
    assert after.startswith(text[: region.start])
    assert after.endswith(text[region.end :])
    if region.exact:
        lf_old, lf_new = old.replace("\r\n", "\n"), new
        lf_text, lf_after = text.replace("\r\n", "\n"), after.replace("\r\n", "\n")
        if "\r" not in lf_text + lf_old:
            assert lf_after == lf_text.replace(lf_old, lf_new, 1)
