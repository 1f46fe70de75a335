"""JSON mode: the session header, then every event, one JSON object a line.

Lines end in LF, and nothing within a line can be taken for a line end or for a terminal's control
character: such characters are written as \\u escapes. Each line is flushed as it is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TextIO

import msgspec

from pi_tui.core.entries import header_to_data
from pi_tui.core.events import Event, Notice, event_to_data
from pi_tui.core.messages import JSON
from pi_tui.headless.commands import HeadlessUI
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.output import Diagnostics, OutputWriter
from pi_tui.headless.print_mode import reader_left, tell_failure
from pi_tui.headless.run import CommandRunner, HeadlessRun, PromptSession, tell, tell_ending
from pi_tui.headless.stop_signals import StopSignals


async def run_json(
    session: PromptSession,
    prompts: Sequence[Prompt],
    stdout: TextIO,
    stderr: TextIO,
    commands: Callable[[HeadlessUI], CommandRunner] | None = None,
) -> int:
    """Run the prompts and write what happens; returns the exit code.

    `commands` makes what runs slash commands; what they show is a line of type `command_output`.

    A reader that goes away ends the run, and the exit code is then 1. The session stays open; the
    caller closes it.
    """
    diagnostics = Diagnostics(stderr)
    writer = OutputWriter(stdout)

    def write(event: Event) -> None:
        writer.put(json_line(event_to_data(event)))
        tell(event, diagnostics)

    with StopSignals(writer.release) as signals:
        ui = HeadlessUI(
            lambda title, text: writer.put(
                json_line({"type": "command_output", "title": title, "text": text})
            ),
            lambda level, text: write(Notice(level, text)),
        )
        run = HeadlessRun(session, write, signals, commands(ui) if commands is not None else None)
        writer.on_failure = run.stop
        writer.put(json_line(header_to_data(session.store.header)))
        try:
            ending = await run.send(prompts)
        finally:
            await writer.finish(signals.first)
        if writer.failure is None:
            return tell_ending(ending, signals, diagnostics)
    if not reader_left(writer.failure):
        tell_failure(writer.failure, diagnostics)
    return signals.exit_code or 1


_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def json_line(data: JSON) -> bytes:
    """One value as a line of JSON in UTF-8."""
    try:
        text = msgspec.json.encode(data).decode()
    except UnicodeEncodeError:
        # A text with half a surrogate pair, as another program may have stored it.
        import json

        text = json.dumps(data, separators=(",", ":"))
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"
