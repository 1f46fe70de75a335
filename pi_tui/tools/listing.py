"""The `ls` tool: what is in one directory."""

from __future__ import annotations

import asyncio
import os

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import JSON, TextContent, ToolDeclaration
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.limits import keep_start
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.paths import failed, require_directory, resolve_existing, shown
from pi_tui.tools.visible_text import plural, visible_line

DEFAULT_LIMIT = 500

DECLARATION = declared.declare(
    "ls",
    "List a directory: names sorted, hidden ones too, directories with a slash at the end. Up to "
    "500 entries.",
    {
        "path": declared.string("The directory; the working directory when left out"),
        "limit": declared.whole_number("How many entries to give at most"),
    },
    [],
)


class ListArguments(Struct, frozen=True):
    path: str
    limit: int


def parse_list(arguments: dict[str, JSON]) -> ListArguments:
    given = Arguments("ls", arguments)
    limit = given.whole_number("limit") or DEFAULT_LIMIT
    return ListArguments(given.path(required=False) or ".", limit)


class ListTool:
    """Lists directories."""

    prompt_line = "list a directory"

    def __init__(self, options: ToolOptions) -> None:
        self._options = options

    @property
    def declaration(self) -> ToolDeclaration:
        return DECLARATION

    def check(self, arguments: dict[str, JSON]) -> None:
        parse_list(arguments)

    def written_path(self, arguments: dict[str, JSON], cwd: str) -> str | None:
        return None

    async def run(self, arguments: dict[str, JSON], context: ToolContext) -> ToolOutput:
        parsed = parse_list(arguments)
        require_directory(context.cwd)
        return await asyncio.to_thread(self._list, parsed, context.cwd)

    def _list(self, parsed: ListArguments, cwd: str) -> ToolOutput:
        path = resolve_existing(parsed.path, cwd, self._options.home)
        try:
            if os.path.isfile(path):  # noqa: PTH113
                raise ToolError(f"{shown(path, cwd)} is a file; use read to see it.")
            with os.scandir(path) as entries:
                names = sorted((_shown_entry(entry) for entry in entries), key=_order)
        except OSError as error:
            raise failed(error, "list", path, cwd) from error
        kept = keep_start(names, parsed.limit, self._options.max_bytes)
        text = "\n".join(kept) or "(empty directory)"
        if len(kept) < len(names):
            left = plural(len(names) - len(kept), "more entry")
            text += f"\n\n[{left} left out. Use find with a pattern, or a larger limit.]"
        return ToolOutput(
            (TextContent(text),),
            details={"count": len(names), "truncated": len(kept) < len(names)},
        )


def _order(name: str) -> tuple[str, str]:
    return name.lower(), name


def _shown_entry(entry: os.DirEntry[str]) -> str:
    name = visible_line(entry.name)
    try:
        return name + "/" if entry.is_dir() else name
    except OSError:
        return name
