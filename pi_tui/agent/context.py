"""From the session to a model request: what this turn sends, complete and repaired.

The system prompt and the tool declarations are entries of the session like everything else, so a
request is a function of the path. When the program's own prompt or tools changed since they were
stored (a new AGENTS.md, another tool list), a patching system message is appended first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, structs, to_builtins

from pi_tui.agent.journal import Journal
from pi_tui.core.entries import Entry, MessageEntry, iso_timestamp
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    Content,
    ContentList,
    ImageContent,
    SystemMessage,
    TextContent,
    ThinkingContent,
    ThinkingLevel,
    ToolDeclaration,
    UserMessage,
)
from pi_tui.core.models import Model
from pi_tui.core.pairing import ORDINARY_REPAIRS, repair_pairing
from pi_tui.core.projection import (
    Projection,
    convert_to_llm,
    declared_tools,
    fold_system,
    project,
    system_text,
)
from pi_tui.core.protocols import ModelRequest, RequestMessage, TokenEstimator, Tool

_REPAIRS_NAMED = 3
_LEAST_OUTPUT = 256

PromptSections = Callable[[Sequence[Tool]], Mapping[str, str]]
"""The system prompt the program wants now: section name -> text, in order."""


class RequestLimits(Struct):
    """What was learnt in one session that a model's server does not accept; by full model name.

    It changes as errors come in, and says nothing about other models.
    """

    without_thinking: set[str] = set()
    without_images: set[str] = set()
    max_output_tokens: dict[str, int] = {}
    window_tokens: dict[str, int] = {}

    def within(self, model: Model) -> Model:
        """The model with the window its server was found to have, where that is smaller."""
        known = self.window_tokens.get(model.full_name, model.context_window)
        if known >= model.context_window:
            return model
        return structs.replace(model, context_window=known)

    def learn_window(self, model: Model, window_tokens: int) -> None:
        """Remember a window a server named; an answer may take no more than a part of it."""
        name = model.full_name
        self.window_tokens[name] = window_tokens
        if model.max_tokens > window_tokens // 2:
            known = self.max_output_tokens.get(name, model.max_tokens)
            self.max_output_tokens[name] = min(known, max(_LEAST_OUTPUT, window_tokens // 4))


class ComingSystem(Struct, frozen=True):
    """What the next prompt adds to the stored system prompt and tools before it is sent.

    `tokens` by estimate; `first`: none is stored yet, so a count of a provider that covers the path
    (in a session another program made) covers the prompt of that program.
    """

    tokens: int = 0
    first: bool = False

    def beyond(self, *, reported: bool) -> int:
        """Tokens to add to an estimate; `reported`: it holds a provider's count."""
        return 0 if reported and self.first else self.tokens


class PreparedRequest(Struct, frozen=True):
    """A request and what had to be repaired for it, in words.

    `news`: a sentence about repairs that were not made before in this session; "" when none were.
    """

    request: ModelRequest
    repairs: tuple[str, ...]
    news: str = ""


class ContextBuilder:
    """Prepares requests for one session."""

    def __init__(
        self, journal: Callable[[], Journal], sections: PromptSections, tools: Sequence[Tool]
    ) -> None:
        self._journal = journal
        self._sections = sections
        self.tools = tuple(tools)
        self._learnt = _Learnt(None)

    @property
    def limits(self) -> RequestLimits:
        """What was learnt in the session that is held now."""
        return self._of_session().limits

    def _of_session(self) -> _Learnt:
        journal = self._journal()
        if journal is not self._learnt.journal:
            self._learnt = _Learnt(journal)
        return self._learnt

    def store_system_message(self) -> None:
        """Append what differs between the wanted prompt and tools and those on the path."""
        patch = self._patch_of(self._stored_system())
        if patch is not None:
            self._journal().message(patch)

    def coming_system(self, estimator: TokenEstimator) -> ComingSystem:
        """What `store_system_message` would add now."""
        stored = self._stored_system()
        patch = self._patch_of(stored)
        if patch is None:
            return ComingSystem()
        if stored is None:
            return ComingSystem(_folded_tokens((patch,), estimator), first=True)
        more = _folded_tokens((stored, patch), estimator) - _folded_tokens((stored,), estimator)
        return ComingSystem(max(0, more))

    def with_coming_system(self, path: Sequence[Entry]) -> list[Entry]:
        """The path, with the system message the next prompt would add."""
        patch = self._patch_of(folded_system(project(path)))
        if patch is None:
            return list(path)
        parent = path[-1].id if path else None
        at = iso_timestamp(patch.timestamp)
        return [*path, MessageEntry(id="", parent_id=parent, timestamp=at, message=patch)]

    def _stored_system(self) -> SystemMessage | None:
        return folded_system(project(self._journal().tree.context_path()))

    def _patch_of(self, stored: SystemMessage | None) -> SystemMessage | None:
        wanted = dict(self._sections(self.tools))
        declarations = tuple(tool.declaration for tool in self.tools)
        return plan_system_patch(stored, wanted, declarations, self._journal().clock.now_ms())

    def prepare(
        self, model: Model, thinking_level: ThinkingLevel, session_id: str
    ) -> PreparedRequest:
        """Build the request for the current leaf."""
        projection = project(self._journal().tree.context_path())
        messages, repairs = repair_pairing(
            convert_to_llm(item.message for item in projection.messages)
        )
        system = folded_system(projection)
        request = ModelRequest(
            model=self.limits.within(model),
            system=system_text(system) if system else "",
            messages=self._within_limits(messages, model.full_name),
            tools=declared_tools(system) if system else (),
            thinking_level=thinking_level if model.reasoning else "off",
            max_tokens=self.limits.max_output_tokens.get(model.full_name),
            session_id=session_id,
        )
        return PreparedRequest(request, tuple(repairs), self._news(repairs))

    def _news(self, repairs: Sequence[str]) -> str:
        """What to tell of repairs: each once in a session, though it is made for every request."""
        told = self._of_session().told_repairs
        new = [
            repair
            for repair in dict.fromkeys(repairs)
            if repair not in told and not repair.startswith(ORDINARY_REPAIRS)
        ]
        told.update(new)
        if not new:
            return ""
        more = f"; and {len(new) - _REPAIRS_NAMED} more" if len(new) > _REPAIRS_NAMED else ""
        return f"what is sent to the model was mended: {'; '.join(new[:_REPAIRS_NAMED])}{more}"

    def _within_limits(
        self, messages: tuple[RequestMessage, ...], model_name: str
    ) -> tuple[RequestMessage, ...]:
        if model_name in self.limits.without_images:
            messages = tuple(_without_images(m) for m in messages)
        if model_name in self.limits.without_thinking:
            messages = tuple(kept for m in messages if (kept := _without_thinking(m)) is not None)
        return messages


class _Learnt:
    """What belongs to one session; another one begins with nothing."""

    def __init__(self, journal: Journal | None) -> None:
        self.journal = journal
        self.limits = RequestLimits()
        self.told_repairs: set[str] = set()


def _folded_tokens(messages: Sequence[SystemMessage], estimator: TokenEstimator) -> int:
    folded = fold_system(messages)
    return estimator.message_tokens(folded) if folded is not None else 0


def folded_system(projection: Projection) -> SystemMessage | None:
    """The one system message a projection amounts to."""
    return fold_system(
        item.message for item in projection.messages if isinstance(item.message, SystemMessage)
    )


def plan_system_patch(
    stored: SystemMessage | None,
    sections: Mapping[str, str],
    tools: Sequence[ToolDeclaration],
    timestamp: int,
) -> SystemMessage | None:
    """The system message that turns the stored prompt into the wanted one; None when equal.

    A changed order of sections alone is no change: a section keeps its place once it has one.
    """
    have_sections = dict((stored.sections or {}) if stored else {})
    have_tools = {_name(t): t for t in ((stored.tools_added or ()) if stored else ())}
    want_tools: dict[str, JSON] = {t.name: to_builtins(t) for t in tools}
    changed: dict[str, str | None] = {
        name: text for name, text in sections.items() if have_sections.get(name) != text
    }
    changed |= {name: None for name in have_sections if name not in sections}
    added = tuple(t for name, t in want_tools.items() if have_tools.get(name) != t)
    removed = tuple(name for name in have_tools if name not in want_tools)
    if stored is not None and not (changed or added or removed):
        return None
    return SystemMessage(
        content="",
        timestamp=timestamp,
        sections=changed or None,
        tools_added=added or None,
        tools_removed=removed or None,
    )


def _name(tool: JSON) -> str:
    return str(tool.get("name", "")) if isinstance(tool, dict) else ""


def _without_images(message: RequestMessage) -> RequestMessage:
    if isinstance(message, AssistantMessage) or isinstance(message.content, str):
        return message
    if not any(isinstance(block, ImageContent) for block in message.content):
        return message
    blocks: ContentList = tuple(
        TextContent(f"[image left out: {block.mime_type}]")
        if isinstance(block, ImageContent)
        else block
        for block in message.content
    )
    if isinstance(message, UserMessage):
        return structs.replace(message, content=blocks)
    return structs.replace(message, content=blocks)


def _without_thinking(message: RequestMessage) -> RequestMessage | None:
    if not isinstance(message, AssistantMessage):
        return message
    kept: list[Content] = [b for b in message.content if not isinstance(b, ThinkingContent)]
    if len(kept) == len(message.content):
        return message
    return structs.replace(message, content=tuple(kept)) if kept else None
