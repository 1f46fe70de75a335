"""Watching live and reopening show the same blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from pi_tui.core.coverage import Coverage, coverage_of, with_covered
from pi_tui.core.entries import CompactionEntry, CustomEntry, Entry, MessageEntry, head_of
from pi_tui.core.events import (
    BashExecutionEnd,
    BashExecutionStart,
    BashExecutionUpdate,
    EntryAppended,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from pi_tui.core.messages import (
    BashExecutionMessage,
    Message,
    StopReason,
    TextContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_content,
)
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.streaming import (
    MessageBuilder,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ThinkingSigned,
    ToolCallDelta,
    ToolCallDone,
    ToolCallStarted,
)
from pi_tui.core.transcript import (
    AssistantBlock,
    Block,
    CoveredBlock,
    NoticeBlock,
    ShellBlock,
    ShownBlock,
    ThinkingBlock,
    ToolBlock,
    blocks_of,
)
from pi_tui.tui.live_transcript import LiveTranscript
from pi_tui.tui.transcript.unread import Clue, Unread


class BlockList:
    """A transcript without a screen; refuses what the real one could not carry out."""

    def __init__(self) -> None:
        self.blocks: list[ShownBlock] = []
        self.calls: list[str] = []
        self.kept_positions: list[bool] = []

    def _at(self, key: str) -> int:
        return next(n for n, block in enumerate(self.blocks) if block.key == key)

    def set_blocks(self, blocks: Sequence[ShownBlock], *, keep_position: bool = False) -> None:
        self.blocks = list(blocks)
        self.kept_positions.append(keep_position)

    def append(self, block: ShownBlock) -> None:
        assert all(block.key != other.key for other in self.blocks), block.key
        self.calls.append("append")
        self.blocks.append(block)

    def replace(self, key: str, block: ShownBlock) -> None:
        self.calls.append("replace")
        self.blocks[self._at(key)] = block

    def append_text(self, key: str, delta: str) -> None:
        self.calls.append("append_text")
        block = self.blocks[self._at(key)]
        assert isinstance(block, AssistantBlock | ThinkingBlock) and block.streaming
        self.blocks[self._at(key)] = replace(block, text=block.text + delta)

    def remove(self, key: str) -> None:
        self.calls.append("remove")
        del self.blocks[self._at(key)]

    def block(self, key: str) -> ShownBlock | None:
        return next((block for block in self.blocks if block.key == key), None)


class Earlier(Unread):
    """Something unread that nobody reads here."""

    has_user_messages = has_outputs = True

    def holds(self, block_key: str) -> bool:
        raise NotImplementedError

    def read(self) -> list[Block]:
        raise NotImplementedError

    def read_if(self, clue: Clue) -> list[Block] | None:
        raise NotImplementedError


class Script:
    """Makes the events a session would emit, and keeps the entries it would store."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.events: list[Event] = []

    @property
    def coverage(self) -> Coverage:
        by_id = {entry.id: entry for entry in self.entries}
        return coverage_of([head_of(entry) for entry in self.entries], by_id.__getitem__)

    @property
    def replayed(self) -> list[ShownBlock]:
        """What a reopened session shows."""
        return with_covered(blocks_of(self.entries), self.coverage)

    def _append(self, make: Callable[[str], Entry]) -> None:
        entry = make(f"{len(self.entries) + 1:08x}")
        self.entries.append(entry)
        self.events.append(EntryAppended(entry))

    def compact(self, keep: int) -> None:
        """Compact, keeping that many of the entries."""
        kept = self.entries[-keep].id if keep else None
        self._append(
            lambda entry_id: CompactionEntry(
                id=entry_id,
                parent_id=None,
                timestamp="",
                summary="sum",
                first_kept_entry_id=kept or entry_id,
                tokens_before=1,
            )
        )

    def pin(self, target: str, *, pinned: bool = True) -> None:
        self._append(
            lambda entry_id: CustomEntry(
                id=entry_id,
                parent_id=None,
                timestamp="",
                custom_type=PIN_TYPE,
                data=pin_data(target, pinned=pinned),
            )
        )

    def _store(self, message: Message) -> None:
        number = len(self.entries) + 1
        entry = MessageEntry(id=f"{number:08x}", parent_id=None, timestamp="", message=message)
        self.entries.append(entry)
        self.events += [EntryAppended(entry), MessageEnd(message)]

    def user(self, text: str) -> None:
        message = UserMessage(text, 0)
        self.events.append(MessageStart(message))
        self._store(message)

    def answer(
        self, *stream: StreamEvent, reason: StopReason = "stop", between: Sequence[Event] = ()
    ) -> None:
        builder = MessageBuilder(api="a", provider="p", model="m", timestamp=0)
        self.events.append(MessageStart(builder.message("pending")))
        for event in stream:
            builder.add(event)
            self.events.append(MessageUpdate(event))
        self.events += between
        self._store(builder.message(reason, error_message="no" if reason == "error" else None))

    def run_tool(self, call: ToolCall, output: str) -> None:
        self.events += [
            ToolExecutionStart(call.id, call.name, call.arguments),
            ToolExecutionUpdate(call.id, call.name, call.arguments, text_content("part")),
            ToolExecutionEnd(call.id, call.name, text_content(output), False, 7),
        ]
        self._store(
            ToolResultMessage(call.id, call.name, text_content(output), False, 0, duration_ms=7)
        )


CALL = ToolCall("c1", "read", {"path": "a.py"})
OTHER_CALL = ToolCall("c2", "bash", {"command": "ls"})


def call_events(index: int, call: ToolCall) -> list[StreamEvent]:
    return [
        ToolCallStarted(index, call.id, call.name),
        ToolCallDelta(index, '{"path"'),
        ToolCallDelta(index, ': "a.py"}'),
        ToolCallDone(index, call),
    ]


def plain(script: Script) -> None:
    script.user("hello [/]")
    script.answer(
        ThinkingDelta(0, "hm"), ThinkingDelta(0, "m"), TextDelta(1, "Hi "), TextDelta(1, "!")
    )


def tools(script: Script) -> None:
    script.user("look")
    script.answer(
        TextDelta(0, "Looking"),
        *call_events(1, CALL),
        *call_events(2, OTHER_CALL),
        reason="toolUse",
    )
    script.run_tool(CALL, "text of a")
    script.run_tool(OTHER_CALL, "a.py")
    script.answer(TextDelta(0, "Done"))


def blanks_and_redacted(script: Script) -> None:
    script.user("x")
    script.answer(
        ThinkingSigned(0, "sig", redacted=True),
        TextDelta(1, "  \n"),
        TextDelta(2, "\n"),
        TextDelta(2, "text"),
    )


def aborted_in_a_call(script: Script) -> None:
    script.user("x")
    script.answer(
        TextDelta(0, "I will"), ToolCallStarted(1, "c9", "write"), ToolCallDelta(1, '{"pa'),
        reason="aborted",
    )  # fmt: skip


def aborted_after_a_call(script: Script) -> None:
    script.user("x")
    script.answer(*call_events(0, CALL), reason="aborted")


def failed_at_once(script: Script) -> None:
    script.user("x")
    script.answer(reason="error")
    script.answer(TextDelta(0, "second try"), reason="length")


def empty(script: Script) -> None:
    script.answer()


def interleaved(script: Script) -> None:
    script.answer(
        TextDelta(0, "one "),
        ThinkingDelta(1, "think "),
        TextDelta(0, "more"),
        ThinkingDelta(1, "on"),
    )


def shell_alone(script: Script) -> None:
    script.events += [BashExecutionStart("s1", "ls", False), BashExecutionUpdate("s1", "a")]
    script._store(BashExecutionMessage("ls", "a\nb", 0, False, False, 0))
    script.events.append(BashExecutionEnd("s1"))


def shell_during_an_answer(script: Script) -> None:
    script.user("x")
    script.answer(
        TextDelta(0, "text"),
        between=[BashExecutionStart("s1", "ls", True), BashExecutionUpdate("s1", "a")],
    )
    script._store(BashExecutionMessage("ls", "a", 0, False, False, 0, exclude_from_context=True))
    script.events.append(BashExecutionEnd("s1"))


def repeated_call_ids(script: Script) -> None:
    script.answer(*call_events(0, CALL), reason="toolUse")
    script.run_tool(CALL, "one")
    script.answer(*call_events(0, CALL), reason="toolUse")
    script.run_tool(CALL, "two")


def result_without_a_call(script: Script) -> None:
    script.run_tool(CALL, "orphan")


def compacted(script: Script) -> None:
    tools(script)
    script.compact(keep=1)
    plain(script)


def compacted_twice(script: Script) -> None:
    compacted(script)
    tools(script)
    script.compact(keep=0)
    script.answer(TextDelta(0, "after"))


def pinned_later(script: Script) -> None:
    compacted(script)
    first = script.entries[0].id
    script.pin(first)
    tools(script)
    script.pin(script.entries[1].id)
    script.pin(first, pinned=False)


SCENES = [
    plain,
    tools,
    blanks_and_redacted,
    aborted_in_a_call,
    aborted_after_a_call,
    failed_at_once,
    empty,
    interleaved,
    shell_alone,
    shell_during_an_answer,
    repeated_call_ids,
    result_without_a_call,
    compacted,
    compacted_twice,
    pinned_later,
]


@pytest.mark.parametrize("batch", [1, 3, 1000])
@pytest.mark.parametrize("scene", SCENES)
def test_live_equals_replay(scene: object, batch: int) -> None:
    assert callable(scene)
    script = Script()
    scene(script)
    sink = BlockList()
    live = LiveTranscript(sink, lambda: script.coverage)
    for number, event in enumerate(script.events):
        live.handle(event)
        if number % batch == 0:
            live.flush()
    live.flush()
    assert sink.blocks == script.replayed


def test_all_scenes_one_after_the_other() -> None:
    script, sink = Script(), BlockList()
    for scene in SCENES:
        scene(script)
    live = LiveTranscript(sink, lambda: script.coverage)
    for event in script.events:
        live.handle(event)
    live.flush()
    assert sink.blocks == script.replayed


def test_deltas_of_a_batch_reach_the_transcript_as_one() -> None:
    sink = BlockList()
    live = LiveTranscript(sink)
    live.handle(
        MessageStart(MessageBuilder(api="", provider="", model="", timestamp=0).message("pending"))
    )
    for _ in range(500):
        live.handle(MessageUpdate(TextDelta(0, "x")))
    live.flush()
    assert sink.calls == ["append", "append_text"]
    (block,) = sink.blocks
    assert isinstance(block, AssistantBlock) and block.text == "x" * 500 and block.streaming


def test_a_running_tool_shows_its_output() -> None:
    script, sink = Script(), BlockList()
    script.answer(*call_events(0, CALL), reason="toolUse")
    live = LiveTranscript(sink)
    for event in script.events:
        live.handle(event)
    live.handle(ToolExecutionStart(CALL.id, CALL.name, CALL.arguments))
    live.handle(ToolExecutionUpdate(CALL.id, CALL.name, CALL.arguments, (TextContent("half"),)))
    live.flush()
    (block,) = sink.blocks
    assert isinstance(block, ToolBlock) and (block.state, block.output) == ("running", "half")


def test_notices_of_one_kind_replace_each_other() -> None:
    sink = BlockList()
    live = LiveTranscript(sink)
    live.notice("info", "model: a", "model")
    live.notice("error", "broken")
    live.notice("info", "model: b", "model")
    assert [b.text for b in sink.blocks if isinstance(b, NoticeBlock)] == ["broken", "model: b"]


def test_a_command_that_could_not_be_stored_stops_running() -> None:
    sink = BlockList()
    live = LiveTranscript(sink)
    live.handle(BashExecutionStart("s1", "ls", False))
    live.handle(BashExecutionEnd("s1"))
    live.flush()
    (block,) = sink.blocks
    assert isinstance(block, ShellBlock) and not block.running


def test_earlier_blocks_go_behind_the_startup_lines() -> None:
    sink = BlockList()
    live = LiveTranscript(sink)
    script = Script()
    plain(script)
    head = NoticeBlock("startup:0", "info", "context: AGENTS.md")
    old = Earlier("old", 3)
    live.rebuild([], head=[head], earlier=lambda coverage: [old])
    for event in script.events:
        live.handle(event)
    assert sink.blocks == [head, old, *blocks_of(script.entries)]


def test_an_answer_that_was_never_stored_disappears() -> None:
    script, sink = Script(), BlockList()
    script.answer(TextDelta(0, "lost"))
    live = LiveTranscript(sink)
    for event in script.events[:-2]:
        live.handle(event)
    live.flush()
    assert len(sink.blocks) == 1
    script.entries.clear()
    start = len(script.events)
    script.answer(TextDelta(0, "kept"))
    for event in script.events[start:]:
        live.handle(event)
    assert sink.blocks == blocks_of(script.entries)


def test_a_stored_compaction_covers_at_once_what_came_before() -> None:
    script, sink = Script(), BlockList()
    tools(script)
    live = LiveTranscript(sink, lambda: script.coverage)
    for event in script.events:
        live.handle(event)
    live.notice("info", "a line of the screen")
    script.compact(keep=1)
    live.handle(script.events[-1])
    assert sink.kept_positions == [True]
    assert isinstance(sink.blocks[0], CoveredBlock) and sink.blocks[0].messages == 4
    assert [b.key for b in sink.blocks if b.key.startswith("notice:")] == ["notice:1"]


def test_a_pin_without_a_compaction_sets_nothing_anew() -> None:
    script, sink = Script(), BlockList()
    plain(script)
    script.pin(script.entries[0].id)
    live = LiveTranscript(sink, lambda: script.coverage)
    for event in script.events:
        live.handle(event)
    assert sink.kept_positions == []
    assert sink.blocks == script.replayed


def test_an_answer_that_streams_goes_on_when_marks_are_set() -> None:
    script, sink = Script(), BlockList()
    plain(script)
    live = LiveTranscript(sink, lambda: script.coverage)
    for event in script.events:
        live.handle(event)
    builder = MessageBuilder(api="a", provider="p", model="m", timestamp=0)
    live.handle(MessageStart(builder.message("pending")))
    live.handle(MessageUpdate(TextDelta(0, "half ")))
    script.compact(keep=0)
    live.handle(script.events[-1])
    live.handle(MessageUpdate(TextDelta(0, "an answer")))
    live.flush()
    (block,) = [b for b in sink.blocks if isinstance(b, AssistantBlock) and b.streaming]
    assert block.text == "half an answer"


def test_the_beginning_of_a_covered_path_goes_behind_the_divider() -> None:
    script, sink = Script(), BlockList()
    for n in range(10):
        script.user(str(n))
    script.compact(keep=1)
    live = LiveTranscript(sink, lambda: script.coverage)
    head = NoticeBlock("startup:0", "info", "context: AGENTS.md")
    old = Earlier(f"{script.entries[0].id}:unread", 5)
    end = blocks_of(script.entries[5:])
    live.rebuild(end, script.coverage, head=[head], earlier=lambda coverage: [old])
    assert sink.blocks[:3] == [head, CoveredBlock("covered:00000001", 9, 6), old]
    assert sink.blocks[3:] == with_covered(end, script.coverage)[1:]


def test_what_is_unread_is_cut_anew_when_a_compaction_covers_it() -> None:
    script, sink = Script(), BlockList()
    for n in range(6):
        script.user(str(n))
    asked: list[int] = []

    def earlier(coverage: Coverage) -> list[Earlier]:
        asked.append(len(coverage.runs))
        return [Earlier(f"{script.entries[0].id}:unread", 3)]

    live = LiveTranscript(sink, lambda: script.coverage)
    live.rebuild(blocks_of(script.entries[3:]), earlier=earlier)
    script.compact(keep=1)
    live.handle(script.events[-1])
    assert asked == [0, 1]
    assert [type(block) for block in sink.blocks[:2]] == [CoveredBlock, Earlier]
