"""The files below a directory, for finding one by a few letters of its name.

The walk goes level by level, so that what is near is known first, leaves out what nobody refers to,
and stops at a bound. Paths are relative, with `/`; those of directories end with one. Links to
directories are listed, not entered.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from heapq import nsmallest
from itertools import islice

MAX_PATHS = 50_000
MAX_FOUND = 100
LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "__pycache__"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".DS_Store"}
)

_UNUSABLE = re.compile(r'["\x00-\x1f\x7f-\x9f\ud800-\udfff]')
"""Names with these cannot be written into a text so that they are read back as they are."""


def is_usable(name: str) -> bool:
    """True when a name can stand in a text."""
    return _UNUSABLE.search(name) is None


def walk(root: str, stopped: Callable[[], bool], limit: int = MAX_PATHS) -> Iterator[str]:
    """Yield the paths below a directory, nearest first. Blocks; what cannot be read is left out."""
    return islice(_walk(root, stopped, limit), limit)


def _walk(root: str, stopped: Callable[[], bool], limit: int) -> Iterator[str]:
    waiting = deque([""])
    while waiting and not stopped():
        parent = waiting.popleft()
        for name, is_directory in names_in(os.path.join(root, parent), limit):  # noqa: PTH118
            if name in LEFT_OUT:
                continue
            path = f"{parent}{name}"
            if is_directory:
                path += "/"
                waiting.append(path)
            yield path


def names_in(directory: str, limit: int) -> list[tuple[str, bool]]:
    """The usable names in a directory, sorted, with whether each is a directory itself."""
    try:
        with os.scandir(directory) as entries:
            found = [(e.name, _is_directory(e)) for e in islice(entries, limit)]
    except (OSError, ValueError):  # ValueError: a path with a NUL
        return []
    return sorted((name, is_directory) for name, is_directory in found if is_usable(name))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


class FileIndex:
    """Paths of one walk, in the order they came."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths: list[tuple[str, str]] = []
        self.add(paths)

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, paths: Sequence[str]) -> None:
        self._paths += [(path, path.casefold()) for path in paths]

    def find(self, query: str, limit: int = MAX_FOUND) -> list[str]:
        """The paths that fit best: by name before by directory, whole before scattered letters."""
        wanted = query.casefold()
        ranked = (
            (rank, len(path) if wanted else 0, path)
            for path, folded in tuple(self._paths)
            if (rank := rank_of(wanted, folded)) is not None
        )
        return [path for _, _, path in nsmallest(limit, ranked)]


def rank_of(wanted: str, path: str) -> int | None:
    """How well a path fits, less is better; None when it does not. Both are casefolded."""
    if not wanted:
        return path.count("/", 0, -1)  # what is near comes first
    name = path[path.rfind("/", 0, -1) + 1 :]
    if name.startswith(wanted) or ("/" in wanted and path.startswith(wanted)):
        return 0
    if wanted in name:
        return 1
    if wanted in path:
        return 2
    if in_order(wanted, name):
        return 3
    return 4 if in_order(wanted, path) else None


def in_order(letters: str, text: str) -> bool:
    """True when the letters follow each other in the text, with anything between."""
    at = -1
    for letter in letters:
        at = text.find(letter, at + 1)
        if at < 0:
            return False
    return True
