"""What every front end starts from: the command line, the environment, the settings, the models."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from pi_tui.config.paths import Environment, read_environment
from pi_tui.config.schema import Settings
from pi_tui.config.settings import LoadedSettings, session_directory
from pi_tui.providers.client_options import NO_LIMIT_S, ClientOptions
from pi_tui.providers.registry import ModelRegistry, open_registry
from pi_tui.wiring.live_settings import LiveSettings
from pi_tui.wiring.secrecy import Secrets

if TYPE_CHECKING:
    from pi_tui.launch_options import LaunchOptions


def say(text: str) -> None:
    """Write one line for people to standard error."""
    from pi_tui.core.sanitise import sanitise

    sys.stderr.write(f"pi-tui: {sanitise(text)}\n")
    sys.stderr.flush()


class Start(Struct, frozen=True):
    """Read once, at the beginning of a run; `live` follows what changes in the settings since.

    `rescue_directory`: where a session goes that its own place does not take. It is made when it is
    needed, and nobody else can have made it before, because nobody knows its name.
    """

    options: LaunchOptions
    environment: Environment
    loaded: LoadedSettings
    live: LiveSettings
    models: ModelRegistry
    rescue_directory: str

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
    def secrets(self) -> Secrets:
        """Values that must not appear in a report of a fault or in an export."""
        return Secrets(self.environment.variables, self.models)


def read_start(options: LaunchOptions) -> Start:
    """Read everything. Raises SettingsError when it cannot be used at all."""
    environment = read_environment()
    directories = environment.directories
    live = LiveSettings(environment)
    loaded = live.loaded
    models = open_registry(
        environment.variables,
        models_path=directories.models_file,
        cache_dir=directories.cache,
        client_options=_client_options(loaded.settings),
        enabled_models=loaded.settings.enabled_models,
    )
    return Start(options, environment, loaded, live, models, _rescue_directory())


def _rescue_directory() -> str:
    name = f"pi-tui-rescued-{os.getuid()}-{secrets.token_hex(8)}"
    return str(Path(tempfile.gettempdir()) / name)


def _client_options(settings: Settings) -> ClientOptions:
    limit_ms = settings.retry.provider.timeout_ms
    if limit_ms is None and settings.http_idle_timeout_ms != Settings().http_idle_timeout_ms:
        limit_ms = settings.http_idle_timeout_ms
    return ClientOptions(
        proxy=settings.http_proxy or "",
        idle_timeout_s=None if limit_ms is None else limit_ms / 1000 or NO_LIMIT_S,
        block_images=settings.images.block_images,
    )
