"""Writes a file that only its owner can read, complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pi_tui.core.errors import StorageError, TargetExistsError


def write_private(path: str, parts: Iterable[bytes], *, replace: bool) -> int:
    """Write a file with mode 0600; returns its size in bytes.

    Raises TargetExistsError when something has the name and `replace` is not set; StorageError when
    it cannot be written. Then nothing new is there.
    """
    target = Path(path)
    if not replace and (target.exists() or target.is_symlink()):
        raise _exists(path)
    if target.is_dir():
        raise StorageError("The target is a folder; nothing was written.", path=path)
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.tmp")
    try:
        size_bytes = _write(temporary, parts)
        try:
            _put(temporary, target, replace)
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError as error:
        reason = (error.strerror or "the system refused").lower()
        raise StorageError(f"The file cannot be written: {reason}.", path=path) from error
    return size_bytes


def _exists(path: str) -> TargetExistsError:
    return TargetExistsError(f"{path} exists already; nothing was written")


def _write(path: Path, parts: Iterable[bytes]) -> int:
    path.unlink(missing_ok=True)  # of an earlier try that was killed
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            return file.tell()
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _put(temporary: Path, target: Path, replace: bool) -> None:
    if replace:
        temporary.replace(target)
        return
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        temporary.replace(target)
