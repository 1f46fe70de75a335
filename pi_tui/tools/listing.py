"""The `ls` tool: what is in one directory."""

from __future__ import annotations

import os
import threading
from itertools import takewhile

from msgspec import Struct

from pi_tui.core.messages import JSON
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.limits import keep_start
from pi_tui.tools.paths import failed, require_directory_at, resolve_existing
from pi_tui.tools.threads import run_stoppable
from pi_tui.tools.tool import BuiltinTool, answer
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


class ListTool(BuiltinTool[ListArguments]):
    """Lists directories."""

    declaration = DECLARATION
    prompt_line = "list a directory"
    parse = staticmethod(parse_list)

    async def work(self, parsed: ListArguments, context: ToolContext) -> ToolOutput:
        return await run_stoppable(lambda stop: self._list(parsed, context.cwd, stop))

    def _list(self, parsed: ListArguments, cwd: str, stop: threading.Event) -> ToolOutput:
        path = resolve_existing(parsed.path, cwd, self._options.home)
        require_directory_at(path, cwd, "use read to see it")
        try:
            with os.scandir(path) as entries:
                found = takewhile(lambda _: not stop.is_set(), entries)
                names = sorted(map(_shown_entry, found), key=_order)
        except OSError as error:
            raise failed(error, "list", path, cwd) from error
        kept = keep_start(names, parsed.limit, self._options.max_bytes)
        text = "\n".join(kept) or "(empty directory)"
        notes: list[str] = []
        if len(kept) < len(names):
            left = plural(len(names) - len(kept), "more entry")
            notes.append(f"{left} left out. Use find with a pattern, or a larger limit.")
        return answer(text, notes, {"count": len(names), "truncated": len(kept) < len(names)})


def _order(name: str) -> tuple[str, str]:
    return name.lower(), name


def _shown_entry(entry: os.DirEntry[str]) -> str:
    name = visible_line(entry.name)
    try:
        return name + "/" if entry.is_dir() else name
    except OSError:
        return name
