"""Session files of this run: new ones, the one the command line asks for, the library of all."""

from __future__ import annotations

import os
from pathlib import Path
from sys import platform
from typing import TYPE_CHECKING

from pi_tui.agent.system_clock import RandomIds, SystemClock
from pi_tui.commands.session_opening import plan_for
from pi_tui.config.settings import session_directory
from pi_tui.core.entries import SessionHeader, iso_timestamp
from pi_tui.core.errors import SessionNotFoundError, UsageError
from pi_tui.core.protocols import OpenedSession
from pi_tui.storage.jsonl import create_session
from pi_tui.storage.library import FileLibrary
from pi_tui.storage.listing import find_session, latest_session
from pi_tui.storage.memory import MemoryStore
from pi_tui.storage.trash import Trash

if TYPE_CHECKING:
    from pi_tui.wiring.start import Start


class Sessions:
    """Makes and opens session files."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._ids = RandomIds()

    def create(self, parent: str | None = None) -> OpenedSession:
        """A new session in the present directory; nothing is on disk before its first entry."""
        header = self._header()
        if self._start.options.no_session:
            return OpenedSession(MemoryStore(header), ())
        return OpenedSession(create_session(self._start.sessions, header), ())

    def _header(self) -> SessionHeader:
        return SessionHeader(
            id=self._ids.session_id(),
            timestamp=iso_timestamp(SystemClock().now_ms()),
            cwd=self._start.cwd,
        )

    def asked_for(self) -> str | None:
        """The path of the session the command line names; None for a new one."""
        options = self._start.options
        if options.session is not None:
            return find_session(self._start.sessions, self._expanded(options.session))
        if not options.continue_latest:
            return None
        path = latest_session(self._start.sessions, self._start.cwd)
        if path is None:
            raise SessionNotFoundError(
                f"No session belongs to {self._start.shown_cwd}.",
                hint="Start without --continue for a new one; --resume lists those of other "
                "directories, and --session ID opens one.",
            )
        return path

    def open(self, path: str) -> OpenedSession:
        """Open a session where nobody can be asked.

        Raises UsageError for another directory's; that one is only looked at.
        """
        library = self.library()
        plan = plan_for(path, library)
        if plan.must_ask:
            raise plan.refusal(library.shown(plan.recorded_cwd), self._start.shown_cwd)
        return library.open(path)

    def reference(self, path: str | None, session_id: str) -> str:
        """What `--session` finds the session by: its id, or its path where that is elsewhere."""
        usual = session_directory(self._start.environment, self._start.loaded)
        if path is None or Path(path).is_relative_to(usual):
            return session_id
        return path

    def library(self) -> FileLibrary:
        """All stored sessions."""
        environment = self._start.environment
        return FileLibrary(
            self._start.sessions,
            self._start.cwd,
            cache_directory=environment.directories.cache,
            trash=_trash(self._start),
            expand=lambda path: str(environment.expand(path)),
            shown=environment.shorten_home,
        )

    def _expanded(self, reference: str) -> str:
        if "\0" in reference:
            raise UsageError("a session cannot be named with a NUL character")
        looks_like_path = "/" in reference or reference.endswith(".jsonl")
        expanded = str(self._start.environment.expand(reference))
        return expanded if looks_like_path or os.path.isfile(expanded) else reference  # noqa: PTH113


def _trash(start: Start) -> Trash:
    home = start.environment.home
    if platform == "darwin":
        return Trash(home / ".Trash", with_notes=False)
    data = start.environment.get("XDG_DATA_HOME")
    return Trash((Path(data) if data else home / ".local" / "share") / "Trash")
