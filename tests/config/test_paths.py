"""Where files are: one root, the platform's directories, and how paths are written for people."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from pi_tui.config.paths import Environment, read_environment
from pi_tui.core.errors import SettingsError


def test_one_root_holds_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "root"
    dirs = read_environment({"HOME": "/home/x", "PI_TUI_DIR": str(root)}).directories
    assert [
        dirs.settings_file,
        dirs.models_file,
        dirs.keybindings_file,
        dirs.trust_file,
        dirs.auth_file,
        dirs.extensions,
        dirs.skills,
        dirs.prompts,
        dirs.themes,
        dirs.sessions,
        dirs.cache,
    ] == [
        root / name
        for name in (
            "settings.json",
            "models.json",
            "keybindings.json",
            "trust.json",
            "auth.json",
            "extensions",
            "skills",
            "prompts",
            "themes",
            "sessions",
            "cache",
        )
    ]
    assert not root.exists()


@pytest.mark.parametrize(("written", "meant"), [("~/pi", "/home/x/pi"), ("sub/../pi", "{cwd}/pi")])
def test_root_may_be_relative_or_in_the_home(
    written: str, meant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environment = read_environment({"HOME": "/home/x", "PI_TUI_DIR": written})
    assert str(environment.directories.config) == meant.format(cwd=tmp_path)


def test_platform_directories_without_a_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PI_TUI_DIR", raising=False)
    for name in ("CONFIG", "DATA", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    dirs = read_environment().directories
    assert dirs.settings_file == tmp_path / "config" / "pi-tui" / "settings.json"
    assert dirs.sessions == tmp_path / "data" / "pi-tui" / "sessions"
    assert dirs.cache == tmp_path / "cache" / "pi-tui"


def test_the_directory_has_one_name_whatever_links_lead_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    monkeypatch.chdir(link)
    for shown in (link, real, tmp_path, "link"):
        found = read_environment({"HOME": "/home/x", "PI_TUI_DIR": "/r", "PWD": str(shown)})
        assert found.cwd == real


def test_a_home_behind_a_link_is_still_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    (real / "project").mkdir(parents=True)
    link.symlink_to(real)
    monkeypatch.chdir(link / "project")
    found = read_environment({"HOME": str(link), "PI_TUI_DIR": "/r"})
    assert found.shorten_home(found.cwd) == "~/project"
    assert found.shorten_home(link / "other") == "~/other"
    assert found.home_of_cwd == str(real)
    elsewhere = msgspec.structs.replace(found, cwd=Path("/"))
    assert elsewhere.home_of_cwd == str(link)


def test_a_removed_current_directory_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    shutil.rmtree(gone)
    with pytest.raises(SettingsError, match="current directory does not exist"):
        read_environment({"HOME": "/home/x", "PI_TUI_DIR": "/r"})


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("{home}", "~"),
        ("{home}/a/b", "~/a/b"),
        ("{home}er/a", "{home}er/a"),
        ("/elsewhere", "/elsewhere"),
    ],
)
def test_shorten_home(environment: Environment, path: str, shown: str) -> None:
    home = str(environment.home)
    assert environment.shorten_home(path.format(home=home)) == shown.format(home=home)


def test_a_home_at_the_root_shortens_nothing() -> None:
    environment = read_environment({"HOME": "/", "PI_TUI_DIR": "/r"})
    assert environment.shorten_home("/etc/x") == "/etc/x"


def test_expand_takes_home_base_and_dots(environment: Environment) -> None:
    assert environment.expand("~/x/../y") == environment.home / "y"
    assert environment.expand("~") == environment.home
    assert environment.expand("a/./b") == environment.cwd / "a" / "b"
    assert environment.expand("a", base=Path("/base")) == Path("/base/a")
    assert environment.expand("/a//b") == Path("/a/b")


def test_empty_variables_count_as_not_set() -> None:
    environment = read_environment(
        {"HOME": "/home/x", "PI_TUI_DIR": "/r", "VISUAL": "", "EDITOR": "vi"}
    )
    assert environment.get("VISUAL") is None
    assert environment.editor == "vi"
