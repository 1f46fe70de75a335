"""Editing the prompt in the user's own editor, while the agent goes on working."""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from pathlib import Path

from pi_tui.core.errors import PiTuiError


class ExternalEditor:
    """Runs one editor at a time. The caller has handed the terminal over before."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return self._process is not None

    async def edit(self, text: str) -> str:
        """The text as it was saved. Raises PiTuiError when nothing should be taken over."""
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
            code = await self._process.wait()
            if code != 0:
                raise PiTuiError(f"{words[0]} ended with code {code}; the text was left as it was")
            edited = await asyncio.to_thread(path.read_bytes)
        finally:
            self._process = None
            path.unlink(missing_ok=True)
        return edited.decode("utf-8", "replace").removesuffix("\n")

    async def stop(self) -> None:
        """End an editor that is open because the program ends."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), 1)
        except TimeoutError:
            process.kill()
            await process.wait()


def _write_draft(text: str) -> Path:
    handle, name = tempfile.mkstemp(prefix="pi-tui-", suffix=".md")
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="") as file:
        file.write(text)
    return Path(name)
