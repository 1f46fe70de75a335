"""Where things are: the one reader of HOME and of environment variables.

The wiring makes one `Environment` at the start and hands it on; nobody else looks at `os.environ`.
Paths are absolute. Directories are not created here until something is written into them
(`json_file.ensure_private_directory`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

from pi_tui.core.errors import SettingsError

APP_NAME = "pi-tui"
ROOT_VARIABLE = "PI_TUI_DIR"
PROJECT_DIRECTORY = ".pi"


class Directories(Struct, frozen=True):
    """The user's own directories and the files in them.

    With `PI_TUI_DIR` set, `config` and `data` are that one root and `cache` is `cache` in it.
    """

    config: Path
    data: Path
    cache: Path

    @property
    def settings_file(self) -> Path:
        return self.config / "settings.json"

    @property
    def models_file(self) -> Path:
        return self.config / "models.json"

    @property
    def keybindings_file(self) -> Path:
        return self.config / "keybindings.json"

    @property
    def trust_file(self) -> Path:
        return self.config / "trust.json"

    @property
    def auth_file(self) -> Path:
        return self.config / "auth.json"

    @property
    def extensions(self) -> Path:
        return self.config / "extensions"

    @property
    def skills(self) -> Path:
        return self.config / "skills"

    @property
    def prompts(self) -> Path:
        return self.config / "prompts"

    @property
    def themes(self) -> Path:
        return self.config / "themes"

    @property
    def sessions(self) -> Path:
        return self.data / "sessions"


class Environment(Struct, frozen=True):
    """What the process was started with. `cwd` is where, with links followed."""

    variables: Mapping[str, str]
    home: Path
    cwd: Path
    directories: Directories

    def get(self, name: str) -> str | None:
        """The value of a variable; an empty one counts as not set."""
        return self.variables.get(name) or None

    @property
    def editor(self) -> str | None:
        """The command of the editor the user prefers, by `VISUAL` and `EDITOR`."""
        return self.get("VISUAL") or self.get("EDITOR")

    def expand(self, path: str, *, base: Path | None = None) -> Path:
        """An absolute path from what a person wrote: `~` is the home, relative to `base` or cwd.

        `.` and `..` are taken out; links are not followed.
        """
        if path == "~" or path.startswith("~/"):
            full = self.home / path[2:]
        else:
            full = (base or self.cwd) / path
        return Path(os.path.normpath(full))

    def shorten_home(self, path: str | Path) -> str:
        """The path as people like to read it: the home directory is written `~`."""
        text = str(path)
        for home in (str(self.home), _real(str(self.home))):
            if home == "/":
                continue
            if text == home:
                return "~"
            if text.startswith(home + "/"):
                return "~" + text[len(home) :]
        return text

    @property
    def home_of_cwd(self) -> str:
        """The home directory, by the name under which it may be the beginning of `cwd`."""
        real = _real(str(self.home))
        return real if self.cwd.is_relative_to(real) else str(self.home)

    def project_directory(self, cwd: Path | None = None) -> Path:
        """Where a project keeps its own files for this program."""
        return (cwd or self.cwd) / PROJECT_DIRECTORY


def read_environment(variables: Mapping[str, str] | None = None) -> Environment:
    """Read environment, home and current directory, once.

    `variables` replaces the environment of the process. Raises SettingsError when the current
    directory is gone or there is no home to keep files in.
    """
    values = dict(os.environ if variables is None else variables)
    cwd = _current_directory()
    home = _home(values)
    root = values.get(ROOT_VARIABLE)
    if root:
        at = Path(os.path.normpath(cwd / _expand_user(root, home)))
        directories = Directories(config=at, data=at, cache=at / "cache")
    else:
        directories = _platform_directories()
    return Environment(variables=values, home=home, cwd=cwd, directories=directories)


def _current_directory() -> Path:
    try:
        # Never by PWD: through a link the same project would go by another name, and its sessions
        # would not be found.
        return Path.cwd()
    except OSError as error:
        raise SettingsError(
            "The current directory does not exist any more",
            file=".",
            hint="Change to another directory and start again.",
        ) from error


@lru_cache(maxsize=4)
def _real(path: str) -> str:
    """The path with links followed. The home directory is asked for often, and stays."""
    return os.path.realpath(path)


def _home(variables: Mapping[str, str]) -> Path:
    home = variables.get("HOME") or (
        variables.get("USERPROFILE") if sys.platform == "win32" else ""
    )
    if home:
        return Path(os.path.normpath(home))
    try:
        return Path.home()
    except RuntimeError as error:
        raise SettingsError(
            "There is no home directory to keep settings and sessions in",
            file="~",
            hint=f"Set HOME, or set {ROOT_VARIABLE} to a directory of your own.",
        ) from error


def _expand_user(path: str, home: Path) -> Path:
    return home / path[2:] if path == "~" or path.startswith("~/") else Path(path)


def _platform_directories() -> Directories:
    # Imported here: not needed when one root is given, nor for --version and --help.
    from platformdirs import PlatformDirs

    dirs = PlatformDirs(APP_NAME, appauthor=False)
    return Directories(
        config=Path(dirs.user_config_dir),
        data=Path(dirs.user_data_dir),
        cache=Path(dirs.user_cache_dir),
    )
