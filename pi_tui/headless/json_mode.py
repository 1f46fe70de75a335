"""JSON mode: the session header, then every event, one JSON object a line.

What happened to the session before it was listened to comes first, and the header of another
session when that takes its place, so that no entry stands there without its parent. Lines end in
LF, and nothing within a line can be taken for a line end or for a terminal's control character:
such characters are written as \\u escapes. Each line is flushed as it is made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TextIO

import msgspec

from pi_tui.core.entries import header_to_data
from pi_tui.core.events import Event, Notice, SessionReplaced, event_to_data
from pi_tui.core.messages import JSON
from pi_tui.headless.commands import HeadlessUI
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.output import Diagnostics, OutputWriter
from pi_tui.headless.print_mode import reader_left, tell_failure
from pi_tui.headless.run import CommandRunner, HeadlessRun, PromptSession, tell, tell_ending
from pi_tui.headless.stop_signals import StopSignals


class EarlierEvents:
    """A listener that keeps what happens before the run; `take` gives it out and ends that."""

    def __init__(self) -> None:
        self._events: list[Event] | None = []

    def __call__(self, event: Event) -> None:
        if self._events is not None:
            self._events.append(event)

    def take(self) -> tuple[Event, ...]:
        """What happened until now, in order."""
        events, self._events = self._events, None
        return tuple(events or ())


async def run_json(
    session: PromptSession,
    prompts: Sequence[Prompt],
    stdout: TextIO,
    stderr: TextIO,
    commands: Callable[[HeadlessUI], CommandRunner] | None = None,
    earlier: EarlierEvents | None = None,
) -> int:
    """Run the prompts and write what happens, after what happened `earlier`; returns the exit code.

    `commands` makes what runs slash commands; what they show is a line of type `command_output`,
    with `data` where it is more than a text.

    A reader that goes away ends the run, and the exit code is then 1. The session stays open; the
    caller closes it.
    """
    diagnostics = Diagnostics(stderr)
    writer = OutputWriter(stdout)

    def write(event: Event) -> None:
        writer.put(json_line(event_to_data(event)))
        if isinstance(event, SessionReplaced):
            writer.put(json_line(header_to_data(session.store.header)))
        tell(event, diagnostics)

    with StopSignals(writer.release) as signals:
        ui = HeadlessUI(
            lambda title, text, data: writer.put(json_line(_command_output(title, text, data))),
            lambda level, text: write(Notice(level, text)),
        )
        run = HeadlessRun(session, write, signals, commands(ui) if commands is not None else None)
        writer.on_failure = run.stop
        writer.put(json_line(header_to_data(session.store.header)))
        for event in earlier.take() if earlier is not None else ():
            write(event)
        try:
            ending = await run.send(prompts)
        finally:
            await writer.finish(signals.first)
        if writer.failure is None:
            return tell_ending(ending, signals, diagnostics, session.store)
    if not reader_left(writer.failure):
        tell_failure(writer.failure, diagnostics)
    return signals.exit_code or 1


def _command_output(title: str, text: str, data: JSON) -> JSON:
    output = {"type": "command_output", "title": title, "text": text}
    return output if data is None else {**output, "data": data}


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
