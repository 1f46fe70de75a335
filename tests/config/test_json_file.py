"""Files people write by hand: every way they can be wrong has words, and none is ever lost."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pi_tui.config.json_file import read_json, read_json_object, read_text, write_json
from pi_tui.core.errors import SettingsError


def test_a_missing_and_an_empty_file_are_nothing(tmp_path: Path) -> None:
    assert read_text(tmp_path / "x.json") is None
    assert read_json_object(tmp_path / "x.json") == {}
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf \n")
    assert read_json(tmp_path / "x.json") is None


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(tmp_path / "x.json") == {"a": 1}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{\n  "a": 1,\n  b: 2\n}', "line 3, column 3"),
        (b'{"a": 1', "line 1, column 8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": NaN}', "not valid JSON"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8"),
        (b"x" * (4 * 1024 * 1024 + 1), "larger than 4194304 bytes"),
    ],
)
def test_faults_are_named_with_file_and_place(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(data)
    with pytest.raises(SettingsError, match=words) as caught:
        read_json(path)
    assert caught.value.file == str(path)
    assert str(path) in caught.value.message


def test_things_that_are_no_files_do_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in (("", "not an ordinary file"), ("pipe", "not an ord"), ("loop", "levels")):
        with pytest.raises(SettingsError, match=words):
            read_text(tmp_path / name)


def test_an_object_is_demanded(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(SettingsError, match="must hold a JSON object, not a list"):
        read_json_object(tmp_path / "x.json")


def test_written_files_are_private(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "x.json"
    write_json(path, {"a": ["ä", 1]})
    assert path.read_text() == '{\n  "a": [\n    "ä",\n    1\n  ]\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]


def test_a_link_is_kept(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "settings.json"
    real.parent.mkdir()
    real.write_text("{}")
    link = tmp_path / "settings.json"
    link.symlink_to(real)
    write_json(link, {"a": 1})
    assert link.is_symlink()
    assert read_json(real) == {"a": 1}


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"old": true}')

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    owner = os if failing == "fsync" else Path
    monkeypatch.setattr(owner, failing, fail)
    with pytest.raises(SettingsError, match="no space left on device"):
        write_json(path, {"new": True})
    assert path.read_text() == '{"old": true}'
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_half_a_character_is_replaced_and_can_be_written_back(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a\\ud83d": ["\\ude00", "\\ud83d\\ude00"]}')
    assert read_json(path) == {"a\ufffd": ["\ufffd", "\U0001f600"]}
    write_json(path, {"a": "x\ud83d"})
    assert read_json(path) == {"a": "x\ufffd"}


def test_a_fault_beside_half_a_character_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": "\\ud83d",\n b: 1}')
    with pytest.raises(SettingsError, match="line 2, column 2"):
        read_json(path)
