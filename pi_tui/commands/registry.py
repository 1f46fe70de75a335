"""The registry: names, completion, dispatch, and the refusal of words nobody knows.

A line that starts with `/` and a word is a command and never reaches the model: a typo must not
cost money. A path such as `/etc/hosts` is no command; it is an ordinary message.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct

from pi_tui.agent.session import AgentSession
from pi_tui.commands.ui import CommandUI
from pi_tui.core.errors import PiTuiError


class CommandCall(Struct, frozen=True):
    """One use of a command. `argument` is what follows the name, without outer blanks."""

    name: str
    argument: str
    session: AgentSession
    ui: CommandUI


Handler: TypeAlias = Callable[[CommandCall], Awaitable[None]]


class Command(Struct, frozen=True):
    """A slash command. `name` has no slash."""

    name: str
    description: str
    run: Handler
    argument_hint: str = ""
    hidden: bool = False


_NAMED = 4
"""So many commands are named where one is asked for that does not exist."""

_COMMAND_LINE = re.compile(r"/([a-z][a-z0-9_:-]*)(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL)


class CommandRegistry:
    """All commands of one program run."""

    def __init__(self, commands: Iterable[Command] = ()) -> None:
        self._commands: dict[str, Command] = {}
        for command in commands:
            self.add(command)

    def add(self, command: Command) -> None:
        """Register a command. Raises ValueError when the name is taken."""
        if command.name in self._commands:
            raise ValueError(f"the command /{command.name} is registered twice")
        self._commands[command.name] = command

    def commands(self) -> Sequence[Command]:
        """The visible commands, in the order they were registered."""
        return tuple(c for c in self._commands.values() if not c.hidden)

    def is_command(self, text: str) -> bool:
        """True when the text is a command line, known or not."""
        return _COMMAND_LINE.match(text.strip()) is not None

    def knows(self, text: str) -> bool:
        """True when the text is a command line whose command exists."""
        match = _COMMAND_LINE.match(text.strip())
        return match is not None and match[1].lower() in self._commands

    def meant_by(self, word: str) -> Command | None:
        """The one visible command a word stands for: by its whole name, or as its only beginning.

        A word that merely resembles a name stands for nothing: a typo must not do anything.
        """
        typed = word.removeprefix("/").lower()
        if typed in self._commands:
            command = self._commands[typed]
            return None if command.hidden else command
        begun = [c for c in self.commands() if c.name.startswith(typed)]
        return begun[0] if len(begun) == 1 else None

    def complete(self, prefix: str) -> list[Command]:
        """Visible commands that fit what was typed after the slash, best first."""
        typed = prefix.removeprefix("/").lower()
        ranked = [
            (rank, index, command)
            for index, command in enumerate(self.commands())
            if (rank := _rank(typed, command.name)) is not None
        ]
        return [command for _, _, command in sorted(ranked, key=lambda row: row[:2])]

    async def run(self, text: str, session: AgentSession, ui: CommandUI) -> bool:
        """Run a command line; False when the command does not exist (the person is told)."""
        match = _COMMAND_LINE.match(text.strip())
        name = match[1].lower() if match else text.strip()
        command = self._commands.get(name)
        if match is None or command is None:
            ui.notify("error", self.refusal(text))
            return False
        try:
            await command.run(CommandCall(name, (match[2] or "").strip(), session, ui))
        except PiTuiError as error:
            ui.notify("error", error.text)
        return True

    def refusal(self, text: str) -> str:
        """The words for a line whose command does not exist, with the nearest ones that do."""
        match = _COMMAND_LINE.match(text.strip())
        name = match[1].lower() if match else text.strip().removeprefix("/")
        near = self._near(name) if name else []
        meant = f"Did you mean {_either(near)}? " if near else ""
        return f"/{name} is not a command. {meant}Nothing was sent; /help lists all commands."

    def _near(self, name: str) -> list[str]:
        """Names that begin so, else the most similar one, else the first that has the letters."""
        begun = [command.name for command in self.commands() if command.name.startswith(name)]
        if begun:
            return begun
        close = difflib.get_close_matches(name, list(self._commands), n=1, cutoff=0.5)
        return close or [command.name for command in self.complete(name)[:1]]


def _either(names: Sequence[str]) -> str:
    """Names as an enumeration."""
    shown = [f"/{name}" for name in names[:_NAMED]]
    if len(names) > _NAMED:
        return ", ".join([*shown, "…"])
    return " or ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _rank(typed: str, name: str) -> int | None:
    """0 for the name itself, 1 for its beginning, 2 for a part, 3 for letters in order.

    None when it does not fit.
    """
    if name.startswith(typed):
        return 0 if name == typed else 1
    if typed in name:
        return 2
    letters = iter(name)
    return 3 if all(letter in letters for letter in typed) else None
