"""The numbers of a compaction for one model: override, else ordinary value, else default.

Values are tokens. The ordinary value is checked first, even where an override exists; overrides of
other models are not looked at. `enabled` is never per model.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from pi_tui.config.schema import (
    DEFAULT_KEEP_RECENT_TOKENS,
    DEFAULT_RESERVE_TOKENS,
    Tokens,
)
from pi_tui.config.settings import (
    KeyPath,
    LoadedSettings,
    Scope,
    convert,
    describe,
    settings_from_texts,
    wrong_value,
)
from pi_tui.core.compaction.prepare import CompactionSettings
from pi_tui.core.errors import SettingsError
from pi_tui.core.messages import JSON

T = TypeVar("T")


class CompactionResolution(Struct, frozen=True):
    """Each number on its own: its value, or the error that stands in its place.

    `unreadable` names the files that count as empty because they could not be parsed.
    """

    unreadable: tuple[Scope, ...]
    enabled: bool | SettingsError
    reserve_tokens: int | SettingsError
    keep_recent_tokens: int | SettingsError
    branch_summary_reserve_tokens: int | SettingsError

    def settings(self) -> CompactionSettings:
        """The three values of a compaction together. Raises the first error among them."""
        return CompactionSettings(
            _value(self.enabled), _value(self.reserve_tokens), _value(self.keep_recent_tokens)
        )


def compaction_settings(
    loaded: LoadedSettings, provider: str | None, model_id: str | None
) -> CompactionSettings:
    """The settings for a model, or those without a model when there is none.

    Raises SettingsError naming file and key when a value that counts is wrong.
    """
    return resolve(loaded, provider, model_id).settings()


def resolve_texts(
    user_text: str | None,
    project_text: str | None,
    *,
    project_trusted: bool,
    model: tuple[str, str] | None,
) -> CompactionResolution:
    """Resolve from the texts of the two files, for tools that compare programs."""
    loaded = settings_from_texts(user_text, project_text, project_trusted=project_trusted)
    provider, model_id = model or (None, None)
    return resolve(loaded, provider, model_id)


def resolve(
    loaded: LoadedSettings, provider: str | None, model_id: str | None
) -> CompactionResolution:
    """Each value for a model, errors in their place."""
    compaction = loaded.merged.get("compaction")
    source: dict[str, JSON] = compaction if isinstance(compaction, dict) else {}
    branch = loaded.merged.get("branchSummary")
    numbers = _Numbers(loaded, source, f"{provider}/{model_id}" if provider and model_id else None)
    return CompactionResolution(
        unreadable=loaded.unreadable,
        enabled=numbers.enabled(),
        reserve_tokens=numbers.get("reserveTokens", DEFAULT_RESERVE_TOKENS),
        keep_recent_tokens=numbers.get("keepRecentTokens", DEFAULT_KEEP_RECENT_TOKENS),
        branch_summary_reserve_tokens=numbers.checked(
            branch if isinstance(branch, dict) else {},
            ("branchSummary", "reserveTokens"),
            DEFAULT_RESERVE_TOKENS,
        ),
    )


class _Numbers:
    def __init__(
        self, loaded: LoadedSettings, source: dict[str, JSON], model_name: str | None
    ) -> None:
        self._loaded = loaded
        self._source = source
        self._model_name = model_name

    def enabled(self) -> bool | SettingsError:
        value = self._source.get("enabled")
        if value is None:
            return True
        if isinstance(value, bool):
            return value
        return self._wrong(("compaction", "enabled"), value, "true or false")

    def get(self, key: str, default: int) -> int | SettingsError:
        ordinary = self.checked(self._source, ("compaction", key), default)
        if isinstance(ordinary, SettingsError) or self._model_name is None:
            return ordinary
        overrides = self._source.get("modelOverrides")
        if overrides is None:
            return ordinary
        path: KeyPath = ("compaction", "modelOverrides")
        if not isinstance(overrides, dict):
            return self._wrong(path, overrides, "an object")
        if self._model_name not in overrides:
            return ordinary
        override = overrides[self._model_name]
        path = (*path, self._model_name)
        if not isinstance(override, dict):
            return self._wrong(path, override, "an object")
        return self.checked(override, (*path, key), ordinary)

    def checked(self, source: dict[str, JSON], path: KeyPath, default: int) -> int | SettingsError:
        if path[-1] not in source:
            return default
        value = source[path[-1]]
        try:
            number: int = convert(value, Tokens)
        except msgspec.ValidationError:
            return self._wrong(path, value, describe(Tokens))
        return number

    def _wrong(self, path: KeyPath, value: JSON, expected: Any) -> SettingsError:
        return wrong_value(self._loaded.file_of(path), path, value, expected)


def _value(found: T | SettingsError) -> T:
    if isinstance(found, SettingsError):
        raise found
    return found
