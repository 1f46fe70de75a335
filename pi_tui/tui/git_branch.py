"""The branch a directory is on, read from git's own files. Never runs git.

Knows worktrees and submodules (a `.git` file that points elsewhere) and detached heads.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_SHORT_HASH_CHARS = 7
_MAX_BYTES = 4096


def git_branch(directory: str) -> str | None:
    """The branch's name, a short commit for a detached head, None outside a repository."""
    head = find_head(directory)
    return None if head is None else branch_in(head)


def find_head(directory: str) -> Path | None:
    """The HEAD file that governs a directory."""
    start = Path(directory)
    for place in (start, *start.parents):
        dot_git = place / ".git"
        try:
            if dot_git.is_dir():
                return dot_git / "HEAD"
            if dot_git.is_file():
                line = _read(dot_git)
                if line.startswith("gitdir:"):
                    return (place / line.removeprefix("gitdir:").strip()) / "HEAD"
        except OSError:
            return None
    return None


def branch_in(head: Path) -> str | None:
    """What a HEAD file says."""
    try:
        line = _read(head).strip()
    except OSError:
        return None
    if line.startswith("ref:"):
        return line.removeprefix("ref:").strip().removeprefix("refs/heads/") or None
    return line[:_SHORT_HASH_CHARS] or None


def _read(path: Path) -> str:
    # A project may hold anything under this name: a pipe would wait for a writer for ever.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not an ordinary file")
        return file.read(_MAX_BYTES).decode("utf-8", "replace")
