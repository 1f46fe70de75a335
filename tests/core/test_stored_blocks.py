"""Blocks of a stored path where something is missing from it."""

from __future__ import annotations

import pytest

from pi_tui.core.entries import Entry, MessageEntry
from pi_tui.core.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_content,
)
from pi_tui.core.transcript import NO_RESULT, ToolBlock, blocks_of

CALLS = (ToolCall("c1", "bash", {"command": "make"}), ToolCall("c2", "read", {"path": "a"}))


def answer(*calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(
        (TextContent("I will"), *calls), api="a", provider="p", model="m",
        usage=None, stop_reason="toolUse", timestamp=0,
    )  # fmt: skip


def result(call: ToolCall) -> ToolResultMessage:
    return ToolResultMessage(call.id, call.name, text_content("done"), False, 0)


def path(*messages: Message) -> list[Entry]:
    return [
        MessageEntry(id=f"{n:08x}", parent_id=None, timestamp="", message=message)
        for n, message in enumerate(messages)
    ]


@pytest.mark.parametrize("after", [(), (UserMessage("go on", 0), answer())])
def test_a_call_without_a_result_was_interrupted(after: tuple[Message, ...]) -> None:
    blocks = blocks_of(path(UserMessage("x", 0), answer(*CALLS), result(CALLS[1]), *after))
    calls = [block for block in blocks if isinstance(block, ToolBlock)]
    assert [(call.state, call.output) for call in calls] == [("error", NO_RESULT), ("ok", "done")]


def test_the_same_id_again_does_not_hide_that() -> None:
    blocks = blocks_of(path(answer(CALLS[0]), answer(CALLS[0]), result(CALLS[0])))
    calls = [block for block in blocks if isinstance(block, ToolBlock)]
    assert [call.state for call in calls] == ["error", "ok"]


def test_where_a_run_goes_on_a_call_may_still_be_answered() -> None:
    blocks = blocks_of(path(answer(*CALLS), result(CALLS[1])), running=True)
    calls = [block for block in blocks if isinstance(block, ToolBlock)]
    assert [call.state for call in calls] == ["pending", "ok"]
