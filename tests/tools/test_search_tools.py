"""The tools `grep`, `find` and `ls`, and ignore rules compared with git itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.errors import ToolError
from pi_tui.tools import grep as grep_module
from pi_tui.tools.gitignore import Glob, GlobSet, IgnoreRules, IgnoreStack, expand_braces


@pytest.fixture
def project(bench: Any) -> Any:
    bench.put("src/app.py", "import os\n\ndef main():\n    print('Hello')\n    return 0\n")
    bench.put("src/deep/util.ts", "export const hello = 1;\n")
    bench.put("src/deep/view.tsx", "hello\n")
    bench.put("README.md", "# Hello world\r\n")
    bench.put(".hidden/note.txt", "hello hidden\n")
    bench.put("build/out.js", "hello build\n")
    bench.put("debug.log", "hello log\n")
    bench.put("src/keep.log", "hello kept log\n")
    bench.put(".gitignore", "build/\n*.log\n!keep.log\n")
    bench.put(".git/config", "hello git\n")
    bench.put("bin.dat", b"hello\0binary")
    return bench


# ---------------------------------------------------------------- grep


async def test_grep_gives_sorted_lines(project: Any) -> None:
    output = await project.output("grep", pattern="[Hh]ello")
    assert output.content[0].text.split("\n") == [
        ".hidden/note.txt:1: hello hidden",
        "README.md:1: # Hello world",
        "src/app.py:4:     print('Hello')",
        "src/deep/util.ts:1: export const hello = 1;",
        "src/deep/view.tsx:1: hello",
        "src/keep.log:1: hello kept log",
    ]
    assert output.details == {"matches": 6, "files": 6, "truncated": False}


async def test_grep_options(project: Any) -> None:
    grep = project.text
    assert await grep("grep", pattern="HELLO", ignoreCase="true", glob="*.{ts,md}") == (
        "README.md:1: # Hello world\nsrc/deep/util.ts:1: export const hello = 1;"
    )
    assert await grep("grep", pattern="main()", literal=True, path="src", context="1") == (
        "src/app.py-2- \nsrc/app.py:3: def main():\nsrc/app.py-4-     print('Hello')"
    )
    assert await grep("grep", pattern="hello", path="src/deep/util.ts") == (
        "src/deep/util.ts:1: export const hello = 1;"
    )
    assert await grep("grep", pattern="hello", path="build") == "build/out.js:1: hello build"
    assert await grep("grep", pattern="^hello", glob="src/**/*.tsx") == "src/deep/view.tsx:1: hello"
    assert (await grep("grep", pattern="zzz")).startswith("No matches.")


async def test_grep_context_of_neighbours_is_not_doubled(bench: Any) -> None:
    bench.put("f", "a\nx\nb\nc\nx\nd\ne\nf\ng\nx\n")
    text = await bench.text("grep", pattern="x", context=1)
    assert text.replace("f", "") == ("-1- a\n:2: x\n-3- b\n-4- c\n:5: x\n-6- d\n--\n-9- g\n:10: x")


async def test_grep_limits(bench: Any) -> None:
    bench.put("f", "x\n" * 300)
    text = await bench.text("grep", pattern="x")
    assert text.count("f:") == 100
    assert "[More than 100 matches; only the first are given." in text
    text = await bench.text("grep", pattern="x", limit=300)
    assert text.count("f:") == 300 and "[" not in text
    bench.put("f", "a" * 2000 + "needle" + "b" * 2000 + "\n")
    text = await bench.text("grep", pattern="needle")
    assert "needle" in text and len(text) < 520
    assert text.startswith("f:1: …") and text.endswith("…")


async def test_grep_says_what_is_wrong_with_a_pattern(project: Any) -> None:
    with pytest.raises(ToolError) as caught:
        await project.output("grep", pattern="main(")
    assert "at character 5" in caught.value.message
    assert "literal: true" in caught.value.message
    with pytest.raises(ToolError, match="There is no file nowhere"):
        await project.output("grep", pattern="x", path="nowhere")
    with pytest.raises(ToolError, match='"pattern" is missing'):
        await project.output("grep", path="src")


async def test_grep_takes_crlf_as_a_line_end(bench: Any) -> None:
    bench.put("f", b"foo bar\r\nfoo\r\n\r\nbar foo\r")
    assert await bench.text("grep", pattern="foo$") == "f:2: foo\nf:4: bar foo"
    assert await bench.text("grep", pattern="^$") == "f:3: "


async def test_grep_of_what_only_a_line_alone_fits(bench: Any) -> None:
    bench.put("f", "bbb\nxxa")
    assert await bench.text("grep", pattern="[^a]++$") == "f:1: bbb"


async def test_an_empty_file_has_no_line_to_fit(bench: Any) -> None:
    bench.put("empty", "")
    bench.put("line", "\n")
    assert await bench.text("grep", pattern="^") == "line:1: "


@pytest.mark.parametrize("codec", ["utf-8", "utf-16"])
async def test_lines_of_large_files_are_numbered(bench: Any, codec: str) -> None:
    long = "a" * 10_000_000 + "needle" + "b" * 10_000_000
    bench.put("f", f"{long}\nsecond needle\r\n".encode(codec))
    first, second = (await bench.text("grep", pattern="needle")).split("\n")
    assert first.startswith("f:1: …aaa") and "aneedleb" in first
    assert second == "f:2: second needle"


async def test_more_matches_than_an_answer_has_room_for(make_bench: Any) -> None:
    bench = make_bench(max_bytes=924)
    bench.put("f", "x" * 400 + "\n" + "y\n" * 3)
    bench.put("g", "x" * 490 + "\n" + "x\n" * 5)
    output = await bench.output("grep", pattern="x", context=1)
    lines, note = output.content[0].text.split("\n\n")
    assert [line[:5] for line in lines.split("\n")] == ["f:1: ", "f-2- ", "g:1: ", "g:2: ", "g:3: "]
    assert 924 - len("g:4: x") <= len(lines) <= 924
    assert note == "[3 more lines left out for their size.]"
    assert output.details == {"matches": 7, "files": 2, "truncated": True}


async def test_matches_far_beyond_an_answer_do_not_reach_the_program(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep_module, "_STREAM_LIMIT_BYTES", 80_000)
    bench.put("f", f"{'x' * 400}\n" * 1000)
    text = await bench.text("grep", pattern="x", limit=1000)
    assert "more lines left out for their size" in text
    assert 50_000 < len(text) < 52_000


async def test_grep_says_why_nothing_may_have_been_found(bench: Any) -> None:
    bench.put("app/[id]/page.ts", "one\ntwo\n")
    for pattern in ("one\ntwo", r"one\ntwo"):
        assert "nothing fits across a line end" in await bench.text("grep", pattern=pattern)
    text = await bench.text("grep", pattern=r"one\\ntwo")
    assert text == "No matches."
    text = await bench.text("grep", pattern="one", glob="app/[id]/*")
    assert "put a backslash before one" in text
    assert "page.ts:1: one" in await bench.text("grep", pattern="one", glob=r"app/\[id\]/*")
    with pytest.raises(ToolError, match=r'"pattern" must be .*, got an empty string'):
        await bench.output("grep", pattern="")


async def test_a_pattern_that_never_ends_is_stopped(
    bench: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.put("a", "found aaa!\n")
    bench.put("b", "a" * 60 + "!\n")
    monkeypatch.setattr(grep_module, "SEARCH_TIME_S", 0.1)
    monkeypatch.setattr(grep_module, "_START_S", 1.0)
    start = time.monotonic()
    text = await bench.text("grep", pattern=r"(a+)+b|found")
    assert time.monotonic() - start < 20
    assert text.startswith("a:1: found aaa!\n\n[Stopped after 0.1 s")


async def test_a_cancelled_search_ends_its_process(
    bench: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[asyncio.subprocess.Process] = []
    start = asyncio.create_subprocess_exec

    async def recorded(*words: str, **options: Any) -> asyncio.subprocess.Process:
        started.append(await start(*words, **options))
        return started[-1]

    bench.put("b", "a" * 60 + "!\n")
    monkeypatch.setattr(grep_module.asyncio, "create_subprocess_exec", recorded)
    task = asyncio.ensure_future(bench.text("grep", pattern="(a+)+b"))
    await until(lambda: bool(started))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert started[0].returncode == -signal.SIGKILL


async def test_names_with_escape_codes_are_made_visible(bench: Any) -> None:
    bench.put("a\x1b[2Jb\n.txt", "x \x1b[31mred\n")
    bench.put(os.fsdecode(b"bad\xff"), "x\n")
    for text in (
        await bench.text("grep", pattern="x"),
        await bench.text("find", pattern="*"),
        await bench.text("ls"),
    ):
        assert "\x1b" not in text
        assert "a\u241b[2Jb\u240a.txt" in text
        assert "bad\ufffd" in text


# ---------------------------------------------------------------- find, ls


async def test_find(project: Any) -> None:
    find = project.text
    assert await find("find", pattern="*.{ts,tsx}") == "src/deep/util.ts\nsrc/deep/view.tsx"
    assert await find("find", pattern="src/**/*.py") == "src/app.py"
    assert await find("find", pattern="*.log") == "src/keep.log"
    assert await find("find", pattern="deep") == "src/deep/"
    assert await find("find", pattern="*/", path="src") == "src/deep/"
    assert await find("find", pattern="out.*", path="build") == "build/out.js"
    assert await find("find", pattern="config") == "Nothing fits config."
    assert await find("find", pattern=f"{project.directory}/src/*.py") == "src/app.py"
    text = await find("find", pattern="*", limit=2)
    assert text.startswith(".gitignore\n.hidden/\n\n[More than 2 paths fit")
    with pytest.raises(ToolError, match="is a file"):
        await project.output("find", pattern="x", path="README.md")
    with pytest.raises(ToolError, match='"pattern" is missing'):
        await project.output("find")


async def test_find_says_why_nothing_may_have_been_found(bench: Any) -> None:
    bench.put("app/[id]/page.ts", "")
    assert "put a backslash before one" in await bench.text("find", pattern="app/[id]/*")
    assert await bench.text("find", pattern=r"app/\[id\]/*") == "app/[id]/page.ts"
    for pattern in ("../*", "/etc/*.conf"):
        assert "give another one as path" in await bench.text("find", pattern=pattern)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("find", {"pattern": "*.[ch"}), ("grep", {"pattern": "x", "glob": "a\\"})],
)
def test_globs_that_can_fit_nothing_are_refused(
    bench: Any, tool: str, arguments: dict[str, str]
) -> None:
    with pytest.raises(ToolError, match=r"must be a glob with every \[ closed"):
        bench.tools[tool].check(arguments)


async def test_find_does_not_follow_links_in_a_circle(bench: Any) -> None:
    bench.put("a/x.txt", "")
    bench.path("a/loop").symlink_to("..")
    assert await bench.text("find", pattern="*") == "a/\na/loop\na/x.txt"


async def test_ls(project: Any) -> None:
    assert await project.text("ls") == (
        ".git/\n.gitignore\n.hidden/\nbin.dat\nbuild/\ndebug.log\nREADME.md\nsrc/"
    )
    assert await project.text("ls", path="src", limit="1") == (
        "app.py\n\n[2 more entries left out. Use find with a pattern, or a larger limit.]"
    )
    project.path("none").mkdir()
    assert await project.text("ls", path="none") == "(empty directory)"
    with pytest.raises(ToolError, match="use read"):
        await project.output("ls", path="README.md")
    with pytest.raises(ToolError, match=r"There is no file srcc\. Near names: src"):
        await project.output("ls", path="srcc")


# ---------------------------------------------------------------- ignore rules

RULES = [
    "*.log",
    "!important.log",
    "/root.txt",
    "dir/",
    "a/b",
    "**/deep",
    "x/**",
    "p/**/q",
    "**/m/n",
    r"\#hash",
    r"\!bang",
    "trail   ",
    r"kept\ ",
    "[a-c]?.t",
    "[!x]y",
    "[[:digit:]]z",
    "[]]w",
    "[unclosed",
    "back\\",
    "f**g",
    "**",
    "/**/r",
    "a*b*c",
    "# comment",
    "",
    "/",
    "!",
]
PATHS = [
    *("a.log", "important.log", "d/a.log", "root.txt", "d/root.txt", "dir/f", "d/dir/f", "a/b/c"),
    *("d/a/b", "deep", "d/deep/f", "x/y", "d/x/y", "p/q", "p/1/q", "p/1/2/q", "p/1/2/r", "m/n"),
    *("d/m/n", "#hash", "!bang", "trail", "kept ", "b1.t", "d1.t", "ay", "xy", "7z", "]w"),
    *("[unclosed", "back", "fxxg", "f/g", "r", "d/r", "abc", "aXbYc", "a/bc", "d/aXbYc", "zz"),
]


def ignored_by_us(rules: str, path: str) -> bool:
    stack = IgnoreStack().with_layer("", IgnoreRules(rules))
    names = path.split("/")
    return any(
        stack.ignores("/".join(names[: depth + 1]), depth < len(names) - 1)
        for depth in range(len(names))
    )


def ignored_by_git(directory: Path, rules: str, paths: list[str]) -> set[str]:
    (directory / ".gitignore").write_text(rules)
    done = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths),
        capture_output=True,
        text=True,
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"},
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return {path for path in done.stdout.split("\0") if path}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q"], cwd=directory, check=True)
    for path in PATHS:
        # A name can be a file in one path and a directory in another; then the file is left out.
        try:
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).touch()
        except (FileExistsError, NotADirectoryError):
            continue
    return directory


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_is_understood_as_git_does(repository: Path, rule: str) -> None:
    paths = [path for path in PATHS if (repository / path).is_file()]
    ours = {path for path in paths if ignored_by_us(rule + "\n", path)}
    assert ours == ignored_by_git(repository, rule + "\n", paths)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(RULES), min_size=2, max_size=6), st.booleans())
def test_rules_together_are_understood_as_git_does(
    repository: Path, rules: list[str], negate: bool
) -> None:
    text = "\n".join([*rules, "!" + rules[0] if negate else ""]) + "\n"
    paths = [path for path in PATHS if (repository / path).is_file()]
    ours = {path for path in paths if ignored_by_us(text, path)}
    assert ours == ignored_by_git(repository, text, paths)


async def test_rules_of_parents_and_of_the_repository_hold(bench: Any) -> None:
    bench.put(".git/info/exclude", "secret\n")
    bench.put(".gitignore", "/sub/a.txt\n*.tmp\n")
    bench.put("sub/.gitignore", "!b.tmp\nc/\n")
    for name in ("sub/a.txt", "sub/b.tmp", "sub/x.tmp", "sub/c/d", "sub/secret", "sub/ok"):
        bench.put(name, "x")
    expected = "sub/.gitignore\nsub/b.tmp\nsub/ok"
    assert await bench.text("find", pattern="*", path="sub") == expected


def test_hostile_globs_cost_little() -> None:
    start = time.monotonic()
    assert not Glob("*a" * 30 + "*b").matches("a" * 250)
    assert not Glob("**/a/" * 20 + "b").matches("a/" * 100 + "c")
    assert len(expand_braces("{a,b}" * 30)) <= 300
    assert time.monotonic() - start < 2


def test_braces() -> None:
    assert set(expand_braces("a.{x,y{1,2}}")) == {"a.x", "a.y1", "a.y2"}
    assert expand_braces("{a}") == ["{a}"]
    assert GlobSet("./src/*.py").matches("src/a.py", False)
