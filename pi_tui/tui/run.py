"""What is run before and after the application: the terminal held and given back, last words.

The terminal is as it was before when this returns, however the program ended. What is left to say
is said on the normal screen.
"""

from __future__ import annotations

import asyncio
import gc
import shlex
import sys
from contextlib import suppress

from pi_tui.agent.session import AgentSession
from pi_tui.commands.registry import CommandRegistry
from pi_tui.core.sanitise import sanitise
from pi_tui.tui.app import PiTuiApp
from pi_tui.tui.crash import crash_report
from pi_tui.tui.driver import ignore_textual_settings, set_escape_delay
from pi_tui.tui.options import TuiOptions
from pi_tui.tui.own_children import kill_own_children
from pi_tui.tui.terminal import TerminalGuard, hold_terminal


def run_tui(session: AgentSession, registry: CommandRegistry, options: TuiOptions) -> int:
    """Run the full-screen front end until the person leaves; returns the exit code.

    Closes the session. The terminal is as it was before when this returns, however it ended.
    """
    guard = hold_terminal()
    guard.remote = options.remote

    def forced_end() -> list[str]:
        kill_own_children()
        return [f"pi-tui: {sanitise(line)}" for line in session.rescue()]

    guard.on_forced_end = forced_end
    ignore_textual_settings()
    set_escape_delay(max(options.escape_delay_s, 0.1 if options.remote else 0.0))
    crash: BaseException | None = None
    told: tuple[str, ...] = ()
    code = 1
    gc.disable()  # until the first screen: while a program starts there is no garbage
    try:
        with guard:
            code, crash, told = asyncio.run(_run(session, registry, options, guard))
    except Exception as error:  # noqa: BLE001 - the last place that can still tell anybody
        crash = error
    if guard.signalled is not None:
        code = 128 + guard.signalled
    _farewell(session, options, crash, told)
    return code


def _farewell(
    session: AgentSession,
    options: TuiOptions,
    crash: BaseException | None,
    told: tuple[str, ...],
) -> None:
    """What is left to say, on the normal screen."""
    with suppress(OSError):  # after a hang-up nobody reads this
        if crash is not None:
            sys.stderr.write(crash_report(crash, options.secrets))
        sys.stderr.writelines(f"pi-tui: {sanitise(line)}\n" for line in told)
        sys.stderr.flush()
        if len(session.tree) and session.store.path is not None:
            reference = options.resume_reference or session_id
            name = shlex.quote(reference(session))
            sys.stdout.write(f"To go on with this session:\n{options.resume_command} {name}\n")
            sys.stdout.flush()


async def _run(
    session: AgentSession, registry: CommandRegistry, options: TuiOptions, guard: TerminalGuard
) -> tuple[int, BaseException | None, tuple[str, ...]]:
    loop = asyncio.get_running_loop()
    app = PiTuiApp(session, registry, options)

    def end(signum: int) -> None:
        loop.call_soon_threadsafe(lambda: app.exit(return_code=128 + signum))

    guard.on_signal = end
    app.on_leaving = guard.begin_leaving
    try:
        await app.run_async()
    finally:
        guard.on_signal = _ending_already
        guard.begin_leaving()
        await app.shut_down()
        guard.restore_screen()
        told = await session.close()
    crash = app.crash
    return (1 if crash is not None else app.return_code or 0), crash, told


def session_id(session: AgentSession) -> str:
    """The usual name of a session."""
    return session.session_id


def _ending_already(signum: int) -> None:
    """The end is under way; the guard ends the process if that takes too long."""
