"""Walks a directory tree in order, without what git ignores. Blocking; needs no package but ours.

Names within a directory come sorted; a directory comes before what is in it. Symbolic links to
directories are listed, not entered. Version control directories are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from pi_tui.tools.gitignore import IgnoreStack, load_rules

_LEFT_OUT = frozenset({".git", ".hg", ".svn", ".jj"})


class Walk:
    """One walk. `unreadable` counts directories that could not be listed."""

    def __init__(self, root: str, stop: Callable[[], bool]) -> None:
        self._root = root
        self._stop = stop
        self.unreadable = 0
        self._top_prefix, self._ignored = _rules_above(root)

    def __iter__(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Paths relative to the root, with their directory entries."""
        stack = [(iter(self._list("")), "", self._ignored_below("", self._ignored))]
        while stack:
            if self._stop():
                return
            entries, parent, ignored = stack[-1]
            entry = next(entries, None)
            if entry is None:
                stack.pop()
                continue
            path = f"{parent}{entry.name}"
            is_directory = is_real_directory(entry)
            if ignored.ignores(self._top_prefix + path, is_directory):
                continue
            yield path, entry
            if is_directory:
                inner = f"{path}/"
                stack.append((iter(self._list(inner)), inner, self._ignored_below(inner, ignored)))

    def _ignored_below(self, directory: str, ignored: IgnoreStack) -> IgnoreStack:
        rules = load_rules(Path(self._root, directory, ".gitignore"))
        return ignored.with_layer((self._top_prefix + directory).rstrip("/"), rules)

    def _list(self, directory: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(os.path.join(self._root, directory)) as entries:  # noqa: PTH118
                kept = [entry for entry in entries if entry.name not in _LEFT_OUT]
        except OSError:
            self.unreadable += 1
            return []
        kept.sort(key=lambda entry: entry.name)
        return kept


def is_real_directory(entry: os.DirEntry[str]) -> bool:
    """Whether the entry is a directory, not a link to one."""
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _rules_above(root: str) -> tuple[str, IgnoreStack]:
    """The root's path below the top of its repository, and the rules that hold there.

    When the root itself is ignored it was named on purpose: then only rules within it hold.
    """
    start = Path(root)
    # os.path asks without an error where a directory may not be looked into.
    places = (start, *start.parents)
    top = next((path for path in places if os.path.exists(path / ".git")), None)  # noqa: PTH110
    if top is None:
        return "", IgnoreStack()
    exclude = load_rules(top / ".git" / "info" / "exclude")
    ignored = IgnoreStack().with_layer("", exclude)
    names = start.relative_to(top).parts
    for depth, name in enumerate(names):
        above = "/".join(names[:depth])
        ignored = ignored.with_layer(above, load_rules(Path(top, above, ".gitignore")))
        if ignored.ignores(f"{above}/{name}" if above else name, True):
            return "", IgnoreStack()
    return "".join(f"{name}/" for name in names), ignored
