"""Which tools the model may call: what `--tools` asks for, else the setting `defaultTools`.

Both are written alike: plain names replace the list, `+x` and `-x` adjust it, `*` is all. A wrong
name on the command line is refused, since the person is there to mend it; one in a settings file,
which may be shared with other programs, is left out and named.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from msgspec import Struct

from pi_tui.config.schema import DEFAULT_TOOLS
from pi_tui.core.errors import UsageError
from pi_tui.tools.builtin import ALL_TOOLS


class ToolChoice(Struct, frozen=True):
    """The names of the tools, and those that were asked for and are none."""

    names: tuple[str, ...]
    unknown: tuple[str, ...] = ()


def choose_tools(asked: Sequence[str], usual: Sequence[str]) -> ToolChoice:
    """Apply a list of wishes to the tools that are on without it."""
    wishes = [wish.strip() for wish in asked if wish.strip()]
    plain = [wish for wish in wishes if wish[0] not in "+-"]
    names = list(usual) if wishes and not plain else plain
    if "*" in names:
        names = list(ALL_TOOLS)
    unknown = [name for name in names if name not in ALL_TOOLS]
    for wish in wishes:
        sign, name = wish[0], wish[1:].strip()
        if sign in "+-" and name not in ALL_TOOLS:
            unknown.append(name)
        elif sign == "+":
            names.append(name)
        elif sign == "-":
            names = [kept for kept in names if kept != name]
    known = tuple(dict.fromkeys(name for name in names if name in ALL_TOOLS))
    return ToolChoice(known, tuple(dict.fromkeys(unknown)))


def start_tools(from_settings: Sequence[str], on_command_line: str | None) -> ToolChoice:
    """The tools of a start; `unknown` holds what the settings name and nobody knows.

    Raises UsageError for a name on the command line there is no tool of.
    """
    usual = choose_tools(from_settings, DEFAULT_TOOLS)
    if on_command_line is None:
        return usual
    choice = choose_tools(on_command_line.split(","), usual.names)
    if choice.unknown:
        name = choice.unknown[0]
        raise UsageError(
            f"there is no tool called {name!r}",
            hint=f"{_guess(name)}Tools: {', '.join(ALL_TOOLS)}.",
        )
    return choice


def unknown_tool_notice(file: str, name: str) -> str:
    """The line about a name in `defaultTools` that is left out."""
    return (
        f"{file}: defaultTools names {name!r}, and there is no such tool here; it was left out. "
        f"{_guess(name)}Tools: {', '.join(ALL_TOOLS)}."
    )


def _guess(name: str) -> str:
    near = difflib.get_close_matches(name, ALL_TOOLS, n=1)
    return f"Did you mean {near[0]}? " if near else ""
