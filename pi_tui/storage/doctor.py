"""Examines a session file and writes a repaired copy; the file itself is never changed.

It reads more strictly than opening does: opening tolerates and goes on, the doctor names every
oddity with its line. Findings quote ids, types and numbers, never text of the conversation. The
repaired copy reads the same as the original does here, without anything that needs tolerance.
Line numbers count from 1; sizes are bytes.
"""

from __future__ import annotations

import os
from typing import Literal, TypeAlias

from msgspec import Struct

from pi_tui.core.entries import FORMAT_VERSION
from pi_tui.core.errors import NotASessionError, SessionNotFoundError, StorageError
from pi_tui.core.sanitise import reveal_line
from pi_tui.storage.doctor_checks import check_entries
from pi_tui.storage.doctor_reading import SeenFile, read_file
from pi_tui.storage.doctor_repair import repaired_lines
from pi_tui.storage.filesystem import REAL_FILE_SYSTEM, FileSystem, is_regular
from pi_tui.storage.trouble import cannot_read, reason_of
from pi_tui.storage.whole_file import write_file

Severity: TypeAlias = Literal["info", "warning", "error"]

_NAMED_LINES = 5


class Finding(Struct, frozen=True):
    """One kind of oddity. `code` is for programs; `lines` are where it was found."""

    code: str
    severity: Severity
    text: str
    lines: tuple[int, ...] = ()
    repair: str = ""


class Report(Struct, frozen=True):
    """What was found in a file. `sound`: nothing but remarks."""

    path: str
    size_bytes: int
    version: int
    entries: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        return all(finding.severity == "info" for finding in self.findings)

    def text(self) -> str:
        """The report for a person, as plain lines that are safe for a terminal."""
        said = [
            reveal_line(self.path),
            f"format version {self.version}, {_count(self.entries, 'entry', 'entries')}, "
            f"{self.size_bytes:,} bytes",
        ]
        for finding in self.findings:
            where = f" ({_named(finding.lines)})" if finding.lines else ""
            said.append(f"{finding.severity}: {finding.text}{where}")
            if finding.repair:
                said.append(f"    a repaired copy: {finding.repair}")
        if not self.findings:
            said.append("nothing is wrong with it")
        elif self.sound:
            said.append("nothing needs to be repaired")
        return "\n".join(said)


_READING: dict[str, tuple[Severity, str, str]] = {
    "header-missing": (
        "error",
        "the file does not begin with a session header",
        "it gets a new header without a directory",
    ),
    "before-header": ("error", "something stands before the header", "it is left out"),
    "byte-order-mark": ("warning", "the file begins with a byte order mark", "it is left out"),
    "garbage": ("error", "a line cannot be read", "it is left out"),
    "torn": ("error", "the last line is incomplete, as a crash leaves it", "it is left out"),
    "zero-block": ("error", "a block of zero bytes, as a crash leaves it", "it is left out"),
    "glued": ("error", "an entry shares its line with something else", "it gets its own line"),
    "not-utf8": (
        "warning",
        "a line holds bytes that are not UTF-8; each stretch of them is read as the replacement "
        "character U+FFFD",
        "it gets that character in their place, as it is read now; only this file keeps the bytes",
    ),
    "second-header": ("warning", "there is another session header", "it is left out"),
    "not-an-entry": ("warning", "a line holds a value that is no entry", "it is left out"),
    "no-line-end": ("warning", "the last line has no end", "it gets one"),
}

_CHECKED: dict[str, tuple[Severity, str, str]] = {
    "missing-id": ("error", "an entry has no id", "it gets a new one"),
    "odd-id": ("info", "an id is not eight hexadecimal digits", ""),
    "duplicate-id": (
        "error",
        "an id is used again; the later entry counts",
        "the earlier one is kept under a new id, or left out when it is the same",
    ),
    "orphan": (
        "error",
        "an entry names a parent that is not in the file",
        "it becomes the beginning of a tree of its own, as it is read now",
    ),
    "cycle": (
        "error",
        "entries are their own ancestors",
        "the circle is cut where it is cut when it is read",
    ),
    "parent-later": ("info", "an entry stands before its parent", ""),
    "missing-type": ("error", "an entry has no type", ""),
    "unknown-type": ("info", "an entry has a type this program does not know; it is kept", ""),
    "unknown-role": ("info", "a message has a role this program does not know; it is kept", ""),
    "odd-message": ("error", "a message entry holds no message", ""),
    "odd-time": ("info", "a timestamp cannot be read", ""),
    "missing-target": ("warning", "a label or an edit names an entry that is not there", ""),
    "kept-missing": (
        "error",
        "a compaction keeps from an entry on that is not before it on its branch",
        "it keeps nothing, as it is read now",
    ),
    "unanswered-call": (
        "warning",
        "a tool call has no result; the model is told so when it is sent",
        "",
    ),
    "unpaired-result": (
        "warning",
        "a tool result belongs to no call before it; it is not sent",
        "",
    ),
}


def examine(path: str | os.PathLike[str], *, fs: FileSystem = REAL_FILE_SYSTEM) -> Report:
    """Read a session file and report what is odd. Raises StorageError when it cannot be read."""
    return _examined(os.fspath(path), fs)[0]


def write_repaired(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    fs: FileSystem = REAL_FILE_SYSTEM,
) -> Report:
    """Write a repaired copy to a new file; returns the report about the original.

    Raises StorageError when there is a file already, or when nothing can be saved.
    """
    report, seen = _examined(os.fspath(path), fs)
    wanted = os.path.abspath(target)  # noqa: PTH100  (one kind of path in this room)
    try:
        write_file(fs, wanted, repaired_lines(seen, fs, os.fspath(path)))
    except FileExistsError as error:
        raise StorageError(
            "There is a file of that name already; nothing was written.",
            path=wanted,
            hint="Choose another name for the repaired copy.",
        ) from error
    except OSError as error:
        raise StorageError(
            f"The repaired copy cannot be written: {reason_of(error)}.", path=wanted
        ) from error
    return report


def _examined(path: str, fs: FileSystem) -> tuple[Report, SeenFile]:
    try:
        if not is_regular(fs.stat(path)):
            raise NotASessionError("This is not an ordinary file.", path=path)
        fd = fs.open(path, os.O_RDONLY)
        try:
            seen = read_file(fs, fd)
        finally:
            fs.close(fd)
    except (FileNotFoundError, NotADirectoryError):
        raise SessionNotFoundError(f"There is no file {path}.", path=path) from None
    except OSError as error:
        raise cannot_read(path, error) from error
    if seen.header is None and not seen.lines:
        raise NotASessionError(
            "This is not a session: it has neither a header nor entries. It was not touched.",
            path=path,
        )
    version = seen.header.value.version if seen.header is not None else FORMAT_VERSION
    if version >= FORMAT_VERSION:
        check_entries(seen)
    findings = [
        Finding(code, severity, text, tuple(seen.odd[code]), repair)
        for code, (severity, text, repair) in (_READING | _CHECKED).items()
        if code in seen.odd
    ]
    if version != FORMAT_VERSION:
        findings.append(_version_finding(version))
    return Report(path, seen.size_bytes, version, len(seen.lines), tuple(findings)), seen


def _version_finding(version: int) -> Finding:
    if version > FORMAT_VERSION:
        return Finding("newer", "info", "the file was written by a newer program")
    return Finding(
        "older",
        "info",
        "the file has an older format; it is brought up to date when it is opened",
        repair="it is brought up to date",
    )


def _count(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _named(lines: tuple[int, ...]) -> str:
    named = ", ".join(str(number) for number in lines[:_NAMED_LINES])
    more = f" and {len(lines) - _NAMED_LINES:,} more" if len(lines) > _NAMED_LINES else ""
    return f"line{'s' if len(lines) > 1 else ''} {named}{more}"
