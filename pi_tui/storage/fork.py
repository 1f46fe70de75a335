"""Writes a new session from a path of another one: fork and clone.

Lines are copied as bytes, so types and fields nobody here knows survive; only the bytes of the
links between entries are changed where an entry between them is left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Protocol

from pi_tui.core.entries import SessionHeader, header_to_data
from pi_tui.core.errors import StorageError
from pi_tui.core.extract import extract_path
from pi_tui.core.messages import JSON
from pi_tui.core.protocols import OpenedSession
from pi_tui.core.tree import Label
from pi_tui.storage.filesystem import REAL_FILE_SYSTEM, FileSystem, make_private_folders
from pi_tui.storage.jsonl import create_session, open_session
from pi_tui.storage.line_fields import with_fields
from pi_tui.storage.lines import decode_line, encode_line
from pi_tui.storage.names import new_entry_id, new_session_path
from pi_tui.storage.trouble import reason_of
from pi_tui.storage.whole_file import write_file

_LINKS = ("parentId", "firstKeptEntryId")


class LineSource(Protocol):
    """A store that gives the stored bytes of an entry: a session file or one in memory."""

    def raw_line(self, entry_id: str) -> bytes: ...


def fork_session(
    source: LineSource,
    path_ids: Sequence[str],
    labels: Iterable[Label],
    directory: str | os.PathLike[str],
    header: SessionHeader,
    *,
    new_id: Callable[[], str] = new_entry_id,
    fs: FileSystem = REAL_FILE_SYSTEM,
) -> OpenedSession:
    """Write the entries of a path, root to leaf, as a new session and open it.

    `labels` are the present ones of the source, in the order of `SessionTree.labels`; `header`
    names the source as its `parent_session`. An empty path gives a session without a file, as
    `create_session` does. Raises StorageError; then nothing is on disk.
    """
    taken = set(path_ids)

    def free_id() -> str:
        entry_id = new_id()
        while entry_id in taken:
            entry_id = new_id()
        taken.add(entry_id)
        return entry_id

    if not path_ids:
        return OpenedSession(create_session(directory, header, fs=fs), ())
    copied = _copied_lines(source, path_ids, labels, free_id)
    path = new_session_path(os.fspath(directory), header)
    try:
        make_private_folders(fs, str(Path(path).parent))
        write_file(fs, path, chain([encode_line(header_to_data(header))], copied))
    except OSError as error:
        raise StorageError(
            f"The new session cannot be written: {reason_of(error)}. Nothing was changed.",
            path=path,
        ) from error
    return open_session(path, fs=fs)


def _copied_lines(
    source: LineSource,
    path_ids: Sequence[str],
    labels: Iterable[Label],
    new_id: Callable[[], str],
) -> Iterator[bytes]:
    stored: list[dict[str, JSON]] = []
    for entry_id in path_ids:
        data = decode_line(source.raw_line(entry_id))
        # The links are all that is looked at; messages need not stay in memory.
        stored.append({key: data.get(key) for key in _ENTRY_KEYS if key in data})
    before = {data["id"]: data for data in stored}
    for data in extract_path(stored, labels, new_id):
        old = before.get(data["id"])
        if old is None:
            yield encode_line(data)
            continue
        changed = {key: data.get(key) for key in _LINKS if data.get(key) != old.get(key)}
        line = source.raw_line(data["id"])
        yield (with_fields(line, changed) if changed else line) + b"\n"


_ENTRY_KEYS = ("type", "id", "timestamp", *_LINKS)
