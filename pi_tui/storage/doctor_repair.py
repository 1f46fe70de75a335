"""The lines of a repaired copy: what is wrong is put right, what is sound keeps its bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator

from pi_tui.core.entries import FORMAT_VERSION
from pi_tui.core.messages import JSON
from pi_tui.storage.doctor_checks import is_ancestor, opened_rings
from pi_tui.storage.doctor_reading import SeenFile
from pi_tui.storage.filesystem import FileSystem
from pi_tui.storage.index import BYTE_ORDER_MARK, Header
from pi_tui.storage.line_fields import with_fields
from pi_tui.storage.lines import encode_line
from pi_tui.storage.names import new_entry_id, new_session_id
from pi_tui.storage.upgrade import old_lines


def repaired_lines(seen: SeenFile, fs: FileSystem, path: str) -> Iterator[bytes]:
    """The whole copy, header first. Raises OSError."""
    header = seen.header
    if header is not None and header.value.version < FORMAT_VERSION:
        yield from _brought_up_to_date(header, fs, path)
        return
    if header is None:
        yield encode_line(_new_header(seen))
    else:
        yield as_read(header.line.removeprefix(BYTE_ORDER_MARK).strip(b"\0 \t\r")) + b"\n"
    yield from _entries(seen)


def _brought_up_to_date(header: Header, fs: FileSystem, path: str) -> Iterator[bytes]:
    fd = fs.open(path, os.O_RDONLY)
    try:
        lines, _ = old_lines(fs, fd, header, new_entry_id)
    finally:
        fs.close(fd)
    for line in lines:
        yield encode_line(line)


def _new_header(seen: SeenFile) -> dict[str, JSON]:
    time = next((t for line in seen.lines if isinstance(t := line.data.get("timestamp"), str)), "")
    return {
        "type": "session",
        "version": FORMAT_VERSION,
        "id": new_session_id(),
        "timestamp": time,
        "cwd": "",
    }


def _entries(seen: SeenFile) -> Iterator[bytes]:
    """The entries with what is wrong put right; lines that need nothing keep their bytes."""
    last_of = {line.id: line for line in seen.lines if line.id}
    rings = set(opened_rings(seen))
    taken = set(last_of)
    before: str | None = None
    for line in seen.lines:
        changed: dict[str, JSON] = {}
        entry_id = line.id
        counts = bool(entry_id) and last_of[entry_id] is line
        if not counts:
            if entry_id and line.data == last_of[entry_id].data:
                continue
            entry_id = changed["id"] = _free_id(taken)
        parent = line.parent
        if (counts and entry_id in rings) or (parent is not None and parent not in last_of):
            changed["parentId"] = None
        elif parent is None and not line.id:
            changed["parentId"] = before
        if line.data.get("type") == "compaction":
            kept = line.data.get("firstKeptEntryId")
            keeps_nothing = kept == line.id or not is_ancestor(kept, line, last_of)
            if keeps_nothing and kept != entry_id:
                changed["firstKeptEntryId"] = entry_id
        yield with_fields(as_read(line.raw), changed) + b"\n"
        before = entry_id


def as_read(line: bytes) -> bytes:
    """A line with U+FFFD where it is not UTF-8, as reading has it; any other keeps its bytes."""
    return line.decode("utf-8", "replace").encode()


def _free_id(taken: set[str]) -> str:
    entry_id = new_entry_id()
    while entry_id in taken:
        entry_id = new_entry_id()
    taken.add(entry_id)
    return entry_id
