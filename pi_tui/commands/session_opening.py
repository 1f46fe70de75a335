"""Opening a session with every question that may have to be asked, for commands of all front ends.

Two questions: another process works on the session (read-only, a fork, or take it over where nobody
can tell), and the session belongs to another directory (continue here, fork, or cancel). Storage is
behind `SessionLibrary`; its calls block, so they run in threads.
"""

from __future__ import annotations

import asyncio
from typing import Literal

from msgspec import Struct

from pi_tui.agent.session import AgentSession
from pi_tui.agent.session_switch import OpeningPlan, plan_opening, switch_session
from pi_tui.commands.ui import Choice, CommandUI
from pi_tui.core.errors import SessionLockedError, UsageError
from pi_tui.core.protocols import OpenedSession
from pi_tui.core.session_library import SessionLibrary, snapshot_of_opened


class Answered(Struct, frozen=True):
    """What came of the questions: the session that was asked for, or a fork of it."""

    opened: OpenedSession
    is_fork: bool = False


async def open_asking(path: str, library: SessionLibrary, ui: CommandUI) -> Answered | None:
    """Open a session; None when the person cancels. Until it is answered nothing is changed.

    Raises StorageError, and UsageError where a question is needed and nobody can be asked.
    """
    plan = await asyncio.to_thread(plan_for, path, library)
    if plan.must_ask:
        answer = await _ask_directory(plan, library, ui)
        if answer == "fork":
            return Answered(await asyncio.to_thread(_forked, path, library), is_fork=True)
        if answer != "here":
            return None
    try:
        return Answered(await asyncio.to_thread(library.open, path))
    except SessionLockedError as error:
        return await _open_locked(error, path, library, ui)


async def _open_locked(
    error: SessionLockedError, path: str, library: SessionLibrary, ui: CommandUI
) -> Answered | None:
    options = [
        Choice("read", "open it read-only", "look at it; nothing can be sent"),
        Choice("fork", "fork it", "go on in a new session with the same conversation"),
    ]
    if error.can_take_over:
        options.append(Choice("take", "take it over", "only when nothing else uses it any more"))
    options.append(Choice("cancel", "cancel"))
    answer = await ui.choose(error.text, options, "read")
    if answer == "read":
        return Answered(await asyncio.to_thread(library.open, path, read_only=True))
    if answer == "fork":
        return Answered(await asyncio.to_thread(_forked, path, library), is_fork=True)
    if answer == "take" and error.can_take_over:
        return Answered(await asyncio.to_thread(library.open, path, take_over=True))
    return None


async def go_to_answered(session: AgentSession, answered: Answered, ui: CommandUI) -> None:
    """Go on in what came of the questions, and say where one is then.

    Raises PiTuiError; then the present session is still the one that is held.
    """
    opened = answered.opened
    await go_to(session, opened, "fork" if answered.is_fork else "resume", ui)
    if answered.is_fork:
        source = session.name or "the one you chose"
        text = f"forked: this is a new session, a copy of {source}; that one is unchanged"
    else:
        text = f"resumed: {session.name or session.session_id}"
    ui.notify("info", text)


async def go_to(
    session: AgentSession, opened: OpenedSession, reason: Literal["resume", "fork"], ui: CommandUI
) -> None:
    """Go on in an opened session and say what changes by it; when that fails, close it again.

    Raises PiTuiError; then the present session is still the one that is held.
    """
    try:
        told = await switch_session(session, opened, reason)
    except BaseException:
        if session.store is not opened.store:
            await asyncio.to_thread(opened.store.close)
        raise
    if told is not None:
        ui.notify("warning", told)
    if session.read_only:
        ui.notify("warning", "read-only: /fork or /clone go on in a session of your own")


def plan_for(path: str, library: SessionLibrary) -> OpeningPlan:
    """What to do about the directory of a session, which is only looked at. Blocks.

    Raises StorageError.
    """
    recorded = library.directory_of(path)
    if library.is_here(recorded):
        return plan_opening(library.cwd, library.cwd, cwd_exists=True)
    return plan_opening(recorded, library.cwd, bool(recorded) and library.exists(recorded))


async def _ask_directory(plan: OpeningPlan, library: SessionLibrary, ui: CommandUI) -> str | None:
    here = library.shown(library.cwd)
    return await ui.choose(
        plan.question(library.shown(plan.recorded_cwd), here),
        [
            Choice("here", "continue here", f"tools run in {here}; the model is told so"),
            Choice("fork", "fork it for this directory", "the old session stays as it is"),
            Choice("cancel", "cancel"),
        ],
        "here",
    )


def fork_whole_path(opened: OpenedSession, library: SessionLibrary) -> OpenedSession:
    """Copy the current path of an opened session into one of this directory. Blocks."""
    tree = snapshot_of_opened(opened).tree()
    path_ids = tree.path_ids()
    if not path_ids:
        raise UsageError("there is nothing to fork: the session is at its beginning")
    return library.fork(opened.store, path_ids, tree.labels)


def _forked(path: str, library: SessionLibrary) -> OpenedSession:
    source = library.open(path, read_only=True)
    try:
        fork = fork_whole_path(source, library)
        return OpenedSession(fork.store, fork.heads, (*source.notices, *fork.notices))
    finally:
        source.store.close()
