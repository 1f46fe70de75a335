"""What a search through stored sessions finds: all that was written, the newest first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.session_search import MAX_PATTERN_CHARS, parse_query
from pi_tui.storage.backwards import blocks_backwards
from pi_tui.storage.conversation_text import PART_CHARS, ConversationTexts, conversation_parts
from pi_tui.storage.filesystem import REAL_FILE_SYSTEM, FileSystem
from pi_tui.storage.library import FileLibrary

Line = Callable[..., bytes]
QUERIES = ["xylophone", '"the xylophone"', "re:xylo[a-z]+e", 're:"the x"']


class Reads(FileSystem):
    """Counts the session files that are opened, and the bytes that are read."""

    def __init__(self) -> None:
        self.opened = 0
        self.read_bytes = 0

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        self.opened += path.endswith(".jsonl")
        return super().open(path, flags, mode)

    def read_at(self, fd: int, length_bytes: int, offset: int) -> bytes:
        data = super().read_at(fd, length_bytes, offset)
        self.read_bytes += len(data)
        return data


@pytest.fixture
def write(sessions_directory: Path, head_line: Line) -> Callable[..., Path]:
    """Writes a session of the library from its lines."""
    folder = sessions_directory / "--x--"
    folder.mkdir(parents=True)

    def session(name: str, *lines: bytes) -> Path:
        path = folder / f"2026-01-01T00-00-00-000Z_{name}.jsonl"
        path.write_bytes(head_line(id=name) + b"".join(lines))
        return path

    return session


@pytest.fixture
def fs() -> Reads:
    return Reads()


@pytest.fixture
def library(sessions_directory: Path, fs: Reads) -> FileLibrary:
    return FileLibrary(sessions_directory, "/home/demo/project", fs=fs)


def hits(library: FileLibrary, query: str, **options: Any) -> list[str]:
    found = library.search(parse_query(query), everywhere=True, **options)
    return [hit.row.id for hit in found]


def filler(line: Line, count: int, chars: int) -> list[bytes]:
    text = "lorem " * (chars // 6)
    roles = ("user", "assistant")
    return [
        line(n, message={"role": roles[n % 2], "content": [{"type": "text", "text": text}]})
        for n in range(1, count + 1)
    ]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("place", ["first", "last", "middle"])
def test_a_long_session_is_searched_whole(
    write: Callable[..., Path], library: FileLibrary, line: Line, query: str, place: str
) -> None:
    lines = filler(line, 40, 30_000)
    at = {"first": 0, "middle": 20, "last": 40}[place]
    lines.insert(at, line(99, "play the xylophone"))
    write("long", *lines)
    assert sum(map(len, lines)) > 5 * MAX_PATTERN_CHARS
    assert hits(library, query) == ["long"]


@pytest.mark.parametrize("query", QUERIES)
def test_much_tool_output_and_large_images_hide_nothing(
    write: Callable[..., Path], library: FileLibrary, line: Line, query: str
) -> None:
    output = {"role": "toolResult", "content": [{"type": "text", "text": "x" * 3_000_000}]}
    image = {"type": "image", "data": "A" * 3_000_000, "mimeType": "image/png"}
    picture = {"role": "user", "content": [image, {"type": "text", "text": "see"}]}
    noise = [line(n, message=message) for n, message in enumerate((output, picture) * 2, 1)]
    write("noisy", line(1, "first"), *noise, line(9, "play the xylophone"), *noise)
    assert hits(library, query) == ["noisy"]


def test_the_newest_place_is_shown(
    write: Callable[..., Path], library: FileLibrary, line: Line
) -> None:
    lines = filler(line, 20, 30_000)
    write("a", line(1, "hi"), line(2, "an old xylophone"), *lines, line(3, "a new xylophone"))
    (hit,) = library.search(parse_query('"xylophone"'), everywhere=True)
    assert hit.excerpt.startswith("a new xylophone")
    assert [hit.excerpt[start:end] for start, end in hit.spans] == ["xylophone"]


def test_a_phrase_in_one_endless_message_is_found_wherever_it_stands(
    write: Callable[..., Path], library: FileLibrary, line: Line
) -> None:
    for at in (PART_CHARS - 10, PART_CHARS - 1_003, 2 * PART_CHARS - 1_010, 3 * PART_CHARS):
        write("a", line(1, "." * at + "play the xylophone" + "." * 300_000))
        for query in QUERIES:
            assert hits(library, query) == ["a"], (at, query)


def test_terms_may_stand_far_apart(
    write: Callable[..., Path], library: FileLibrary, line: Line
) -> None:
    lines = filler(line, 20, 30_000)
    write("a", line(1, "a harp"), *lines, line(2, "a xylophone"))
    assert hits(library, '"harp" "xylophone"') == ["a"]
    assert hits(library, '"harp" "trombone"') == []


def test_former_names_labels_and_summaries_are_found(
    write: Callable[..., Path], library: FileLibrary, line: Line
) -> None:
    write(
        "a",
        line(1, "first"),
        line(2, type="session_info", name="about harps", message=None),
        line(3, type="session_info", name="about tubas", message=None),
        line(4, type="label", targetId="e0000001", label="trombone", message=None),
        line(5, type="label", targetId="e0000001", label=None, message=None),
        line(6, type="compaction", summary="they spoke of a fiddle", message=None),
        line(7, type="branch_summary", summary="a cello", message=None),
        line(8, type="custom_message", content="an oboe", message=None),
        line(9, type="custom", data={"content": "hidden"}, message=None),
        line(10, message={"role": "toolResult", "content": "hidden"}),
        line(11, message={"role": "user", "content": [{"type": "thinking", "text": "hidden"}]}),
        line(12, message={"content": "a flute", "role": "user"}),
    )  # fmt: skip
    for word in ("harps", "tubas", "trombone", "fiddle", "cello", "oboe", "flute"):
        assert hits(library, f'"{word}"') == ["a"], word
    assert hits(library, '"hidden"') == []


def test_glued_and_odd_lines_are_searched(
    write: Callable[..., Path], library: FileLibrary, line: Line
) -> None:
    glued = line(1, "a harp").rstrip() + line(2, "a tuba").rstrip()
    odd = line(3, message={"role": "user", "content": "an oboe", "x": "@"}, label=5)
    name = line(4, type="session_info", name="a flute", summary=[1])
    write("a", glued + b"\n", odd.replace(b"@", b"\\ud83d"), name)
    for word in ("harp", "tuba", "oboe", "flute"):
        assert hits(library, f'"{word}"') == ["a"], word


def test_what_did_not_change_is_read_once(
    write: Callable[..., Path], library: FileLibrary, fs: Reads, line: Line, tmp_path: Path
) -> None:
    paths = [write(name, line(1, f"about {name}")) for name in ("harps", "tubas")]
    library = FileLibrary(
        paths[0].parents[1], "/home/demo/project", cache_directory=tmp_path / "cache", fs=fs
    )
    assert hits(library, '"nothing"') == []
    before = fs.opened
    for _ in range(3):
        assert hits(library, '"nothing"') == []
    assert fs.opened == before
    with paths[1].open("ab") as file:
        file.write(line(2, "a xylophone"))
    os.utime(paths[1], (1, 1))
    assert hits(library, '"xylophone"') == ["tubas"]
    assert fs.opened == before + 2, "for the list, and for the search"


def test_what_is_remembered_is_bounded(write: Callable[..., Path], fs: Reads, line: Line) -> None:
    paths = [str(write(name, line(1, "x" * 1000))) for name in ("a", "b", "c")]
    texts = ConversationTexts(fs, remembered_bytes=2500)
    size = os.stat(paths[0]).st_size
    for _ in range(2):
        fs.opened = 0
        assert [len("".join(texts.parts(path, size, 0))) for path in paths] == [1000] * 3
    assert fs.opened == 1, "two fit"
    assert "".join(texts.parts(paths[0], size, 1)) and fs.opened == 2
    list(texts.parts(paths[0], size, 1))
    assert fs.opened == 2, "a changed one takes the place it had"


def test_a_search_that_is_not_wanted_any_more_ends_within_a_session(
    write: Callable[..., Path], library: FileLibrary, fs: Reads, line: Line
) -> None:
    path = write("long", *filler(line, 200, 30_000))
    list(library.rows(everywhere=True))
    fs.read_bytes = 0
    asked = iter([False, False, True])
    assert hits(library, '"nothing"', stopped=lambda: next(asked)) == []
    # The list reads it whole, the search only its end.
    assert fs.read_bytes < path.stat().st_size * 1.5


def test_a_session_that_vanishes_is_passed_over(
    write: Callable[..., Path], line: Line, sessions_directory: Path, tmp_path: Path
) -> None:
    class Vanishing(FileSystem):
        gone = False

        def open(self, path: str, flags: int, mode: int = 0o600) -> int:
            if self.gone and path.endswith("_b.jsonl"):
                raise FileNotFoundError(2, "gone")
            return super().open(path, flags, mode)

    for name in "abc":
        write(name, line(1, "first"), line(2, "a xylophone"))
    fs = Vanishing()
    library = FileLibrary(sessions_directory, "/x", cache_directory=tmp_path / "cache", fs=fs)
    assert len(list(library.rows(everywhere=True))) == 3
    fs.gone = True
    assert sorted(hits(library, "xylophone")) == ["a", "c"]


# ---------------------------------------------------------------- from the end


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"a", b"a\n", b"\n\na", b"one\ntwo\n\nthree", b"ab\ncd\n"]
)
def test_lines_from_the_end_are_those_from_the_beginning(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "f"
    path.write_bytes(content + b"later")
    fd = os.open(path, os.O_RDONLY)
    for block_bytes in (1, 2, 3, 100):
        batches = blocks_backwards(REAL_FILE_SYSTEM, fd, len(content), block_bytes=block_bytes)
        assert [line for batch in batches for line in batch][::-1] == content.split(b"\n")
    os.close(fd)


def test_parts_are_of_a_size_that_is_searched_whole(write: Callable[..., Path], line: Line) -> None:
    path = write("a", *filler(line, 30, 30_000), line(99, "y" * 900_000), line(100, "end"))
    parts = list(conversation_parts(REAL_FILE_SYSTEM, str(path), path.stat().st_size))
    assert max(map(len, parts)) <= MAX_PATTERN_CHARS
    assert parts[0] == "end" and set(parts[1]) == {"y"}
    assert sum(part.count("lorem") for part in parts) == 30 * 5000
