"""The user's own `!` commands, on the same runner as the model's `bash`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from pi_tui.core.errors import ToolError
from pi_tui.core.protocols import ShellOutcome
from pi_tui.tools.bash import Snapshots, running_note
from pi_tui.tools.command_output import CommandOutput
from pi_tui.tools.options import ToolOptions
from pi_tui.tools.runner import ProcessRunner


class LocalShell:
    """Runs commands on this machine; see `core.protocols.Shell`.

    `on_output` gets snapshots of the end of the output so far, at most ten a second, not deltas.
    """

    def __init__(self, options: ToolOptions, runner: ProcessRunner | None = None) -> None:
        self.runner = runner or ProcessRunner(options)

    async def run(self, command: str, cwd: str, on_output: Callable[[str], None]) -> ShellOutcome:
        """Run to the end. Cancelled once, it ends the command and returns what there is."""
        output = CommandOutput(self.runner.options, self.runner.spill)
        snapshots = Snapshots(lambda: on_output(output.snapshot()))

        def receive(data: bytes) -> None:
            output.feed(data)
            snapshots.changed()

        end = None
        try:
            end = await self.runner.run(command, cwd, receive)
        except ToolError as error:
            return ShellOutcome(error.message, None)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
        finally:
            snapshots.stop()
            output.close()
        final = output.finish()
        text = final.text.rstrip("\n")
        if final.note:
            text = f"{final.note}\n{text}"
        if end is not None and end.left_running:
            text = f"{text}\n{running_note(end.left_running)}".lstrip("\n")
        return ShellOutcome(
            text,
            end.exit_code if end is not None else None,
            cancelled=end is None,
            timed_out=end is not None and end.timed_out,
            truncated=final.truncated,
            full_output_path=final.full_output_path,
            left_running=end is not None and bool(end.left_running),
        )

    def close(self) -> Sequence[str]:
        """End what commands left running in the background; returns what was ended. Blocking."""
        return self.runner.close()
