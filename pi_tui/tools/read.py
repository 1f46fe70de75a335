"""The `read` tool: a stretch of a text file with line numbers, or an image.

Text is streamed in blocks, so the size of the file does not matter; memory is bounded by the limits
of one answer. Runs in a thread that stops soon after the call is cancelled.
"""

from __future__ import annotations

import base64
import codecs
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.core.messages import JSON, ImageContent, TextContent
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.options import MAX_IMAGE_BYTES, MAX_LINE_CHARS
from pi_tui.tools.paths import failed, require_file, resolve_existing, shown
from pi_tui.tools.text_file import (
    SNIFF_BYTES,
    Encoding,
    binary_kind,
    image_type,
    not_utf8,
    sniff_encoding,
)
from pi_tui.tools.threads import run_stoppable
from pi_tui.tools.tool import BuiltinTool, answer
from pi_tui.tools.visible_text import readable_size, size_bytes, visible, visible_line

_BLOCK_BYTES = 256 * 1024
_COUNTED_BYTES = 64 * 1024 * 1024
"""After the last line given, lines are counted so far; beyond it the total stays unknown."""

DECLARATION = declared.declare(
    "read",
    "Read a text file, with a line number and a tab before each line (they are not part of the "
    "file). One answer holds up to 2000 lines or 50 kB from `offset` on and says how to go on. "
    "Images (PNG, JPEG, GIF, WebP) are shown to you.",
    {
        "path": declared.string("The file, relative to the working directory or absolute"),
        "offset": declared.whole_number("First line to give, counted from 1"),
        "limit": declared.whole_number("How many lines to give at most"),
    },
    ["path"],
)


class ReadArguments(Struct, frozen=True):
    path: str
    offset: int
    limit: int | None


def parse_read(arguments: dict[str, JSON]) -> ReadArguments:
    given = Arguments("read", arguments)
    offset = given.whole_number("offset", "start_line", "startLine", least=0)
    limit = given.whole_number("limit", "max_lines", "lines")
    return ReadArguments(given.path() or "", max(1, offset or 1), limit)


class Stretch(Struct):
    """Consecutive lines of a file. `total_lines` None: not counted to the end."""

    lines: list[str]
    first_line: int
    more: bool = False
    total_lines: int | None = None
    cut_lines: int = 0


class _LineCollector:
    """Picks lines from text blocks until the limits are reached, then only counts."""

    def __init__(self, first_line: int, max_lines: int, max_bytes: int) -> None:
        self.stretch = Stretch([], first_line)
        self._max_lines = max_lines
        self._room = max_bytes
        self._line = 1
        self._parts: list[str] = []
        self._part_chars = 0
        self._line_chars = 0
        self._open = False

    @property
    def full(self) -> bool:
        return self.stretch.more

    def feed(self, block: str) -> None:
        position = 0
        while position < len(block):
            # Something follows the last line that fits: no need to read that line to its end.
            if len(self.stretch.lines) >= self._max_lines:
                self.stretch.more = True
            if self.full or self._line < self.stretch.first_line:
                position = self._skip(block, position)
                continue
            end = block.find("\n", position)
            if end < 0:
                self._take(block[position:])
                return
            self._take(block[position:end])
            self._end_line()
            position = end + 1

    def _skip(self, block: str, position: int) -> int:
        count = block.count("\n", position)
        wanted = self.stretch.first_line - self._line
        if self.full or count < wanted:
            self._line += count
            self._open = not block.endswith("\n")
            return len(block)
        for _ in range(wanted):
            position = block.index("\n", position) + 1
        self._line += wanted
        self._open = False
        return position

    def _take(self, text: str) -> None:
        self._open = True
        self._line_chars += len(text)
        room = MAX_LINE_CHARS + 1 - self._part_chars
        if room > 0 and text:
            self._parts.append(text[:room])
            self._part_chars += min(len(text), room)

    def _end_line(self) -> None:
        line = "".join(self._parts).removesuffix("\r")
        left_out = self._line_chars - MAX_LINE_CHARS
        if left_out > 1 or (left_out == 1 and len(line) > MAX_LINE_CHARS):
            line = f"{line[:MAX_LINE_CHARS]}… [{left_out} more characters in this line]"
        line = visible(line)
        cost = size_bytes(line) + len(str(self._line)) + 2
        lines = self.stretch.lines
        if lines and cost > self._room:
            self.stretch.more = True
        else:
            lines.append(line)
            self._room -= cost
            self.stretch.cut_lines += left_out > 1
        self._line += 1
        self._parts.clear()
        self._part_chars = self._line_chars = 0
        self._open = False

    def give_up_on_endless_line(self) -> None:
        """End a line of absurd length as if the limits were reached there."""
        if not self.full and self._line_chars > _COUNTED_BYTES:
            self._end_line()
            self._line -= 1
            self.stretch.more = True

    def finish(self) -> None:
        """The file is at its end."""
        if self._open and not self.full and self._line >= self.stretch.first_line:
            self._end_line()
        elif self._open:
            self._line += 1
        self.stretch.total_lines = self._line - 1


def read_stretch(
    blocks: Iterator[str], first_line: int, max_lines: int, max_bytes: int, counted_blocks: int
) -> Stretch:
    """Collect lines; after the limits count on for so many blocks at most."""
    collector = _LineCollector(first_line, max_lines, max_bytes)
    for block in blocks:
        collector.feed(block)
        collector.give_up_on_endless_line()
        if collector.full:
            counted_blocks -= 1
            if counted_blocks < 0:
                return collector.stretch
    collector.finish()
    return collector.stretch


class ReadTool(BuiltinTool[ReadArguments]):
    """Reads files."""

    declaration = DECLARATION
    prompt_line = "read a file (or look at an image)"
    parse = staticmethod(parse_read)

    async def work(self, parsed: ReadArguments, context: ToolContext) -> ToolOutput:
        return await run_stoppable(lambda stop: self._read(parsed, context.cwd, stop))

    def _read(self, parsed: ReadArguments, cwd: str, stop: threading.Event) -> ToolOutput:
        path = resolve_existing(parsed.path, cwd, self._options.home)
        name = shown(path, cwd)
        try:
            size = require_file(path, name, "only files can be read").st_size
            with Path(path).open("rb") as file:
                return self._read_file(file, size, parsed, path, name, stop)
        except OSError as error:
            raise failed(error, "read", path, cwd) from error

    def _read_file(
        self,
        file: BinaryIO,
        size: int,
        parsed: ReadArguments,
        path: str,
        name: str,
        stop: threading.Event,
    ) -> ToolOutput:
        head = file.read(SNIFF_BYTES)
        file.seek(0)
        mime_type = image_type(head)
        if mime_type:
            return _image(file, size, mime_type, path, name)
        encoding = sniff_encoding(head)
        if encoding is None:
            raise ToolError(
                f"{name} is {binary_kind(head)}, {readable_size(size)}; it cannot be read as text. "
                "Use a program for this format through bash, or `xxd | head` to see bytes."
            )
        blocks = _Blocks(file, encoding, stop)
        limits = (
            min(parsed.limit or self._options.max_lines, self._options.max_lines),
            self._options.max_bytes,
        )
        stretch = read_stretch(
            iter(blocks), parsed.offset, *limits, counted_blocks=_COUNTED_BYTES // _BLOCK_BYTES
        )
        return _text(stretch, blocks, parsed, path, name, size)


class _Blocks:
    """Decoded blocks of a file; remembers whether bytes could not be decoded."""

    def __init__(self, file: BinaryIO, encoding: Encoding, stop: threading.Event) -> None:
        self._file = file
        self._stop = stop
        self._encoding = encoding
        self.codec = encoding.codec
        self.invalid = False

    def __iter__(self) -> Iterator[str]:
        self._file.seek(len(self._encoding.mark))
        utf8 = self.codec == "utf-8"
        errors = "surrogateescape" if utf8 else "replace"
        decoder = codecs.getincrementaldecoder(self.codec)(errors)
        while not self._stop.is_set():
            data = self._file.read(_BLOCK_BYTES)
            text = decoder.decode(data, final=not data)
            self.invalid = self.invalid or not_utf8(text)
            if text:
                yield text
            if not data:
                return


def _image(file: BinaryIO, size: int, mime_type: str, path: str, name: str) -> ToolOutput:
    if size > MAX_IMAGE_BYTES:
        raise ToolError(
            f"{name} is an image ({mime_type}) of {readable_size(size)}; images up to "
            f"{readable_size(MAX_IMAGE_BYTES)} can be shown. Make a smaller copy through bash."
        )
    data = base64.b64encode(file.read(MAX_IMAGE_BYTES)).decode("ascii")
    return ToolOutput(
        (
            TextContent(f"{name}: image, {mime_type}, {readable_size(size)}."),
            ImageContent(data, mime_type),
        ),
        details={"path": visible_line(path), "mimeType": mime_type, "bytes": size},
    )


def _text(
    stretch: Stretch, blocks: _Blocks, parsed: ReadArguments, path: str, name: str, size: int
) -> ToolOutput:
    first, total = stretch.first_line, stretch.total_lines
    if not stretch.lines:
        if total == 0:
            return ToolOutput(
                (TextContent(f"{name} is empty."),), details={"path": visible_line(path)}
            )
        raise ToolError(
            f"{name} has {total} lines; offset {first} is past its end. "
            f"Use an offset from 1 to {total}."
        )
    last = first + len(stretch.lines) - 1
    width = len(str(last))
    body = "\n".join(
        f"{number:>{width}}\t{line}" for number, line in enumerate(stretch.lines, first)
    )
    notes: list[str] = []
    if stretch.more:
        of = f" of {total}" if total is not None else f" of a file of {readable_size(size)}"
        notes.append(f"Lines {first}-{last}{of}. Go on with offset={last + 1}.")
    elif first > 1:
        notes.append(f"Lines {first}-{last}; the file ends here.")
    if stretch.cut_lines:
        notes.append(
            f"Lines are cut at {MAX_LINE_CHARS} characters; for the rest of one use bash, like "
            f"`sed -n {first}p FILE | cut -c {MAX_LINE_CHARS + 1}-{2 * MAX_LINE_CHARS}`."
        )
    if blocks.invalid:
        notes.append("Some bytes are not valid UTF-8 and are shown as \ufffd.")
    if blocks.codec != "utf-8":
        notes.append(f"The file is encoded in {blocks.codec}; edit keeps that.")
    details: dict[str, JSON] = {
        "path": visible_line(path),
        "firstLine": first,
        "lastLine": last,
        "truncated": stretch.more,
    }
    if total is not None:
        details["totalLines"] = total
    return answer(body, notes, details)
