"""A session double for the front ends without a screen: it plays a script of steps."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence

import pytest

from pi_tui.core.entries import Entry, SessionHeader
from pi_tui.core.events import AgentSettled, AgentStart, Event, MessageEnd
from pi_tui.core.messages import AssistantMessage, ImageContent, TextContent, Usage, UserMessage

Script = Callable[["PlayedSession", str], Awaitable[None]]


class HeaderOnlyStore:
    """A store of which only the header is ever asked for."""

    path = None
    header = SessionHeader("s1", "2026-01-31T00:00:00.000Z", "/work")

    def append(self, entry: Entry) -> None:
        raise AssertionError("front ends do not write entries")

    def load(self, entry_id: str) -> Entry:
        raise AssertionError("front ends do not read entries")

    def sync(self) -> None: ...

    def close(self) -> None: ...


class PlayedSession:
    """Runs one script per prompt; `aborted` is set by `abort`."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.listeners: list[Callable[[Event], None]] = []
        self.prompts: list[tuple[str, tuple[ImageContent, ...]]] = []
        self.aborted = asyncio.Event()
        self.aborts = 0
        self.store = HeaderOnlyStore()

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def emit(self, event: Event) -> None:
        for listener in tuple(self.listeners):
            listener(event)

    async def prompt(self, text: str, images: Sequence[ImageContent] = ()) -> object:
        self.prompts.append((text, tuple(images)))
        self.emit(AgentStart())
        await self.scripts[len(self.prompts) - 1](self, text)
        self.emit(AgentSettled(self.aborted.is_set()))
        return None

    def abort(self) -> bool:
        self.aborts += 1
        self.aborted.set()
        return True

    def say(self, text: str, stop_reason: str = "stop", error: str | None = None) -> None:
        """Emit the end of an answer."""
        message = AssistantMessage(
            content=(TextContent(text),) if text else (),
            api="scripted",
            provider="p",
            model="m",
            usage=Usage(),
            stop_reason=stop_reason,
            timestamp=0,
            **({} if error is None else {"error_message": error}),
        )
        self.emit(MessageEnd(UserMessage("hi", 0)))
        self.emit(MessageEnd(message))


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def played() -> type[PlayedSession]:
    return PlayedSession


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def answering() -> Callable[..., Script]:
    """Makes a script that gives one answer."""

    def make(text: str, stop_reason: str = "stop", error: str | None = None) -> Script:
        async def script(session: PlayedSession, _: str) -> None:
            session.say(text, stop_reason, error)

        return script

    return make
