"""The agent for Python programs: open a session, prompt, and move in its tree.

It starts from the same settings, models and session files as the program does. Nothing is printed;
what people would be told comes as events and as `Agent.notices`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from pi_tui.agent.bus import Listener
from pi_tui.agent.compaction_plan import CompactionOutcome, CompactRequest
from pi_tui.agent.navigator import NavigateRequest, NavigationOutcome
from pi_tui.agent.session import AgentSession
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import (
    JSON,
    THINKING_LEVELS,
    AssistantMessage,
    ImageContent,
    ThinkingLevel,
)
from pi_tui.core.protocols import OpenedSession
from pi_tui.launch_options import LaunchOptions, plain_options
from pi_tui.wiring.agent import prepare_or_close, refuse_wrong_arguments
from pi_tui.wiring.sessions import Sessions
from pi_tui.wiring.start import Start, read_start


class Agent:
    """An open session. `session` is the whole façade, for what is not offered here.

    Entries are named by id, by the beginning of one, by label, or as `leaf`. All methods are called
    on the event loop on which the agent was opened.
    """

    def __init__(self, session: AgentSession, notices: tuple[str, ...]) -> None:
        self.session = session
        self.notices = notices

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Get every event from now on, in order; the returned function ends that."""
        return self.session.subscribe(listener)

    async def prompt(
        self, text: str, images: Sequence[ImageContent] = ()
    ) -> AssistantMessage | None:
        """Send a message and wait until the agent has settled; returns its last answer.

        An answer that failed says so in `stop_reason` and `error_message`; None when no answer was
        made. Raises UsageError while another prompt runs.
        """
        outcome = await self.session.prompt(text, images)
        return None if outcome is None else outcome.last_answer

    def abort(self) -> bool:
        """Stop what runs now; False when nothing does."""
        return self.session.abort()

    async def navigate(
        self,
        target: str | None,
        *,
        summarize: bool = False,
        custom_instructions: str | None = None,
        replace_instructions: bool = False,
        label: str | None = None,
    ) -> NavigationOutcome:
        """Go to an entry of the tree; what is prompted next becomes its child. None: to the start.

        A user message means the place before it, and its text is in `editor_text` of the outcome.
        With `summarize` the model writes down what was learnt on the branch that is left, with
        `custom_instructions` as its focus, or as the only instructions with `replace_instructions`.
        `label` names the summary, else the target. The outcome says how it ended; UsageError is
        raised only for an entry there is not.
        """
        request = NavigateRequest(
            target_id=None if target is None else self.session.branches.find(target),
            summarize=summarize,
            custom_instructions=custom_instructions,
            replace_instructions=replace_instructions,
            label=label,
        )
        return await self.session.navigate(request)

    def label(self, target: str, text: str | None) -> str | None:
        """Name an entry, or take its name away with None. Raises UsageError."""
        return self.session.set_label(self.session.branches.find(target), text)

    async def tree_dump(self) -> JSON:
        """The whole tree: `{"leafId", "name", "nodes": [...]}`, as `/tree --dump` gives it."""
        return await self.session.tree_dump()

    async def compact(
        self, instructions: str | None = None, *, keep_tokens: int | None = None
    ) -> CompactionOutcome:
        """Summarise the older part of the branch; the outcome says whether that was possible."""
        request = CompactRequest("manual", instructions=instructions, keep_tokens=keep_tokens)
        return await self.session.compact(request)


def _opened(options: LaunchOptions) -> tuple[Start, Sessions, OpenedSession]:
    start = read_start(options)
    refuse_wrong_arguments(start)
    sessions = Sessions(start)
    path = sessions.asked_for()
    return start, sessions, sessions.create() if path is None else sessions.open(path)


@asynccontextmanager
async def open_agent(
    session: str | None = None,
    *,
    model: str | None = None,
    thinking: ThinkingLevel | None = None,
    tools: str | None = None,
    name: str | None = None,
    session_dir: str | None = None,
    system_prompt: str | None = None,
    save: bool = True,
    listener: Listener | None = None,
) -> AsyncIterator[Agent]:
    """Open an agent in the present directory, and close it at the end of the block.

    `session` is the path or id of a stored session, None for a new one; without `save` a new one is
    kept in memory only. The others are what the options of the program of the same names take;
    `tools=""` means none. `listener` hears every event, from the first entry on.

        async with pi_tui.open_agent(model="anthropic/claude-sonnet-4-5") as agent:
            answer = await agent.prompt("What does main.py do?")
            await agent.navigate(None, summarize=True, label="first look")

    Raises UsageError, ModelError, SettingsError or StorageError when it cannot be opened. Who sets
    no model and has none set up gets the scripted demo, as in the program.
    """
    if thinking is not None and thinking not in THINKING_LEVELS:
        raise UsageError(f"{thinking!r} is none of {', '.join(THINKING_LEVELS)}")
    options = plain_options(
        session=session,
        model=model,
        thinking=thinking,
        tools=tools,
        name=name,
        session_dir=session_dir,
        system_prompt=system_prompt,
        no_session=not save,
    )
    # The loop is the caller's: reading settings and a large session must not hold it up.
    start, sessions, opened = await asyncio.to_thread(_opened, options)
    prepared = prepare_or_close(start, sessions, opened, listener)
    agent = Agent(prepared.session, prepared.notices)
    try:
        yield agent
    finally:
        agent.notices += await prepared.session.close()
