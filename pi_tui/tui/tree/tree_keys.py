"""What the keys mean in the tree navigator, and how the help says it.

One scheme: while the list has the keyboard, letters are commands. `/` gives it to the search, where
every printable key is text, capitals included; there the commands work with Alt held. Keys with
Ctrl, and the named keys, mean the same in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len

from pi_tui.tui.keys import KeyMap
from pi_tui.tui.tree.line_input import LineInput


class TreeAction(NamedTuple):
    """An action of the navigator: a word for the help line, a sentence for `?`."""

    id: str
    word: str
    words: str


TREE_ACTIONS: tuple[TreeAction, ...] = (
    TreeAction("app.tree.search", "search", "search; every printable key is text then"),
    TreeAction("app.tree.focus", "", "from the search to the list and back"),
    TreeAction("app.tree.label", "label", "label the entry; an empty label removes it"),
    TreeAction("app.tree.preview", "preview", "preview: beside or below, whole panel, none"),
    TreeAction("app.tree.compare", "compare", "compare the marked branch (or the current)"),
    TreeAction("app.tree.mark", "mark", "mark the entry for a comparison"),
    TreeAction("app.tree.showPath", "path", "show the path to the entry; nothing moves"),
    TreeAction("app.tree.pin", "pin", "pin or unpin: kept verbatim by any compaction"),
    TreeAction("app.tree.copy", "copy", "copy the text of the entry"),
    TreeAction("app.tree.fork", "fork", "start a new session from here"),
    TreeAction("app.tree.compact", "compact", "compact up to here"),
    TreeAction("app.tree.leaveOut", "leave out", "leave out of the context, or take back"),
    TreeAction("app.tree.hide", "hide", "hide the dead branch; nothing is deleted"),
    TreeAction("app.tree.showHidden", "hidden", "show hidden branches, or not"),
    TreeAction("app.tree.undo", "undo", "undo the last move in the tree"),
    TreeAction("app.tree.origin", "its branch", "on a branch summary: to the entry it came from"),
    TreeAction("app.tree.askAgain", "ask again", 'take "don\'t ask again" about summaries back'),
    TreeAction("app.tree.nextHit", "next hit", "next hit of the search"),
    TreeAction("app.tree.previousHit", "hit before", "previous hit of the search"),
    TreeAction("app.tree.larger", "larger", "more rows for the panel"),
    TreeAction("app.tree.smaller", "smaller", "fewer rows for the panel"),
    TreeAction("app.tree.whole", "whole", "the whole terminal, or back"),
    TreeAction("app.tree.first", "first", "first row"),
    TreeAction("app.tree.last", "last", "last row"),
    TreeAction("app.tree.leaf", "leaf", "where the conversation is"),
    TreeAction("app.tree.previewUp", "", "preview: up"),
    TreeAction("app.tree.previewDown", "", "preview: down"),
    TreeAction("app.tree.previewPageUp", "", "preview: page up"),
    TreeAction("app.tree.previewPageDown", "", "preview: page down"),
    TreeAction("app.tree.help", "help", "these keys"),
)
"""What the reference does not have; `keys.py` has the defaults."""

_KNOWN: tuple[tuple[str, str], ...] = (
    ("tui.select.up", "move; wraps around at both ends"),
    ("tui.select.down", ""),
    ("app.tree.pageUp", ""),
    ("app.tree.pageDown", ""),
    ("app.tree.foldOrUp", "fold the branch; else to its start, last to the root"),
    ("app.tree.unfoldOrDown", "unfold; else to the next branch, or to the end of this one"),
    ("tui.select.confirm", "go there"),
    ("tui.select.cancel", "one step back: out of the search, then close"),
    ("app.tree.filter.default", "filter: default"),
    ("app.tree.filter.noTools", "filter: no tool results"),
    ("app.tree.filter.userOnly", "filter: your messages only"),
    ("app.tree.filter.labeledOnly", "filter: labelled entries only"),
    ("app.tree.filter.all", "filter: everything"),
    ("app.tree.filter.cycleForward", "next filter"),
    ("app.tree.filter.cycleBackward", "previous filter"),
    ("app.tree.editLabel", "label the entry, as l"),
    ("app.tree.toggleLabelTimestamp", "show when labels were set"),
    ("app.message.copy", "copy the text of the entry, as c"),
)

_LINE_ORDER = (
    "tui.select.cancel", "app.tree.help",
    "app.tree.compact", "app.tree.pin", "app.tree.label", "app.tree.copy", "app.tree.fork",
    "app.tree.leaveOut",
    "tui.select.confirm", "app.tree.search", "app.tree.preview", "app.tree.showPath",
    "app.tree.mark", "app.tree.compare", "app.tree.hide", "app.tree.showHidden", "app.tree.undo",
    "app.tree.larger", "app.tree.smaller", "app.tree.whole",
)  # fmt: skip
"""What the help line names: the ways on, then what is done to an entry, then the rest."""

_FIXED_WORDS = {"tui.select.confirm": "go", "tui.select.cancel": "back"}


class TreeKeys:
    """Looks keys up for the navigator."""

    def __init__(self, keys: KeyMap) -> None:
        self._keys = keys
        self._table: dict[str, str] = {}
        for action, _ in _KNOWN:
            self._add(action)
        for own in TREE_ACTIONS:
            self._add(own.id)

    def _add(self, action: str) -> None:
        for key in self.keys(action):
            self._table.setdefault(key, action)

    def keys(self, action: str) -> tuple[str, ...]:
        """The keys of an action."""
        return self._keys.keys(action)

    def action(self, name: str, character: str | None, *, typing: bool) -> str | None:
        """What a key means; None for nothing, or for text while somebody types."""
        if typing and character is not None and character.isprintable():
            return None
        # Alt with a character is the same command wherever the keyboard is.
        return self._table.get(name) or self._table.get(_without_alt(name))

    def edit(self, line: LineInput, name: str, character: str | None) -> bool:
        """Let a key change a line that is typed; False when it means something else."""
        if character is not None and character.isprintable():
            line.insert(character)
        elif self._keys.means(name, "tui.editor.deleteCharBackward"):
            line.delete_left()
        elif self._keys.means(name, "tui.editor.deleteWordBackward"):
            line.delete_word()
        else:
            return False
        return True

    def help_notes(self) -> tuple[str, ...]:
        """How keys and search work, in sentences."""
        search, focus = self.name("app.tree.search"), self.name("app.tree.focus")
        return (
            f"Letters are commands in the list, with Alt everywhere. {search} gives the keys to "
            f"the search, {focus} gives them back.",
            'Search, as in /resume: all words, in any order; "exact words"; re:pattern. Names, '
            "labels and commands may be typed loosely.",
        )

    def help_rows(self) -> list[tuple[str, str]]:
        """All keys for `?`, as (keys, what they do)."""
        rows: list[tuple[str, str]] = []
        move = [*self.keys("tui.select.up")[:1], *self.keys("tui.select.down")[:1]]
        pages = [*self.keys("app.tree.pageUp"), *self.keys("app.tree.pageDown")]
        for action, words in _KNOWN:
            if action == "tui.select.up":
                rows.append((_shown(move), words))
                rows.append((_shown(pages), "one page"))
            elif words:
                rows.append((_shown(self.keys(action)), words))
        rows += [(_shown(self.keys(action.id)), action.words) for action in TREE_ACTIONS]
        return [row for row in rows if row[0]]

    def help_line(self, width: int, *, first: Iterable[str] = ()) -> str:
        """As many keys as fit the width, the most important ones; others are under `?`.

        `first`: actions that matter for the selected entry.
        """
        words = _FIXED_WORDS | {action.id: action.word for action in TREE_ACTIONS}
        line = ""
        for action in (*_LINE_ORDER[:2], *first, *_LINE_ORDER[2:]):
            keys = self.keys(action)
            if not keys:
                continue
            item = f"{_short(keys[0])} {words[action]}"
            longer = f"{line} · {item}" if line else item
            if cell_len(longer) <= width:
                line = longer
        return line

    def path_line(self) -> str:
        """What stands there instead while a whole path is shown."""
        back = self.name("app.tree.showPath")
        return f"esc {back} back · ↑ ↓ space b scroll · nothing was moved"

    def name(self, action: str) -> str:
        """The first key of an action for people, or ""."""
        keys = self.keys(action)
        return _short(keys[0]) if keys else ""


def _without_alt(name: str) -> str:
    """The character that Alt is held with, as a key; "" for other keys."""
    plain = name.removeprefix("alt+")
    is_character = len(plain.removeprefix("shift+")) == 1
    return plain if plain != name and is_character else ""


def _shown(keys: Iterable[str]) -> str:
    return ", ".join(_short(key) for key in keys)


def _short(key: str) -> str:
    if key.startswith("shift+") and len(key) == 7:
        return key[-1].upper()
    return key.replace("escape", "esc").replace("pageup", "pgup").replace("pagedown", "pgdn")
