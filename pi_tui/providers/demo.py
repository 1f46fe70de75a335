"""The built-in demo model: a provider that needs no key and no network and says it is scripted.

It streams what `demo_tour` decides, word by word at a pace people can read, and can be stopped at
any word. It costs nothing; its usage is an estimate of four characters to a token, like the
program's own. It never calls a tool itself: it asks for calls, as every model does.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

from msgspec import UNSET

from pi_tui.core.messages import AssistantMessage, TextContent, ToolCall, Usage, text_of
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import (
    ResponseStarted,
    Stopped,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReport,
)
from pi_tui.providers.demo_tour import next_answer

DEMO_MODEL = Model(
    provider="demo",
    id="tour",
    api="demo",
    name="Scripted demo (no language model)",
    context_window=48_000,
    max_tokens=8_192,
    reasoning=True,
)
WORD_DELAY_S = 0.02
_WORD = re.compile(r"\s*\S+\s*|\s+")


class DemoProvider:
    """Streams the tour. `sleep` waits between words; `models_file` is named in the instructions."""

    def __init__(
        self,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        models_file: str = "models.json",
        word_delay_s: float = WORD_DELAY_S,
    ) -> None:
        self._sleep = sleep
        self._models_file = models_file
        self._word_delay_s = word_delay_s

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Answer as the tour says. Never fails; cancelling stops at the next word."""
        answer = next_answer(request, self._models_file)
        await self._sleep(self._word_delay_s)
        yield ResponseStarted()
        written_chars = 0
        index = 0
        if answer.thought and request.thinking_level != "off":
            for word in _words(answer.thought):
                yield ThinkingDelta(index, word)
                await self._sleep(self._word_delay_s)
            written_chars += len(answer.thought)
            index += 1
        for word in _words(answer.text):
            yield TextDelta(index, word)
            await self._sleep(self._word_delay_s)
        written_chars += len(answer.text)
        if answer.call is not None:
            arguments = json.dumps(answer.call.arguments, ensure_ascii=False)
            for event in _call_events(index + 1, answer.call, arguments):
                yield event
            written_chars += len(answer.call.name) + len(arguments)
        yield UsageReport(_usage(request, written_chars))
        yield Stopped("stop" if answer.call is None else "toolUse")


def _words(text: str) -> Iterator[str]:
    return (match.group() for match in _WORD.finditer(text))


def _call_events(index: int, call: ToolCall, arguments: str) -> tuple[StreamEvent, ...]:
    return (
        ToolCallStarted(index, call.id, call.name),
        ToolCallDelta(index, arguments),
        ToolCallDone(index, call),
    )


def _usage(request: ModelRequest, written_chars: int) -> Usage:
    """What a model of this size would have counted: four characters to a token, no cost."""
    read_chars = len(request.system)
    for tool in request.tools:
        read_chars += len(tool.name) + len(tool.description) + len(json.dumps(tool.parameters))
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            for block in message.content:
                if isinstance(block, TextContent):
                    read_chars += len(block.text)
                elif isinstance(block, ToolCall):
                    read_chars += len(block.name) + len(json.dumps(block.arguments))
        else:
            read_chars += len(text_of(message.content))
    read, written = -(-read_chars // 4), -(-written_chars // 4)
    return Usage(input=read, output=written, total_tokens=read + written, reasoning=UNSET)
