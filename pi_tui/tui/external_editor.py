"""Editing the prompt in the user's own editor, while the agent goes on working."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from pathlib import Path

from pi_tui.core.errors import PiTuiError

TERMINATE_S = 1.0
"""How long an editor may take to end when it is told to."""


class ExternalEditor:
    """Runs one editor at a time. The caller has handed the terminal over before."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    async def edit(self, text: str) -> str:
        """The text as it was saved. Cancelling ends the editor.

        Raises PiTuiError when nothing should be taken over.
        """
        words = shlex.split(self._command)
        if not words:
            raise PiTuiError(
                "no external editor is known", hint="Set $EDITOR or the setting externalEditor."
            )
        path = await asyncio.to_thread(_write_draft, text)
        try:
            try:
                self._process = await asyncio.create_subprocess_exec(*words, str(path))
            except OSError as error:
                raise PiTuiError(f"{words[0]} could not be started: {error.strerror}") from error
            try:
                code = await self._process.wait()
            except asyncio.CancelledError:
                await _end(self._process)
                raise
            if code != 0:
                raise PiTuiError(f"{words[0]} ended with code {code}; the text was left as it was")
            edited = await asyncio.to_thread(path.read_bytes)
        finally:
            self._process = None
            path.unlink(missing_ok=True)
        return edited.decode("utf-8", "replace").removesuffix("\n")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End an editor that is open because the program ends."""
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), TERMINATE_S)
    except TimeoutError:
        process.kill()
        await process.wait()


def _write_draft(text: str) -> Path:
    handle, name = tempfile.mkstemp(prefix="pi-tui-", suffix=".md")
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)
    return Path(name)
