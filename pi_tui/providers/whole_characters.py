"""Characters that a server cut in two: halves of surrogate pairs in stream events.

A server that cuts its text by UTF-16 units sends an emoji as two deltas. The halves are joined when
they follow each other in one block; a half that stays alone becomes U+FFFD. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from pi_tui.core.json_text import mended_text
from pi_tui.core.streaming import (
    ResponseStarted,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReport,
)

_Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta


class WholeCharacters:
    """Hands on the events of one answer, in order; holds back half a character at most."""

    def __init__(self) -> None:
        self._half: _Delta | None = None

    def hand_on(self, events: Iterable[StreamEvent]) -> Iterator[StreamEvent]:
        """Yield the events with whole characters only."""
        for event in events:
            if isinstance(event, _Delta):
                if self._half is None and event.text.isascii():
                    yield event
                else:
                    yield from self._delta(event)
            elif isinstance(event, UsageReport):
                yield event  # some servers count after every piece
            else:
                yield from self._lone_half()
                yield _mended(event)

    def _delta(self, event: _Delta) -> Iterator[StreamEvent]:
        text = event.text
        half = self._half
        if half is not None and type(half) is type(event) and half.index == event.index:
            text = half.text + text
            self._half = None
        else:
            yield from self._lone_half()
        if "\ud800" <= text[-1:] <= "\udbff":
            self._half = replace(event, text=text[-1])
            text = text[:-1]
        if text:
            yield replace(event, text=mended_text(text))

    def _lone_half(self) -> Iterator[StreamEvent]:
        half, self._half = self._half, None
        if half is not None:
            yield replace(half, text=mended_text(half.text))


def _mended(event: StreamEvent) -> StreamEvent:
    match event:
        case ResponseStarted(response_id=number, response_model=model):
            return ResponseStarted(mended_text(number), mended_text(model))
        case ToolCallStarted(name=name):
            return replace(event, name=mended_text(name))
        case ToolCallDone(call=call):
            return replace(event, call=replace(call, name=mended_text(call.name)))
        case ThinkingSigned(signature=signature):
            return replace(event, signature=mended_text(signature))
    return event
