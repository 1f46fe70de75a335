"""What the built-in tools do alike, so that the file of each holds only what is its own.

A tool is a declaration, a line for the system prompt, a reader of its arguments and its work. Here
is the way from a call to that work; nothing here knows which tools there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from pi_tui.core.messages import JSON, TextContent, ToolDeclaration
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.paths import file_key, require_directory
from pi_tui.tools.threads import run_to_the_end


class NamesFile(Protocol):
    """Arguments that name the file a call writes."""

    @property
    def path(self) -> str: ...


ParsedT = TypeVar("ParsedT")
NamesFileT = TypeVar("NamesFileT", bound=NamesFile)


class BuiltinTool(ABC, Generic[ParsedT]):
    """One tool; see `core.protocols.Tool`. The type variable is what its arguments are read as."""

    declaration: ClassVar[ToolDeclaration]
    prompt_line: ClassVar[str]

    def __init__(self, options: ToolOptions) -> None:
        self._options = options

    @staticmethod
    @abstractmethod
    def parse(arguments: dict[str, JSON]) -> ParsedT:
        """Read the arguments. Raises ToolError when they are wrong."""

    @abstractmethod
    async def work(self, parsed: ParsedT, context: ToolContext) -> ToolOutput:
        """Do what the arguments ask for, in a directory that exists."""

    def check(self, arguments: dict[str, JSON]) -> None:
        """Raise ToolError, in words the model can act on, when the arguments are wrong."""
        self.parse(arguments)

    def written_path(self, arguments: dict[str, JSON], cwd: str) -> str | None:
        """None: most tools write no file of their own accord."""
        return None

    async def run(self, arguments: dict[str, JSON], context: ToolContext) -> ToolOutput:
        """Do it. Raises ToolError for a failed call; cancellation ends everything it started."""
        parsed = self.parse(arguments)
        require_directory(context.cwd)
        return await self.work(parsed, context)


class WritingTool(BuiltinTool[NamesFileT]):
    """A tool that writes the one file its arguments name, in a thread that is never cut off."""

    @abstractmethod
    def write(self, parsed: NamesFileT, cwd: str) -> ToolOutput:
        """Write the file. Blocking."""

    def written_path(self, arguments: dict[str, JSON], cwd: str) -> str | None:
        return file_key(self.parse(arguments).path, cwd, self._options.home)

    async def work(self, parsed: NamesFileT, context: ToolContext) -> ToolOutput:
        return await run_to_the_end(lambda: self.write(parsed, context.cwd))


def answer(text: str, notes: Sequence[str], details: dict[str, JSON]) -> ToolOutput:
    """The text for the model, below it the notes about it in brackets, and facts for people."""
    noted = f"{text}\n\n[{' '.join(notes)}]" if notes else text
    return ToolOutput((TextContent(noted),), details=details)
