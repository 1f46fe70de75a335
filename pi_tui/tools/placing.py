"""Puts new content in the place of a file so that the old content is whole until the new one is.

Usually a temporary file beside it is filled, synced and renamed over it; mode, owner and extended
attributes are carried over, symbolic links are followed. Where a rename would lose something (a
second hard link, a directory that cannot be written, an owner that cannot be set) the file is
overwritten in place, with the space reserved first and the old content put back on failure.
Blocking: call it in a thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

from msgspec import Struct

from pi_tui.core.errors import ToolError
from pi_tui.tools.paths import failed, shown, special_kind


class Placed(Struct, frozen=True):
    """What happened. `real_path` differs from the path asked for when links were followed."""

    real_path: str
    created: bool
    through_link: bool
    hard_links: int


def place(path: str, data: bytes, cwd: str) -> Placed:
    """Write a whole file, made with its directories when missing. Raises ToolError."""
    target = os.path.realpath(path)
    through_link = os.path.islink(path)  # noqa: PTH114 - no error for impossible names
    try:
        try:
            before = Path(target).stat()
        except FileNotFoundError:
            before = None
        if before is None:
            Path(target).parent.mkdir(parents=True, exist_ok=True)
            _replace(target, data, None)
        else:
            _refuse_special(before.st_mode, path, cwd)
            _overwrite(target, data, before)
    except OSError as error:
        if error.errno == errno.ENOENT:
            raise ToolError(
                f"Cannot write {shown(path, cwd)}: its directory went away meanwhile."
            ) from error
        raise failed(error, "write", path, cwd) from error
    return Placed(target, before is None, through_link, before.st_nlink if before else 1)


def _refuse_special(mode: int, path: str, cwd: str) -> None:
    if stat.S_ISDIR(mode):
        raise ToolError(f"{shown(path, cwd)} is a directory; give the path of a file in it.")
    kind = special_kind(mode)
    if kind:
        raise ToolError(f"{shown(path, cwd)} is {kind}, not a file; it was not written.")


def _overwrite(target: str, data: bytes, before: os.stat_result) -> None:
    # A rename needs no right on the file itself, so ask first: read-only files stay as they are.
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "permission denied", target)
    if before.st_nlink > 1 or not _can_replace(target, before):
        _write_in_place(target, data)
    else:
        _replace(target, data, before)


def _can_replace(target: str, before: os.stat_result) -> bool:
    """Whether a new file there can look like the old one."""
    if not os.access(Path(target).parent, os.W_OK | os.X_OK) or os.path.ismount(target):
        return False
    user = os.geteuid()
    if before.st_uid == user:
        return before.st_gid == os.getegid() or before.st_gid in os.getgroups() or user == 0
    return user == 0


def _replace(target: str, data: bytes, before: os.stat_result | None) -> None:
    temporary = str(Path(target).parent / f".pi-tui-{secrets.token_hex(8)}.tmp")
    # 0666 lets the system apply the umask to a new file; a copy of a private file starts private.
    mode = 0o666 if before is None else 0o600
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
    try:
        try:
            _write_all(handle, data)
            if before is not None:
                _copy_identity(target, handle, before)
            os.fsync(handle)
        finally:
            os.close(handle)
        Path(temporary).replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _copy_identity(target: str, handle: int, before: os.stat_result) -> None:
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(handle, before.st_uid, before.st_gid)
    if hasattr(os, "listxattr"):
        # Not every file system has attributes, and some belong to the system alone.
        with contextlib.suppress(OSError):
            for name in os.listxattr(target):
                with contextlib.suppress(OSError):
                    os.setxattr(handle, name, os.getxattr(target, name))
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _write_in_place(target: str, data: bytes) -> None:
    handle = os.open(target, os.O_RDWR | os.O_CLOEXEC)
    try:
        old = _read_all(handle)
        try:
            if len(data) > len(old):
                _reserve(handle, len(data))
            os.lseek(handle, 0, os.SEEK_SET)
            _write_all(handle, data)
            os.ftruncate(handle, len(data))
            os.fsync(handle)
        except OSError:
            os.lseek(handle, 0, os.SEEK_SET)
            _write_all(handle, old)
            os.ftruncate(handle, len(old))
            raise
    finally:
        os.close(handle)


def _reserve(handle: int, size: int) -> None:
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise


def _read_all(handle: int) -> bytes:
    os.lseek(handle, 0, os.SEEK_SET)
    parts: list[bytes] = []
    while part := os.read(handle, 1 << 20):
        parts.append(part)
    return b"".join(parts)
