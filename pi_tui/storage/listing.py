"""Finds sessions below a sessions directory: the list, one by reference, the latest of a project.

A session belongs to the directory its header names, whichever of its names that is; folder names
are only where it is kept, and two directories may share one. Lists come newest first, by the time a
file was last changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from msgspec import Struct

from pi_tui.core.errors import NotASessionError, SessionNotFoundError
from pi_tui.storage.filesystem import REAL_FILE_SYSTEM, FileSystem
from pi_tui.storage.names import SUFFIX, id_in_name
from pi_tui.storage.same_directory import SameDirectory
from pi_tui.storage.summary import SessionSummary, read_header, summarise
from pi_tui.storage.summary_cache import SummaryCache
from pi_tui.storage.trouble import reason_of

_NAMED_CANDIDATES = 5
PathLike = str | os.PathLike[str]


class _Found(Struct, frozen=True):
    path: str
    size_bytes: int
    modified_ns: int


def list_sessions(
    directory: PathLike,
    cwd: str | None = None,
    *,
    cache_directory: PathLike | None = None,
    limit: int | None = None,
    on_problem: Callable[[str], None] | None = None,
    fs: FileSystem = REAL_FILE_SYSTEM,
) -> list[SessionSummary]:
    """List sessions, newest first; with `cwd` only those whose header names that directory."""
    found = iter_sessions(
        directory, cwd, cache_directory=cache_directory, on_problem=on_problem, fs=fs
    )
    return list(islice(found, limit))


def iter_sessions(
    directory: PathLike,
    cwd: str | None = None,
    *,
    cache_directory: PathLike | None = None,
    on_problem: Callable[[str], None] | None = None,
    fs: FileSystem = REAL_FILE_SYSTEM,
) -> Iterator[SessionSummary]:
    """Yield sessions one by one, newest first, reading each file only when it is its turn.

    Take the first page at once and the rest in a thread. `cache_directory` keeps summaries between
    runs; they are stored when the iterator ends or is closed. `on_problem` hears of files that
    cannot be read.
    """
    cache = SummaryCache(fs, cache_directory)
    wanted = None if cwd is None else SameDirectory(cwd, fs)
    try:
        for file in _files(directory, on_problem):
            summary = cache.get(file.path, file.size_bytes, file.modified_ns)
            if summary is None:
                try:
                    if wanted is not None and not _belongs(fs, file.path, wanted):
                        continue
                    summary = summarise(
                        fs, file.path, file.size_bytes, file.modified_ns // 1_000_000
                    )
                except OSError as error:
                    _report(on_problem, file.path, error)
                    continue
                if summary is None:
                    continue
                cache.put(file.path, file.size_bytes, file.modified_ns, summary)
            if wanted is None or wanted(summary.cwd):
                yield summary
    finally:
        cache.save()


def latest_session(
    directory: PathLike, cwd: str, *, fs: FileSystem = REAL_FILE_SYSTEM
) -> str | None:
    """The path of the session changed last among those whose header names `cwd`, or None."""
    wanted = SameDirectory(cwd, fs)
    for file in _files(directory, None):
        try:
            if _belongs(fs, file.path, wanted):
                return file.path
        except OSError:
            continue  # what cannot be read cannot be continued
    return None


def find_session(directory: PathLike, reference: str, *, fs: FileSystem = REAL_FILE_SYSTEM) -> str:
    """The path of the session a path, a full id or the beginning of one stands for.

    Raises SessionNotFoundError, also when several sessions answer; the hint then names them.
    """
    looks_like_path = os.sep in reference or reference.endswith(SUFFIX)
    is_file = os.path.isfile(reference)  # noqa: PTH113  (no error for impossible names)
    if is_file:
        return str(Path(reference).absolute())
    if looks_like_path:
        if os.path.exists(reference):  # noqa: PTH110
            raise NotASessionError(
                f"{reference} is not an ordinary file, so it is not a session. It was not touched.",
                path=reference,
            )
        raise SessionNotFoundError(f"There is no session file {reference}.", path=reference)
    files = [(_session_id(fs, file.path), file.path) for file in _files(directory, None)]
    exact = [(i, path) for i, path in files if reference and i == reference]
    fitting = exact or [(i, path) for i, path in files if reference and i.startswith(reference)]
    if not fitting:
        raise SessionNotFoundError(
            f"There is no session {reference!r}.",
            path=reference,
            hint="`pi-tui --resume` lists them.",
        )
    if len(fitting) > 1:
        named = ", ".join(path if exact else i for i, path in fitting[:_NAMED_CANDIDATES])
        more = " and more" if len(fitting) > _NAMED_CANDIDATES else ""
        raise SessionNotFoundError(
            f"{len(fitting)} sessions answer to {reference!r}.",
            path=reference,
            hint=f"Say which one: {named}{more}.",
        )
    return fitting[0][1]


def _session_id(fs: FileSystem, path: str) -> str:
    promised = id_in_name(path)
    if promised:
        return promised
    try:
        header = read_header(fs, path)
    except OSError:
        return ""
    return header.id if header is not None else ""


def _belongs(fs: FileSystem, path: str, wanted: SameDirectory) -> bool:
    header = read_header(fs, path)
    return header is not None and wanted(header.cwd)


def _files(directory: PathLike, on_problem: Callable[[str], None] | None) -> list[_Found]:
    """Session files in a directory and its folders, newest first."""
    found: list[_Found] = []
    folders: list[str] = []
    _scan_folder(os.fspath(directory), found, folders, on_problem)
    for folder in folders:
        _scan_folder(folder, found, None, on_problem)
    found.sort(key=lambda file: (-file.modified_ns, file.path))
    return found


def _scan_folder(
    folder: str,
    found: list[_Found],
    folders: list[str] | None,
    on_problem: Callable[[str], None] | None,
) -> None:
    try:
        with os.scandir(folder) as items:
            for item in items:
                try:
                    if item.name.endswith(SUFFIX):
                        if item.is_file():
                            status = item.stat()
                            path = os.path.abspath(item.path)  # noqa: PTH100
                            found.append(_Found(path, status.st_size, status.st_mtime_ns))
                    elif folders is not None and item.is_dir():
                        folders.append(item.path)
                except OSError as error:  # a link in a circle; the others are still sessions
                    _report(on_problem, item.path, error)
    except FileNotFoundError:
        return  # no session was ever kept there
    except OSError as error:
        _report(on_problem, folder, error)


def _report(on_problem: Callable[[str], None] | None, path: str, error: OSError) -> None:
    if on_problem is not None:
        on_problem(f"{path} cannot be read: {reason_of(error)}.")
