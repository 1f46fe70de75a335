"""Whether two paths are one directory: by their names, or by where links lead.

Sessions name the directory they belong to as it was called then; a symbolic link gives it another
name, and it is still the same project.
"""

from __future__ import annotations

import os

from pi_tui.storage.filesystem import FileSystem


class SameDirectory:
    """Compares directories with one. Each other name is looked up once, and only if it differs."""

    def __init__(self, directory: str, fs: FileSystem) -> None:
        self._fs = fs
        self._name = _normal(directory)
        self._known: dict[str, bool] = {self._name: True}
        self._inode: tuple[int, int] | None = None

    def __call__(self, other: str) -> bool:
        """True when it is the same one; a directory that does not exist is compared by name."""
        name = _normal(other)
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = bool(name and self._name) and self._is_same(name)
        return known

    def _is_same(self, name: str) -> bool:
        if self._inode is None:
            self._inode = self._inode_of(self._name)
        return self._inode != _NOWHERE and self._inode == self._inode_of(name)

    def _inode_of(self, name: str) -> tuple[int, int]:
        try:
            status = self._fs.stat(name)
        except (OSError, ValueError):  # ValueError: a file may name anything, also NUL characters
            return _NOWHERE
        return status.st_dev, status.st_ino


_NOWHERE = (-1, -1)


def _normal(directory: str) -> str:
    return os.path.normpath(directory) if directory else ""
