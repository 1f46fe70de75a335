"""From the path a model writes to the path on disk, and words for what went wrong there.

`~` is the home of the options, relative paths start at the session's directory, one `@` in front
is dropped when nothing of that very name exists. Paths here are strings, absolute after `resolve`.
"""

from __future__ import annotations

import difflib
import errno
import os
import stat
import unicodedata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pi_tui.core.errors import ToolError
from pi_tui.tools.visible_text import visible_line

_NAMES_COMPARED = 5000
_MAX_PATH_CHARS = 4096


def require_directory(cwd: str) -> None:
    """Refuse to work in a directory that was taken away: a write would make it anew, nearly empty.

    Raises ToolError.
    """
    if not os.path.isdir(cwd):  # noqa: PTH112 - no error for impossible names
        raise ToolError(
            f"The working directory {visible_line(cwd)} does not exist any more; nothing was done. "
            "Ask the user what should happen: it must be put back, or the work go on elsewhere."
        )


def resolve(path: str, cwd: str, home: str) -> str:
    """The absolute path meant; links are left as they are. Raises ToolError for no path at all."""
    path = path.strip("\r\n")
    if "\0" in path:
        raise ToolError("The path holds a NUL character; no file has such a name.")
    if len(path) > _MAX_PATH_CHARS:
        raise ToolError(f"The path has {len(path)} characters; no file has so long a name.")
    if path.startswith("@") and not os.path.lexists(_absolute(path, cwd, home)):
        path = path[1:]
    return _absolute(path or ".", cwd, home)


def _absolute(path: str, cwd: str, home: str) -> str:
    if home and (path == "~" or path.startswith("~/")):
        path = home + path[1:]
    return os.path.normpath(os.path.join(cwd, path))  # noqa: PTH118


def resolve_existing(path: str, cwd: str, home: str) -> str:
    """Like `resolve`; finds the file also when its name is composed or spaced another way.

    macOS stores decomposed names and puts U+202F before AM and PM in names of screenshots.
    """
    wanted = resolve(path, cwd, home)
    if os.path.lexists(wanted):
        return wanted
    return next((other for other in _spellings(wanted) if os.path.lexists(other)), wanted)


def _spellings(path: str) -> Iterator[str]:
    yield unicodedata.normalize("NFC", path)
    yield unicodedata.normalize("NFD", path)
    narrow = path.replace(" AM", "\u202fAM").replace(" PM", "\u202fPM")
    yield narrow
    curly = path.replace("'", "\u2019")
    yield curly
    yield unicodedata.normalize("NFD", curly)


def file_key(path: str, cwd: str, home: str) -> str:
    """The same for all paths to one file, links followed and names spelled in any way.

    It does not depend on what is there at the moment: a write that comes later in a batch must not
    be told apart because an earlier one made the file. No name to open the file by.
    """
    real = os.path.realpath(resolve_existing(path, cwd, home))
    plain = unicodedata.normalize("NFC", real)
    return plain.replace("\u2019", "'").replace("\u202f", " ")


def shown(path: str, cwd: str) -> str:
    """A path for an answer: relative when it is inside `cwd`, one line, no control characters."""
    return "." if path == cwd else visible_line(path.removeprefix(cwd.rstrip("/") + "/"))


def shown_below(root: str, cwd: str) -> str:
    """What stands in an answer before paths that are relative to a directory; may be empty."""
    return "" if root == cwd else shown(root, cwd).rstrip("/") + "/"


def nothing_there(path: str, cwd: str) -> ToolError:
    """The error for a missing path; names what is near."""
    name = shown(path, cwd)
    if os.path.islink(path):  # noqa: PTH114 - no error for impossible names
        target = visible_line(str(Path(path).readlink()))
        return ToolError(f"{name} is a link to {target}, which does not exist.")
    parent = os.path.dirname(path)  # noqa: PTH120
    if not os.path.isdir(parent):  # noqa: PTH112
        known = parent
        while known != "/" and not os.path.isdir(known):  # noqa: PTH112
            known = os.path.dirname(known)  # noqa: PTH120
        nearest = "the working directory" if known == cwd else shown(known, cwd)
        return ToolError(
            f"There is no file {name}: the directory {shown(parent, cwd)} does not exist. "
            f"The nearest one that does is {nearest}."
        )
    near = _near_names(parent, os.path.basename(path))  # noqa: PTH119
    hint = " Near names: " + ", ".join(near) + "." if near else " Use ls or find to look for it."
    return ToolError(f"There is no file {name}.{hint}")


def _near_names(directory: str, name: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in islice(entries, _NAMES_COMPARED)]
    except OSError:
        return []
    by_lower = {other.lower(): other for other in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    stem = name.lower().rsplit(".", 1)[0]
    more = [low for low in by_lower if stem and low.rsplit(".", 1)[0] == stem and low not in near]
    return [visible_line(by_lower[low]) for low in [*near, *sorted(more)][:4]]


def failed(error: OSError, doing: str, path: str, cwd: str) -> ToolError:
    """A system error on a path, in plain words. `doing` is like `read` or `write`."""
    name = shown(path, cwd)
    if error.errno == errno.ENOENT:
        return nothing_there(path, cwd)
    reasons = {
        errno.EACCES: "permission denied",
        errno.EPERM: "not permitted",
        errno.ENOSPC: "no space is left on the device",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the file system is read-only",
        errno.ELOOP: "its links go round in a circle",
        errno.ENAMETOOLONG: "the name is too long",
        errno.ENOTDIR: "a part of the path is a file, not a directory",
        errno.EISDIR: "it is a directory",
    }
    reason = reasons.get(error.errno or 0) or error.strerror or str(error)
    return ToolError(f"Cannot {doing} {name}: {reason}.")


def ordinary_mode(path: str, cwd: str, doing: str, refusal: str) -> int:
    """The mode of a file or directory. Raises ToolError, for what is neither with `refusal`."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - one call
    except OSError as error:
        raise failed(error, doing, path, cwd) from error
    kind = special_kind(mode)
    if kind:
        raise ToolError(f"{shown(path, cwd)} is {kind}, {refusal}.")
    return mode


def require_directory_at(path: str, cwd: str, instead: str) -> None:
    """Refuse what is no directory; `instead` says what to do with a file. Raises ToolError."""
    mode = ordinary_mode(path, cwd, "list", "not a directory")
    if not stat.S_ISDIR(mode):
        raise ToolError(f"{shown(path, cwd)} is a file; {instead}.")
    require_readable(path, "list", cwd)


def require_readable(path: str, doing: str, cwd: str) -> None:
    """Refuse what may not be read, where an answer would else be empty. Raises ToolError."""
    if not os.access(path, os.R_OK):
        raise failed(PermissionError(errno.EACCES, ""), doing, path, cwd)


def require_file(path: str, name: str, refusal: str) -> os.stat_result:
    """What the system says of a file. Raises ToolError for a directory, and for what is neither
    (then `refusal` is the rest of the sentence), and OSError.
    """
    found = os.stat(path)  # noqa: PTH116 - one call
    if stat.S_ISDIR(found.st_mode):
        raise ToolError(f"{name} is a directory; use ls to see what is in it.")
    kind = special_kind(found.st_mode)
    if kind:
        raise ToolError(f"{name} is {kind}; {refusal}.")
    return found


def special_kind(mode: int) -> str | None:
    """What a path is when it is neither file nor directory; None for those two."""
    for test, kind in (
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a character device"),
        (stat.S_ISBLK, "a block device"),
    ):
        if test(mode):
            return kind
    return None
