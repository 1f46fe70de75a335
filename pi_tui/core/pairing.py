"""Tool calls and their answers: what a request must look like, and how to make it so.

A provider refuses a request in which a call has no answer, an answer has no call or does not stand
directly after its call, an id comes twice, or an answer of the model is empty; and refuses it again
each time. A session may hold all of these after a crash, an abort, an edit by another program or a
compaction. `repair_pairing` changes the request, never the session, and gives the same result each
time, so that a provider's prompt cache keeps serving it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET

from pi_tui.core.messages import (
    AssistantMessage,
    Content,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    text_content,
)
from pi_tui.core.projection import to_llm
from pi_tui.core.protocols import RequestMessage

MAX_CALL_ID_CHARS = 64
NO_RESULT_TEXT = "No result was recorded for this call. It may or may not have taken effect."

_VALID_ID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_INVALID_CHARS = re.compile(r"[^A-Za-z0-9_-]")
_HASH_CHARS = 10


ORDINARY_REPAIRS = ("left out an answer of the model (", "left out the result ")
"""How repairs begin that follow every failed or stopped answer; nobody needs to hear of them."""


def is_valid_call_id(call_id: str) -> bool:
    """Whether every provider takes the id: letters, digits, `_` and `-`, at most 64 of them."""
    return _VALID_ID.match(call_id) is not None


# ---------------------------------------------------------------- check


def check_pairing(messages: Iterable[Message]) -> list[str]:
    """What a provider would refuse in these messages, one sentence each; empty when all is well."""
    problems: list[str] = []
    seen: set[str] = set()
    waiting: dict[str, None] = {}
    for at, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            if message.tool_call_id not in waiting:
                problems.append(
                    f"message {at}: the answer {message.tool_call_id!r} does not follow its call"
                )
            waiting.pop(message.tool_call_id, None)
            continue
        problems += [f"message {at}: the call {call_id!r} has no answer" for call_id in waiting]
        waiting = {}
        if isinstance(message, AssistantMessage):
            problems += [f"message {at}: {text}" for text in _assistant_problems(message)]
            for call in message.tool_calls:
                if call.id in seen:
                    problems.append(f"message {at}: the id {call.id!r} is used twice")
                if not is_valid_call_id(call.id):
                    problems.append(f"message {at}: {call.id!r} is no valid id")
                seen.add(call.id)
                waiting[call.id] = None
    problems += [f"at the end: the call {call_id!r} has no answer" for call_id in waiting]
    return problems


def _assistant_problems(message: AssistantMessage) -> list[str]:
    problems = []
    if not _says_something(message.content):
        problems.append("the answer of the model is empty")
    if _failed(message):
        problems.append(f"the answer of the model ended in {message.stop_reason!r}")
    return problems


# ---------------------------------------------------------------- repair


def repair_pairing(
    messages: Iterable[Message],
) -> tuple[tuple[RequestMessage, ...], list[str]]:
    """Make a valid request of projected or converted messages; also tells what was done.

    Failed, aborted and empty answers of the model are left out with their tool results. Results
    move directly behind their calls; those without a call are left out, and a call without a
    result is answered with the statement that none was recorded. Ids are made valid and unique.
    """
    sent = [converted for converted in map(to_llm, messages) if converted is not None]
    done: list[str] = []
    exchanges = _match(sent, done)
    names = _CallNames(done)
    repaired: list[RequestMessage] = []
    for at, message in enumerate(sent):
        if isinstance(message, AssistantMessage):
            exchange = exchanges[at]
            if exchange.sent:
                repaired += exchange.messages(message, names, done)
        elif isinstance(message, UserMessage):
            if _is_empty_user(message):
                done.append("left out an empty user message")
            else:
                repaired.append(message)
    return tuple(repaired), done


class _Exchange:
    """One answer of the model, its calls, and the results found for them."""

    def __init__(self, message: AssistantMessage) -> None:
        self.sent = not _failed(message) and _says_something(message.content)
        self.calls = list(message.tool_calls)
        self.results: list[tuple[int, ToolResultMessage]] = []
        self._open = list(range(len(self.calls)))

    def take(self, result: ToolResultMessage) -> None:
        call = next(i for i in self._open if self.calls[i].id == result.tool_call_id)
        self._open.remove(call)
        self.results.append((call, result))

    def messages(
        self, message: AssistantMessage, names: _CallNames, done: list[str]
    ) -> list[RequestMessage]:
        """The answer with clean content and valid ids, then one result for each call."""
        skipped = self._repeated_calls()
        new_ids = {
            i: names.rename(call.id) for i, call in enumerate(self.calls) if i not in skipped
        }
        content: list[Content] = []
        at_call = -1
        for block in message.content:
            if isinstance(block, ToolCall):
                at_call += 1
                if at_call in skipped:
                    done.append(f"left out a second copy of the call {block.id!r}")
                elif block.id == new_ids[at_call]:
                    content.append(block)
                else:
                    content.append(msgspec.structs.replace(block, id=new_ids[at_call]))
            elif _is_sendable(block):
                content.append(block)
        same = len(content) == len(message.content) and all(
            new is old for new, old in zip(content, message.content, strict=True)
        )
        clean = message if same else msgspec.structs.replace(message, content=tuple(content))
        out: list[RequestMessage] = [clean]
        for i, result in self.results:
            if result.tool_call_id != new_ids[i]:
                result = msgspec.structs.replace(result, tool_call_id=new_ids[i])
            out.append(result)
        for i in self._open:
            if i not in skipped:
                done.append(f"answered the call {self.calls[i].id!r}, which has no result")
                out.append(_no_result(self.calls[i], new_ids[i], message.timestamp))
        return out

    def _repeated_calls(self) -> set[int]:
        """Unanswered calls that repeat another one to the letter: a faulty stream, not a wish."""
        repeated: set[int] = set()
        for i in self._open:
            call = self.calls[i]
            twins = (j for j in range(len(self.calls)) if j != i and j not in repeated)
            if any(self._is_twin(call, self.calls[j]) for j in twins):
                repeated.add(i)
        return repeated

    @staticmethod
    def _is_twin(a: ToolCall, b: ToolCall) -> bool:
        return a.id != "" and a.id == b.id and a.name == b.name and a.arguments == b.arguments


def _match(sent: Sequence[RequestMessage], done: list[str]) -> dict[int, _Exchange]:
    """Find the exchange each result belongs to: the nearest earlier one that waits for its id."""
    exchanges: dict[int, _Exchange] = {}
    waiting: dict[str, list[int]] = {}
    newest = -1
    for at, message in enumerate(sent):
        if isinstance(message, AssistantMessage):
            exchange = exchanges[at] = _Exchange(message)
            newest = at
            if not exchange.sent:
                why = message.stop_reason if _failed(message) else "empty"
                done.append(f"left out an answer of the model ({why})")
            for call in exchange.calls:
                waiting.setdefault(call.id, []).append(at)
        elif isinstance(message, ToolResultMessage):
            owners = waiting.get(message.tool_call_id)
            if not owners:
                done.append(f"left out a result without a call ({message.tool_call_id!r})")
                continue
            owner = owners.pop()
            exchanges[owner].take(message)
            if not exchanges[owner].sent:
                done.append(f"left out the result {message.tool_call_id!r} of that answer")
            elif owner != newest or any(isinstance(m, UserMessage) for m in sent[owner + 1 : at]):
                done.append(f"moved the result {message.tool_call_id!r} behind its call")
    return exchanges


class _CallNames:
    """Hands out valid ids, each once, depending only on the ids that came before."""

    def __init__(self, done: list[str]) -> None:
        self._used: set[str] = set()
        self._done = done

    def rename(self, call_id: str) -> str:
        wanted = _valid_id(call_id)
        new = wanted
        count = 1
        while new in self._used:
            count += 1
            suffix = f"_{count}"
            new = wanted[: MAX_CALL_ID_CHARS - len(suffix)] + suffix
        self._used.add(new)
        if new != call_id:
            self._done.append(f"renamed the call {call_id!r} to {new!r}")
        return new


def _valid_id(call_id: str) -> str:
    """The id itself where it is valid; else its valid characters and a hash of the whole."""
    if is_valid_call_id(call_id):
        return call_id
    if not call_id:
        return "call"
    digest = hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    stem = _INVALID_CHARS.sub("_", call_id)[: MAX_CALL_ID_CHARS - _HASH_CHARS - 1]
    return f"{stem}_{digest}"


# ---------------------------------------------------------------- single messages


def _failed(message: AssistantMessage) -> bool:
    return message.stop_reason in ("error", "aborted")


def _says_something(content: Iterable[Content]) -> bool:
    """Thinking alone says nothing: no provider takes an answer that consists of it."""
    return any(
        isinstance(block, ToolCall) or (isinstance(block, TextContent) and bool(block.text.strip()))
        for block in content
    )


def _is_sendable(block: Content) -> bool:
    if isinstance(block, TextContent):
        return bool(block.text.strip()) or block.text_signature is not UNSET
    if isinstance(block, ThinkingContent):
        return bool(block.thinking.strip()) or block.thinking_signature is not UNSET
    return isinstance(block, ToolCall)


def _is_empty_user(message: UserMessage) -> bool:
    if isinstance(message.content, str):
        return not message.content.strip()
    return not any(
        isinstance(block, ImageContent)
        or (isinstance(block, TextContent) and bool(block.text.strip()))
        for block in message.content
    )


def _no_result(call: ToolCall, call_id: str, timestamp: int) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call_id,
        tool_name=call.name,
        content=text_content(NO_RESULT_TEXT),
        is_error=True,
        timestamp=timestamp,
    )
