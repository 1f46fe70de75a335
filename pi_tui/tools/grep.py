"""The `grep` tool: lines of files that fit a pattern. The search itself runs in a child process."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import JSON, TextContent, ToolDeclaration
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.limits import keep_start
from pi_tui.tools.options import MAX_SEARCH_LINE_CHARS, SEARCH_TIME_S, ToolOptions
from pi_tui.tools.paths import nothing_there, require_directory, resolve_existing, shown
from pi_tui.tools.search import Job, Totals
from pi_tui.tools.visible_text import plural, visible_line

DEFAULT_LIMIT = 100
MAX_LIMIT = 10_000
MAX_CONTEXT = 50
_STREAM_LIMIT_BYTES = 64 * 1024 * 1024
_START_S = 5.0
_PACKAGE_PARENT = str(Path(__file__).resolve().parents[2])

DECLARATION = declared.declare(
    "grep",
    "Search the content of files for a regular expression (Python syntax), line by line. Files git "
    "ignores and binary files are left out, hidden ones are not. Gives `path:line: text`, up to "
    "100 matches; long lines are cut.",
    {
        "pattern": declared.string("The regular expression, or plain text with literal"),
        "path": declared.string("File or directory to search; the working directory if left out"),
        "glob": declared.string("Only files that fit this glob, like `*.py` or `src/**/*.ts`"),
        "ignoreCase": declared.flag("Take upper and lower case as equal"),
        "literal": declared.flag("Take the pattern as plain text"),
        "context": {
            "type": "integer",
            "minimum": 0,
            "description": "Lines to give before and after each match",
        },
        "limit": declared.whole_number("How many matches to give at most"),
    },
    ["pattern"],
)


class GrepArguments(Struct, frozen=True):
    pattern: str
    path: str
    glob: str | None
    ignore_case: bool
    literal: bool
    context: int
    limit: int


def parse_grep(arguments: dict[str, JSON]) -> GrepArguments:
    given = Arguments("grep", arguments)
    pattern = given.text(
        "pattern", "regex", "query", expected="a string, the regular expression to search for"
    )
    if not pattern:
        raise given.missing("pattern", "a string that is not empty")
    return GrepArguments(
        pattern,
        given.path(required=False) or ".",
        given.optional_text("glob", "include", expected="a string, a glob for file names") or None,
        given.flag("ignoreCase", "ignore_case", "case_insensitive"),
        given.flag("literal", "fixed_strings"),
        min(given.whole_number("context", least=0) or 0, MAX_CONTEXT),
        min(given.whole_number("limit", "max_results") or DEFAULT_LIMIT, MAX_LIMIT),
    )


class GrepTool:
    """Searches files."""

    prompt_line = "search file contents for a pattern"

    def __init__(self, options: ToolOptions) -> None:
        self._options = options

    @property
    def declaration(self) -> ToolDeclaration:
        return DECLARATION

    def check(self, arguments: dict[str, JSON]) -> None:
        parse_grep(arguments)

    def written_path(self, arguments: dict[str, JSON], cwd: str) -> str | None:
        return None

    async def run(self, arguments: dict[str, JSON], context: ToolContext) -> ToolOutput:
        parsed = parse_grep(arguments)
        cwd = context.cwd
        require_directory(context.cwd)
        root = resolve_existing(parsed.path, cwd, self._options.home)
        if not os.path.exists(root):  # noqa: PTH110
            raise nothing_there(root, cwd)
        is_directory = os.path.isdir(root)  # noqa: PTH112
        if not is_directory and not os.path.isfile(root):  # noqa: PTH113
            raise ToolError(f"{shown(root, cwd)} is neither a file nor a directory.")
        name = shown(root, cwd)
        prefix = name if not is_directory else "" if root == cwd else name.rstrip("/") + "/"
        job = Job(
            root=root,
            prefix=prefix,
            pattern=parsed.pattern,
            literal=parsed.literal,
            ignore_case=parsed.ignore_case,
            glob=parsed.glob,
            context=parsed.context,
            limit=parsed.limit,
            line_chars=MAX_SEARCH_LINE_CHARS,
            time_s=SEARCH_TIME_S,
        )
        lines, totals = await _search_in_child(job, self._options.environment)
        return self._answer(parsed, lines, totals)

    def _answer(self, parsed: GrepArguments, lines: list[str], totals: Totals | None) -> ToolOutput:
        if totals is not None and totals["error"]:
            raise _bad_pattern(parsed.pattern, totals)
        kept = keep_start(lines, len(lines), self._options.max_bytes)
        notes: list[str] = []
        if totals is None or totals["timed_out"]:
            notes.append(
                f"Stopped after {SEARCH_TIME_S:g} s; there may be more. "
                "Search a smaller directory or use a simpler pattern."
            )
        if totals is not None:
            if totals["more"]:
                notes.append(
                    f"More than {plural(parsed.limit, 'match')}; only the first are given. "
                    "Use a narrower pattern, path or glob, or a larger limit."
                )
            if totals["unreadable"]:
                notes.append(f"{plural(totals['unreadable'], 'path')} could not be read.")
            if totals["binary"] and not totals["matches"]:
                notes.append(f"{plural(totals['binary'], 'binary file')} left out.")
        if len(kept) < len(lines):
            notes.append(f"{plural(len(lines) - len(kept), 'more line')} left out for their size.")
        text = "\n".join(kept) or "No matches."
        if notes:
            text += "\n\n[" + " ".join(notes) + "]"
        details: dict[str, JSON] = {
            "matches": totals["matches"] if totals else None,
            "files": totals["files"] if totals else None,
            "truncated": totals is None or totals["more"] or len(kept) < len(lines),
        }
        return ToolOutput((TextContent(text),), details=details)


def _bad_pattern(pattern: str, totals: Totals) -> ToolError:
    where = f" at character {totals['position'] + 1}" if totals["position"] >= 0 else ""
    return ToolError(
        f"The pattern `{visible_line(pattern[:200])}` is no valid regular expression: "
        f"{totals['error']}{where}. Correct it, or search for plain text with literal: true."
    )


async def _search_in_child(
    job: Job, environment: dict[str, str]
) -> tuple[list[str], Totals | None]:
    """Run the search; totals are None when it had to be killed. Raises ToolError."""
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            "pi_tui.tools.search",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**environment, "PYTHONPATH": _PACKAGE_PARENT, "PYTHONWARNINGS": "ignore"},
            start_new_session=True,
            limit=_STREAM_LIMIT_BYTES,
        )
    except OSError as error:
        raise ToolError(f"The search could not be started: {error.strerror or error}.") from error
    lines: list[str] = []
    totals: Totals | None = None
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(job).encode("ascii") + b"\n")
        process.stdin.close()
        async with asyncio.timeout(job["time_s"] + _START_S):
            async for line in process.stdout:
                value = json.loads(line)
                if isinstance(value, dict):
                    totals = value  # type: ignore[assignment]
                else:
                    lines += value
    except TimeoutError:
        pass
    finally:
        if process.returncode is None and totals is None:
            process.kill()
    if totals is None and await process.wait() > 0:
        assert process.stderr is not None
        problem = (await process.stderr.read(65536)).decode("utf-8", "replace").strip()
        raise ToolError(f"The search failed: {visible_line(problem.splitlines()[-1][:300])}")
    return lines, totals
