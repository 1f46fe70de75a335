"""The `grep` tool: lines of files that fit a pattern. The search itself runs in a child process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import stat
import sys
from pathlib import Path

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import JSON
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.gitignore import BRACKETS_NOTE, VALID_GLOB, GlobSet
from pi_tui.tools.options import MAX_SEARCH_LINE_CHARS, SEARCH_TIME_S
from pi_tui.tools.paths import (
    ordinary_mode,
    require_readable,
    resolve_existing,
    shown,
    shown_below,
)
from pi_tui.tools.search import Job, Totals
from pi_tui.tools.tool import BuiltinTool, answer
from pi_tui.tools.visible_text import plural, visible_line

DEFAULT_LIMIT = 100
MAX_LIMIT = 10_000
MAX_CONTEXT = 50
_STREAM_LIMIT_BYTES = 64 * 1024 * 1024
_START_S = 5.0
_END_S = 2.0
_LINE_END = re.compile(r"(?<!\\)(?:\\\\)*\\n")
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
    expected = "a string, the regular expression to search for"
    pattern = given.text("pattern", "regex", "query", expected=expected)
    if not pattern:
        raise given.wrong("pattern", expected, pattern)
    glob = given.optional_text("glob", "include", expected="a string, a glob for file names")
    if glob and not GlobSet(glob).valid:
        raise given.wrong("glob", VALID_GLOB, glob)
    return GrepArguments(
        pattern,
        given.path(required=False) or ".",
        glob or None,
        given.flag("ignoreCase", "ignore_case", "case_insensitive"),
        given.flag("literal", "fixed_strings"),
        min(given.whole_number("context", least=0) or 0, MAX_CONTEXT),
        min(given.whole_number("limit", "max_results") or DEFAULT_LIMIT, MAX_LIMIT),
    )


class GrepTool(BuiltinTool[GrepArguments]):
    """Searches files."""

    declaration = DECLARATION
    prompt_line = "search file contents for a pattern"
    parse = staticmethod(parse_grep)

    async def work(self, parsed: GrepArguments, context: ToolContext) -> ToolOutput:
        cwd = context.cwd
        root = resolve_existing(parsed.path, cwd, self._options.home)
        is_directory = _is_directory(root, cwd)
        job = Job(
            root=root,
            prefix=shown_below(root, cwd) if is_directory else shown(root, cwd),
            pattern=parsed.pattern,
            literal=parsed.literal,
            ignore_case=parsed.ignore_case,
            glob=parsed.glob,
            context=parsed.context,
            limit=parsed.limit,
            line_chars=MAX_SEARCH_LINE_CHARS,
            answer_bytes=self._options.max_bytes,
            time_s=SEARCH_TIME_S,
        )
        lines, totals = await _search_in_child(job, self._options.environment)
        return self._answer(parsed, lines, totals)

    def _answer(self, parsed: GrepArguments, lines: list[str], totals: Totals | None) -> ToolOutput:
        if totals is not None and totals["error"]:
            raise _bad_pattern(parsed.pattern, totals)
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
            if not totals["matches"]:
                notes += _why_nothing(parsed, totals["binary"])
            if totals["left_out"]:
                notes.append(f"{plural(totals['left_out'], 'more line')} left out for their size.")
        text = "\n".join(lines) or "No matches."
        details: dict[str, JSON] = {
            "matches": totals["matches"] if totals else None,
            "files": totals["files"] if totals else None,
            "truncated": totals is None or totals["more"] or totals["left_out"] > 0,
        }
        return answer(text, notes, details)


def _is_directory(root: str, cwd: str) -> bool:
    """True for a directory, False for a file. Raises ToolError for anything else."""
    mode = ordinary_mode(root, cwd, "search", "neither a file nor a directory")
    require_readable(root, "search", cwd)
    return stat.S_ISDIR(mode)


def _why_nothing(parsed: GrepArguments, binary_files: int) -> list[str]:
    """Notes for who expected a match."""
    notes: list[str] = []
    if binary_files:
        notes.append(f"{plural(binary_files, 'binary file')} left out.")
    if "\n" in parsed.pattern or (not parsed.literal and _LINE_END.search(parsed.pattern)):
        notes.append("The search goes line by line; nothing fits across a line end.")
    if parsed.glob and "[" in parsed.glob:
        notes.append(BRACKETS_NOTE)
    return notes


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
        # Also a cancelled call sees its process off; one that hangs in the system is left to it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_S)
    if totals is None and (process.returncode or 0) > 0:
        assert process.stderr is not None
        problem = (await process.stderr.read(65536)).decode("utf-8", "replace").strip()
        raise ToolError(f"The search failed: {visible_line(problem.splitlines()[-1][:300])}")
    return lines, totals
