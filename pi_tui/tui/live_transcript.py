"""Folds session events into changes of the transcript. Pure: no widget, no timer, no clock.

What is shown live must equal what a reopened session shows: a streamed answer is drawn under keys
of its own and, once its entry is stored, replaced by the blocks of that entry. Text deltas and
snapshots are collected and handed on by `flush`, which the bridge calls after each batch of events.
A compaction or a pin changes what the model knows only as a summary: the marks are set anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec.structs import replace

from pi_tui.core.coverage import NOTHING_COVERED, SCREEN_NOTICE, Coverage, with_covered
from pi_tui.core.entries import CompactionEntry, CustomEntry, Entry, MessageEntry
from pi_tui.core.events import (
    BashExecutionEnd,
    BashExecutionStart,
    BashExecutionUpdate,
    EntryAppended,
    Event,
    MessageStart,
    MessageUpdate,
    NoticeLevel,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from pi_tui.core.messages import AssistantMessage
from pi_tui.core.pins import PIN_TYPE
from pi_tui.core.streaming import (
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
    CoveredEndBlock,
    NoticeBlock,
    ShellBlock,
    ShownBlock,
    ThinkingBlock,
    ToolAnswer,
    ToolBlock,
    answered,
    orphan,
    output_text,
    parts_of,
)
from pi_tui.tui.transcript.unread import Unread

Earlier = Callable[[Coverage], Sequence[Unread]]
"""What is unread, in parts that go with what is covered."""


def _nothing_earlier(coverage: Coverage) -> Sequence[Unread]:
    return ()


class TranscriptSink(Protocol):
    """What is asked of the transcript widget."""

    def set_blocks(
        self, blocks: Sequence[ShownBlock | Unread], *, keep_position: bool = False
    ) -> None: ...
    def append(self, block: Block) -> None: ...
    def block(self, key: str) -> ShownBlock | None: ...
    def replace(self, key: str, block: Block) -> None: ...
    def append_text(self, key: str, delta: str) -> None: ...
    def remove(self, key: str) -> None: ...


class _Part:
    """One block of the answer in progress. `shown` is what the transcript has, if anything."""

    __slots__ = ("held", "key", "shown")

    def __init__(self, key: str) -> None:
        self.key = key
        self.held = ""
        self.shown: Block | None = None


class LiveTranscript:
    """Keeps a transcript in step with the events of a session.

    `find_coverage`: what is covered on the path as it is now.
    """

    def __init__(
        self, sink: TranscriptSink, find_coverage: Callable[[], Coverage] = lambda: NOTHING_COVERED
    ) -> None:
        self._sink = sink
        self._find_coverage = find_coverage
        self._coverage = NOTHING_COVERED
        self._answers = 0
        self._notices = 0
        self._stored = 0
        self._answer_at = 0
        self._parts: dict[int, _Part] = {}
        self._calls: dict[str, ToolBlock] = {}
        self._shells: dict[str, tuple[ShellBlock, int]] = {}
        self._shown_notices: set[str] = set()
        self._deltas: dict[str, list[str]] = {}
        self._snapshots: dict[str, Block] = {}
        self._order: list[str] = []
        self._head_length = 0
        self._earlier: Earlier = _nothing_earlier

    # ------------------------------------------------------------ whole transcripts

    def rebuild(
        self,
        blocks: list[Block],
        coverage: Coverage = NOTHING_COVERED,
        *,
        head: Sequence[Block] = (),
        earlier: Earlier = _nothing_earlier,
    ) -> None:
        """Show these blocks instead of what is there; `coverage` is that of their whole path.

        `head` stands above all. `earlier` is what comes between it and the blocks and is unread, in
        parts that are covered as a whole or not at all.
        """
        self._parts.clear()
        self._shells.clear()
        self._deltas.clear()
        self._snapshots.clear()
        self._shown_notices.clear()
        self._calls = {
            block.call_id: block
            for block in blocks
            if isinstance(block, ToolBlock) and block.state == "pending"
        }
        self._stored += 1
        self._coverage = coverage
        self._head_length, self._earlier = len(head), earlier
        self._show_all([*head, *blocks])

    def _cover(self) -> None:
        """Mark anew what the model knows only as a summary."""
        before, self._coverage = self._coverage, self._find_coverage()
        # Equal ones count, too: what was found may be ahead of the entries that are here by now.
        if before.runs or self._coverage.runs:
            self.flush()
            self._show_all(self._shown(), keep_position=True)

    def _shown(self) -> list[Block]:
        """All blocks as they are now, without marks."""
        found = (self._sink.block(key) for key in self._order)
        return [
            block
            for block in found
            if block is not None and not isinstance(block, CoveredBlock | CoveredEndBlock)
        ]

    def _show_all(self, blocks: list[Block], *, keep_position: bool = False) -> None:
        self._order = [block.key for block in blocks]
        at, coverage = self._head_length, self._coverage
        whole = [*blocks[:at], *self._earlier(coverage), *blocks[at:]]
        self._sink.set_blocks(with_covered(whole, coverage), keep_position=keep_position)

    def notice(self, level: NoticeLevel, text: str, kind: str = "") -> None:
        """Append a line for people; one of the same kind replaces the earlier one."""
        self.flush()
        self._notices += 1
        key = f"{SCREEN_NOTICE}{kind or self._notices}"
        if key in self._shown_notices:
            self._remove(key)
        elif kind:
            self._shown_notices.add(key)
        self._add(NoticeBlock(key, level, text))

    def flush(self) -> None:
        """Hand on what was collected."""
        if self._deltas:
            deltas, self._deltas = self._deltas, {}
            for key, pieces in deltas.items():
                self._sink.append_text(key, "".join(pieces))
        if self._snapshots:
            snapshots, self._snapshots = self._snapshots, {}
            for key, block in snapshots.items():
                self._replace(key, block)

    def _add(self, block: Block) -> None:
        self._order.append(block.key)
        self._sink.append(block)

    def _remove(self, key: str) -> None:
        del self._order[self._place(key)]
        self._sink.remove(key)

    def _replace(self, key: str, block: Block) -> None:
        if key != block.key:
            self._order[self._place(key)] = block.key
        self._sink.replace(key, block)

    def _place(self, key: str) -> int:
        """Where a block stands; what changes stands near the end."""
        at = len(self._order) - 1
        while self._order[at] != key:
            at -= 1
        return at

    # ------------------------------------------------------------ events

    def handle(self, event: Event) -> None:
        """Take in one event; events that change nothing here are ignored."""
        if isinstance(event, MessageUpdate):
            self._stream(event.event)
        elif isinstance(event, EntryAppended):
            self.flush()
            self._entry(event.entry)
        elif isinstance(event, MessageStart):
            if isinstance(event.message, AssistantMessage):
                self.flush()
                self._drop_answer()
                self._answers += 1
                self._answer_at = self._stored
        elif isinstance(event, ToolExecutionStart):
            self._call(event.tool_call_id, state="running")
        elif isinstance(event, ToolExecutionUpdate):
            self._call(event.tool_call_id, state="running", output=output_text(event.partial))
        elif isinstance(event, ToolExecutionEnd):
            self._call(
                event.tool_call_id,
                state="error" if event.is_error else "ok",
                output=output_text(event.content),
                details=event.details,
                duration_ms=event.duration_ms,
            )
        elif isinstance(event, BashExecutionStart | BashExecutionUpdate | BashExecutionEnd):
            self._shell(event)

    # ------------------------------------------------------------ the answer in progress

    def _stream(self, event: StreamEvent) -> None:
        if isinstance(event, TextDelta):
            self._text(event.index, event.text)
        elif isinstance(event, ThinkingDelta):
            self._text(event.index, event.text, thinking=True)
        elif isinstance(event, ThinkingSigned):
            part = self._part(event.index)
            if event.redacted and part.shown is None:
                self._show(part, ThinkingBlock(part.key, "", redacted=True))
        elif isinstance(event, ToolCallStarted):
            part = self._part(event.index)
            self._show(part, ToolBlock(part.key, event.id, event.name, {}))
        elif isinstance(event, ToolCallDelta):
            part = self._part(event.index)
            if isinstance(part.shown, ToolBlock):
                grown = part.shown.partial_arguments + event.text
                self._change(part, replace(part.shown, partial_arguments=grown))
        elif isinstance(event, ToolCallDone):
            part, call = self._part(event.index), event.call
            done = ToolBlock(part.key, call.id, call.name, call.arguments)
            if part.shown is None:
                self._show(part, done)
            else:
                self._change(part, done)

    def _part(self, index: int) -> _Part:
        part = self._parts.get(index)
        if part is None:
            part = self._parts[index] = _Part(f"live{self._answers}:{index}")
        return part

    def _text(self, index: int, text: str, *, thinking: bool = False) -> None:
        part = self._part(index)
        if part.shown is not None:
            self._deltas.setdefault(part.key, []).append(text)
            return
        part.held += text
        if not part.held.strip():
            return  # a stored block of blanks is not shown either
        kind = ThinkingBlock if thinking else AssistantBlock
        self._show(part, kind(part.key, part.held, streaming=True))
        part.held = ""

    def _show(self, part: _Part, block: Block) -> None:
        self.flush()
        part.shown = block
        self._add(block)

    def _change(self, part: _Part, block: Block) -> None:
        part.shown = block
        self._snapshots[part.key] = block

    def _drop_answer(self) -> None:
        """Remove what is left of an answer that was never stored."""
        for part in self._parts.values():
            if part.shown is not None:
                self._remove(part.key)
        self._parts.clear()

    # ------------------------------------------------------------ entries

    def _entry(self, entry: Entry) -> None:
        parts = parts_of(entry)
        if isinstance(entry, MessageEntry) and isinstance(entry.message, AssistantMessage):
            self._store_answer([part for part in parts if not isinstance(part, ToolAnswer)])
            return
        for part in parts:
            if isinstance(part, ToolAnswer):
                call = self._calls.pop(part.call_id, None)
                if call is not None:
                    self._replace(call.key, answered(call, part))
                else:
                    self._append(orphan(part))
            elif isinstance(part, ShellBlock):
                self._store_shell(part)
            else:
                self._append(part)
        pin = isinstance(entry, CustomEntry) and entry.custom_type == PIN_TYPE
        if pin or isinstance(entry, CompactionEntry):
            self._cover()

    def _append(self, block: Block) -> None:
        self._stored += 1
        self._add(block)

    def _store_answer(self, blocks: list[Block]) -> None:
        live = [part for _, part in sorted(self._parts.items()) if part.shown is not None]
        self._parts.clear()
        pairs = _pair(live, blocks) if self._answer_at == self._stored else {}
        for part in live:
            block = pairs.get(part.key)
            if block is None:
                self._remove(part.key)
            else:
                self._replace(part.key, block)
        for block in blocks[len(pairs) :]:
            self._add(block)
        for block in blocks:
            if isinstance(block, ToolBlock) and block.state == "pending":
                self._calls[block.call_id] = block
        self._stored += 1
        self._answer_at = self._stored

    def _call(self, call_id: str, **changes: object) -> None:
        block = self._calls.get(call_id)
        if block is not None:
            # The stored result comes later and must find the call under the same key.
            changed = replace(block, **changes)
            self._calls[call_id] = changed
            self._snapshots[changed.key] = changed

    # ------------------------------------------------------------ the user's commands

    def _shell(self, event: BashExecutionStart | BashExecutionUpdate | BashExecutionEnd) -> None:
        if isinstance(event, BashExecutionStart):
            block = ShellBlock(
                f"shell:{event.id}", event.command, "", excluded=event.excluded, running=True
            )
            self._shells[event.id] = (block, self._stored)
            self.flush()
            self._add(block)
            return
        shown = self._shells.get(event.id)
        if shown is None:
            return
        block, at = shown
        if isinstance(event, BashExecutionUpdate):
            block = replace(block, output=event.output)
            self._shells[event.id] = (block, at)
        else:  # nothing could be stored
            del self._shells[event.id]
            block = replace(block, running=False)
        self._snapshots[block.key] = block

    def _store_shell(self, stored: ShellBlock) -> None:
        for run_id, (block, at) in self._shells.items():
            if (block.command, block.excluded) != (stored.command, stored.excluded):
                continue
            del self._shells[run_id]
            if at == self._stored and not self._parts:
                self._stored += 1
                self._replace(block.key, stored)
                return
            self._remove(block.key)  # it belongs where its entry is
            break
        self._append(stored)


def _pair(live: Iterable[_Part], blocks: list[Block]) -> dict[str, Block]:
    """Stored blocks for the live ones they complete, which begin the answer.

    A live block without a stored one (a call that was cut) is left out.
    """
    pairs: dict[str, Block] = {}
    for part in live:
        block = blocks[len(pairs)] if len(pairs) < len(blocks) else None
        if block is not None and type(block) is type(part.shown):
            pairs[part.key] = block
    return pairs
