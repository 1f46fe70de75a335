"""Whatever fails, and whenever: nothing that was acknowledged is lost, nothing partial stays."""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.errors import StorageError
from pi_tui.storage.jsonl import create_session, open_session

Entries = Callable[[int], MessageEntry]
Swept = Callable[[str, int], None]
CODES = (errno.ENOSPC, errno.EACCES, errno.EIO)
COUNT = 4
OLD_FILE = (
    b'{"type":"session","id":"s1","timestamp":"t","cwd":"/demo"}\n'
    b'{"type":"message","timestamp":"t","message":{"role":"user","content":"one"}}\n'
    b'{"type":"message","timestamp":"t","message":{"role":"user","content":"two"}}\n'
)


def ids_on_disk(path: str | Path | None) -> list[str]:
    opened = open_session(path or "")
    opened.store.close()
    return [head.id for head in opened.heads]


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("code", CODES)
def test_writing_a_session_while_the_nth_operation_fails(
    tmp_path: Path,
    header: SessionHeader,
    entry: Entries,
    failing: Any,
    swept: Swept,
    code: int,
    for_good: bool,
) -> None:
    nth = 0
    while True:
        nth += 1
        fs = failing(nth, code=code, for_good=for_good)
        store = create_session(tmp_path / str(nth), header, fs=fs)
        path = Path(store.path or "")
        acknowledged: list[str] = []
        for number in range(1, COUNT + 1):
            try:
                store.append(entry(number))
            except StorageError:
                assert store.pending
            else:
                assert store.pending == 0
                acknowledged = [f"e{n:07x}" for n in range(1, number + 1)]
            on_disk = (path.read_bytes() if path.exists() else b"").split(b"\n")
            assert len([line for line in on_disk if b'"parentId"' in line]) >= len(acknowledged)
            assert store.load(f"e{number:07x}") == entry(number)
        try:
            store.sync()
        except StorageError:
            assert fs.failed
        # While the disk fails for good, what is there must be readable, and whole.
        if path.exists() and acknowledged:
            opened = open_session(path, read_only=True)
            assert [head.id for head in opened.heads][: len(acknowledged)] == acknowledged
            assert [opened.store.load(h.id) for h in opened.heads] == [
                entry(n) for n in range(1, len(opened.heads) + 1)
            ]
            opened.store.close()
        fs.nth = 0  # the disk is well again
        store.flush()
        store.close()
        assert ids_on_disk(path) == [f"e{n:07x}" for n in range(1, COUNT + 1)]
        assert files_in(tmp_path / str(nth)) == [path.name]
        if not fs.failed:
            break
    swept("operations failed", nth - 1)
    assert nth > 8


@pytest.mark.parametrize("code", CODES)
def test_migrating_while_the_nth_operation_fails(
    tmp_path: Path, failing: Any, swept: Swept, code: int
) -> None:
    nth = 0
    while True:
        nth += 1
        fs = failing(nth, code=code)
        folder = tmp_path / str(nth)
        folder.mkdir()
        path = folder / "old.jsonl"
        path.write_bytes(OLD_FILE)
        try:
            opened = open_session(path, fs=fs)
        except StorageError:
            assert path.read_bytes() == OLD_FILE
        else:
            assert len(opened.heads) == 2
            opened.store.close()
        fs.nth = 0
        again = open_session(path)
        assert [again.store.load(h.id).message.content for h in again.heads] == ["one", "two"]  # type: ignore[union-attr]
        again.store.close()
        backups = [name for name in files_in(folder) if ".bak" in name]
        assert any((folder / name).read_bytes() == OLD_FILE for name in backups)
        if not fs.failed:
            break
    swept("operations failed", nth - 1)
    assert nth > 6


@pytest.mark.parametrize("code", CODES)
def test_moving_while_the_nth_operation_fails(
    tmp_path: Path, header: SessionHeader, entry: Entries, failing: Any, swept: Swept, code: int
) -> None:
    nth = 0
    while True:
        nth += 1
        fs = failing(0, code=code)
        store = create_session(tmp_path / str(nth) / "old", header, fs=fs)
        store.append(entry(1))
        old = store.path
        fs.nth, fs.count = nth, 0
        target = tmp_path / str(nth) / "new"
        try:
            store.relocate(str(target))
        except StorageError:
            assert store.path == old
            # A lock file that could not be locked may stay: empty, and in nobody's way.
            assert not any(p.stat().st_size for p in target.rglob("*") if p.suffix == ".lock")
        else:
            assert store.path != old
        failed = fs.failed
        fs.nth = 0
        store.append(entry(2))
        assert [store.load(f"e{n:07x}") for n in (1, 2)] == [entry(1), entry(2)]
        store.close()
        assert ids_on_disk(store.path) == ["e0000001", "e0000002"]
        if not failed:
            break
    swept("operations failed", nth - 1)
    assert nth > 6


def test_opening_while_the_nth_operation_fails(
    tmp_path: Path, header: SessionHeader, entry: Entries, failing: Any, swept: Swept
) -> None:
    nth = 0
    while True:
        nth += 1
        store = create_session(tmp_path / str(nth), header)
        store.append(entry(1))
        store.close()
        path = Path(store.path or "")
        with path.open("ab") as file:
            file.write(b'{"type":"mess')
        fs = failing(nth)
        opened = open_session(path, fs=fs)
        assert [head.id for head in opened.heads] == ["e0000001"]
        failed = fs.failed
        fs.nth = 0
        opened.store.append(entry(2))
        opened.store.close()
        assert ids_on_disk(path) == ["e0000001", "e0000002"]
        assert json.loads(path.read_bytes().split(b"\n")[3])["id"] == "e0000002"
        if not failed:
            break
    swept("operations failed", nth - 1)
    assert nth > 3
