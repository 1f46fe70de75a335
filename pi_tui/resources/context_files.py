"""Instruction files for the model: AGENTS.md and its relatives, SYSTEM.md and APPEND_SYSTEM.md.

Instruction files are found in the user's directory, then in every directory from the root down to
the working directory, so that the nearest one is read last and has the last word. They are text,
not programs: they are read without trust, and what comes from the project is marked as such.
Sizes are bytes. Knows neither settings nor how the text gets into a prompt.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.resources.text_file import read_bounded

CONTEXT_FILE_NAMES = ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md")
"""The first of these that a directory has stands for the directory."""

MAX_CONTEXT_FILE_BYTES = 64 * 1024
"""About 16,000 tokens: more would crowd out the conversation on every single request."""

MAX_PROMPT_FILE_BYTES = 256 * 1024

Source: TypeAlias = Literal["user", "project"]


class ContextFile(Struct, frozen=True):
    """One file of instructions; `path` is absolute, as it was found (links kept)."""

    path: str
    text: str
    source: Source
    size_bytes: int
    truncated: bool = False


class ContextFiles(Struct, frozen=True):
    """Instruction files in the order in which the model reads them, and what is to be told."""

    files: tuple[ContextFile, ...] = ()
    notices: tuple[str, ...] = ()


class PromptFiles(Struct, frozen=True):
    """What replaces the built-in prompt (or None), what is added after it, what is to be told."""

    system: ContextFile | None = None
    append: tuple[ContextFile, ...] = ()
    notices: tuple[str, ...] = ()


def load_context_files(
    config_directory: Path, cwd: Path, *, max_bytes: int = MAX_CONTEXT_FILE_BYTES
) -> ContextFiles:
    """Find and read the instruction files that hold in a directory."""
    reader = _Reader(max_bytes)
    directories: list[tuple[Path, Source]] = [(config_directory, "user")]
    directories += [(directory, "project") for directory in (*reversed(cwd.parents), cwd)]
    files = [
        found
        for directory, source in directories
        if (found := reader.first_of(directory, source)) is not None
    ]
    return ContextFiles(tuple(files), tuple(reader.notices))


def load_prompt_files(config_directory: Path, project_directory: Path | None = None) -> PromptFiles:
    """Read SYSTEM.md and APPEND_SYSTEM.md of the user and, when given, of a trusted project.

    The project's SYSTEM.md stands above the user's; both additions are kept, the user's first.
    """
    reader = _Reader(MAX_PROMPT_FILE_BYTES)
    places: list[tuple[Path, Source]] = [(config_directory, "user")]
    if project_directory is not None:
        places.append((project_directory, "project"))
    system: ContextFile | None = None
    append = []
    for directory, source in places:
        system = reader.read(directory / "SYSTEM.md", source) or system
        addition = reader.read(directory / "APPEND_SYSTEM.md", source)
        if addition is not None:
            append.append(addition)
    return PromptFiles(system, tuple(append), tuple(reader.notices))


class _Reader:
    """Reads files, each real file once, and remembers what the user should hear."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._seen: set[str] = set()
        self.notices: list[str] = []

    def first_of(self, directory: Path, source: Source) -> ContextFile | None:
        """The file that stands for a directory; one that cannot be read gives way to the next."""
        for path in self._candidates(directory):
            real = os.path.realpath(path)
            if real in self._seen:
                return None
            if source == "project" and _planted(path):
                self.notices.append(
                    f"{path} was not read: it belongs to another user and everybody may put files"
                    " there"
                )
                continue
            found = self.read(path, source)
            if found is not None:
                self._seen.add(real)
                return found if found.text.strip() else None
        return None

    def _candidates(self, directory: Path) -> Iterator[Path]:
        for name in CONTEXT_FILE_NAMES:
            path = directory / name
            # lexists: a broken link is a mistake to be told, not a missing file.
            if os.path.lexists(path):
                yield path

    def read(self, path: Path, source: Source) -> ContextFile | None:
        """One file; None when there is none or it cannot be read, which is told."""
        try:
            found = read_bounded(path, self._max_bytes)
        except FileNotFoundError:
            if path.is_symlink():
                self.notices.append(f"{path} was not read: the link leads nowhere")
            return None
        except NotADirectoryError:
            return None
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            self.notices.append(f"{path} was not read: {why}")
            return None
        if found.problem:
            self.notices.append(f"{path} {found.problem}")
        if found.truncated:
            self.notices.append(
                f"{path} is large: the model gets the first {self._max_bytes} of"
                f" {found.size_bytes} bytes"
            )
        return ContextFile(str(path), found.text, source, found.size_bytes, found.truncated)


def _planted(path: Path) -> bool:
    """True for another user's file in a directory where everybody may write, such as /tmp."""
    try:
        file, directory = path.lstat(), path.parent.stat()
    except OSError:
        return False
    return bool(directory.st_mode & stat.S_IWOTH) and file.st_uid not in (0, os.geteuid())


def resolve_prompt_argument(value: str, cwd: Path) -> str:
    """The text of `--system-prompt` and its like: the file of that name if there is one.

    Raises OSError when the file is there and cannot be read.
    """
    if "\n" in value or len(value) > 4096 or "\0" in value:
        return value
    path = Path(os.path.normpath(cwd / value))
    if not os.path.isfile(path):  # noqa: PTH113 - no error for a sentence too long for a name
        return value
    return read_bounded(path, MAX_PROMPT_FILE_BYTES).text
