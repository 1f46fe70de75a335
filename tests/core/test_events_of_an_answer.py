"""What front ends hear of an answer: whole blocks in order, one start, one end, right places."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_tui.core.events import MessageUpdate, event_to_data, stream_event_to_data
from pi_tui.core.messages import JSON, StopReason, ToolCall, Usage
from pi_tui.core.streaming import (
    AnswerEvents,
    MessageBuilder,
    ResponseStarted,
    Stopped,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
    UsageReport,
)

START = ResponseStarted("r1")


def heard(
    said: Sequence[StreamEvent], reason: StopReason = "stop", words: str = ""
) -> list[dict[str, JSON]]:
    events = AnswerEvents()
    told = [event for one in said for event in events.hear(one)]
    return [stream_event_to_data(event) for event in (*told, *events.end(reason, words))]


def brief(said: Sequence[StreamEvent], reason: StopReason = "stop", words: str = "") -> list[str]:
    """Each step as `type index`."""
    return [f"{step['type']} {step['contentIndex']}" for step in heard(said, reason, words)]


def call(index: int, name: str = "read") -> tuple[ToolCallStarted, ToolCallDelta, ToolCallDone]:
    whole = ToolCall(f"c{index}", name, {"n": index})
    return (
        ToolCallStarted(index, whole.id, name),
        ToolCallDelta(index, "{}"),
        ToolCallDone(index, whole),
    )


def test_thinking_text_and_a_call() -> None:
    said = [
        START,
        ThinkingDelta(0, "hm"),
        ThinkingSigned(0, "sig"),
        TextDelta(1, "a"),
        TextDelta(1, "b"),
        UsageReport(Usage(input=1)),
        *call(2),
        Stopped("toolUse"),
    ]
    assert heard(said, "toolUse") == [
        {"type": "start", "contentIndex": 0},
        {"type": "thinking_start", "contentIndex": 0},
        {"type": "thinking_delta", "contentIndex": 0, "delta": "hm"},
        {"type": "thinking_end", "contentIndex": 0},
        {"type": "text_start", "contentIndex": 1},
        {"type": "text_delta", "contentIndex": 1, "delta": "a"},
        {"type": "text_delta", "contentIndex": 1, "delta": "b"},
        {"type": "text_end", "contentIndex": 1},
        {"type": "toolcall_start", "contentIndex": 2, "id": "c2", "toolName": "read"},
        {"type": "toolcall_delta", "contentIndex": 2, "delta": "{}"},
        {
            "type": "toolcall_end",
            "contentIndex": 2,
            "toolCall": {"type": "toolCall", "id": "c2", "name": "read", "arguments": {"n": 2}},
        },
        {"type": "done", "contentIndex": 2, "reason": "toolUse"},
    ]


def test_thinking_without_a_signature_ends_where_the_next_block_begins() -> None:
    assert brief([START, ThinkingDelta(0, "hm"), TextDelta(1, "a")]) == [
        "start 0",
        "thinking_start 0",
        "thinking_delta 0",
        "thinking_end 0",
        "text_start 1",
        "text_delta 1",
        "text_end 1",
        "done 1",
    ]


def test_calls_may_grow_side_by_side() -> None:
    (start_a, delta_a, done_a), (start_b, delta_b, done_b) = call(0), call(1)
    said = [START, start_a, start_b, delta_b, delta_a, done_a, done_b]
    assert brief(said, "toolUse") == [
        "start 0",
        "toolcall_start 0",
        "toolcall_start 1",
        "toolcall_delta 1",
        "toolcall_delta 0",
        "toolcall_end 0",
        "toolcall_end 1",
        "done 1",
    ]


def test_redacted_thinking_has_a_start_and_an_end() -> None:
    assert brief([START, ThinkingSigned(0, "data", redacted=True), TextDelta(1, "a")])[:4] == [
        "start 0",
        "thinking_start 0",
        "thinking_end 0",
        "text_start 1",
    ]


def test_a_block_of_nothing_is_none_and_takes_no_place() -> None:
    said = [START, TextDelta(0, ""), ThinkingDelta(1, ""), TextDelta(2, "a")]
    assert brief(said) == ["start 0", "text_start 0", "text_delta 0", "text_end 0", "done 0"]


def test_a_call_that_is_only_told_when_it_is_whole() -> None:
    assert brief([START, call(0)[2]]) == ["start 0", "toolcall_start 0", "toolcall_end 0", "done 0"]


@pytest.mark.parametrize("reason", ["aborted", "error"])
def test_an_answer_cut_in_a_block_ends_the_block_first(reason: StopReason) -> None:
    steps = heard([START, TextDelta(0, "half ")], reason, "" if reason == "aborted" else "broke")
    last: dict[str, JSON] = {"type": "error", "contentIndex": 0, "reason": reason}
    if reason == "error":
        last["errorMessage"] = "broke"
    assert steps[-2:] == [{"type": "text_end", "contentIndex": 0}, last]


def test_a_call_that_was_cut_is_marked() -> None:
    (start, delta, _) = call(0)
    steps = heard([START, start, delta], "aborted")
    assert steps[-2:] == [
        {
            "type": "toolcall_end",
            "contentIndex": 0,
            "toolCall": {"type": "toolCall", "id": "c0", "name": "read", "arguments": {}},
            "incomplete": True,
        },
        {"type": "error", "contentIndex": 0, "reason": "aborted"},
    ]


def test_a_request_that_failed_before_it_began() -> None:
    assert heard([], "error", "the key is wrong") == [
        {"type": "start", "contentIndex": 0},
        {
            "type": "error",
            "contentIndex": 0,
            "reason": "error",
            "errorMessage": "the key is wrong",
        },
    ]


def test_counts_go_with_each_step() -> None:
    assert event_to_data(MessageUpdate(TextDelta(0, "a"), Usage(input=3)))["usage"]["input"] == 3
    assert event_to_data(MessageUpdate(TextDelta(0, "a")))["usage"]["totalTokens"] == 0


@st.composite
def answers(draw: st.DrawFn) -> list[StreamEvent]:
    """Any order of events that a provider may make of some blocks."""
    kinds = draw(st.lists(st.sampled_from(["text", "thinking", "signed", "call"]), max_size=5))
    said: list[StreamEvent] = [START] if draw(st.booleans()) else []
    growing: list[list[StreamEvent]] = []
    for index, kind in enumerate(kinds):
        pieces = draw(st.lists(st.sampled_from(["", "a", "bc"]), max_size=3))
        if kind == "call":
            start, _, done = call(index)
            deltas = [ToolCallDelta(index, piece) for piece in pieces]
            parts: list[StreamEvent] = [start, *deltas, *([done] if draw(st.booleans()) else [])]
            growing.append(parts)
            said.append(parts.pop(0))
            continue
        delta = TextDelta if kind == "text" else ThinkingDelta
        said += [delta(index, piece) for piece in pieces]
        if kind == "signed":
            said.append(ThinkingSigned(index, "sig"))
    while any(growing):
        chosen = draw(st.sampled_from([parts for parts in growing if parts]))
        said.append(chosen.pop(0))
    return said


@given(answers(), st.sampled_from(["stop", "length", "aborted", "error"]))
def test_every_answer_is_whole(said: list[StreamEvent], reason: StopReason) -> None:
    steps = heard(said, reason)
    assert [step["type"] for step in steps].count("start") == 1
    assert steps[0]["type"] == "start"
    assert steps[-1]["type"] == ("error" if reason in ("aborted", "error") else "done")
    places: list[tuple[str, str]] = []
    open_places: set[int] = set()
    for step in steps[1:-1]:
        kind, what = step["type"].split("_")
        place = step["contentIndex"]
        if what == "start":
            assert place == len(places)
            places.append((kind, ""))
            open_places.add(place)
        assert place in open_places
        assert places[place][0] == kind
        if what == "delta":
            places[place] = (kind, places[place][1] + step["delta"])
        if what == "end":
            open_places.remove(place)
    assert not open_places
    builder = MessageBuilder(api="a", provider="p", model="m", timestamp=0)
    for event in said:
        builder.add(event)
    kept = [
        (kind, words)
        for (kind, words), index in zip(places, range(len(places)), strict=True)
        if not any(s["contentIndex"] == index and "incomplete" in s for s in steps)
    ]
    content = builder.message(reason).content
    assert [kind for kind, _ in kept] == [_kind(block) for block in content]
    assert [words for kind, words in kept if kind != "toolcall"] == [
        getattr(block, "text", getattr(block, "thinking", None))
        for block in content
        if _kind(block) != "toolcall"
    ]


def _kind(block: object) -> str:
    return (
        type(block)
        .__name__.removesuffix("Content")
        .removesuffix("Call")
        .lower()
        .replace("tool", "toolcall")
    )
