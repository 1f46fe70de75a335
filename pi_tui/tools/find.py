"""The `find` tool: paths by glob, without what git ignores."""

from __future__ import annotations

import asyncio
import os
import threading
import time

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import JSON, TextContent, ToolDeclaration
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.gitignore import GlobSet
from pi_tui.tools.limits import keep_start
from pi_tui.tools.options import SEARCH_TIME_S, ToolOptions
from pi_tui.tools.paths import nothing_there, require_directory, resolve_existing, shown
from pi_tui.tools.visible_text import plural, visible_line
from pi_tui.tools.walk import Walk, is_real_directory

DEFAULT_LIMIT = 1000

DECLARATION = declared.declare(
    "find",
    "Find files and directories by a glob. A pattern without a slash fits names at any depth "
    "(`*.py`), one with a slash fits paths (`src/**/*.{ts,tsx}`). Files git ignores are left out, "
    "hidden ones are not. Up to 1000 paths, sorted; directories end with a slash.",
    {
        "pattern": declared.string("The glob, like `*.py` or `src/**/test_*.py`"),
        "path": declared.string("Where to look; the working directory when left out"),
        "limit": declared.whole_number("How many paths to give at most"),
    },
    ["pattern"],
)


class FindArguments(Struct, frozen=True):
    pattern: str
    path: str
    limit: int


def parse_find(arguments: dict[str, JSON]) -> FindArguments:
    given = Arguments("find", arguments)
    pattern = given.text(
        "pattern", "glob", "name", "query", expected="a string, the glob to look for", empty=False
    )
    return FindArguments(
        pattern.strip(),
        given.path(required=False) or ".",
        given.whole_number("limit") or DEFAULT_LIMIT,
    )


class FindTool:
    """Finds paths."""

    prompt_line = "find files by a glob pattern"

    def __init__(self, options: ToolOptions) -> None:
        self._options = options

    @property
    def declaration(self) -> ToolDeclaration:
        return DECLARATION

    def check(self, arguments: dict[str, JSON]) -> None:
        parse_find(arguments)

    def written_path(self, arguments: dict[str, JSON], cwd: str) -> str | None:
        return None

    async def run(self, arguments: dict[str, JSON], context: ToolContext) -> ToolOutput:
        parsed = parse_find(arguments)
        require_directory(context.cwd)
        stop = threading.Event()
        try:
            return await asyncio.to_thread(self._find, parsed, context.cwd, stop)
        finally:
            stop.set()

    def _find(self, parsed: FindArguments, cwd: str, stop: threading.Event) -> ToolOutput:
        root = resolve_existing(parsed.path, cwd, self._options.home)
        if not os.path.isdir(root):  # noqa: PTH112
            if os.path.lexists(root):
                raise ToolError(f"{shown(root, cwd)} is a file; give a directory to look in.")
            raise nothing_there(root, cwd)
        globs = GlobSet(_below(parsed.pattern, root))
        deadline = time.monotonic() + SEARCH_TIME_S
        found: list[str] = []
        prefix = "" if root == cwd else shown(root, cwd).rstrip("/") + "/"
        walk = Walk(root, lambda: stop.is_set() or time.monotonic() > deadline)
        more = False
        for path, entry in walk:
            is_directory = is_real_directory(entry)
            if globs.matches(path, is_directory):
                if len(found) == parsed.limit:
                    more = True
                    break
                found.append(prefix + visible_line(path) + ("/" if is_directory else ""))
        kept = keep_start(sorted(found), len(found), self._options.max_bytes)
        notes: list[str] = []
        if more:
            notes.append(
                f"More than {plural(parsed.limit, 'path')} fit; only the first are given. "
                "Use a narrower pattern or path."
            )
        if len(kept) < len(found):
            notes.append(f"{plural(len(found) - len(kept), 'more path')} left out for their size.")
        if not more and time.monotonic() > deadline:
            notes.append(f"Stopped after {SEARCH_TIME_S:g} s; there may be more.")
        if walk.unreadable:
            notes.append(f"Not readable: {plural(walk.unreadable, 'directory')}.")
        text = "\n".join(kept) or f"Nothing fits {visible_line(parsed.pattern)}."
        if notes:
            text += "\n\n[" + " ".join(notes) + "]"
        return ToolOutput(
            (TextContent(text),), details={"count": len(found), "truncated": bool(notes)}
        )


def _below(pattern: str, root: str) -> str:
    """A pattern given as an absolute path below the root, made relative to it."""
    return pattern.removeprefix(root.rstrip("/") + "/")
