"""The `bash` tool: runs a command and gives the end of its output to the model."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

from msgspec import Struct

from pi_tui.core.messages import JSON, TextContent
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import declared
from pi_tui.tools.arguments import Arguments
from pi_tui.tools.command_output import CommandOutput, FinalOutput
from pi_tui.tools.processes import RunningProcess
from pi_tui.tools.runner import CommandEnd, ProcessRunner
from pi_tui.tools.tool import BuiltinTool

SNAPSHOT_INTERVAL_S = 0.1

DECLARATION = declared.declare(
    "bash",
    "Run a shell command in the working directory; standard output and standard error come back "
    "together, in order. There is no terminal and standard input is empty: commands that ask for "
    "something fail or go on without an answer, so pass answers as options, in a pipe or a file. "
    "Only the last 2000 lines or 50 kB are given; the answer names a file with all of it. A "
    "process left in the background with & keeps running after the call, without further output.",
    {
        "command": declared.string("The command, for bash"),
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "Seconds after which the command is ended; no limit when left out",
        },
    },
    ["command"],
)

NO_INPUT = (
    "[There is no input for commands here: standard input is empty and there is no terminal. "
    "Asking again gives the same; pass the answer as an option, in a pipe or a file.]"
)

_ASKED = re.compile(
    r"EOFError|EOF when reading|not a t(?:ty|erminal)|no tty present|/dev/tty"
    r"|a terminal is required|inappropriate ioctl|terminal prompts disabled"
    r"|could not read (?:username|password)|problem with the editor|host key verification failed"
    r"|permission denied \([^)\n]*(?:password|keyboard-interactive)|stdin is not|input device",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:^|[;&({]|\b(?:do|then|else)\s)\s*(?:read|select)\s(?![^;&\n]*<)", re.MULTILINE
)
_FED = re.compile(r"\|\s*(?:\{|\(|while\b|read\b)|\bdone\s*<|<<")
_READERS = re.compile(r"\s*(?:cat|tee|sh|bash|python3?|node|bc|wc|sort|head|tail)(?:\s+-)?\s*\Z")


class BashArguments(Struct, frozen=True):
    command: str
    timeout_s: float | None


def parse_bash(arguments: dict[str, JSON]) -> BashArguments:
    given = Arguments("bash", arguments)
    command = given.text(
        "command", "cmd", "script", expected="a string, the command to run", empty=False
    )
    timeout_s = given.number(
        "timeout", "timeout_s", "timeoutSeconds", expected="a number of seconds above 0"
    )
    return BashArguments(command, timeout_s)


class Snapshots:
    """Calls back at a bounded rate while something changes."""

    def __init__(self, show: Callable[[], None]) -> None:
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._next_s = 0.0
        self._planned: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        """Show the new state now or as soon as the rate allows."""
        if self._planned is None:
            delay_s = max(0.0, self._next_s - self._loop.time())
            self._planned = self._loop.call_later(delay_s, self._fire)

    def stop(self) -> None:
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None

    def _fire(self) -> None:
        self._planned = None
        self._show()
        self._next_s = self._loop.time() + SNAPSHOT_INTERVAL_S


class BashTool(BuiltinTool[BashArguments]):
    """Runs commands of the model."""

    declaration = DECLARATION
    prompt_line = "run a shell command"
    parse = staticmethod(parse_bash)

    def __init__(self, runner: ProcessRunner) -> None:
        super().__init__(runner.options)
        self.runner = runner

    async def work(self, parsed: BashArguments, context: ToolContext) -> ToolOutput:
        output = CommandOutput(self.runner.options, self.runner.spill)

        def show() -> None:
            context.on_update(ToolOutput((TextContent(output.snapshot()),)))

        snapshots = Snapshots(show)

        def receive(data: bytes) -> None:
            output.feed(data)
            snapshots.changed()

        try:
            end = await self.runner.run(
                parsed.command,
                context.cwd,
                receive,
                environment=context.environment,
                timeout_s=parsed.timeout_s,
            )
        except asyncio.CancelledError:
            show()  # so that who cancels has the last state
            raise
        finally:
            snapshots.stop()
            output.close()
        return answer(parsed, output.finish(), end)


def answer(parsed: BashArguments, final: FinalOutput, end: CommandEnd) -> ToolOutput:
    """The result for the model and the facts for people."""
    parts = [final.note] if final.note else []
    parts.append(final.text.rstrip("\n") or "(no output)")
    notes: list[str] = []
    if end.timed_out:
        notes.append(f"[Timed out: the command was ended after {parsed.timeout_s:g} s.]")
    elif end.signal_name:
        notes.append(f"[Ended by {end.signal_name}, exit code {end.exit_code}]")
    elif end.exit_code:
        notes.append(f"[exit code {end.exit_code}]")
    if end.left_running:
        notes.append(running_note(end.left_running))
    if lacked_input(parsed.command, final.text, end.exit_code):
        notes.append(NO_INPUT)
    text = "\n".join(parts) + ("\n\n" + "\n".join(notes) if notes else "")
    details: dict[str, JSON] = {
        "exitCode": end.exit_code,
        "timedOut": end.timed_out,
        "truncated": final.truncated,
        "totalLines": final.total_lines,
        "totalBytes": final.total_bytes,
    }
    if final.full_output_path:
        details["fullOutputPath"] = final.full_output_path
    if end.left_running:
        details["leftRunning"] = [
            {"pid": process.pid, "command": process.command} for process in end.left_running
        ]
    failed = end.timed_out or end.exit_code != 0
    return ToolOutput((TextContent(text),), is_error=failed, details=details)


def running_note(processes: tuple[RunningProcess, ...]) -> str:
    """Say what is still running."""
    named = ", ".join(f"{process.command} (pid {process.pid})" for process in processes[:4])
    more = f" and {len(processes) - 4} more" if len(processes) > 4 else ""
    return (
        f"[Still running in the background: {named}{more}. Its later output is not shown; "
        "it is ended when pi-tui ends.]"
    )


def lacked_input(command: str, output: str, exit_code: int) -> bool:
    """Whether the command seems to have wanted input; a guess from its words and its output."""
    if exit_code and _ASKED.search(output[-8192:]):
        return True
    if not output.strip() and _READERS.match(command):
        return True
    return bool(_ASKING.search(command)) and not _FED.search(command)
