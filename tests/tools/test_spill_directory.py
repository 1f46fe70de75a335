"""Whole outputs are private, and old ones go when a new one comes."""

from __future__ import annotations

import os
import stat

from pi_tui.tools.command_output import KEPT_DAYS, SpillDirectory


def test_files_are_private_and_old_ones_are_removed(tmp_path):
    folder = tmp_path / "cache" / "outputs"
    first, handle = SpillDirectory(str(folder)).create_file()
    os.close(handle)
    assert stat.S_IMODE(os.stat(first).st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / "notes.txt").write_text("not ours")
    now_s = os.stat(first).st_mtime
    kept = SpillDirectory(str(folder), now_s=lambda: now_s + 60)
    os.close(kept.create_file()[1])
    assert os.path.exists(first)
    later = SpillDirectory(str(folder), now_s=lambda: now_s + KEPT_DAYS * 86_400 + 1)
    handle = later.create_file()[1]
    os.close(handle)
    assert not os.path.exists(first)
    assert (folder / "notes.txt").exists()
