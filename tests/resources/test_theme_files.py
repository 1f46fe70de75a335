"""Theme files that are no ordinary files, or far too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_tui.core.errors import SettingsError
from pi_tui.resources.text_file import read_start
from pi_tui.resources.themes import MAX_THEME_BYTES, load_theme


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mine.json")
    with pytest.raises(SettingsError, match=r"mine\.json cannot be read: not an ordinary file"):
        load_theme("mine", [tmp_path])


def test_a_directory_and_a_device_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    for name in ("folder", "endless"):
        with pytest.raises(SettingsError, match="not an ordinary file"):
            load_theme(name, [tmp_path])


def test_a_huge_file_is_refused_with_its_size(tmp_path: Path) -> None:
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it all would never end
    with pytest.raises(SettingsError) as raised:
        load_theme("huge", [tmp_path])
    assert "1,099,511,627,776 bytes" in raised.value.text
    assert f"{MAX_THEME_BYTES:,}" in raised.value.text


def test_a_link_that_leads_nowhere_says_so(tmp_path: Path) -> None:
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        load_theme("gone", [tmp_path])


@pytest.mark.parametrize(("size", "told"), [(4, 4), (5, 5), (6, 6)])
def test_the_start_of_a_file_and_its_whole_size(tmp_path: Path, size: int, told: int) -> None:
    (tmp_path / "file").write_bytes(b"abcdefgh"[:size])
    data, size_bytes = read_start(tmp_path / "file", 5)
    assert data == b"abcdefgh"[: min(size, 5)]
    assert size_bytes == told
