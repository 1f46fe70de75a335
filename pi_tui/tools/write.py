"""The `write` tool: makes a file or replaces all of its content."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from pi_tui.core.messages import JSON, TextContent
from pi_tui.core.protocols import ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.diffs import readable_diff
from pi_tui.tools.edit import link_note
from pi_tui.tools.limits import count_lines
from pi_tui.tools.paths import resolve, shown
from pi_tui.tools.placing import place
from pi_tui.tools.text_file import SNIFF_BYTES, sniff_encoding
from pi_tui.tools.tool import WritingTool
from pi_tui.tools.visible_text import plural, readable_size, visible_line

_COMPARED_BYTES = 4 * 1024 * 1024

DECLARATION = declared.declare(
    "write",
    "Write a whole text file: makes it, with missing directories, or replaces everything in it. "
    "To change parts of an existing file use edit.",
    {
        "path": declared.string("The file, relative to the working directory or absolute"),
        "content": declared.string("Everything the file shall hold"),
    },
    ["path", "content"],
)


class WriteArguments(Struct, frozen=True):
    path: str
    content: str


def parse_write(arguments: dict[str, JSON]) -> WriteArguments:
    given = Arguments("write", arguments)
    path = given.path() or ""
    if path.endswith("/"):
        raise given.wrong("path", "the path of a file, without a slash at its end", path)
    content = given.text(
        "content", "contents", "file_text", "text", expected="a string, the whole text of the file"
    )
    return WriteArguments(path, content)


class WriteTool(WritingTool[WriteArguments]):
    """Writes files; an existing one keeps its mode and its links."""

    declaration = DECLARATION
    prompt_line = "make a file or replace all of its content"
    parse = staticmethod(parse_write)

    def write(self, parsed: WriteArguments, cwd: str) -> ToolOutput:
        path = resolve(parsed.path, cwd, self._options.home)
        name = shown(path, cwd)
        data = parsed.content.encode()
        old = _old_content(path)
        size = f"{plural(count_lines(parsed.content), 'line')}, {readable_size(len(data))}"
        details: dict[str, JSON] = {
            "path": visible_line(path),
            "lines": count_lines(parsed.content),
            "bytes": len(data),
            "created": False,
        }
        if old == data:
            text = f"{name} holds exactly this already ({size}); it was not touched."
            return ToolOutput((TextContent(text),), details=details)
        placed = place(path, data, cwd)
        details["created"] = placed.created
        counts = ""
        encoding = sniff_encoding(old[:SNIFF_BYTES]) if old is not None else None
        if old is not None and encoding is not None:
            before = old[len(encoding.mark) :].decode(encoding.codec, "replace")
            diff = readable_diff(before, parsed.content)
            details |= {
                "diff": diff.text,
                "firstChangedLine": diff.first_changed_line,
                "added": diff.added,
                "removed": diff.removed,
            }
            counts = f", +{diff.added} -{diff.removed} lines"
        verb = "Created" if placed.created else "Replaced"
        text = f"{verb} {name} ({size}{counts}).{link_note(placed)}"
        return ToolOutput((TextContent(text),), details=details)


def _old_content(path: str) -> bytes | None:
    """What a regular file of moderate size holds now; None when there is nothing to compare."""
    file = Path(path)
    try:
        if file.is_file() and file.stat().st_size <= _COMPARED_BYTES:
            return file.read_bytes()
    except OSError:
        return None  # it can be writable and still unreadable; then there is no comparison
    return None
