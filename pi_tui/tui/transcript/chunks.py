"""Where Markdown that is still arriving can be cut for good.

`ChunkSplitter` reads whole lines and hands out chunks that no later line can change: paragraphs,
headings, single list items of the top level, fences. A decision uses only lines that came before,
so the chunks of a text are the same whether it came at once or letter by letter. Texts are
sanitised already. What a chunk looks like is not decided here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ChunkKind: TypeAlias = Literal["paragraph", "heading", "bullet", "ordered", "quote", "fence"]

_FENCE = re.compile(r" {0,3}(?:(`{3,})([^`]*)|(~{3,})(.*))")
_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_BULLET = re.compile(r"[-*+](?:[ \t]|$)")
_ORDERED = re.compile(r"(\d{1,9})([.)])(?:[ \t]|$)")
_INTERRUPTING_ITEM = re.compile(r"(?:[-*+]|1[.)])[ \t]+\S")
_RULE = re.compile(r"(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")


@dataclass(slots=True)
class Chunk:
    """Lines of one kind. `gap`: a blank line came before. `number`: of an ordered item.

    For a fence `lines` is the code without the fences; `language` what its opening line names.
    """

    kind: ChunkKind
    gap: bool
    lines: list[str] = field(default_factory=list)
    number: int = 1
    delimiter: str = ""
    language: str = ""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class ChunkSplitter:
    """Turns lines into chunks. `open` is the chunk that may still grow."""

    __slots__ = ("_blank", "_fence", "_fence_indent", "_last", "open")

    def __init__(self) -> None:
        self.open: Chunk | None = None
        self._last: Chunk | None = None
        self._blank = False
        self._fence = ""
        self._fence_indent = 0

    def line(self, line: str) -> Chunk | None:
        """Take one line without its end; return the chunk that is finished now, if any."""
        if self._fence and self.open is not None:
            return self._fence_line(self.open, line)
        if not line.strip(" \t"):
            self._blank = True
            if self.open is not None:
                self.open.lines.append("")
            return None
        fence = _FENCE.match(line)
        if fence is not None and (line[0] != " " or self._outside_container()):
            closed = self._start("fence", None)
            self._fence = fence[1] or fence[3]
            self._fence_indent = len(line) - len(line.lstrip(" "))
            if self.open is not None:
                self.open.language = (fence[2] or fence[4] or "").strip()
            return closed
        kind = self._kind_of_start(line)
        if kind is not None:
            return self._start(kind, line)
        if self.open is not None:
            self.open.lines.append(line)
            self._blank = False
        return None

    def finish(self) -> Chunk | None:
        """Return the last chunk, if any."""
        self._fence = ""
        return self._close()

    def tentative(self, partial: str) -> Chunk | None:
        """The open chunk as it looks with an unfinished line after it; nothing is changed."""
        if self.open is None:
            if not partial.strip(" \t"):
                return None
            chunk = self._fresh(_kind(partial), partial)
            chunk.lines.append(partial)
            return chunk
        if not partial:
            return self.open
        chunk = self.open
        return Chunk(
            chunk.kind, chunk.gap, [*chunk.lines, partial], chunk.number, chunk.delimiter,
            chunk.language,
        )  # fmt: skip

    @property
    def in_fence(self) -> bool:
        return bool(self._fence)

    def _fence_line(self, chunk: Chunk, line: str) -> Chunk | None:
        stripped = line.strip(" \t")
        closing = (
            len(stripped) >= len(self._fence)
            and stripped == stripped[0] * len(stripped)
            and stripped[0] == self._fence[0]
            and len(line) - len(line.lstrip(" ")) < 4
        )
        if not closing:
            blanks = len(line) - len(line.lstrip(" "))
            chunk.lines.append(line[min(blanks, self._fence_indent) :])
            return None
        self._fence = ""
        return self._close()

    def _outside_container(self) -> bool:
        return self.open is None or self.open.kind in ("paragraph", "heading")

    def _kind_of_start(self, line: str) -> ChunkKind | None:
        """What a line begins, or None when it belongs to the open chunk."""
        if self.open is None or self.open.kind == "heading":
            return _kind(line)
        if line[0] in " \t":
            return None
        kind = _kind(line)
        if self._blank or kind == "heading":
            return kind
        if kind == self.open.kind and kind in ("bullet", "ordered"):
            return kind
        if self.open.kind in ("paragraph", "quote"):
            if _INTERRUPTING_ITEM.match(line) and kind in ("bullet", "ordered"):
                return kind
            if kind == "quote" and self.open.kind == "paragraph":
                return kind
        return None

    def _start(self, kind: ChunkKind, line: str | None) -> Chunk | None:
        closed = self._close()
        self.open = self._fresh(kind, line or "")
        self._blank = False
        if line is not None:
            self.open.lines.append(line)
        return closed

    def _fresh(self, kind: ChunkKind, line: str) -> Chunk:
        chunk = Chunk(kind, self._blank)
        match = _ORDERED.match(line) if kind == "ordered" else None
        if match is not None:
            before = self._last
            chunk.number, chunk.delimiter = int(match[1]), match[2]
            if before is not None and before.kind == kind and before.delimiter == match[2]:
                chunk.number = before.number + 1
        return chunk

    def _close(self) -> Chunk | None:
        chunk, self.open = self.open, None
        if chunk is not None:
            self._last = chunk
            while chunk.kind != "fence" and chunk.lines and not chunk.lines[-1]:
                chunk.lines.pop()
        return chunk


def _kind(line: str) -> ChunkKind:
    if _HEADING.match(line):
        return "heading"
    if line[0] == ">":
        return "quote"
    if _RULE.match(line):
        return "paragraph"
    if _BULLET.match(line):
        return "bullet"
    if _ORDERED.match(line):
        return "ordered"
    return "paragraph"
