"""What every front end starts from: the command line, the environment, the settings, the models."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from pi_tui.config.paths import Environment, read_environment
from pi_tui.config.settings import LoadedSettings, load_settings, session_directory
from pi_tui.providers.registry import ModelRegistry, open_registry

if TYPE_CHECKING:
    from pi_tui.launch_options import LaunchOptions


def say(text: str) -> None:
    """Write one line for people to standard error."""
    from pi_tui.core.sanitise import sanitise

    sys.stderr.write(f"pi-tui: {sanitise(text)}\n")
    sys.stderr.flush()


class Start(Struct, frozen=True):
    """Read once, at the beginning of a run."""

    options: LaunchOptions
    environment: Environment
    loaded: LoadedSettings
    models: ModelRegistry

    @property
    def cwd(self) -> str:
        return str(self.environment.cwd)

    @property
    def shown_cwd(self) -> str:
        return self.environment.shorten_home(self.cwd)

    @property
    def sessions(self) -> Path:
        """Where session files are kept."""
        return session_directory(self.environment, self.loaded, self.options.session_dir)

    @property
    def rescue_directory(self) -> str:
        """Where a session goes that its own place does not take."""
        return str(Path(tempfile.gettempdir()) / f"pi-tui-rescued-{os.getuid()}")

    def secrets(self) -> tuple[str, ...]:
        """Values that must not appear in a report of a fault or in an export."""
        marks = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
        return tuple(
            value
            for name, value in self.environment.variables.items()
            if len(value) >= 8 and any(mark in name.upper() for mark in marks)
        )


def read_start(options: LaunchOptions) -> Start:
    """Read everything. Raises SettingsError when it cannot be used at all."""
    environment = read_environment()
    directories = environment.directories
    models = open_registry(
        environment.variables,
        models_path=directories.models_file,
        cache_dir=directories.cache,
    )
    return Start(options, environment, load_settings(environment), models)
