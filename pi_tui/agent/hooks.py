"""The hook runner: named questions and messages to handlers that extensions register.

A handler gets one payload and may answer with a value or None, directly or as an awaitable. One
that raises is reported to the user and counts as "no answer"; it never ends the run. Loading
people's extension files is not done here.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import UNSET, Struct, UnsetType

from pi_tui.agent.bus import EventBus
from pi_tui.agent.signals import AbortSignal
from pi_tui.core.compaction.prepare import CompactionPreparation
from pi_tui.core.entries import BranchSummaryEntry, CompactionEntry, Entry
from pi_tui.core.events import CompactionReason, Notice
from pi_tui.core.messages import JSON, Usage, usage_from_data

HookAnswer: TypeAlias = object
HookHandler: TypeAlias = Callable[[Struct], HookAnswer | Awaitable[HookAnswer]]


class SessionBeforeCompact(Struct, frozen=True):
    """Asked before a compaction. `branch_entries`: the whole path, root to leaf.

    They are decoded one by one when they are looked at; who wants all of a long session does that
    in a thread. A handler that takes long should watch `signal.is_set`; Escape cancels the wait
    for it.

    Answer `{"cancel": True}`, or `{"compaction": {"summary", "first_kept_entry_id",
    "tokens_before", "usage"?, "details"?}}`, or None.
    """

    preparation: CompactionPreparation
    branch_entries: Sequence[Entry]
    custom_instructions: str | None
    reason: CompactionReason
    will_retry: bool
    signal: AbortSignal


class SessionCompact(Struct, frozen=True):
    """Told after a compaction is durable."""

    compaction_entry: CompactionEntry
    from_extension: bool
    reason: CompactionReason
    will_retry: bool


class SessionCompactFailed(Struct, frozen=True):
    """Told after a compaction failed or was cancelled; nothing was written."""

    reason: CompactionReason
    error_message: str | None
    aborted: bool
    will_retry: bool
    from_extension: bool


class TreePreparation(Struct, frozen=True):
    """A navigation before it happens. `entries_to_summarize`: the branch left, oldest first.

    `target_id` None: the place before the first entry.
    """

    target_id: str | None
    old_leaf_id: str | None
    common_ancestor_id: str | None
    entries_to_summarize: tuple[Entry, ...]
    user_wants_summary: bool
    custom_instructions: str | None = None
    replace_instructions: bool = False
    label: str | None = None


class SessionBeforeTree(Struct, frozen=True):
    """Asked on every navigation.

    Answer `{"cancel": True}` or any of `{"summary": {"summary", "details"?, "usage"?},
    "custom_instructions", "replace_instructions", "label"}`, or None.
    """

    preparation: TreePreparation
    signal: AbortSignal


class SessionTree(Struct, frozen=True):
    """Told after a navigation."""

    new_leaf_id: str | None
    old_leaf_id: str | None
    summary_entry: BranchSummaryEntry | None = None
    from_extension: bool = False


HOOK_NAMES: dict[type[Struct], str] = {
    SessionBeforeCompact: "session_before_compact",
    SessionCompact: "session_compact",
    SessionCompactFailed: "session_compact_failed",
    SessionBeforeTree: "session_before_tree",
    SessionTree: "session_tree",
}


class HookSummary(Struct, frozen=True):
    """A summary a hook made itself."""

    summary: JSON
    first_kept_entry_id: JSON = None
    tokens_before: JSON = None
    usage: Usage | None = None
    details: JSON | UnsetType = UNSET


class HookRunner:
    """Calls handlers in the order they were registered."""

    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._handlers: dict[str, list[HookHandler]] = {}

    def on(self, name: str, handler: HookHandler) -> Callable[[], None]:
        """Register a handler; the returned function removes it. Raises ValueError on bad names."""
        if name not in HOOK_NAMES.values():
            raise ValueError(f"there is no hook called {name!r}")
        handlers = self._handlers.setdefault(name, [])
        handlers.append(handler)

        def remove() -> None:
            if handler in handlers:
                handlers.remove(handler)

        return remove

    def listens(self, kind: type[Struct]) -> bool:
        """True when somebody registered for this payload."""
        return bool(self._handlers.get(HOOK_NAMES[kind]))

    async def ask(self, payload: Struct) -> tuple[Mapping[str, JSON], ...]:
        """Call every handler; the answers that are objects, keys in snake_case."""
        name = HOOK_NAMES[type(payload)]
        answers = []
        for handler in tuple(self._handlers.get(name, ())):
            answer = await self._call(name, handler, payload)
            if isinstance(answer, Mapping):
                answers.append({_snake(str(key)): value for key, value in answer.items()})
            elif answer is not None:
                self._report(name, f"it answered {type(answer).__name__} instead of an object")
        return tuple(answers)

    async def tell(self, payload: Struct) -> None:
        """Call every handler; what they answer means nothing."""
        name = HOOK_NAMES[type(payload)]
        for handler in tuple(self._handlers.get(name, ())):
            await self._call(name, handler, payload)

    async def _call(self, name: str, handler: HookHandler, payload: Struct) -> HookAnswer:
        try:
            answer = handler(payload)
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:  # noqa: BLE001 - an extension's fault must not end the run
            self._report(name, self._bus.fault_details(error))
            return None

    def _report(self, name: str, why: str) -> None:
        self._bus.emit(Notice("error", f"an extension's {name} handler failed ({why}); ignored"))


def hook_summary(data: JSON) -> HookSummary | None:
    """The summary in a hook's answer; None when there is none."""
    if not isinstance(data, Mapping):
        return None
    values = {_snake(str(key)): value for key, value in data.items()}
    usage = values.get("usage")
    return HookSummary(
        summary=values.get("summary"),
        first_kept_entry_id=values.get("first_kept_entry_id"),
        tokens_before=values.get("tokens_before"),
        usage=usage if isinstance(usage, Usage) else usage_from_data(usage),
        details=values.get("details", UNSET),
    )


def _snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)
