"""The tool calls of one answer: checked, run in parallel, answered in call order.

Every call gets exactly one result, whatever happens: unknown tools and wrong arguments become error
results, an abort gives the calls that had not ended a result that says so. Results are stored as
soon as all earlier ones are, so a kill in the middle loses only work that nobody was told of.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Sequence

from msgspec import UNSET, Struct

from pi_tui.agent.bus import EventBus
from pi_tui.agent.journal import Journal
from pi_tui.agent.signals import Aborted, AbortSignal
from pi_tui.core.errors import ToolError
from pi_tui.core.events import ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate
from pi_tui.core.messages import (
    INVALID_JSON_KEY,
    AssistantMessage,
    ToolCall,
    ToolResultMessage,
    text_content,
)
from pi_tui.core.protocols import Tool, ToolContext, ToolOutput

CUT_ANSWER_RESULT = (
    "Not run: the answer was cut at the output limit, so the arguments may be incomplete. "
    "Make the call again, with smaller arguments if it was large."
)
ABORTED_RESULT = "Aborted by the user before it ended."


class _Finished(Struct, frozen=True):
    call: ToolCall
    output: ToolOutput
    duration_ms: int
    aborted: bool = False


class BatchResult(Struct, frozen=True):
    """The stored results in call order; `aborted` when the user stopped the batch."""

    results: tuple[ToolResultMessage, ...]
    aborted: bool


class ToolRunner:
    """Runs the calls of one answer after the other."""

    def __init__(
        self,
        tools: Sequence[Tool],
        bus: EventBus,
        *,
        cwd: Callable[[], str],
        environment: Callable[[], dict[str, str]],
    ) -> None:
        self._tools = {tool.declaration.name: tool for tool in tools}
        self._bus = bus
        self._cwd = cwd
        self._environment = environment

    async def run(
        self, message: AssistantMessage, journal: Journal, signal: AbortSignal
    ) -> BatchResult:
        """Run all calls of the message and store their results."""
        cut = message.stop_reason == "length"
        locks: dict[str, asyncio.Lock] = {}
        tasks = [
            asyncio.ensure_future(self._one(call, locks, journal, signal, cut=cut))
            for call in message.tool_calls
        ]
        results: list[ToolResultMessage] = []
        aborted = False
        try:
            for task in tasks:
                finished = await task
                aborted = aborted or finished.aborted
                result = _message(finished, journal.clock.now_ms())
                journal.message(result)
                results.append(result)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return BatchResult(tuple(results), aborted)

    async def _one(
        self,
        call: ToolCall,
        locks: dict[str, asyncio.Lock],
        journal: Journal,
        signal: AbortSignal,
        *,
        cut: bool,
    ) -> _Finished:
        self._bus.emit(ToolExecutionStart(call.id, call.name, call.arguments))
        started_s = journal.clock.monotonic_s()
        aborted = False
        partial: list[ToolOutput] = []

        def update(output: ToolOutput) -> None:
            partial[:] = [output]
            self._bus.emit(ToolExecutionUpdate(call.id, call.name, call.arguments, output.content))

        try:
            if cut:
                raise ToolError(CUT_ANSWER_RESULT)
            output = await signal.guard(self._execute(call, locks, update))
        except Aborted:
            aborted, output = True, _aborted(partial)
        except ToolError as error:
            output = ToolOutput(text_content(error.text), is_error=True)
        except Exception as error:  # noqa: BLE001 - a faulty tool must not end the conversation
            output = ToolOutput(
                text_content(f"The tool {call.name} failed: {self._bus.fault_details(error)}"),
                is_error=True,
            )
        duration_ms = round((journal.clock.monotonic_s() - started_s) * 1000)
        self._bus.emit(
            ToolExecutionEnd(
                call.id, call.name, output.content, output.is_error, duration_ms, output.details
            )
        )
        return _Finished(call, output, duration_ms, aborted)

    async def _execute(
        self,
        call: ToolCall,
        locks: dict[str, asyncio.Lock],
        update: Callable[[ToolOutput], None],
    ) -> ToolOutput:
        tool = self._tools.get(call.name)
        if tool is None:
            raise ToolError(_unknown(call.name, tuple(self._tools)))
        if INVALID_JSON_KEY in call.arguments:
            raise ToolError(
                f"The arguments of {call.name} were not one JSON object. Send the call again with "
                "arguments that match its schema."
            )
        tool.check(call.arguments)
        cwd = self._cwd()
        context = ToolContext(
            call_id=call.id,
            cwd=cwd,
            on_update=update,
            environment=self._environment(),
        )
        path = tool.written_path(call.arguments, cwd)
        if path is None:
            return await tool.run(call.arguments, context)
        async with locks.setdefault(path, asyncio.Lock()):  # fair: waiters go in call order
            return await tool.run(call.arguments, context)


def _message(finished: _Finished, timestamp: int) -> ToolResultMessage:
    output = finished.output
    return ToolResultMessage(
        tool_call_id=finished.call.id,
        tool_name=finished.call.name,
        content=output.content,
        is_error=output.is_error,
        timestamp=timestamp,
        details=UNSET if output.details is None else output.details,
        duration_ms=finished.duration_ms,
    )


def _aborted(partial: Sequence[ToolOutput]) -> ToolOutput:
    """The result of a call that was stopped: what it had put out, and that it was stopped."""
    shown = partial[-1].content if partial else ()
    return ToolOutput((*shown, *text_content(ABORTED_RESULT)), is_error=True)


def _unknown(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    guess = f" Did you mean {close[0]}?" if close else ""
    return f"There is no tool called {name!r}.{guess} Available: {', '.join(known) or 'none'}."
