"""Settings that were given and do nothing here: of other programs, of later versions, mistyped.

Such settings never stop the program, so that a file can be shared with others; each is named once
at the start, because a setting that silently does nothing looks like one that works.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from msgspec import Struct

from pi_tui.config.schema import Settings
from pi_tui.config.settings import KeyPath, LoadedSettings, dotted, settings_below
from pi_tui.core.messages import JSON

UNUSED_SETTINGS: dict[KeyPath, tuple[JSON, ...]] = {
    ("defaultProjectTrust",): ("never",),
    ("editorPaddingX",): (0,),
    ("images", "autoResize"): (False,),
    ("outputPad",): (),
    ("retry", "provider", "maxRetries"): (0,),
    ("retry", "provider", "maxRetryDelayMs"): (),
    ("showHardwareCursor",): (False,),
    ("tuiMode",): ("fullscreen",),
}
"""Settings of the schema that are checked but not used yet, each with the values that say what
happens anyway."""

_FREE_KEYS: frozenset[KeyPath] = frozenset({("compaction", "modelOverrides")})
"""Objects whose keys are names the user chose, and which are not part of the schema."""

_OF_OTHERS = frozenset(
    [
        "cacheWarming",
        "codemode",
        "collapseChangelog",
        "enableAnalytics",
        "enableInstallTelemetry",
        "enableSkillCommands",
        "extensions",
        "fullscreenCopyOnSelect",
        "fullscreenExitOutput",
        "fullscreenScrollbar",
        "fullscreenWheelScrollLines",
        "lastChangelogVersion",
        "markdown",
        "npmCommand",
        "packages",
        "prompts",
        "selfUpdateCommand",
        "sessionShareDestination",
        "showCacheMissNotices",
        "skills",
        "terminal",
        "themes",
        "thinkingBudgets",
        "transport",
        "warnings",
        "websocketConnectTimeoutMs",
    ]
)
"""Names of the shared format that this program does not use; no slips of the finger."""

_MOST_LINES = 20


def unused_settings(loaded: LoadedSettings) -> tuple[str, ...]:
    """One line for each setting that was given and has no effect, in the order of the file."""
    said = []
    for path, value, guess in _without_effect(loaded.merged, Settings, ()):
        harmless = UNUSED_SETTINGS.get(path, ())
        known = path in UNUSED_SETTINGS
        if value is None or value in harmless or (not known and not guess and _is_off(value)):
            continue
        place = f"{loaded.file_of(path)}: {dotted(path)}"
        if guess:
            said.append(f"{place} is not a setting. Did you mean {guess}?")
        else:
            said.append(f"{place} is not used by this version of pi-tui.")
    more = len(said) - _MOST_LINES
    return (*said[:_MOST_LINES], *([f"{more} more settings are not used."] if more > 0 else []))


def _without_effect(
    data: dict[str, JSON], kind: type[Struct], at: KeyPath
) -> Iterator[tuple[KeyPath, JSON, str]]:
    """Each setting nothing reads: path, value, and the name that was probably meant, or ""."""
    known = settings_below(kind)
    for key, value in data.items():
        path = (*at, key)
        if path in UNUSED_SETTINGS:
            yield path, value, ""
        elif key in known:
            inner = known[key]
            if inner is not None and isinstance(value, dict):
                yield from _without_effect(value, inner, path)
        elif path not in _FREE_KEYS:
            near = [] if not at and key in _OF_OTHERS else difflib.get_close_matches(key, known, 1)
            yield path, value, dotted((*at, near[0])) if near else ""


def _is_off(value: JSON) -> bool:
    """True for a value that asks for nothing."""
    return value is False or value in ([], {}, "", "off", "none")
