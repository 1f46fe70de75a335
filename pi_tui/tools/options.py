"""What the composition root decides for all tools: environment, home, shell, limits, spill place.

Nothing here reads the environment or the disk. Limits are bytes, lines, characters and seconds.
"""

from __future__ import annotations

from msgspec import Struct

MAX_LINES = 2000
MAX_BYTES = 50 * 1024
"""One answer to the model holds at most so much text, whichever limit comes first."""

MAX_LINE_CHARS = 10_000
"""`read` cuts longer lines; such a line is data, and one of them would fill the answer."""

MAX_SEARCH_LINE_CHARS = 500
MAX_EDIT_BYTES = 64 * 1024 * 1024
MAX_IMAGE_BYTES = 5 * 1024 * 1024
SEARCH_TIME_S = 30.0

MAX_SPILL_BYTES = 100 * 1024 * 1024
"""So much of one command's output is kept in a file; an endless command writes it in a second."""

KEEP_FREE_BYTES = 200 * 1024 * 1024
"""Whole outputs leave so much of the disk to the session, which may be kept on the same one."""


class ToolOptions(Struct, frozen=True, kw_only=True):
    """Settings shared by all tools.

    `environment` is what child processes inherit (a copy of the program's own is the usual value);
    HOME in it is what `~` means. `spill_dir` is made on first need, mode 0700; None asks for a new
    directory below the system's temporary one. `shell_command_prefix` is put on a line before
    every command. `spill_limit_bytes` is for one command; nothing is spilled on a disk with less
    than `spill_keep_free_bytes` left.
    """

    environment: dict[str, str]
    spill_dir: str | None = None
    shell_path: str | None = None
    shell_command_prefix: str | None = None
    max_lines: int = MAX_LINES
    max_bytes: int = MAX_BYTES
    spill_limit_bytes: int = MAX_SPILL_BYTES
    spill_keep_free_bytes: int = KEEP_FREE_BYTES
    output_grace_s: float = 0.2
    kill_grace_s: float = 1.0

    @property
    def home(self) -> str:
        """The directory `~` stands for; empty when unknown."""
        return self.environment.get("HOME", "")
