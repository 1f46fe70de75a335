"""Words for what the system refuses: an OSError becomes a StorageError a person can act on."""

from __future__ import annotations

import errno

from pi_tui.core.errors import StorageError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "permission was denied",
    errno.EPERM: "permission was denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOENT: "the folder or file is gone",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.EISDIR: "the path is a folder",
    errno.EIO: "the device reported an error",
    errno.ESTALE: "the network folder was disconnected",
    errno.EFBIG: "the file would become too large",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open in the system",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "the path leads in a circle",
}

ELSEWHERE = "/export NAME.jsonl saves the whole session to another place."

_REMEDIES = {
    errno.ENOSPC: f"Free some space. {ELSEWHERE}",
    errno.EDQUOT: f"Free some space. {ELSEWHERE}",
}


def reason_of(error: OSError) -> str:
    """Why the system refused, in lower case and without a full stop."""
    known = _REASONS.get(error.errno or 0)
    return known or (error.strerror or "the system refused").lower()


def cannot_read(path: str, error: OSError) -> StorageError:
    """The error for a session file that cannot be read."""
    return StorageError(
        f"The session file cannot be read: {reason_of(error)}. Nothing was changed.", path=path
    )


def not_saved(path: str, error: OSError, pending: int) -> StorageError:
    """The error for entries that are not in the file yet."""
    return StorageError(
        f"Not saved: {reason_of(error)}. {kept_text(pending)}",
        path=path,
        hint=_REMEDIES.get(error.errno or 0, ELSEWHERE),
        reason=reason_of(error),
    )


def kept_text(pending: int) -> str:
    """What is safe while entries wait."""
    if not pending:
        return "What is in the file already is safe."
    what = "1 entry is" if pending == 1 else f"{pending} entries are"
    return f"{what} kept in memory and will be written as soon as that works."
