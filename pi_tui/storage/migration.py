"""Turns sessions of format version 1 and 2 into version 3. Pure: parsed lines in, lines out.

Version 1 is a plain list: entries have no ids and a compaction names the first kept one by its
place, the header being 0. Version 2 has the tree, but calls messages of extensions `hookMessage`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pi_tui.core.entries import FORMAT_VERSION
from pi_tui.core.messages import JSON
from pi_tui.storage.index import version_of

Line = dict[str, JSON]


def migrate(lines: Sequence[Line], new_id: Callable[[], str]) -> tuple[bool, list[Line]]:
    """Bring parsed lines, header first, to version 3; says whether anything had to be done.

    `new_id` gives an entry id; one that is taken is asked for again. The lines given stay as they
    are.
    """
    version = version_of(lines[0])
    if version >= FORMAT_VERSION:
        return False, list(lines)
    migrated = [dict(line) for line in lines]
    if version < 2:
        _link(migrated, new_id)
    for line in migrated:
        message = line.get("message")
        if line.get("type") == "session":
            line["version"] = FORMAT_VERSION
        elif (
            line.get("type") == "message"
            and isinstance(message, dict)
            and message.get("role") == "hookMessage"
        ):
            line["message"] = {**message, "role": "custom"}
    return True, migrated


def _link(lines: list[Line], new_id: Callable[[], str]) -> None:
    taken: set[str] = set()
    parent: str | None = None
    for place, line in enumerate(lines):
        if line.get("type") == "session":
            continue
        entry_id = new_id()
        while entry_id in taken:
            entry_id = new_id()
        taken.add(entry_id)
        line["id"] = entry_id
        line["parentId"] = parent
        parent = entry_id
        kept = line.get("firstKeptEntryIndex")
        if isinstance(kept, bool) or not isinstance(kept, (int, float)):
            continue
        del line["firstKeptEntryIndex"]
        if kept == kept // 1 and 0 <= kept <= place and lines[int(kept)].get("type") != "session":
            line["firstKeptEntryId"] = lines[int(kept)]["id"]
