"""Places that are no ordinary files: what each tool says of them, and that none waits for ever."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.errors import ToolError

ARGUMENTS: dict[str, dict[str, Any]] = {
    "read": {},
    "edit": {"oldText": "a", "newText": "b"},
    "write": {"content": "x"},
    "ls": {},
    "find": {"pattern": "*"},
    "grep": {"pattern": "x"},
}


async def problem(bench: Any, tool: str, path: str) -> str:
    with pytest.raises(ToolError) as caught:
        await bench.output(tool, path=path, **ARGUMENTS[tool])
    return str(caught.value.message)


@pytest.mark.parametrize("tool", sorted(ARGUMENTS))
async def test_links_in_a_circle_pipes_and_endless_names(bench: Any, tool: str) -> None:
    bench.path("loop").symlink_to("loop2")
    bench.path("loop2").symlink_to("loop")
    os.mkfifo(bench.path("pipe"))
    assert "loop: its links go round in a circle." in await problem(bench, tool, "loop")
    assert "pipe is a named pipe" in await problem(bench, tool, "pipe")
    assert "has 6000 characters" in await problem(bench, tool, "a/b" * 2000)
    assert "name is too long" in await problem(bench, tool, "a" * 300)


async def test_a_file_for_a_directory_and_the_other_way_round(bench: Any) -> None:
    bench.put("f", "x")
    bench.path("d").mkdir()
    assert await problem(bench, "ls", "f") == "f is a file; use read to see it."
    assert await problem(bench, "find", "f") == "f is a file; give a directory to look in."
    assert await problem(bench, "read", "d") == "d is a directory; use ls to see what is in it."
    assert "d is a directory" in await problem(bench, "write", "d")
    assert "without a slash at its end" in await problem(bench, "write", "new/")
    assert not bench.path("new").exists()


async def test_a_directory_that_may_not_be_looked_into(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat

    def stat(path: Any, *rest: Any, **options: Any) -> os.stat_result:
        if str(path).endswith(".git"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **options)

    bench.put("d/f", "x")
    monkeypatch.setattr(os, "stat", stat)
    assert await bench.text("find", path="d", pattern="*") == "d/f"


@pytest.mark.parametrize("tool", ["ls", "find", "grep"])
async def test_what_may_not_be_read_is_no_empty_answer(
    bench: Any, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    bench.path("d").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("/d"))
    assert "d: permission denied." in await problem(bench, tool, "d")


async def test_an_edit_beside_bytes_of_another_encoding_says_so(bench: Any) -> None:
    path: Path = bench.put("f", b"caf\xe9\ntwo\n")
    assert "UTF-8" not in await bench.text("edit", path="f", oldText="two", newText="three")
    text = await bench.text("edit", path="f", oldText="three", newText="zw\u00f6lf")
    assert "newText stands there in UTF-8" in text
    assert path.read_bytes() == b"caf\xe9\nzw\xc3\xb6lf\n"


async def test_what_a_write_replaces_is_compared_in_its_own_encoding(bench: Any) -> None:
    bench.put("f", "one\ntwo\n".encode("utf-16"))
    output = await bench.output("write", path="f", content="one\nthree\n")
    assert (output.details["added"], output.details["removed"]) == (1, 1)
    bench.put("g", b"\xef\xbb\xbfone\n")
    output = await bench.output("write", path="g", content="one\ntwo\n")
    assert (output.details["added"], output.details["removed"]) == (1, 0)


def test_calls_on_a_name_composed_in_another_way_are_calls_on_the_same_file(bench: Any) -> None:
    composed, decomposed = "\u00e4.txt", "a\u0308.txt"
    bench.put(decomposed, "x")
    edit, cwd = bench.tools["edit"], str(bench.directory)
    written = [
        edit.written_path({"path": name, "oldText": "x", "newText": "y"}, cwd)
        for name in (composed, decomposed, "b.txt")
    ]
    assert written[0] == written[1] != written[2]


async def test_one_line_left_out_is_counted_in_words(make_bench: Any, read_text: Any) -> None:
    bench = make_bench(max_lines=3)
    assert read_text(await bench.bash("seq 4")).startswith("[Left out: the first line (2 bytes).")
    assert read_text(await bench.bash("seq 5")).startswith("[Left out: the first 2 lines (4 bytes)")
