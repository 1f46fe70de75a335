"""Standard input, output and error as they may be given to a program: closed, full, or left alone.

The command line calls `hold_streams` before anything else and `end_streams` after everything. Knows
nothing of what is written; imports nothing of this package, so that `--version` stays quick.
"""

from __future__ import annotations

import errno
import io
import os
import sys


class ClosedStream(io.TextIOBase):
    """What stands for standard output when it is closed: flushing fails as the system says."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self._missed = False

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        """Take the text as if it were buffered; `flush` says what became of it."""
        self._missed = self._missed or bool(text)
        return len(text)

    def flush(self) -> None:
        """Fail, once for all that should have been written since the last time."""
        missed, self._missed = self._missed, False
        if missed:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def hold_streams() -> None:
    """Give every standard stream something to stand on.

    A descriptor that is closed would be taken by the next file that is opened, and what is written
    to standard output would end up in there.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            taken = os.open(os.devnull, os.O_RDWR)  # without O_CLOEXEC: children need them too
            if taken != descriptor:
                os.dup2(taken, descriptor)
                os.close(taken)
            os.set_inheritable(descriptor, True)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    if sys.stdout is None:
        sys.stdout = ClosedStream()
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def end_streams(code: int) -> int:
    """Write out what waits in standard output; returns the exit code to use.

    A reader that has gone is nobody to complain to; anything else that fails is told, and a success
    becomes 1. Afterwards the interpreter finds nothing to complain about at its end.
    """
    line = ""
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        _abandon(1)
        if getattr(error, "errno", None) not in (errno.EPIPE, errno.EIO):
            why = (getattr(error, "strerror", None) or str(error)).lower()
            line = f"pi-tui: error: the output could not be written: {why}\n"
            code = code or 1
    try:
        sys.stderr.write(line)
        sys.stderr.flush()
    except (OSError, ValueError):
        _abandon(2)  # nobody can be told that telling failed; the exit code still says it
    return code


def _abandon(descriptor: int) -> None:
    """Let what is still buffered for the descriptor go nowhere."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
    except OSError:
        return
