"""The session as it is stored: every line, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from pi_tui.core.entries import header_to_data
from pi_tui.core.session_library import SessionSnapshot

_COPY_BYTES = 1 << 20


def session_lines(session: SessionSnapshot) -> Iterator[bytes]:
    """The bytes of the session file; where entries are in memory only, the lines they would be.

    Raises OSError, StorageError.
    """
    store = session.store
    if store.path is not None and not store.pending and Path(store.path).is_file():
        with Path(store.path).open("rb") as file:
            while part := file.read(_COPY_BYTES):
                yield part
        return
    yield msgspec.json.encode(header_to_data(store.header)) + b"\n"
    for head in session.heads:
        yield store.raw_line(head.id) + b"\n"
