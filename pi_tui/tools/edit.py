"""The `edit` tool: replaces exact pieces of a file, all of a call or none of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import JSON, TextContent
from pi_tui.core.protocols import ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.diffs import Diff, readable_diff
from pi_tui.tools.edit_matching import Edit, Region, apply_regions, plan_edits
from pi_tui.tools.options import MAX_EDIT_BYTES
from pi_tui.tools.paths import (
    failed,
    require_file,
    resolve_existing,
    shown,
)
from pi_tui.tools.placing import Placed, place
from pi_tui.tools.text_file import decode_for_edit, not_utf8
from pi_tui.tools.tool import WritingTool
from pi_tui.tools.visible_text import plural, readable_size, visible_line

_OLD_NAMES = ("oldText", "old_text", "old_string", "oldString", "old_str", "old")
_NEW_NAMES = ("newText", "new_text", "new_string", "newString", "new_str", "new")

DECLARATION = declared.declare(
    "edit",
    "Change parts of an existing text file. Each edit gives oldText, copied from the file without "
    "line numbers, and newText to put there. oldText must fit exactly one place; add lines around "
    "it until it does. All edits of a call are matched against the file as it is before the call, "
    "must not overlap, and are made together or not at all. Line ends, byte order mark and mode "
    "of the file are kept.",
    {
        "path": declared.string("The file, relative to the working directory or absolute"),
        "edits": {
            "type": "array",
            "minItems": 1,
            "description": "The replacements",
            "items": {
                "type": "object",
                "properties": {
                    "oldText": declared.string("Text as it stands in the file; fits one place"),
                    "newText": declared.string("Text to put in its place; empty removes it"),
                },
                "required": ["oldText", "newText"],
            },
        },
    },
    ["path", "edits"],
)


_MIXED_NOTE = (
    " Some bytes of the file are not valid UTF-8 and were kept; newText stands there in UTF-8, "
    "perhaps another encoding than that of the rest."
)


class EditArguments(Struct, frozen=True):
    path: str
    edits: tuple[Edit, ...]


def parse_edit(arguments: dict[str, JSON]) -> EditArguments:
    """Check and read the arguments; the single form with oldText at the top is taken too."""
    given = Arguments("edit", arguments)
    path = given.path() or ""
    items = given.find("edits", "changes")
    if isinstance(items, str):
        try:
            items = json.loads(items)
        except ValueError:
            raise given.wrong("edits", "a list of {oldText, newText}", items) from None
    if isinstance(items, dict):
        items = [items]
    edits: list[Edit] = []
    if given.find(*_OLD_NAMES) is not None:
        edits.append(_parse_one("edit", arguments))
    if items is not None:
        if not isinstance(items, list):
            raise given.wrong("edits", "a list of {oldText, newText}", items)
        for number, item in enumerate(items, 1):
            if not isinstance(item, dict):
                raise given.wrong(f"edits[{number}]", "an object {oldText, newText}", item)
            edits.append(_parse_one(f"edit: number {number} of edits", item))
    if not edits and items is None:
        raise given.missing("edits", "a list with at least one {oldText, newText}")
    if not edits:
        raise given.wrong("edits", "a list with at least one {oldText, newText}", items)
    return EditArguments(path, tuple(edits))


def _parse_one(label: str, values: dict[str, JSON]) -> Edit:
    given = Arguments(label, values)
    old = given.text(*_OLD_NAMES, expected="a string, the text to be replaced")
    new = given.text(*_NEW_NAMES, expected="a string, the text to put there (may be empty)")
    if not old:
        raise ToolError(
            f"{label}: oldText is empty. Give the text to be replaced; to make or fill a whole "
            "file use write."
        )
    return Edit(old, new)


class EditTool(WritingTool[EditArguments]):
    """Edits files. See `edit_matching` for what fits, `placing` for how it is written."""

    declaration = DECLARATION
    prompt_line = "change parts of a file by exact replacement"
    parse = staticmethod(parse_edit)

    def write(self, parsed: EditArguments, cwd: str) -> ToolOutput:
        path = resolve_existing(parsed.path, cwd, self._options.home)
        name = shown(path, cwd)
        text, encoding = decode_for_edit(_read(path, name, cwd), name)
        if not text:
            raise ToolError(f"{name} is empty, there is nothing to edit. Use write to fill it.")
        regions = plan_edits(text, parsed.edits, name)
        changed = apply_regions(text, regions)
        if changed == text:
            raise ToolError(
                f"The edit changes nothing: newText is what {name} holds already. "
                "The file was not touched."
            )
        try:
            data = encoding.encode(changed)
        except UnicodeError as error:
            raise ToolError(f"newText cannot be written as {encoding.codec}: {error}.") from error
        placed = place(path, data, cwd)
        diff = readable_diff(text, changed)
        added = "".join(region.replacement for region in regions)
        mixed = _MIXED_NOTE if not_utf8(text) and not added.isascii() else ""
        return ToolOutput(
            (TextContent(_report(name, parsed.edits, regions, diff, placed) + mixed),),
            details={
                "path": visible_line(path),
                "diff": diff.text,
                "firstChangedLine": diff.first_changed_line or regions[0].first_line,
                "added": diff.added,
                "removed": diff.removed,
            },
        )


def _read(path: str, name: str, cwd: str) -> bytes:
    try:
        found = require_file(path, name, "it cannot be edited")
        if found.st_size > MAX_EDIT_BYTES:
            raise ToolError(
                f"{name} has {readable_size(found.st_size)}; edit takes files up to "
                f"{readable_size(MAX_EDIT_BYTES)}. Use a stream editor through bash."
            )
        return Path(path).read_bytes()
    except OSError as error:
        raise failed(error, "edit", path, cwd) from error


def _report(
    name: str, edits: Sequence[Edit], regions: list[Region], diff: Diff, placed: Placed
) -> str:
    text = f"Made {plural(len(edits), 'edit')} in {name} (+{diff.added} -{diff.removed} lines)."
    loose = sorted(region.number for region in regions if not region.exact)
    if loose:
        which = "The match" if len(edits) == 1 else f"The match of edit {_listed(loose)}"
        lines = ", ".join(str(r.first_line) for r in regions if not r.exact)
        text += (
            f" {which} was not exact (quotes, dashes, blanks or line numbers differed; "
            f"line {lines}); the changed lines are now as newText says."
        )
    return text + link_note(placed)


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def link_note(placed: Placed) -> str:
    """Say which other names show the new content too."""
    note = ""
    if placed.through_link:
        note += f" It is a link; the file written is {visible_line(placed.real_path)}."
    if placed.hard_links > 1:
        note += f" The file has {placed.hard_links} hard links; all show the new content."
    return note
