"""Brings a file of format version 1 or 2 up to date: reads it whole, rewrites it, keeps the old.

Such files are small, so everything is decoded. The rules of the change are in `migration`.
"""

from __future__ import annotations

from collections.abc import Callable

from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.index import Header, Index, blocks, head_from_data
from pi_tui.storage.lines import decode_line, encode_line, is_blank, objects_of, pieces_of
from pi_tui.storage.migration import Line, migrate
from pi_tui.storage.whole_file import keep_copy, write_file

_EDGES = b"\0 \t\r"


def old_lines(
    fs: FileSystem, fd: int, header: Header, new_id: Callable[[], str]
) -> tuple[list[Line], int]:
    """Read an old file and migrate it; also says how many lines could not be read."""
    lines: list[Line] = [header.data]
    skipped = header.garbage_before
    for _, batch, _ in blocks(fs, fd, header.end):
        for raw in batch:
            text = raw.strip(_EDGES)
            if is_blank(text):
                continue
            try:
                value = decode_line(text)
            except ValueError:
                found = list(objects_of(text))
                lines.extend(found)
                skipped += len(found) < len(pieces_of(text))
                continue
            if isinstance(value, dict):
                lines.append(value)
            elif value:
                skipped += 1
    return migrate(lines, new_id)[1], skipped


def rewrite(fs: FileSystem, path: str, lines: list[Line], old_version: int) -> str:
    """Put migrated lines in the place of the old file; returns the name that keeps the old one.

    Raises OSError; then the old file is as it was.
    """
    mode = fs.stat(path).st_mode & 0o777
    kept = keep_copy(fs, path, f".v{old_version}.bak")
    try:
        write_file(fs, path, (encode_line(line) for line in lines), mode=mode, replace=True)
    except BaseException:
        fs.unlink(kept)
        raise
    return kept


def index_of_lines(lines: list[Line]) -> tuple[Index, dict[str, bytes]]:
    """Index migrated lines that stay in memory: heads, and the line of each id."""
    index = Index()
    kept: dict[str, bytes] = {}
    for line in lines[1:]:
        head = head_from_data(line)
        if line.get("type") == "session" or head is None:
            continue
        index.add(head, 0, 0)
        kept[head.id] = encode_line(line)
    return index, kept
