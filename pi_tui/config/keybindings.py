"""The user's own keys: `keybindings.json` maps an action id to a key or a list of keys.

Says what the file says; which actions exist and what they do is known by the front ends, which pass
the ids in. An empty list takes all keys from an action. A key is written `ctrl+shift+x`: modifiers
in any order, then one character or the name of a key.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from pi_tui.config.json_file import kind_of, read_json_object
from pi_tui.core.errors import SettingsError
from pi_tui.core.messages import JSON

_MODIFIERS = ("ctrl", "shift", "alt", "super")
_OTHER_NAMES = {"control": "ctrl", "option": "alt", "meta": "alt", "cmd": "super", "esc": "escape"}
_NAMED_KEYS = frozenset(
    {
        *("enter", "escape", "tab", "space", "backspace", "delete", "insert", "clear"),
        *("home", "end", "pageup", "pagedown", "up", "down", "left", "right"),
        *(f"f{number}" for number in range(1, 13)),
    }
)


class LoadedKeybindings(Struct, frozen=True):
    """Action id -> its keys, normalised (`ctrl+shift+x`); actions that are wrong are left out."""

    bindings: dict[str, tuple[str, ...]]
    problems: tuple[SettingsError, ...] = ()


def load_keybindings(path: Path, known: Collection[str] | None = None) -> LoadedKeybindings:
    """Read the file; a missing one gives no bindings. `known` are the action ids that exist."""
    try:
        data = read_json_object(path)
    except SettingsError as error:
        return LoadedKeybindings({}, (error,))
    bindings: dict[str, tuple[str, ...]] = {}
    problems: list[SettingsError] = []
    for action, value in data.items():
        if known is not None and action not in known:
            problems.append(
                SettingsError(f'{path}: no action is called "{action}"', file=str(path), key=action)
            )
            continue
        keys = _keys(value)
        if isinstance(keys, str):
            problems.append(
                SettingsError(
                    f"{path}: {action} {keys}",
                    file=str(path),
                    key=action,
                    hint="The action keeps its usual keys.",
                )
            )
        else:
            bindings[action] = keys
    return LoadedKeybindings(bindings, tuple(problems))


def _keys(value: JSON) -> tuple[str, ...] | str:
    """The keys of one action, or what is wrong with them."""
    items = value if isinstance(value, list) else [value]
    keys: list[str] = []
    for item in items:
        if not isinstance(item, str):
            return f"must be a key or a list of keys, not {kind_of(item)}"
        key = normalise_key(item)
        if key is None:
            return f'names a key that does not exist: "{item}"'
        if key not in keys:
            keys.append(key)
    return tuple(keys)


def normalise_key(written: str) -> str | None:
    """One spelling for each key: lower case, modifiers in a fixed order; None when it is no key.

    `ctrl++` is the plus key, `ctrl+-` the minus key. A capital letter alone is the letter with
    shift.
    """
    text = written.strip()
    if text.endswith("+") and (text == "+" or text.endswith("++")):
        before, name = text[:-2] if text != "+" else "", "+"
    else:
        before, _, name = text.rpartition("+")
    modifiers = set()
    for word in before.split("+") if before else ():
        modifier = _OTHER_NAMES.get(word.lower(), word.lower())
        if modifier not in _MODIFIERS:
            return None
        modifiers.add(modifier)
    if len(name) == 1:
        if not name.isprintable() or name.isspace():
            return None
        if name.isupper() and not modifiers:
            modifiers.add("shift")
        name = name.lower()
    else:
        name = name.lower().replace("_", "").replace("-", "")
        name = _OTHER_NAMES.get(name, name)
        if name not in _NAMED_KEYS:
            return None
    return "+".join([m for m in _MODIFIERS if m in modifiers] + [name])
