"""Print mode: run the prompts, print the text of the last answer, exit.

Standard output carries that text and nothing else: raw into a file or a pipe, made safe on a
terminal. A cut answer is printed and reported; a failed or aborted one is only reported.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import TextIO

from pi_tui.core.sanitise import sanitise
from pi_tui.headless.commands import HeadlessUI
from pi_tui.headless.inputs import Prompt
from pi_tui.headless.output import Diagnostics, OutputWriter, encode_text
from pi_tui.headless.run import CommandRunner, Ending, HeadlessRun, PromptSession, tell, tell_ending
from pi_tui.headless.stop_signals import StopSignals


async def run_print(
    session: PromptSession,
    prompts: Sequence[Prompt],
    stdout: TextIO,
    stderr: TextIO,
    commands: Callable[[HeadlessUI], CommandRunner] | None = None,
) -> int:
    """Run the prompts and print the final text; returns the exit code.

    `commands` makes what runs slash commands; without it they are ordinary messages. The session
    stays open; the caller closes it.
    """
    diagnostics = Diagnostics(stderr)
    writer = OutputWriter(stdout)
    with StopSignals(writer.release) as signals:
        ui = HeadlessUI(
            lambda _, text, data: writer.put(encode_text(f"{_safe(text, stdout)}\n", stdout)),
            diagnostics.say,
        )
        run = HeadlessRun(
            session,
            lambda event: tell(event, diagnostics),
            signals,
            commands(ui) if commands is not None else None,
        )
        ending = await run.send(prompts)
        if signals.received is None:
            text = final_text(ending)
            if text:
                shown = sanitise(text) if stdout.isatty() else text
                writer.put(encode_text(shown, stdout))
            elif ending.complete and ending.command_done is None:
                diagnostics.say("warning", "the model gave an empty answer")
        await writer.finish(signals.first)
        code = tell_ending(ending, signals, diagnostics, session.store)
    if writer.failure is not None and not reader_left(writer.failure):
        tell_failure(writer.failure, diagnostics)
        return code or 1
    return code


def _safe(text: str, stdout: TextIO) -> str:
    return sanitise(text) if stdout.isatty() else text


def final_text(ending: Ending) -> str:
    """The text to print: that of an answer that was finished, or cut at the output limit."""
    answer = ending.answer
    if answer is None or ending.error is not None or ending.aborted:
        return ""
    return "" if answer.stop_reason in ("error", "aborted") else answer.text


def reader_left(failure: OSError) -> bool:
    """True when merely nobody reads any more; EIO is a terminal that is gone."""
    return failure.errno in (errno.EPIPE, errno.EIO)


def tell_failure(failure: OSError, diagnostics: Diagnostics) -> None:
    """Say that the output could not be written."""
    why = (failure.strerror or str(failure)).lower()
    diagnostics.say("error", f"the output could not be written: {why}")
