"""Which files a stretch of conversation read and changed, as seen in its tool calls.

Paths are compared as they were written. Lists are sorted by UTF-16 code units, the order of the
session format, and a file that was changed is not listed as read.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from pi_tui.core.messages import JSON, AssistantMessage, Message, ToolResultMessage

READ_TOOLS = frozenset({"read"})
MODIFYING_TOOLS = frozenset({"edit", "write"})


class FileLists(Struct, frozen=True):
    """Paths that were read only, and paths that were changed, both sorted."""

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()


class FileOps:
    """Collects the paths of tool calls and of earlier summaries."""

    def __init__(self) -> None:
        self._read: set[str] = set()
        self._modified: set[str] = set()

    def add_message(self, message: Message, *, nested: bool = True) -> None:
        """Take the calls of an answer, and with `nested` those a tool result says it made."""
        if isinstance(message, AssistantMessage):
            for call in message.tool_calls:
                self.add_call(call.name, call.arguments)
        elif nested and isinstance(message, ToolResultMessage):
            calls = message.nested_calls
            listed = calls.get("calls") if isinstance(calls, dict) else None
            for item in listed if isinstance(listed, list) else ():
                if isinstance(item, dict) and isinstance(item.get("name"), str):
                    self.add_call(item["name"], item.get("arguments"))

    def add_call(self, name: str, arguments: JSON) -> None:
        """Take one call; only known tools with a path count."""
        path = arguments.get("path") if isinstance(arguments, dict) else None
        if not isinstance(path, str) or not path:
            return
        if name in READ_TOOLS:
            self._read.add(path)
        elif name in MODIFYING_TOOLS:
            self._modified.add(path)

    def add_details(self, details: JSON) -> None:
        """Take the lists an earlier summary recorded in its details."""
        if isinstance(details, dict):
            self._read.update(_paths(details.get("readFiles")))
            self._modified.update(_paths(details.get("modifiedFiles")))

    def lists(self) -> FileLists:
        """The final lists."""
        return file_lists(self._read, self._modified)


def file_lists(read: Iterable[str], modified: Iterable[str]) -> FileLists:
    """Sort paths as they were seen into the two lists."""
    changed = set(modified)
    return FileLists(_in_order(set(read) - changed), _in_order(changed))


def file_lists_text(lists: FileLists) -> str:
    """The block appended to a summary; empty when there are no files."""
    return _block("read-files", lists.read_files) + _block("modified-files", lists.modified_files)


def _block(tag: str, paths: tuple[str, ...]) -> str:
    if not paths:
        return ""
    # A path stays on its line, so that a file name cannot close the list.
    listed = "\n".join(path.replace("\n", "\\n").replace("\r", "\\r") for path in paths)
    return f"\n\n<{tag}>\n{listed}\n</{tag}>"


def _paths(value: JSON) -> list[str]:
    if not isinstance(value, list):
        return []
    return [path for path in value if isinstance(path, str) and path]


def _in_order(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(paths, key=lambda path: path.encode("utf-16-be", "surrogatepass")))
