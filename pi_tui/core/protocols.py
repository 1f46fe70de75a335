"""The seams: what the agent needs of the world, as protocols. Rooms outside implement them.

Times are seconds where a name ends in `_s`, Unix milliseconds in `_ms`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from msgspec import UNSET, Struct, UnsetType, field

from pi_tui.core.entries import Entry, EntryHead, SessionHeader
from pi_tui.core.messages import (
    JSON,
    AssistantMessage,
    ContentList,
    Message,
    ThinkingLevel,
    ToolDeclaration,
    ToolResultMessage,
    UserMessage,
)
from pi_tui.core.models import Model, ModelChoice
from pi_tui.core.streaming import StreamEvent

RequestMessage = UserMessage | AssistantMessage | ToolResultMessage
"""What a request carries besides the system prompt; see `projection.convert_to_llm`."""


class ModelRequest(Struct, frozen=True):
    """One request, complete and already repaired: every call answered, ids unique.

    `max_tokens` None means the model's own limit. `cache` False: write nothing to a prompt cache.
    """

    model: Model
    system: str
    messages: tuple[RequestMessage, ...]
    tools: tuple[ToolDeclaration, ...] = ()
    thinking_level: ThinkingLevel = "off"
    max_tokens: int | None = None
    session_id: str = ""
    cache: bool = True


class Provider(Protocol):
    """Answers requests over one wire format."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Send the request and yield what comes back; the last event is `Stopped`.

        Raises ProviderError. Closing the iterator or cancelling the task that awaits it closes the
        connection within 100 ms.
        """
        ...


class ModelSource(Protocol):
    """Knows the models and who serves them."""

    def find(self, full_name: str) -> Model | None:
        """The model called `provider/id`, or None."""
        ...

    def available(self) -> Sequence[Model]:
        """Models that could be used now: a key is set, or none is needed."""
        ...

    def resolve(self, reference: str) -> ModelChoice:
        """What `provider/id[:thinking]`, a bare id or a unique pattern means.

        Raises ModelError, with the nearest names, when nothing or more than one thing fits.
        """
        ...

    def provider_for(self, model: Model) -> Provider:
        """The client that serves the model. Raises ModelError where no key is set."""
        ...


class ToolOutput(Struct, frozen=True):
    """What a tool gives back. `details` is for people (diffs, counts), never for the model."""

    content: ContentList
    is_error: bool = False
    details: JSON | UnsetType = UNSET


class ToolContext(Struct, frozen=True):
    """What one execution may use.

    `on_update` takes a bounded snapshot of the output so far and may be called often.
    `environment` are extra variables for child processes.
    """

    call_id: str
    cwd: str
    on_update: Callable[[ToolOutput], None]
    environment: dict[str, str] = field(default_factory=dict)


class Tool(Protocol):
    """Something the model can call."""

    @property
    def declaration(self) -> ToolDeclaration: ...

    @property
    def prompt_line(self) -> str:
        """One line for the list of tools in the system prompt."""
        ...

    def check(self, arguments: dict[str, JSON]) -> None:
        """Raise ToolError, in words the model can act on, when the arguments are wrong."""
        ...

    def written_path(self, arguments: dict[str, JSON], cwd: str) -> str | None:
        """What stands for the file a call would write; calls on the same one run in call order."""
        ...

    async def run(self, arguments: dict[str, JSON], context: ToolContext) -> ToolOutput:
        """Do it. Raises ToolError for a failed call; cancellation ends everything it started."""
        ...


class ShellOutcome(Struct, frozen=True):
    """How a command ended. `exit_code` None: killed or never started. `output` is bounded."""

    output: str
    exit_code: int | None
    cancelled: bool = False
    timed_out: bool = False
    truncated: bool = False
    full_output_path: str | None = None
    left_running: bool = False


class Shell(Protocol):
    """Runs the user's own `!` commands."""

    async def run(self, command: str, cwd: str, on_output: Callable[[str], None]) -> ShellOutcome:
        """Run to the end. Cancelling the task kills the command's process group."""
        ...

    def close(self) -> Sequence[str]:
        """End what commands left running in the background; returns what was ended."""
        ...


class SessionStore(Protocol):
    """Where entries are kept. Appending is durable on return."""

    @property
    def header(self) -> SessionHeader: ...

    @property
    def path(self) -> str | None:
        """The file as an absolute path; None when nothing is written to disk."""
        ...

    @property
    def read_only(self) -> bool:
        """True when nothing may be appended."""
        ...

    @property
    def pending(self) -> int:
        """How many entries are only in memory, because the file could not take them."""
        ...

    def raw_line(self, entry_id: str) -> bytes:
        """The stored line of an entry, byte for byte, without its line end."""
        ...

    def flush(self) -> None:
        """Write what waits. Raises StorageError while that is not possible."""
        ...

    def relocate(self, directory: str) -> Sequence[str]:
        """Write the whole session below another directory and go on there; returns notices.

        Raises StorageError; then nothing has changed.
        """
        ...

    def append(self, entry: Entry, *, keep_on_failure: bool = True) -> None:
        """Write one entry. Raises StorageError; then nothing of it is in the file.

        `keep_on_failure`: the store keeps the entry in memory, serves it from `load`, and writes it
        before the next one that is appended. Otherwise it forgets it.
        """
        ...

    def load(self, entry_id: str) -> Entry:
        """Read one entry. Raises StorageError when the file no longer has it."""
        ...

    def sync(self) -> None:
        """Ask the system to put everything on the device; may take long, call it in a thread."""
        ...

    def close(self) -> None:
        """Give up the lock and the file. Raises StorageError when entries are lost by it."""
        ...


class EntrySource(Protocol):
    """What the tree reads from: the store, or a list in memory."""

    def load(self, entry_id: str) -> Entry: ...


class OpenedSession(Struct, frozen=True):
    """A session file as it was found. `heads` in file order; `notices` for the user."""

    store: SessionStore
    heads: tuple[EntryHead, ...]
    notices: tuple[str, ...] = ()


class Clock(Protocol):
    def now_ms(self) -> int:
        """Unix milliseconds."""
        ...

    def monotonic_s(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class IdSource(Protocol):
    def entry_id(self, taken: Callable[[str], bool]) -> str:
        """Eight hexadecimal digits that are not taken."""
        ...

    def session_id(self) -> str: ...


class TokenEstimator(Protocol):
    def message_tokens(self, message: Message) -> int:
        """An estimate of one message; stable for equal messages."""
        ...
