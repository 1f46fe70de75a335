"""The output of one command: bytes in, bounded plain text out, and a file with all of it.

Memory is bounded by the limits whatever the command prints. The file is made only when the output
is larger than the limits, mode 0600; it is removed again when the plain text fits after all (a
progress bar). It never fills the disk, on which the session may be kept too. Sizes are bytes.
"""

from __future__ import annotations

import codecs
import errno
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from pi_tui.tools.limits import keep_end
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.terminal_output import EscapeRemover, OutputTail
from pi_tui.tools.visible_text import plural, readable_size

KEPT_DAYS = 14
"""How long whole outputs are kept; a session may name one for as long as anybody remembers it."""


def free_bytes_of(handle: int) -> int:
    """What the disk of an open file still takes from this user. Raises OSError."""
    disk = os.fstatvfs(handle)
    return disk.f_bavail * disk.f_frsize


class SpillDirectory:
    """The private directory for whole outputs, made on first need.

    Making the first file of a run removes files that are older than `KEPT_DAYS`.
    """

    def __init__(
        self,
        path: str | None,
        *,
        now_s: Callable[[], float] = time.time,
        free_bytes: Callable[[int], int] = free_bytes_of,
    ) -> None:
        self._path = path
        self._now_s = now_s
        self.free_bytes = free_bytes
        self._cleaned = False

    def create_file(self) -> tuple[str, int]:
        """Make a new file; gives its path and an open handle. Raises OSError."""
        if self._path is None:
            self._path = tempfile.mkdtemp(prefix="pi-tui-output-")
        else:
            Path(self._path).mkdir(mode=0o700, parents=True, exist_ok=True)
            self._remove_old(Path(self._path))
        path = str(Path(self._path) / f"command-{secrets.token_hex(6)}.log")
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        return path, os.open(path, flags, 0o600)

    def _remove_old(self, directory: Path) -> None:
        if self._cleaned:
            return
        self._cleaned = True
        oldest_s = self._now_s() - KEPT_DAYS * 86_400
        for path in directory.glob("command-*.log"):
            with suppress(OSError):  # another run may be removing it at this moment
                if path.stat().st_mtime < oldest_s:
                    path.unlink()


class FinalOutput(Struct, frozen=True):
    """What the command printed. `note` says what is left out, empty when nothing is."""

    text: str
    note: str
    truncated: bool
    total_lines: int
    total_bytes: int
    full_output_path: str | None


class CommandOutput:
    """Takes the output of a command as it comes."""

    def __init__(self, options: ToolOptions, spill: SpillDirectory) -> None:
        self._options = options
        self._spill = spill
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._remover = EscapeRemover()
        self._tail = OutputTail(options.max_bytes)
        self._early: list[bytes] = []
        self._raw_bytes = 0
        self._raw_lines = 0
        self._spilled_bytes = 0
        self._path: str | None = None
        self._handle: int | None = None
        self._spill_problem = ""

    def feed(self, data: bytes) -> None:
        """Take one chunk; blocks only for writing it to the file."""
        self._raw_bytes += len(data)
        self._raw_lines += data.count(b"\n")
        self._keep_whole(data)
        self._tail.feed(self._remover.feed(self._decoder.decode(data)))

    def snapshot(self) -> str:
        """The end of the text so far, within the limits."""
        return keep_end(self._tail.text(), self._options.max_lines, self._options.max_bytes).text

    def finish(self) -> FinalOutput:
        """Close the file and give the text, within the limits."""
        self._tail.feed(self._remover.feed(self._decoder.decode(b"", final=True)))
        self._tail.feed(self._remover.finish())
        self.close()
        kept = keep_end(self._tail.text(), self._options.max_lines, self._options.max_bytes)
        truncated = self._tail.dropped or not kept.whole
        note = ""
        if truncated:
            left_lines = self._tail.lines - kept.lines
            left_bytes = max(0, self._tail.bytes - len(kept.text.encode("utf-8", "replace")))
            if kept.partial_line or left_lines <= 0:
                what = f"the beginning of a line ({readable_size(left_bytes)})"
                if left_lines > 0:
                    what = f"{plural(left_lines, 'line')} and {what}"
            else:
                lines = "line" if left_lines == 1 else plural(left_lines, "line")
                what = f"the first {lines} ({readable_size(left_bytes)})"
            note = f"[Left out: {what}. {self._where()}]"
        elif self._path is not None:
            Path(self._path).unlink(missing_ok=True)
            self._path = None
        return FinalOutput(
            kept.text, note, truncated, self._tail.lines, self._raw_bytes, self._path
        )

    def close(self) -> None:
        """Close the file; safe to call twice."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _where(self) -> str:
        if self._path is None:
            return f"The whole output could not be kept{self._spill_problem}."
        if self._spill_problem:
            return (
                f"The first {readable_size(self._spilled_bytes)} are in "
                f"{self._path}{self._spill_problem}."
            )
        return f"The whole output is in {self._path}"

    def _keep_whole(self, data: bytes) -> None:
        if self._spill_problem:
            return
        if self._handle is None:
            self._early.append(data)
            fits = self._raw_lines <= self._options.max_lines
            if fits and self._raw_bytes <= self._options.max_bytes:
                return
            data = b"".join(self._early)
            self._early.clear()
        try:
            if self._handle is None:
                self._path, self._handle = self._spill.create_file()
            self._write(self._handle, data)
        except OSError as error:
            self._spill_problem = f" ({error.strerror or error})"
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                self._discard()  # the session needs the space more
        if self._spill_problem:
            self._early.clear()

    def _write(self, handle: int, data: bytes) -> None:
        room = self._options.spill_limit_bytes - self._spilled_bytes
        if len(data) > room:
            self._spill_problem = "; more is not kept of one command"
        spare = self._spill.free_bytes(handle) - self._options.spill_keep_free_bytes
        if min(len(data), room) > spare:
            room = max(0, spare)
            self._spill_problem = "; more is not kept, because the disk is nearly full"
        view = memoryview(data)[:room]
        while view:
            written = os.write(handle, view)
            self._spilled_bytes += written
            view = view[written:]
        if not self._spilled_bytes:
            self._discard()
            self._spill_problem = " because the disk is nearly full"

    def _discard(self) -> None:
        self.close()
        if self._path is not None:
            Path(self._path).unlink(missing_ok=True)
        self._path = None
