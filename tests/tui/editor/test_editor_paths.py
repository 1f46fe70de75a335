"""Completion of paths: which word is meant, what is found, what is written."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.tui.editor import paths
from pi_tui.tui.editor.completion import Completion
from pi_tui.tui.editor.file_index import FileIndex, walk
from pi_tui.tui.editor.paths import PathCompleter, path_word


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for name in ("src/main.py", "src/maker.py", "src/deep/er/file.txt", "docs/my notes.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / "README.md").write_text("")
    (root / ".hidden").write_text("")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("")
    (root / "node_modules" / "x").mkdir(parents=True)
    return root


class Bench:
    """A completer and a text with the cursor at its end."""

    def __init__(self, project: Path, **more: Any) -> None:
        self.completer = PathCompleter(lambda: str(project), **more)
        self.readied = asyncio.Event()
        self.completer.ready = self.readied.set

    def now(self, text: str) -> Completion | None:
        return self.completer.complete(text, len(text))

    def tab(self, text: str) -> Completion | None:
        return self.completer.complete_on_tab(text, len(text))

    async def inserts(self, text: str) -> list[str]:
        """The rows once all is read."""
        while True:
            self.readied.clear()
            completion = self.now(text)
            readers = (self.completer._walk, self.completer._finding, self.completer._listing)
            if not any(reader is not None and reader.running for reader in readers):
                return [] if completion is None else [item.insert for item in completion.items]
            await asyncio.wait_for(self.readied.wait(), 10)

    def tabbed(self, text: str) -> list[str]:
        completion = self.tab(text)
        return [] if completion is None else [item.insert for item in completion.items]


@pytest.fixture
def bench(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Bench]:
    monkeypatch.setattr(paths, "TAB_WAIT_S", 10)  # a machine under load is slow
    return lambda **more: Bench(project, **more)


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("@", (0, "", True, False)),
        ("see @src/m", (4, "src/m", True, False)),
        ('see @"my no', (4, "my no", True, True)),
        ("(@a", (1, "a", True, False)),
        ("line\n@b", (5, "b", True, False)),
        ("mail me@home", None),
        ('see @"my notes" ', None),
        ("see @a b", None),
        ("paste \U00100000@x\U00100001", None),
    ],
)
def test_words_with_an_at_sign(text: str, word: Any) -> None:
    found = path_word(text, len(text), only_at=True)
    assert (None if found is None else (found.start, found.path, found.at, found.quoted)) == word


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", (0, "", False, False)),
        ("look ", (5, "", False, False)),
        ("look src/ma", (5, "src/ma", False, False)),
        ('say "a" "my fi', (8, "my fi", False, True)),
        ("!ls", (1, "ls", False, False)),
        ("!!./run", (2, "./run", False, False)),
        ("@src/ma", (0, "src/ma", True, False)),
        ('closed "quote"', None),
    ],
)
def test_words_for_tab(text: str, word: Any) -> None:
    found = path_word(text, len(text), only_at=False)
    assert (None if found is None else (found.start, found.path, found.at, found.quoted)) == word


def test_the_word_ends_at_the_cursor() -> None:
    found = path_word("@src/main.py and", 6, only_at=True)
    assert found is not None and found.path == "src/m"


def test_a_very_long_line_costs_nothing() -> None:
    text = "@" * 1_000_000
    assert path_word(text, len(text), only_at=False) is not None


# ---------------------------------------------------------------- files by a few letters


def test_the_walk_is_near_first_and_leaves_out_what_nobody_means(project: Path) -> None:
    (project / "loop").symlink_to(project)
    found = list(walk(str(project), lambda: False))
    assert found[:4] == [".hidden", "README.md", "docs/", "loop"]
    assert found[-1] == "src/deep/er/file.txt"
    assert not any("node_modules" in path or ".git" in path for path in found)


def test_the_walk_is_bounded_and_stops(project: Path) -> None:
    assert len(list(walk(str(project), lambda: False, 3))) == 3
    assert list(walk(str(project), lambda: True)) == []
    assert list(walk(str(project / "gone"), lambda: False)) == []


def test_names_that_cannot_be_written_are_left_out(tmp_path: Path) -> None:
    for name in (b"good", b"new\nline", b"esc\x1b[2J", b"latin\xe9", b'quo"te', "é 日本".encode()):
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))).write_bytes(b"")
    assert list(walk(str(tmp_path), lambda: False)) == ["good", "é 日本"]


def test_ranking() -> None:
    index = FileIndex(["a/main.py", "domain.py", "main/", "main/x.py", "m/a/i/n", "Main.c", "q"])
    assert index.find("main") == [
        "main/",
        "Main.c",
        "a/main.py",
        "domain.py",
        "main/x.py",
        "m/a/i/n",
    ]
    assert index.find("main/x") == ["main/x.py"]
    assert index.find("dmn") == ["domain.py"]
    assert index.find("") == [
        "Main.c",
        "domain.py",
        "main/",
        "q",
        "a/main.py",
        "main/x.py",
        "m/a/i/n",
    ]
    assert index.find("zz") == [] and len(index.find("", 2)) == 2


async def test_at_finds_files_and_writes_them(bench: Any) -> None:
    b = bench()
    assert await b.inserts("see @mak") == ["@src/maker.py "]
    assert await b.inserts("see @notes") == ['@"docs/my notes.md" ']
    assert await b.inserts("see @dee") == [
        "@src/deep/",
        "@src/deep/er/",
        "@src/deep/er/file.txt ",
    ]
    assert await b.inserts("see @nothing-like-it") == []
    completion = b.now("see @mak")
    assert completion is not None and completion.start == 4 and not completion.submits


async def test_typing_never_waits_for_the_disk(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def slow(root: str, stopped: Any) -> Any:
        gate.wait(10)
        yield from walk(root, stopped)

    monkeypatch.setattr(paths, "walk", slow)
    b = bench()
    completion = b.now("@main")
    assert completion is not None and completion.items == ()
    gate.set()
    assert await b.inserts("@main") == ["@src/main.py "]


async def test_the_list_is_read_again_after_a_while(bench: Any, project: Path) -> None:
    now_s = 0.0
    b = bench(clock=lambda: now_s)
    assert await b.inserts("@fresh") == []
    (project / "fresh.py").write_text("")
    assert await b.inserts("@fresh") == []
    now_s = 6.0
    assert await b.inserts("@fresh") == ["@fresh.py "]


async def test_long_lists_are_searched_aside(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "FIND_AT_ONCE", 2)
    b = bench()
    assert await b.inserts("@ma") == ["@src/main.py ", "@src/maker.py "]
    sharper = b.now("@mak")  # until the answer is there: what still fits of the one before
    assert sharper is not None and [item.label for item in sharper.items] == ["src/maker.py"]
    assert await b.inserts("@mak") == ["@src/maker.py "]


async def test_at_with_other_places(bench: Any, project: Path, tmp_path: Path) -> None:
    b = bench(home=str(tmp_path))
    assert await b.inserts("@~/pro") == ["@~/project/"]
    assert await b.inserts(f"@{project}/RE") == [f"@{project}/README.md "]
    assert await b.inserts("@../pro") == ["@../project/"]
    assert await b.inserts("@/nowhere/at/all/") == []


# ---------------------------------------------------------------- Tab


async def test_tab_writes_the_only_one_or_what_is_common(bench: Any) -> None:
    b = bench()
    assert b.tabbed("see READ") == ["README.md "]
    assert b.tabbed("see sr") == ["src/"]
    assert b.tabbed("see @sr") == ["@src/"]
    assert b.tabbed("see docs/m") == ['"docs/my notes.md" ']
    completion = b.tab("see src/m")
    assert completion is not None and completion.common == "src/ma"
    completion = b.tab("see src/ma")
    assert completion is not None and completion.common == "" and len(completion.items) == 2
    assert b.tabbed("see readme") == ["README.md "]
    assert b.tabbed("see xyz") == []
    assert b.tabbed("see .h") == [".hidden "] and ".hidden " not in b.tabbed("see ")


async def test_after_tab_the_list_narrows_until_the_word_is_left(bench: Any) -> None:
    b = bench()
    assert b.now("see src/") is None
    b.tab("see src/")
    assert await b.inserts("see src/m") == ["src/main.py ", "src/maker.py "]
    assert await b.inserts("see src/mai") == ["src/main.py "]
    assert b.now("see src/mai ") is None
    assert b.now("see src/mai") is None


async def test_tab_on_a_slow_disk_shows_the_list_later(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    names = paths._names

    def slow(directory: str) -> list[str]:
        gate.wait(10)
        return names(directory)

    monkeypatch.setattr(paths, "_names", slow)
    monkeypatch.setattr(paths, "TAB_WAIT_S", 0)
    b = bench()
    assert b.tab("see READ") is None
    gate.set()
    assert await b.inserts("see READ") == ["README.md "]
