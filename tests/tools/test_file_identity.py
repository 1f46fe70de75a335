"""Case EDIT-04 and the `write` tool: modes, links, directories, failures half way."""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.errors import ToolError
from pi_tui.tools import placing


@pytest.fixture(params=[0o022, 0o077, 0o000])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def change(bench: Any, tool: str, name: str, old: str, new: str) -> str:
    if tool == "edit":
        return str(await bench.text("edit", path=name, oldText=old, newText=new))
    content = bench.path(name).read_text().replace(old, new)
    return str(await bench.text("write", path=name, content=content))


@pytest.mark.parametrize("tool", ["edit", "write"])
async def test_modes_and_links_are_kept(bench: Any, umask: int, tool: str) -> None:
    run = bench.put("run.sh", "echo one\n")
    run.chmod(0o755)
    data = bench.put("data.txt", "one\n")
    data.chmod(0o640)
    bench.path("link.sh").symlink_to("run.sh")
    bench.path("chain.sh").symlink_to("link.sh")
    bench.path("data2.txt").hardlink_to(data)

    await change(bench, tool, "run.sh", "one", "two")
    text = await change(bench, tool, "link.sh", "two", "three")
    assert "link" in text and "run.sh" in text
    await change(bench, tool, "chain.sh", "three", "four")
    await change(bench, tool, "chain.sh", "four", "five")
    text = await change(bench, tool, "data.txt", "one", "twenty")
    assert "2 hard links" in text

    assert run.read_text() == "echo five\n"
    assert bench.path("link.sh").readlink() == Path("run.sh")
    assert bench.path("chain.sh").readlink() == Path("link.sh")
    assert bench.path("data2.txt").read_text() == "twenty\n"
    assert bench.path("data2.txt").samefile(data)
    assert (mode(run), mode(data)) == (0o755, 0o640)
    await change(bench, tool, "data.txt", "twenty", "x")
    assert bench.path("data2.txt").read_text() == "x\n"


async def test_a_new_file_gets_the_mode_the_umask_asks_for(bench: Any, umask: int) -> None:
    text = await bench.text("write", path="a/b/new.txt", content="x\ny")
    assert text == "Created a/b/new.txt (2 lines, 3 bytes)."
    assert mode(bench.path("a/b/new.txt")) == 0o666 & ~umask
    assert [path.name for path in bench.path("a/b").iterdir()] == ["new.txt"]


async def test_a_dangling_link_gets_its_target(bench: Any) -> None:
    bench.path("link").symlink_to("later/target")
    text = await bench.text("write", path="link", content="x")
    assert "It is a link; the file written is" in text
    assert bench.path("link").is_symlink()
    assert bench.path("later/target").read_text() == "x"
    bench.path("other").symlink_to("nowhere")
    with pytest.raises(ToolError, match="link to nowhere, which does not exist"):
        await bench.output("edit", path="other", oldText="a", newText="b")


async def test_links_in_a_circle_are_refused(bench: Any) -> None:
    bench.path("a").symlink_to("b")
    bench.path("b").symlink_to("a")
    with pytest.raises(ToolError, match="circle"):
        await bench.output("write", path="a", content="x")
    assert bench.path("a").is_symlink()


async def test_writing_replaces_and_tells_the_difference(bench: Any) -> None:
    path = bench.put("f.txt", "a\r\nb\r\n")
    output = await bench.output("write", path="f.txt", content="a\r\nc\n")
    assert path.read_bytes() == b"a\r\nc\n"
    assert output.details["diff"] == "    1 a\n-   2 b\n+   2 c"
    assert output.details["created"] is False
    before = path.stat().st_mtime_ns
    text = await bench.text("write", file_path="f.txt", content="a\r\nc\n")
    assert "was not touched" in text
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"path": "x"}, '"content" is missing; expected a string'),
        ({"path": "x", "content": {"a": 1}}, '"content" must be a string'),
        ({"path": " ", "content": ""}, '"path" is empty'),
        ({"path": ["x"], "content": ""}, '"path" must be a string'),
        ({"path": "x", "content": "\udc80"}, "surrogate"),
    ],
)
def test_wrong_arguments(bench: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolError) as caught:
        bench.tools["write"].check(arguments)
    assert words in caught.value.message


async def test_places_that_cannot_be_written(bench: Any) -> None:
    bench.put("dir/file", "x")
    for path, words in (
        ("dir", "is a directory"),
        ("dir/file/below", "a part of the path is a file"),
        ("/dev/null", "character device"),
        ("x" * 300, "name is too long"),
        ("a\0b", "NUL"),
    ):
        with pytest.raises(ToolError) as caught:
            await bench.output("write", path=path, content="x")
        assert words in caught.value.message


@pytest.mark.parametrize("links", [1, 2])
async def test_a_full_disk_leaves_the_old_content(
    bench: Any, monkeypatch: pytest.MonkeyPatch, links: int
) -> None:
    path = bench.put("f.txt", "old content\n")
    if links == 2:
        bench.path("g.txt").hardlink_to(path)
    real_write = os.write
    written = 0

    def write(handle: int, data: Any) -> int:
        nonlocal written
        if bytes(data[:1]) == b"n":
            if written:
                raise OSError(errno.ENOSPC, "No space left on device")
            written += 1
            return real_write(handle, data[:5])
        return real_write(handle, data)

    # The second piece begins with "n" too, so the failure comes half way.
    monkeypatch.setattr(placing.os, "write", write)
    with pytest.raises(ToolError, match="no space is left"):
        await bench.output("write", path="f.txt", content="n" * 100)
    monkeypatch.undo()
    assert path.read_text() == "old content\n"
    assert len(list(bench.directory.iterdir())) == links


async def test_a_killed_writer_leaves_the_old_content(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.put("f.txt", "old\n")
    at_sync: list[str] = []

    def fsync(handle: int) -> None:
        at_sync.append(path.read_text())

    monkeypatch.setattr(placing.os, "fsync", fsync)
    await bench.output("write", path="f.txt", content="new\n")
    assert at_sync == ["old\n"]
    assert path.read_text() == "new\n"


def test_calls_on_the_same_file_are_recognised(bench: Any) -> None:
    bench.put("run.sh", "x")
    bench.path("link.sh").symlink_to("run.sh")
    cwd = str(bench.directory)
    write = bench.tools["write"].written_path({"path": "link.sh", "content": ""}, cwd)
    edit = bench.tools["edit"].written_path(
        {"path": "./run.sh", "oldText": "a", "newText": "b"}, cwd
    )
    assert write == edit == str(bench.path("run.sh"))
    assert bench.tools["bash"].written_path({"command": "x"}, cwd) is None


async def test_a_write_that_is_cancelled_is_reported_as_what_it_did(
    bench: Any, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    real_write = os.write

    def write(handle: int, data: Any) -> int:
        if bytes(data[:3]) == b"new":
            begun.set()
            go_on.wait(10)
        return real_write(handle, data)

    monkeypatch.setattr(placing.os, "write", write)
    task = asyncio.ensure_future(bench.text("write", path="f.txt", content="new"))
    await until(begun.is_set)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    # The guard of the bench turns the cancellation into its own; the tool had ended before.
    await asyncio.wait((task,))
    assert bench.path("f.txt").read_text() == "new"


async def test_the_home_is_the_one_of_the_options(bench: Any) -> None:
    await bench.output("write", path="~/notes.txt", content="x")
    assert (bench.home / "notes.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("there", "asked"), [("Bob\u2019s.txt", "Bob's.txt"), ("cafe\u0301.txt", "caf\u00e9.txt")]
)
def test_a_name_is_one_file_before_and_after_it_is_made(bench: Any, there: str, asked: str) -> None:
    (bench.directory / there).write_text("old")
    call = {"path": asked, "content": "new"}
    write, cwd = bench.tools["write"], str(bench.directory)
    before = write.written_path(call, cwd)
    (bench.directory / asked).write_text("new")
    assert write.written_path(call, cwd) == before
