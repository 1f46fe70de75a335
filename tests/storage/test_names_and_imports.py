"""Names of sessions come on one line, whoever wrote them; an imported file keeps its bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_tui.core.session_library import snapshot_of_opened
from pi_tui.storage.jsonl import open_session
from pi_tui.storage.library import FileLibrary

Line = Callable[..., bytes]
NAMED = {"type": "session_info", "message": None}


@pytest.mark.parametrize(
    "name", ["garden\nplan", " garden \r\n\n\n plan\n", "garden\u2028\tplan\x85"]
)
def test_a_foreign_name_leaves_on_one_line(
    session: Callable[..., Path], line: Line, tmp_path: Path, name: str
) -> None:
    path = session(line(1), line(2, name=name, **NAMED))
    (row,) = FileLibrary(tmp_path, "/x").rows(everywhere=True)
    assert row.name == row.title == "garden plan"
    opened = open_session(path)
    assert snapshot_of_opened(opened).tree().session_name == "garden plan"
    assert opened.store.raw_line("e0000002") + b"\n" == line(2, name=name, **NAMED)  # type: ignore[attr-defined]
    opened.store.close()


def test_a_name_of_blanks_is_none(session: Callable[..., Path], line: Line, tmp_path: Path) -> None:
    session(line(1, "hello"), line(2, name="\n \t", **NAMED))
    (row,) = FileLibrary(tmp_path, "/x").rows(everywhere=True)
    assert (row.name, row.title) == (None, "hello")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf", b"\0\0", b"noise\n"])
def test_of_a_header_only_the_directory_changes_on_import(
    tmp_path: Path, line: Line, mark: bytes
) -> None:
    header = (
        b'{ "type":"session", "version" : 3,"id":"s9","x":1.50,"x":{"cwd":"inner"},'
        b'"y":"\\ud83d","timestamp":"t","cwd":\t"/elsewhere" , "z":[]}'
    )
    source = tmp_path / "s.jsonl"
    source.write_bytes(mark + header + b"\r\n" + line(1) + b"garbage")
    library = FileLibrary(tmp_path / "sessions", "/here")
    opened = library.import_file(str(source))
    copy = Path(opened.store.path or "").read_bytes()
    assert opened.store.header.cwd == "/here"
    opened.store.close()
    changed = header.replace(b'"/elsewhere"', b'"/here"')
    assert copy == changed + b"\n" + line(1) + b"garbage\n"
    again = library.import_file(str(source))
    first = Path(again.store.path or "").read_bytes().split(b"\n")[0]
    fresh = again.store.header.id
    again.store.close()
    assert fresh != "s9"
    assert first == changed.replace(b'"s9"', json.dumps(fresh).encode())
