"""Actions and the keys that trigger them: the defaults, the user's changes, and key spelling.

An action id is a stable name (`tui.editor.yank`); one key may stand for several actions, and who
has the keyboard decides which of them it means. Key names here are normalised: lower case,
modifiers in the order alt, ctrl, shift, super, symbols as themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

KeyFile: TypeAlias = Mapping[str, object]

_DEFAULTS: dict[str, str] = {
    "tui.editor.cursorUp": "up",
    "tui.editor.cursorDown": "down",
    "tui.editor.historyPrevious": "",
    "tui.editor.historyNext": "",
    "tui.editor.cursorLeft": "left ctrl+b",
    "tui.editor.cursorRight": "right ctrl+f",
    "tui.editor.cursorWordLeft": "alt+left ctrl+left alt+b",
    "tui.editor.cursorWordRight": "alt+right ctrl+right alt+f",
    "tui.editor.cursorLineStart": "home ctrl+a",
    "tui.editor.cursorLineEnd": "end ctrl+e",
    "tui.editor.jumpForward": "ctrl+]",
    "tui.editor.jumpBackward": "ctrl+alt+]",
    "tui.editor.pageUp": "pageup ctrl+pageup",
    "tui.editor.pageDown": "pagedown ctrl+pagedown",
    "tui.editor.deleteCharBackward": "backspace",
    "tui.editor.deleteCharForward": "delete ctrl+d",
    "tui.editor.deleteWordBackward": "ctrl+w alt+backspace",
    "tui.editor.deleteWordForward": "alt+d alt+delete",
    "tui.editor.deleteToLineStart": "ctrl+u",
    "tui.editor.deleteToLineEnd": "ctrl+k",
    "tui.editor.yank": "ctrl+y",
    "tui.editor.yankPop": "alt+y",
    "tui.editor.undo": "ctrl+-",
    "tui.input.newLine": "shift+enter ctrl+j",
    "tui.input.submit": "enter",
    "tui.input.tab": "tab",
    "tui.input.copy": "ctrl+c",
    "tui.select.up": "up",
    "tui.select.down": "down",
    "tui.select.pageUp": "pageup",
    "tui.select.pageDown": "pagedown",
    "tui.select.confirm": "enter",
    "tui.select.cancel": "escape ctrl+c",
    "tui.altScreen.pageUp": "pageup",
    "tui.altScreen.pageDown": "pagedown",
    "tui.altScreen.halfPageUp": "",
    "tui.altScreen.halfPageDown": "",
    "tui.altScreen.lineUp": "",
    "tui.altScreen.lineDown": "",
    "tui.altScreen.previousPrompt": "ctrl+shift+up ctrl+up",
    "tui.altScreen.nextPrompt": "ctrl+shift+down ctrl+down",
    "tui.altScreen.search": "ctrl+shift+f f3",
    "tui.altScreen.searchNext": "enter ctrl+g down f3",
    "tui.altScreen.searchPrevious": "shift+enter ctrl+shift+g up",
    "tui.altScreen.searchClose": "escape",
    "tui.altScreen.top": "ctrl+home",
    "tui.altScreen.bottom": "ctrl+end",
    "tui.altScreen.focusPrevious": "alt+shift+up alt+k",
    "tui.altScreen.focusNext": "alt+shift+down alt+j",
    "tui.block.previous": "up",
    "tui.block.next": "down",
    "tui.block.toggle": "enter",
    "tui.block.copy": "ctrl+x",
    "tui.block.origin": "tab",
    "tui.block.leave": "escape",
    "app.interrupt": "escape",
    "app.clear": "ctrl+c",
    "app.exit": "ctrl+d",
    "app.suspend": "ctrl+z",
    "app.editor.external": "ctrl+g",
    "app.clipboard.pasteImage": "ctrl+v",
    "app.session.new": "",
    "app.session.tree": "",
    "app.session.fork": "",
    "app.session.resume": "",
    "app.session.togglePath": "ctrl+p",
    "app.session.toggleSort": "ctrl+s",
    "app.session.toggleNamedFilter": "ctrl+n",
    "app.session.rename": "ctrl+r",
    "app.session.delete": "ctrl+d",
    "app.session.deleteNoninvasive": "ctrl+backspace",
    "app.model.select": "ctrl+l",
    "app.model.cycleForward": "ctrl+p",
    "app.model.cycleBackward": "ctrl+shift+p",
    "app.models.save": "ctrl+s",
    "app.models.enableAll": "ctrl+a",
    "app.models.clearAll": "ctrl+x",
    "app.models.toggleProvider": "ctrl+p",
    "app.models.reorderUp": "alt+up",
    "app.models.reorderDown": "alt+down",
    "app.thinking.cycle": "shift+tab",
    "app.thinking.save": "ctrl+s",
    "app.thinking.toggle": "ctrl+t",
    "app.tools.expand": "ctrl+o",
    "app.message.copy": "ctrl+x",
    "app.message.followUp": "alt+enter",
    "app.message.dequeue": "alt+up",
    "app.tree.foldOrUp": "ctrl+left alt+left",
    "app.tree.unfoldOrDown": "ctrl+right alt+right",
    "app.tree.editLabel": "shift+l",
    "app.tree.toggleLabelTimestamp": "shift+t",
    "app.tree.filter.default": "ctrl+d",
    "app.tree.filter.noTools": "ctrl+t",
    "app.tree.filter.userOnly": "ctrl+u",
    "app.tree.filter.labeledOnly": "ctrl+l",
    "app.tree.filter.all": "ctrl+a",
    "app.tree.filter.cycleForward": "ctrl+o",
    "app.tree.filter.cycleBackward": "ctrl+shift+o",
    "app.tree.search": "/",
    "app.tree.focus": "tab",
    "app.tree.label": "l",
    "app.tree.preview": "v",
    "app.tree.compare": "d",
    "app.tree.mark": "m",
    "app.tree.showPath": "s",
    "app.tree.pin": "p",
    "app.tree.copy": "c",
    "app.tree.fork": "f",
    "app.tree.compact": "z",
    "app.tree.leaveOut": "o",
    "app.tree.hide": "h",
    "app.tree.showHidden": "shift+h",
    "app.tree.undo": "u",
    "app.tree.origin": "j",
    "app.tree.askAgain": "a",
    "app.tree.nextHit": "n",
    "app.tree.previousHit": "shift+n",
    "app.tree.larger": "+ =",
    "app.tree.smaller": "-",
    "app.tree.whole": "w",
    "app.tree.first": "g home",
    "app.tree.last": "shift+g end",
    "app.tree.leaf": ".",
    "app.tree.previewUp": "shift+up ctrl+up",
    "app.tree.previewDown": "shift+down ctrl+down",
    "app.tree.previewPageUp": "b shift+pageup",
    "app.tree.previewPageDown": "space shift+pagedown",
    "app.tree.help": "? f1",
    "app.tree.pageUp": "left pageup",
    "app.tree.pageDown": "right pagedown",
}

ACTIONS = frozenset(_DEFAULTS)
"""The ids a key bindings file may name."""

_MODIFIERS = ("alt", "ctrl", "shift", "super")

# Other spellings of a key: what Textual calls it, what people write, what terminals send.
_SPELLINGS = {
    "control": "ctrl",
    "option": "alt",
    "meta": "alt",
    "cmd": "super",
    "esc": "escape",
    "return": "enter",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "del": "delete",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "page_up": "pageup",
    "page_down": "pagedown",
    " ": "space",
    "minus": "-",
    "hyphen_minus": "-",
    "underscore": "_",
    "plus": "+",
    "slash": "/",
    "backslash": "\\",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "circumflex_accent": "^",
    "at": "@",
    "comma": ",",
    "full_stop": ".",
    "period": ".",
    "equals_sign": "=",
    "semicolon": ";",
    "colon": ":",
    "apostrophe": "'",
    "quotation_mark": '"',
    "grave_accent": "`",
    "tilde": "~",
    "number_sign": "#",
    "question_mark": "?",
    "exclamation_mark": "!",
}

_NAMED = frozenset(
    [
        *("escape", "enter", "tab", "space", "backspace", "delete", "insert", "home", "end"),
        *("pageup", "pagedown", "up", "down", "left", "right"),
        *(f"f{number}" for number in range(1, 25)),
    ]
)


def normalise_key(key: str) -> str:
    """One spelling for a key, whether Textual or a person wrote it."""
    *modifiers, base = _split(key)
    if len(base) == 1 and base.isupper():
        base = base.lower()
        modifiers.append("shift")
    base = base.lower()
    base = _SPELLINGS.get(base, base)
    held = {_SPELLINGS.get(name.lower(), name.lower()) for name in modifiers}
    if base == "_" and "ctrl" in held:
        base = "-"  # terminals send the same byte for Ctrl+- and Ctrl+_
    known = [name for name in _MODIFIERS if name in held]
    return "+".join([*sorted(held.difference(_MODIFIERS)), *known, base])


def _split(key: str) -> list[str]:
    if key in ("+", ""):
        return [key]
    if key.endswith("++"):
        return [*key[:-2].split("+"), "+"]
    return key.split("+")


def _is_key(key: str) -> bool:
    *modifiers, base = _split(key)
    return (len(base) == 1 or base in _NAMED) and all(name in _MODIFIERS for name in modifiers)


class KeyMap:
    """Which actions a key stands for.

    `problems` are sentences about entries of the user's file that could not be used; the defaults
    stand for those.
    """

    def __init__(self, user: KeyFile | None = None) -> None:
        self.problems: list[str] = []
        self._keys: dict[str, tuple[str, ...]] = {
            action: tuple(keys.split()) for action, keys in _DEFAULTS.items()
        }
        for action, value in (user or {}).items():
            self._override(action, value)
        self._actions: dict[str, list[str]] = {}
        for action, keys in self._keys.items():
            for key in keys:
                self._actions.setdefault(key, []).append(action)

    def _override(self, action: str, value: object) -> None:
        if action not in self._keys:
            self.problems.append(f"keybindings.json: no action is called {action!r}; ignored")
            return
        wanted: Sequence[object] = value if isinstance(value, list | tuple) else [value]
        keys = []
        for item in wanted:
            key = normalise_key(item) if isinstance(item, str) else ""
            if _is_key(key):
                keys.append(key)
            else:
                self.problems.append(f"keybindings.json: {action}: {item!r} is not a key; ignored")
        if keys or not wanted:
            self._keys[action] = tuple(keys)

    def actions(self, key: str, scopes: Iterable[str]) -> list[str]:
        """The actions of a (normalised) key whose ids begin with a scope, scope by scope."""
        bound = self._actions.get(key, ())
        return [action for scope in scopes for action in bound if action.startswith(scope)]

    def means(self, key: str, action: str) -> bool:
        """True when the (normalised) key triggers the action."""
        return key in self._keys.get(action, ())

    def keys(self, action: str) -> tuple[str, ...]:
        """The keys of an action, the one to show first first."""
        return self._keys.get(action, ())

    def label(self, action: str) -> str:
        """The first key of an action for people to read, or "" when it has none."""
        keys = self._keys.get(action, ())
        return keys[0].replace("escape", "esc") if keys else ""

    def table(self) -> list[tuple[str, tuple[str, ...]]]:
        """All actions with their keys, in the order of the defaults."""
        return list(self._keys.items())
