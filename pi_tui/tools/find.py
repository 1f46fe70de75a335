"""The `find` tool: paths by glob, without what git ignores."""

from __future__ import annotations

import threading
import time

from msgspec import Struct

from pi_tui.core.messages import JSON
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.gitignore import BRACKETS_NOTE, VALID_GLOB, GlobSet
from pi_tui.tools.limits import keep_start
from pi_tui.tools.options import SEARCH_TIME_S
from pi_tui.tools.paths import require_directory_at, resolve_existing, shown_below
from pi_tui.tools.threads import run_stoppable
from pi_tui.tools.tool import BuiltinTool, answer
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
    pattern = pattern.strip()
    if not GlobSet(pattern).valid:
        raise given.wrong("pattern", VALID_GLOB, pattern)
    return FindArguments(
        pattern,
        given.path(required=False) or ".",
        given.whole_number("limit") or DEFAULT_LIMIT,
    )


class FindTool(BuiltinTool[FindArguments]):
    """Finds paths."""

    declaration = DECLARATION
    prompt_line = "find files by a glob pattern"
    parse = staticmethod(parse_find)

    async def work(self, parsed: FindArguments, context: ToolContext) -> ToolOutput:
        return await run_stoppable(lambda stop: self._find(parsed, context.cwd, stop))

    def _find(self, parsed: FindArguments, cwd: str, stop: threading.Event) -> ToolOutput:
        root = resolve_existing(parsed.path, cwd, self._options.home)
        require_directory_at(root, cwd, "give a directory to look in")
        pattern = _below(parsed.pattern, root)
        globs = GlobSet(pattern)
        deadline = time.monotonic() + SEARCH_TIME_S
        found: list[str] = []
        prefix = shown_below(root, cwd)
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
                "Use a narrower pattern or path, or a larger limit."
            )
        if len(kept) < len(found):
            notes.append(f"{plural(len(found) - len(kept), 'more path')} left out for their size.")
        if not more and time.monotonic() > deadline:
            notes.append(f"Stopped after {SEARCH_TIME_S:g} s; there may be more.")
        if walk.unreadable:
            notes.append(f"Not readable: {plural(walk.unreadable, 'directory')}.")
        truncated = bool(notes)
        if not found:
            notes += _why_nothing(pattern)
        text = "\n".join(kept) or f"Nothing fits {visible_line(parsed.pattern)}."
        return answer(text, notes, {"count": len(found), "truncated": truncated})


def _why_nothing(pattern: str) -> list[str]:
    """Notes for who expected a path."""
    notes: list[str] = []
    if pattern.startswith("/") or ".." in pattern.split("/"):
        notes.append("A pattern does not lead out of the directory; give another one as path.")
    if "[" in pattern:
        notes.append(BRACKETS_NOTE)
    return notes


def _below(pattern: str, root: str) -> str:
    """A pattern given as an absolute path below the root, made relative to it."""
    return pattern.removeprefix(root.rstrip("/") + "/")
