"""The user's own `!` and `!!` commands: run beside the agent, stored at a safe point.

A command's entry must not land between a tool call and its answer, so while a run is on it waits
for the end of the turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import count

from msgspec import UNSET

from pi_tui.agent.bus import EventBus
from pi_tui.agent.journal import Journal
from pi_tui.core.errors import PiTuiError
from pi_tui.core.events import BashExecutionEnd, BashExecutionStart, BashExecutionUpdate, Notice
from pi_tui.core.messages import BashExecutionMessage
from pi_tui.core.protocols import Shell, ShellOutcome


class ShellCommands:
    """Runs user commands, one after the other."""

    def __init__(
        self,
        shell: Shell,
        bus: EventBus,
        *,
        journal: Callable[[], Journal],
        cwd: Callable[[], str],
        may_store: Callable[[], bool],
    ) -> None:
        self._shell = shell
        self._bus = bus
        self._journal = journal
        self._cwd = cwd
        self._may_store = may_store
        self._ids = count(1)
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[tuple[str, BashExecutionMessage]] = []

    @property
    def running(self) -> bool:
        """True while a command runs."""
        return self._task is not None and not self._task.done()

    def start(self, command: str, *, excluded: bool) -> bool:
        """Start a command in the background; False when one is running already."""
        if self.running:
            self._bus.emit(
                Notice("warning", "a command is still running; Escape stops it, then try again")
            )
            return False
        self._task = asyncio.get_running_loop().create_task(self._run(command, excluded=excluded))
        return True

    def cancel(self) -> bool:
        """Stop the running command; False when there is none."""
        if self._task is None or self._task.done():
            return False
        return self._task.cancel()

    async def wait(self) -> None:
        """Wait until no command runs."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    def store_waiting(self) -> None:
        """Append what ended while the agent was in the middle of a turn."""
        waiting, self._waiting = self._waiting, []
        for run_id, message in waiting:
            self._journal().message(message)
            self._bus.emit(BashExecutionEnd(run_id))

    def close(self) -> Sequence[str]:
        """End what commands left running."""
        return self._shell.close()

    async def _run(self, command: str, *, excluded: bool) -> None:
        run_id = f"shell-{next(self._ids)}"
        self._bus.emit(BashExecutionStart(run_id, command, excluded))
        try:
            outcome = await self._shell.run(
                command,
                self._cwd(),
                lambda output: self._bus.emit(BashExecutionUpdate(run_id, output)),
            )
        except PiTuiError as error:
            outcome = ShellOutcome(output=error.text, exit_code=None)
        except asyncio.CancelledError:
            outcome = ShellOutcome(output="", exit_code=None, cancelled=True)
        except Exception as error:  # noqa: BLE001 - what was begun must end, for people and the file
            words = self._bus.fault_words(error)
            self._bus.emit(Notice("error", f"the command could not be run ({words})"))
            outcome = ShellOutcome(output=words, exit_code=None)
        path = outcome.full_output_path
        message = BashExecutionMessage(
            command=command,
            output=outcome.output,
            exit_code=outcome.exit_code,
            cancelled=outcome.cancelled,
            truncated=outcome.truncated,
            timestamp=self._journal().clock.now_ms(),
            full_output_path=UNSET if path is None else path,
            exclude_from_context=True if excluded else UNSET,
        )
        self._waiting.append((run_id, message))
        if self._may_store():
            self.store_waiting()
