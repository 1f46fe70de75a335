"""The lines around the picker's list: what is chosen, the keys, why the list is empty."""

from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from textual.strip import Strip

from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette
from pi_tui.tui.sessions.session_view import PickerChoices, SessionView

LONG_HINTS_FROM_CELLS = 112
LONG_STATES_FROM_CELLS = 56

SORT = "app.session.toggleSort"
NAMED = "app.session.toggleNamedFilter"
PATHS = "app.session.togglePath"
RENAME = "app.session.rename"
DELETE = "app.session.delete"
SCOPE = "tui.input.tab"


def states_line(choices: PickerChoices, palette: Palette, width: int) -> Strip:
    """Scope, filter and order."""
    on, off = palette.ink("accent"), palette.ink("dim")
    everywhere = choices.everywhere
    pieces = [
        Segment("  ○ folder " if everywhere else "  ◉ folder ", off if everywhere else on),
        Segment("◉ all" if everywhere else "○ all", on if everywhere else off),
    ]
    if width >= LONG_STATES_FROM_CELLS:
        named = choices.named_only
        pieces.append(Segment(f"   Name: {'named' if named else 'all'}", on if named else off))
        pieces.append(Segment(f"   Sort: {choices.sort}", off))
    else:
        pieces.append(Segment(f" · {choices.sort}", off))
        pieces.append(Segment(" · named" if choices.named_only else "", on))
    return Strip([piece for piece in pieces if piece.text])


def key_hints(keys: KeyMap, choices: PickerChoices, width: int) -> str:
    """As many keys as fit, the ones needed most first."""
    wide = width >= LONG_HINTS_FROM_CELLS
    actions = [
        ("tui.select.confirm", "opens" if wide else ""),
        ("tui.select.cancel", "closes" if wide else ""),
        (SCOPE, "folder" if choices.everywhere else "all"),
        (DELETE, "delete"),
        (RENAME, "rename"),
        (SORT, "sort"),
        (NAMED, "named"),
        (PATHS, "paths"),
    ]
    hint = ""
    for action, what in actions:
        key = keys.label(action)
        part = f"{key if wide else key.replace('ctrl+', '^')} {what}".strip()
        longer = f"{hint} · {part}" if hint else part
        if key and cell_len(longer) <= width - 6:
            hint = longer
    return hint


def why_empty(keys: KeyMap, view: SessionView) -> str:
    """What to tell where no session is listed, and which key may change that."""
    choices = view.choices
    everywhere = f"{keys.label(SCOPE)} shows those of all directories"
    if view.searching:
        return "nothing fits" if choices.everywhere else f"nothing fits here; {everywhere}"
    if choices.named_only:
        return f"no session has a name; {keys.label(NAMED)} shows all"
    if choices.everywhere:
        return "there are no stored sessions yet"
    return f"no session belongs to this directory; {everywhere}"
