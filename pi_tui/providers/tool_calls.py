"""Tool calls as model servers really stream them, put together into whole calls.

Servers repeat ids, leave them out, give every call the index 0, send the arguments twice or name a
call only at its end. `ToolCallAssembler` takes the parts of one chat-completions answer;
`CallIds` gives ids that are legal everywhere; `parse_calls` turns argument text into objects.
Knows nothing of HTTP.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator

from pi_tui.core.json_text import decode_json, mended, mended_text
from pi_tui.core.messages import INVALID_JSON_KEY, JSON, AssistantMessage, ToolCall
from pi_tui.core.protocols import ModelRequest
from pi_tui.core.streaming import StreamEvent, ToolCallDelta, ToolCallDone, ToolCallStarted

__all__ = ["INVALID_JSON_KEY", "CallIds", "ToolCallAssembler", "parse_calls", "parse_object"]

_MAX_ID_CHARS = 64
_MAX_INVALID_CHARS = 2000
_COUNTED_ID = re.compile(r"(^|[_:.\-|])\d{1,4}$")
"""An id that ends in a small number of its own (`call_0`, `run:3`): the server starts again in
every answer, so the id says nothing about the conversation."""


def _random_suffix() -> str:
    return uuid.uuid4().hex


class CallIds:
    """Gives every call of an answer an id of letters, digits, `_` and `-` that is nowhere else.

    `taken` are the ids of the request; an id of the server is kept when it is legal and new.
    """

    def __init__(
        self, taken: Iterable[str], new_suffix: Callable[[], str] = _random_suffix
    ) -> None:
        self._taken = set(taken)
        self._new_suffix = new_suffix

    @classmethod
    def for_request(cls, request: ModelRequest) -> CallIds:
        """Ids that no call of the request has."""
        return cls(
            call.id
            for message in request.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls
        )

    def give(self, raw_id: str) -> str:
        """The id under which a call is kept; `raw_id` "" when the server sent none."""
        legal = re.sub(r"[^A-Za-z0-9_-]", "_", raw_id)[:_MAX_ID_CHARS]
        if not legal.strip("_-"):
            chosen = f"call_{self._new_suffix()[:24]}"
        elif legal in self._taken or _COUNTED_ID.search(raw_id):
            chosen = f"{legal[: _MAX_ID_CHARS - 9]}_{self._new_suffix()[:8]}"
        else:
            chosen = legal
        self._taken.add(chosen)
        return chosen


def parse_object(text: str) -> dict[str, JSON] | None:
    """The text as one JSON object; None when it is anything else.

    Blank text and null are an empty object; an object inside a JSON string is taken out of it.
    """
    if not text.strip():
        return {}
    try:
        data = decode_json(text)
    except ValueError:
        return None
    if data is None:
        return {}
    if isinstance(data, str) and data.lstrip().startswith("{"):
        return parse_object(data)
    return data if isinstance(data, dict) else None


def parse_calls(text: str) -> list[dict[str, JSON]]:
    """The argument objects in the text: one, as a rule.

    Objects that follow each other are a repetition (kept once) or further calls. Text that is no
    JSON object becomes one object with the only key `INVALID_JSON_KEY`.
    """
    text = mended_text(text)  # a character cut in two is whole again once the pieces are joined
    single = parse_object(text)
    if single is not None:
        return [single]
    several = _objects_in_row(text)
    if several is None:
        return [{INVALID_JSON_KEY: text[:_MAX_INVALID_CHARS]}]
    distinct: list[dict[str, JSON]] = []
    for item in several:
        if item not in distinct:
            distinct.append(item)
    # Some gateways open with an empty object before the real one.
    return [item for item in distinct if item] or distinct[:1]


def _objects_in_row(text: str) -> list[dict[str, JSON]] | None:
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    found: list[dict[str, JSON]] = []
    at, end = 0, len(text)
    while True:
        while at < end and text[at] in " \t\r\n":
            at += 1
        if at == end:
            return found or None
        try:
            item, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        if not isinstance(item, dict):
            return None
        found.append(mended(item))


def _refuse_constant(name: str) -> JSON:
    raise ValueError(f"{name} is not JSON")


class _Slot:
    """One call while its parts arrive."""

    __slots__ = ("block", "id", "name", "pieces", "raw_id")

    def __init__(self, block: int, raw_id: str) -> None:
        self.block = block
        self.raw_id = raw_id
        self.id = ""  # set once the start was announced
        self.name = ""
        self.pieces: list[str] = []

    def is_complete(self) -> bool:
        text = "".join(self.pieces).rstrip()
        return text.endswith("}") and parse_object(text) is not None


class ToolCallAssembler:
    """Takes `delta.tool_calls` parts; yields starts and deltas at once, whole calls at the end.

    `next_block` gives the content index of a block that begins now.
    """

    def __init__(self, next_block: Callable[[], int], ids: CallIds) -> None:
        self._next_block = next_block
        self._ids = ids
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}

    @property
    def is_empty(self) -> bool:
        """True while no call has begun."""
        return not self._slots

    def feed(self, part: JSON) -> Iterator[StreamEvent]:
        """Take in one element of `delta.tool_calls`."""
        if not isinstance(part, dict):
            return
        function = part.get("function")
        function = function if isinstance(function, dict) else {}
        raw_id, name = _text(part.get("id")), _text(function.get("name"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # some servers send the object itself
            piece = json.dumps(arguments, ensure_ascii=False)
        else:
            piece = _text(arguments)
        index = part.get("index")
        if not (raw_id or name or piece):
            return
        slot = self._slot(index if isinstance(index, int) else None, raw_id, name)
        if name and not slot.name:
            slot.name = name
            slot.id = self._ids.give(slot.raw_id)
            yield ToolCallStarted(slot.block, slot.id, name)
            if slot.pieces:
                yield ToolCallDelta(slot.block, "".join(slot.pieces))
        if piece:
            slot.pieces.append(piece)
            if slot.id:
                yield ToolCallDelta(slot.block, piece)

    def finish(self, *, cut: bool) -> Iterator[StreamEvent]:
        """Yield the whole calls. `cut`: the answer hit the output limit, drop unfinished calls."""
        seen: list[tuple[str, str, dict[str, JSON]]] = []
        for slot in self._slots:
            if not slot.name:
                continue  # nothing can be done with a call of nothing
            objects = parse_calls("".join(slot.pieces))
            if cut and INVALID_JSON_KEY in objects[0]:
                continue
            for number, arguments in enumerate(objects):
                key = (slot.raw_id, slot.name, arguments)
                if slot.raw_id and key in seen:
                    continue  # the same call, sent twice
                seen.append(key)
                if number == 0:
                    yield ToolCallDone(slot.block, ToolCall(slot.id, slot.name, arguments))
                else:
                    yield from self._further_call(slot, arguments)

    def _further_call(self, slot: _Slot, arguments: dict[str, JSON]) -> Iterator[StreamEvent]:
        block, call_id = self._next_block(), self._ids.give(slot.raw_id)
        yield ToolCallStarted(block, call_id, slot.name)
        yield ToolCallDone(block, ToolCall(call_id, slot.name, arguments))

    def _slot(self, index: int | None, raw_id: str, name: str) -> _Slot:
        """Find the call a part belongs to, or begin a new one."""
        same_id = next((s for s in reversed(self._slots) if s.raw_id == raw_id), None)
        if index is None:
            last = self._slots[-1] if self._slots else None
            found = same_id if raw_id else last
            if found is None and raw_id and last is not None and not last.raw_id and not name:
                found = last
        else:
            found = self._by_index.get(index)
            if found is not None and raw_id and found.raw_id not in ("", raw_id):
                found = same_id  # another call under the same index
            elif found is None and raw_id and not name:
                found = same_id  # the index counts parts, not calls
        if found is not None and name and found.name and _begins_anew(found, raw_id, name):
            found = None
        if found is None:
            found = _Slot(self._next_block(), raw_id)
            self._slots.append(found)
        elif raw_id and not found.raw_id:
            found.raw_id = raw_id
        if index is not None:
            self._by_index[index] = found
        return found


def _begins_anew(slot: _Slot, raw_id: str, name: str) -> bool:
    """Tell a part that opens another call from one that repeats the name of its call."""
    if raw_id and raw_id == slot.raw_id and name == slot.name:
        return False  # a repetition or a second call: the end of the answer decides
    return slot.is_complete()


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
