"""Takes a session file from elsewhere into the library: a copy that belongs to this directory.

Everything is copied byte for byte, but in the header the directory, and the id when a session of
the library has it already. The given file is never touched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from pi_tui.core.errors import NotASessionError, SessionNotFoundError, StorageError
from pi_tui.core.messages import JSON
from pi_tui.storage.filesystem import FileSystem, is_regular, make_private_folders
from pi_tui.storage.index import Header, find_header
from pi_tui.storage.line_fields import with_fields
from pi_tui.storage.names import SUFFIX, file_name, new_session_id, new_session_path
from pi_tui.storage.trouble import cannot_read, reason_of
from pi_tui.storage.whole_file import write_file

_COPY_BYTES = 1 << 20


def import_copy(fs: FileSystem, path: str, directory: str, cwd: str) -> str:
    """Copy a file into the sessions directory; returns the path of the copy.

    Raises SessionNotFoundError, NotASessionError, StorageError; then nothing is there.
    """
    real = os.path.realpath(path)
    if Path(real).is_relative_to(os.path.realpath(directory)):
        raise StorageError(
            "This session is in the list of sessions already.", path=path, hint="/resume opens it."
        )
    fd = _open(fs, real)
    try:
        header = find_header(fs, fd)
        if header is None:
            raise NotASessionError(
                "This is not a session: the file does not begin with a session header. "
                "Nothing was imported.",
                path=path,
            )
        return _copy(fs, fd, header, directory, cwd)
    except OSError as error:
        raise StorageError(
            f"The session cannot be imported: {reason_of(error)}. Nothing was changed.", path=path
        ) from error
    finally:
        fs.close(fd)


def _open(fs: FileSystem, path: str) -> int:
    try:
        if not is_regular(fs.stat(path)):
            raise NotASessionError("This is not an ordinary file; nothing was imported.", path=path)
        return fs.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        raise SessionNotFoundError(f"There is no file {path}.", path=path) from None
    except OSError as error:
        raise cannot_read(path, error) from error


def _copy(fs: FileSystem, fd: int, header: Header, directory: str, cwd: str) -> str:
    wanted = replace(header.value, cwd=cwd)
    changed: dict[str, JSON] = {"cwd": cwd}
    if _is_known(directory, file_name(wanted)):
        wanted = replace(wanted, id=new_session_id())
        changed["id"] = wanted.id
    target = new_session_path(directory, wanted)
    make_private_folders(fs, str(Path(target).parent))
    first_line = with_fields(header.text, changed) + b"\n"
    write_file(fs, target, chain([first_line], _rest(fs, fd, header.end)))
    return target


def _is_known(directory: str, name: str) -> bool:
    """True when a file of the library promises the same id."""
    ending = name.partition("_")[2].removesuffix(SUFFIX)
    for folder in (directory, *_folders(directory)):
        try:
            with os.scandir(folder) as items:
                if any(item.name.endswith(f"_{ending}{SUFFIX}") for item in items):
                    return True
        except OSError:
            continue
    return False


def _folders(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as items:
            return [item.path for item in items if item.is_dir()]
    except OSError:
        return []


def _rest(fs: FileSystem, fd: int, offset: int) -> Iterator[bytes]:
    while part := fs.read_at(fd, _COPY_BYTES, offset):
        yield part
        offset += len(part)
