"""Opening the picker, and what its keys do to stored sessions: rename, delete.

The questions come on top of the picker, which stays as it is below them. Files are only touched
through the `SessionLibrary`, in threads; the session that is open is renamed through itself and is
never deleted.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from msgspec import structs

from pi_tui.core.errors import NoTrashError, PiTuiError
from pi_tui.core.sanitise import sanitise_line
from pi_tui.core.session_library import SessionLibrary, SessionRow
from pi_tui.tui.dialogs.question import Question
from pi_tui.tui.panel_host import PanelHost
from pi_tui.tui.sessions.panel import SessionPanel
from pi_tui.tui.sessions.session_feed import words_of
from pi_tui.tui.sessions.session_view import PickerChoices

ASKED_TITLE_CHARS = 200


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


async def pick_session(
    host: PanelHost,
    library: SessionLibrary,
    query: str,
    choices: PickerChoices,
    *,
    now_ms: Callable[[], int] = _now_ms,
) -> str | None:
    """Let the person choose a session; its path, or None. `choices` are changed by the person."""
    deeds = LibraryDeeds(host, library)
    panel = SessionPanel(
        library, deeds, choices, host.palette, host.keys, query=query, now_ms=now_ms
    )
    deeds.panel = panel
    try:
        return await host.open_panel(panel)
    finally:
        panel.feed.stop()


class LibraryDeeds:
    """Renames and deletes sessions for a picker, in the background."""

    def __init__(self, host: PanelHost, library: SessionLibrary) -> None:
        self._host = host
        self._library = library
        self._busy: set[str] = set()
        self.panel: SessionPanel | None = None

    def is_open(self, row: SessionRow) -> bool:
        return row.path == self._host.session.store.path

    def rename(self, row: SessionRow, name: str) -> None:
        self._start(row, self._rename(row, name))

    def delete(self, row: SessionRow) -> None:
        self._start(row, self._delete(row))

    def _start(self, row: SessionRow, work: Coroutine[Any, Any, None]) -> None:
        if row.path in self._busy:
            work.close()
            self._tell("the last change of this session is still going on")
            return
        self._busy.add(row.path)
        self._host.spawn(self._do(row, work))

    async def _do(self, row: SessionRow, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except PiTuiError as error:
            self._tell(words_of(error), "error")
        finally:
            self._busy.discard(row.path)

    # ------------------------------------------------------------ the deeds

    async def _rename(self, row: SessionRow, name: str) -> None:
        if await self._is_same_file(row.path):
            self._host.session.set_name(name)
        else:
            await asyncio.to_thread(self._library.rename, row.path, name)
        if self.panel is not None:
            self.panel.replaced(structs.replace(row, name=name or None))
        self._tell(f"renamed: {name}" if name else "the name was removed")

    async def _delete(self, row: SessionRow) -> None:
        if await self._is_same_file(row.path):
            self._tell("this is the session you are in; it is not deleted here", "warning")
            return
        text = f"{self._about(row)}\n\nIt is moved to the trash."
        if not await self._ask("Delete this session?", text):
            return
        told = f"moved to the trash: {row.title}"
        try:
            await asyncio.to_thread(self._library.delete, row.path)
        except NoTrashError as error:
            text = f"{self._about(row)}\n\n{error.message}\nFor good means: nobody can undo it."
            if not await self._ask("Delete this session for good?", text):
                self._tell("nothing was deleted")
                return
            delete = partial(self._library.delete, row.path, for_good=True)
            await asyncio.to_thread(delete)
            told = f"deleted for good: {row.title}"
        if self.panel is not None:
            self.panel.removed(row.path)
        self._tell(told)

    async def _is_same_file(self, path: str) -> bool:
        """True for the file of the open session, whatever it is called here."""
        open_path = self._host.session.store.path
        if open_path is None or path == open_path:
            return path == open_path
        real = os.path.realpath
        return await asyncio.to_thread(lambda: real(path) == real(open_path))

    def _about(self, row: SessionRow) -> str:
        count = row.message_count
        messages = "1 message" if count == 1 else f"{count:,} messages"
        title = sanitise_line(row.title)[:ASKED_TITLE_CHARS]
        return f"{title}\n{messages} · {self._library.shown(row.cwd) or 'no directory'}"

    async def _ask(self, title: str, text: str) -> bool:
        host = self._host
        if self.panel is None or self.panel.result.done():
            return False  # the picker was left: nobody sees what this is about
        return await host.open_panel(Question(title, text, host.palette, host.keys)) is True

    def _tell(self, text: str, role: str = "muted") -> None:
        if self.panel is not None:
            self.panel.tell(text, role)
