"""Which instruction files are found, in which order, and everything that can be wrong with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_tui.resources.context_files import (
    ContextFiles,
    load_context_files,
    load_prompt_files,
    resolve_prompt_argument,
)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    directory = tmp_path / "config"
    directory.mkdir()
    return directory


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "top" / "middle" / "project"
    directory.mkdir(parents=True)
    return directory


def found(result: ContextFiles, base: Path) -> list[tuple[str, str, str]]:
    """Path below `base`, origin, text; files outside are not of the test."""
    return [
        (os.path.relpath(f.path, base), f.source, f.text)
        for f in result.files
        if Path(f.path).is_relative_to(base)
    ]


def test_order_is_user_then_root_to_working_directory(
    tmp_path: Path, config: Path, project: Path
) -> None:
    (config / "AGENTS.md").write_text("user")
    (tmp_path / "top" / "CLAUDE.md").write_text("top")
    (tmp_path / "top" / "middle" / "AGENTS.md").write_text("middle")
    (project / "AGENTS.md").write_text("here")
    assert found(load_context_files(config, project), tmp_path) == [
        ("config/AGENTS.md", "user", "user"),
        ("top/CLAUDE.md", "project", "top"),
        ("top/middle/AGENTS.md", "project", "middle"),
        ("top/middle/project/AGENTS.md", "project", "here"),
    ]


def test_one_file_stands_for_a_directory(tmp_path: Path, config: Path, project: Path) -> None:
    for name in ("AGENTS.override.md", "AGENTS.md", "CLAUDE.md"):
        (project / name).write_text(f"project {name}")
        (project.parent / name).write_text(f"middle {name}")
    (project.parent / "AGENTS.override.md").unlink()
    assert [text for _, _, text in found(load_context_files(config, project), tmp_path)] == [
        "middle AGENTS.md",
        "project AGENTS.override.md",
    ]


def test_an_empty_override_silences_its_directory(config: Path, project: Path) -> None:
    (project / "AGENTS.override.md").write_text(" \n")
    (project / "AGENTS.md").write_text("no")
    assert found(load_context_files(config, project), project) == []


def test_a_real_file_is_read_once(tmp_path: Path, config: Path, project: Path) -> None:
    (config / "AGENTS.md").write_text("shared")
    (project / "AGENTS.md").symlink_to(config / "AGENTS.md")
    result = load_context_files(config, project)
    assert [path for path, _, _ in found(result, tmp_path)] == ["config/AGENTS.md"]
    inside = load_context_files(config, config)
    assert [source for _, source, _ in found(inside, tmp_path)] == ["user"]


def test_a_large_file_is_cut_and_said(config: Path, project: Path) -> None:
    (project / "AGENTS.md").write_text("ä" * 100)
    result = load_context_files(config, project, max_bytes=51)
    ((_, _, text),) = found(result, project)
    assert text == (
        "ä" * 25 + "\n\n[cut here: the first 51 of 200 bytes; read the file for the rest]"
    )
    assert result.files[-1].truncated
    assert "the model gets the first 51 of 200 bytes" in result.notices[-1]


def test_a_file_of_just_the_bound_is_whole(config: Path, project: Path) -> None:
    (project / "AGENTS.md").write_text("x" * 50)
    result = load_context_files(config, project, max_bytes=50)
    assert found(result, project) == [("AGENTS.md", "project", "x" * 50)]
    assert not result.files[-1].truncated


@pytest.mark.parametrize("kind", ["loop", "broken", "pipe", "directory"])
def test_what_cannot_be_read_is_told_and_gives_way_to_the_next(
    config: Path, project: Path, kind: str
) -> None:
    path = project / "AGENTS.md"
    words = {
        "loop": "levels of symbolic links",
        "broken": "the link leads nowhere",
        "pipe": "not an ordinary file",
        "directory": "not an ordinary file",
    }[kind]
    if kind == "loop":
        path.symlink_to(path)
    elif kind == "broken":
        path.symlink_to(project / "gone")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    (project / "CLAUDE.md").write_text("next")
    result = load_context_files(config, project)
    assert found(result, project) == [("CLAUDE.md", "project", "next")]
    (notice,) = [n for n in result.notices if str(project) in n]
    assert notice.startswith(f"{path} was not read: ")
    assert words in notice


def test_odd_bytes_and_line_ends(config: Path, project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"\xef\xbb\xbfa\r\nb\xff\r\n")
    result = load_context_files(config, project)
    assert found(result, project) == [("AGENTS.md", "project", "a\nb\ufffd\n")]
    assert "is not UTF-8 text" in result.notices[-1]


def test_another_users_file_in_a_public_directory_is_not_read(
    config: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project.parent / "AGENTS.md").write_text("planted")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    if os.getuid() == 0:
        os.chown(project.parent / "AGENTS.md", 12345, 12345)
    ours = load_context_files(config, project)
    assert [text for _, _, text in found(ours, project.parent)] == ["planted"]
    project.parent.chmod(0o1777)
    result = load_context_files(config, project)
    assert found(result, project.parent) == []
    assert "belongs to another user" in result.notices[-1]


def test_missing_directories_are_nothing(tmp_path: Path) -> None:
    result = load_context_files(tmp_path / "none", tmp_path / "gone" / "too")
    assert found(result, tmp_path) == []
    assert not [n for n in result.notices if str(tmp_path) in n]


# ---------------------------------------------------------------- SYSTEM.md


def test_prompt_files_of_the_project_only_when_it_is_given(tmp_path: Path, config: Path) -> None:
    pi = tmp_path / ".pi"
    pi.mkdir()
    for directory, word in ((config, "user"), (pi, "project")):
        (directory / "SYSTEM.md").write_text(f"{word} system")
        (directory / "APPEND_SYSTEM.md").write_text(f"{word} append")
    alone = load_prompt_files(config)
    assert alone.system is not None
    assert (alone.system.text, [f.text for f in alone.append]) == ("user system", ["user append"])
    both = load_prompt_files(config, pi)
    assert both.system is not None
    assert (both.system.text, both.system.source) == ("project system", "project")
    assert [f.text for f in both.append] == ["user append", "project append"]
    (pi / "SYSTEM.md").unlink()
    left = load_prompt_files(config, pi)
    assert left.system is not None
    assert left.system.text == "user system"


def test_no_prompt_files(config: Path) -> None:
    result = load_prompt_files(config, config / "none")
    assert (result.system, result.append, result.notices) == (None, (), ())


def test_a_prompt_argument_is_a_file_or_a_text(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("from the file")
    assert resolve_prompt_argument("prompt.md", tmp_path) == "from the file"
    assert resolve_prompt_argument(str(tmp_path / "prompt.md"), Path("/")) == "from the file"
    for text in ("You are terse.", "two\nlines", "x" * 5000, "", "nul\0", "."):
        assert resolve_prompt_argument(text, tmp_path) == text
    for length in (255, 256, 400, 4000, 5000):  # no file has so long a name
        assert resolve_prompt_argument("x" * length, tmp_path) == "x" * length
