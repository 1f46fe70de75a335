"""Settings that are accepted, so that files of other programs can be kept, but do nothing here."""

from __future__ import annotations

from pi_tui.config.settings import KeyPath, LoadedSettings, dotted
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
"""Each with the values that say what happens anyway."""


def unused_settings(loaded: LoadedSettings) -> tuple[str, ...]:
    """One line for each setting that was given and has no effect, in the order of the list."""
    said = []
    for path, harmless in UNUSED_SETTINGS.items():
        value: JSON = loaded.merged
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None and value not in harmless:
            said.append(
                f"{loaded.file_of(path)}: {dotted(path)} is not used by this version of pi-tui."
            )
    return tuple(said)
