"""Moves files to the system's trash, from where the person can take them back.

Two kinds: the one of the freedesktop.org specification, which notes for each file where it was, and
a plain folder. Where the trash is, the wiring says; nothing here reads the environment.
"""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

from pi_tui.core.errors import NoTrashError
from pi_tui.storage.trouble import reason_of

_TRIES = 1_000


class Trash:
    """`directory` is made when it is first needed; `with_notes` writes the .trashinfo files."""

    def __init__(self, directory: str | os.PathLike[str], *, with_notes: bool = True) -> None:
        self._directory = Path(directory)
        self._with_notes = with_notes

    def take(self, path: str) -> None:
        """Move a file into the trash. Raises NoTrashError; then it is where it was."""
        try:
            self._take(Path(path).absolute())
        except OSError as error:
            raise NoTrashError(
                f"The file cannot be moved to the trash: {reason_of(error)}. It was not deleted.",
                path=path,
                hint="It can be deleted for good.",
            ) from error

    def _take(self, source: Path) -> None:
        files = self._directory / "files" if self._with_notes else self._directory
        files.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(1, _TRIES):
            name = source.name if number == 1 else f"{source.stem}.{number}{source.suffix}"
            target = files / name
            note = self._note(source, name)
            if note is None:
                continue
            try:
                if not target.exists():
                    source.rename(target)
                    return
            except BaseException:
                self._forget(note)
                raise
            self._forget(note)
        raise FileExistsError(17, "there are too many files of this name")

    def _note(self, source: Path, name: str) -> Path | None:
        """Take a name by writing its note; None when it is taken."""
        if not self._with_notes:
            return self._directory / name
        folder = self._directory / "info"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        note = folder / f"{name}.trashinfo"
        when = datetime.now().isoformat(timespec="seconds")
        text = f"[Trash Info]\nPath={quote(os.fsencode(source))}\nDeletionDate={when}\n"
        try:
            fd = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return None
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(text)
        return note

    def _forget(self, note: Path) -> None:
        if self._with_notes:
            with suppress(OSError):
                note.unlink()
