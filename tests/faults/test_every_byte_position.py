"""A session file cut at every byte: what was complete is there, and work goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_tui.core.entries import MessageEntry, SessionHeader
from pi_tui.core.errors import NotASessionError
from pi_tui.storage.jsonl import create_session, open_session

Swept = Callable[[str, int], None]


@pytest.fixture
def content(tmp_path: Path, header: SessionHeader, entry: Callable[[int], MessageEntry]) -> bytes:
    store = create_session(tmp_path / "whole", header)
    for number in range(1, 5):
        store.append(entry(number))
    store.close()
    return Path(store.path or "").read_bytes()


@pytest.mark.parametrize("tail", [b"", b"\0" * 64], ids=["cut", "zeros"])
def test_cut_anywhere_and_go_on(
    tmp_path: Path, content: bytes, entry: Callable[[int], MessageEntry], tail: bytes, swept: Swept
) -> None:
    path = tmp_path / "cut.jsonl"
    swept("byte positions cut", len(content) + bool(tail))
    line_ends = [end for end, byte in enumerate(content) if byte == 0x0A]
    for size in range(len(content) + 1):
        cut = content[:size]
        path.write_bytes(cut + tail)
        if not path.stat().st_size:
            continue  # an empty file is another story
        if size < line_ends[0]:
            with pytest.raises(NotASessionError):
                open_session(path)
            assert path.read_bytes() == cut + tail
            continue
        # A line whose end alone is missing counts as complete.
        complete = sum(end <= size for end in line_ends) - 1
        opened = open_session(path)
        expected = [entry(number) for number in range(1, complete + 1)]
        assert [opened.store.load(head.id) for head in opened.heads] == expected
        opened.store.append(entry(9))
        opened.store.close()
        again = open_session(path)
        assert [again.store.load(h.id) for h in again.heads] == [*expected, entry(9)]
        again.store.close()
        assert path.read_bytes().startswith(cut + tail)
