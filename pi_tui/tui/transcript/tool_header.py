"""The head line of a tool call: what was called, with what, and how it stands.

Arguments come from the model. They are revealed, not cleaned: a control character a shell would
act on must be seen.
"""

from __future__ import annotations

import json
import re

from pi_tui.core.content import INVALID_JSON_KEY
from pi_tui.core.messages import JSON
from pi_tui.core.sanitise import reveal, reveal_line
from pi_tui.core.transcript import ToolBlock

MAX_ARGUMENT_CHARS = 20_000
MAX_INVALID_CHARS = 2_000
SCANNED_PARTIAL_CHARS = 4_096

STATE_SIGNS = {"pending": "○", "running": "●", "ok": "✓", "error": "✗", "aborted": "⊘"}

_PARTIAL_MAIN = re.compile(r'"(path|file_path|command|pattern)"\s*:\s*"((?:[^"\\]|\\.)*)')


def main_argument(block: ToolBlock) -> str:
    """The argument that says most, shown safely; a command may have several lines."""
    arguments = block.arguments
    if not arguments and block.partial_arguments:
        return _from_partial(block)
    if raw := _text(arguments, INVALID_JSON_KEY):
        return f"not JSON: {reveal_line(raw[:MAX_INVALID_CHARS])}"
    path = _text(arguments, "path") or _text(arguments, "file_path")
    if block.name in ("bash", "powershell"):
        return "$ " + reveal(_text(arguments, "command"))
    if block.name == "read":
        return reveal_line(path) + _range(arguments)
    if block.name in ("write", "edit"):
        return reveal_line(path)
    if block.name in ("grep", "find"):
        pattern = reveal_line(_text(arguments, "pattern"))
        return f"{pattern} in {reveal_line(path) or '.'}"
    if block.name == "ls":
        return reveal_line(path) or "."
    if not arguments:
        return ""
    return reveal_line(json.dumps(arguments, ensure_ascii=False)[:MAX_ARGUMENT_CHARS])


def argument_details(block: ToolBlock) -> str:
    """Further arguments worth a few words, e.g. a time limit; "" when there are none."""
    details: list[str] = []
    if block.name in ("bash", "powershell"):
        timeout = block.arguments.get("timeout")
        if isinstance(timeout, int | float) and not isinstance(timeout, bool):
            details.append(f"limit {timeout:g}s")
    elif block.name == "grep" and (glob := _text(block.arguments, "glob")):
        details.append(reveal_line(glob))
    elif block.name == "edit" and isinstance(edits := block.arguments.get("edits"), list):
        details.append(f"{len(edits)} edits" if len(edits) != 1 else "1 edit")
    if not block.arguments and len(block.partial_arguments) > 200:
        details.append(f"{len(block.partial_arguments)} characters so far")
    return " · ".join(details)


def argument_text(block: ToolBlock, name: str) -> str:
    """A text argument, unsanitised; "" when it is missing or something else."""
    return _text(block.arguments, name)


def _text(arguments: dict[str, JSON], name: str) -> str:
    value = arguments.get(name)
    return value[: 64 * MAX_ARGUMENT_CHARS] if isinstance(value, str) else ""


def _range(arguments: dict[str, JSON]) -> str:
    offset, limit = arguments.get("offset"), arguments.get("limit")
    first = offset if isinstance(offset, int) else 1
    if isinstance(limit, int):
        return f":{first}-{first + limit - 1}"
    return f":{first}-" if isinstance(offset, int) else ""


def _from_partial(block: ToolBlock) -> str:
    """What can be told from arguments that are still arriving."""
    start = block.partial_arguments[:SCANNED_PARTIAL_CHARS]
    match = _PARTIAL_MAIN.search(start)
    if match is None:
        return ""
    try:
        value = json.loads(f'"{match[2]}"', strict=False)
    except ValueError:
        value = match[2]
    shown = reveal_line(value if isinstance(value, str) else match[2])
    return f"$ {shown}" if match[1] == "command" else shown
