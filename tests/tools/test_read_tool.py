"""The `read` tool: stretches, limits, encodings, images, and files nobody should read whole."""

from __future__ import annotations

import asyncio
import base64
import os
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import ImageContent
from pi_tui.tools.options import MAX_BYTES, MAX_LINE_CHARS
from pi_tui.tools.read import read_stretch


async def problem(bench: Any, **arguments: Any) -> str:
    with pytest.raises(ToolError) as caught:
        await bench.output("read", **arguments)
    return str(caught.value.message)


async def test_lines_are_numbered(bench: Any) -> None:
    bench.put("f.txt", "".join(f"line {i}\n" for i in range(1, 12)))
    text = await bench.text("read", path="f.txt")
    assert text.split("\n")[0] == " 1\tline 1"
    assert text.split("\n")[-1] == "11\tline 11"


async def test_a_stretch_and_how_to_go_on(bench: Any) -> None:
    bench.put("f.txt", "".join(f"l{i}\n" for i in range(1, 101)))
    output = await bench.output("read", path="f.txt", offset="5", limit=2.0)
    assert output.content[0].text == "5\tl5\n6\tl6\n\n[Lines 5-6 of 100. Go on with offset=7.]"
    assert output.details["totalLines"] == 100
    last = await bench.text("read", path="f.txt", offset=100)
    assert last == "100\tl100\n\n[Lines 100-100; the file ends here.]"
    assert await bench.text("read", path="f.txt", offset=99, limit=2) == (
        " 99\tl99\n100\tl100\n\n[Lines 99-100; the file ends here.]"
    )
    assert "has 100 lines; offset 101" in await problem(bench, path="f.txt", offset=101)


async def test_no_answer_is_larger_than_the_limits(bench: Any) -> None:
    bench.put("many.txt", "x\n" * 5000)
    text = await bench.text("read", path="many.txt", limit=4000)
    assert text.count("\n") == 2001
    assert "[Lines 1-2000 of 5000. Go on with offset=2001.]" in text
    bench.put("wide.txt", ("é" * 200 + "\n") * 500)
    text = await bench.text("read", path="wide.txt")
    assert MAX_BYTES - 500 < len(text.encode()) < MAX_BYTES + 200
    assert "of 500. Go on with offset=" in text


async def test_a_huge_line_is_cut_and_said_so(bench: Any) -> None:
    bench.put("min.js", "a" * 300_000 + "\nnext\n")
    text = await bench.text("read", path="min.js")
    first, second = text.split("\n")[:2]
    assert first == f"1\t{'a' * MAX_LINE_CHARS}… [290000 more characters in this line]"
    assert second == "2\tnext"
    assert "cut -c 10001-20000" in text


async def test_memory_does_not_grow_with_the_file(bench: Any) -> None:
    path = bench.path("sparse")
    with path.open("wb") as file:
        file.write(b"first\n")
        file.write(b"x" * 70_000_000)
        file.write(b"\nlast\n")
    tracemalloc.start()
    try:
        text = await bench.text("read", path="sparse", limit=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert text.startswith("1\tfirst\n\n[Lines 1-1 of ")
    assert peak < 5_000_000


async def test_a_file_of_ten_gigabytes_is_not_read_whole(bench: Any) -> None:
    path = bench.path("huge.log")
    with path.open("wb") as file:
        file.write(b"one\n" * 10_000)
        file.truncate(10 * 1024**3)
    text = await bench.text("read", path="huge.log", limit=3)
    assert text.endswith("[Lines 1-3 of a file of 10 GB. Go on with offset=4.]")


async def test_encodings(bench: Any) -> None:
    bench.put("mark.txt", b"\xef\xbb\xbfa\r\nb\r\n")
    assert await bench.text("read", path="mark.txt") == "1\ta\n2\tb"
    bench.put("latin.txt", b"caf\xe9\n")
    text = await bench.text("read", path="latin.txt")
    assert text.startswith("1\tcaf\ufffd\n") and "not valid UTF-8" in text
    bench.put("wide.txt", "a\nü\n".encode("utf-16"))
    text = await bench.text("read", path="wide.txt")
    assert text.startswith("1\ta\n2\tü\n") and "utf-16-le" in text
    bench.put("empty.txt", "")
    assert await bench.text("read", path="empty.txt") == "empty.txt is empty."


async def test_control_characters_are_shown_by_stand_ins(bench: Any) -> None:
    bench.put("f.txt", "a\x1b]52;c;eA==\x07b\x9bc\td\n")
    assert await bench.text("read", path="f.txt") == "1\ta\u241b]52;c;eA==\u2407b\\x9bc\td"


async def test_images(bench: Any, read_text: Any) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)
    bench.put("p.txt", png)
    output = await bench.output("read", path="p.txt")
    assert output.content[1] == ImageContent(base64.b64encode(png).decode(), "image/png")
    assert read_text(output) == "p.txt: image, image/png, 108 bytes."
    bench.put("big.jpg", b"\xff\xd8\xff" + bytes(6_000_000))
    assert "images up to 5 MB" in await problem(bench, path="big.jpg")


async def test_what_cannot_be_read(bench: Any) -> None:
    bench.put("doc.pdf", b"%PDF-1.7\0\0")
    assert "a PDF document, 10 bytes" in await problem(bench, path="doc.pdf")
    bench.put("blob", b"\x01\x00\x02")
    assert "a binary file, 3 bytes" in await problem(bench, path="blob")
    assert "use ls" in await problem(bench, path=".")
    os.mkfifo(bench.path("pipe"))
    assert "a named pipe" in await asyncio.wait_for(problem(bench, path="pipe"), 10)
    assert "doc.pdf" in await problem(bench, path="Doc.PDF")
    assert "nearest one that does is the working directory." in await problem(
        bench, path="nowhere/at/all.py"
    )
    assert '"offset" must be a whole number' in await problem(bench, path="x", offset="later")
    assert '"path" is missing' in await problem(bench, offset=1)
    hostile = await problem(bench, path="\x1b[2Jx\n")
    assert "\x1b" not in hostile


async def test_names_that_macos_spells_differently(bench: Any) -> None:
    bench.put("cafe\u0301 at 3.15.00\u202fPM.txt", "x\n")
    bench.put("Shot 3.15.00\u202fPM.txt", "y\n")
    assert await bench.text("read", path="Shot 3.15.00 PM.txt") == "1\ty"
    bench.put("u\u0308.txt", "z\n")
    assert await bench.text("read", path="\u00fc.txt") == "1\tz"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(alphabet="ab\n", max_size=8), max_size=8),
    st.integers(1, 6),
    st.integers(1, 5),
)
def test_blocks_do_not_show(blocks: list[str], first: int, limit: int) -> None:
    text = "".join(blocks)
    lines = text.removesuffix("\n").split("\n") if text else []
    stretch = read_stretch(iter(blocks), first, limit, 10_000, 1000)
    assert stretch.lines == lines[first - 1 : first - 1 + limit]
    assert stretch.total_lines == len(lines)
    assert stretch.more == (len(lines) > first - 1 + limit)
