"""Going from one session to another: what has to be asked first, and what is refused.

Pure decisions about the working directory and about sessions that are open for reading only, and
the one way to take over an opened session. It knows no files: storage opens, the front end asks.
"""

from __future__ import annotations

import asyncio
from posixpath import normpath
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from pi_tui.agent.stored_choice import stored_choice
from pi_tui.core.errors import ModelError, UsageError
from pi_tui.core.messages import THINKING_LEVELS, ThinkingLevel
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelSource, OpenedSession, SessionStore

OpeningKind: TypeAlias = Literal["here", "elsewhere", "gone"]

READ_ONLY = "this session is open for reading only; nothing was sent and nothing was changed"
READ_ONLY_HINT = "/fork or /clone go on in a session of your own; /new starts an empty one."


class OpeningPlan(Struct, frozen=True):
    """What to do about the directory a session belongs to.

    "here": open it. "elsewhere" and "gone" (the directory does not exist any more): ask whether to
    continue here, fork a session for this directory, or cancel.
    """

    kind: OpeningKind
    recorded_cwd: str

    @property
    def must_ask(self) -> bool:
        """True when the person decides; what cannot ask refuses with `refusal`."""
        return self.kind != "here"

    def question(self, shown_recorded: str, shown_here: str) -> str:
        """The question in words; directories as the person knows them."""
        gone = ", which does not exist any more" if self.kind == "gone" else ""
        return f"This session belongs to {shown_recorded}{gone}. You are in {shown_here}."

    def refusal(self, shown_recorded: str, shown_here: str) -> UsageError:
        """The error where nobody can be asked."""
        if self.kind == "gone":
            return UsageError(
                f"the session belongs to {shown_recorded}, which does not exist any more",
                hint="Open it with the screen (pi-tui --session …), which asks what to do.",
            )
        return UsageError(
            f"the session belongs to {shown_recorded}, not to {shown_here}",
            hint="Change to that directory, or open it with the screen, which offers a fork.",
        )


def plan_opening(header_cwd: str, cwd: str, cwd_exists: bool) -> OpeningPlan:
    """Decide how to open a session whose header names a directory.

    `cwd` is the present directory, `cwd_exists` tells whether the recorded one is still there. A
    header without a directory belongs anywhere.
    """
    if not header_cwd or normpath(header_cwd) == normpath(cwd):
        return OpeningPlan("here", header_cwd)
    return OpeningPlan("elsewhere" if cwd_exists else "gone", header_cwd)


# ---------------------------------------------------------------- read only


def refuse_read_only(store: SessionStore) -> None:
    """Raise UsageError, saying what to do instead, when the session is for reading only."""
    if store.read_only:
        raise UsageError(READ_ONLY, hint=READ_ONLY_HINT)


# ---------------------------------------------------------------- switching


class SwitchedSession(Protocol):
    """What a switch needs of the session object."""

    @property
    def models(self) -> ModelSource: ...

    @property
    def model(self) -> Model: ...

    async def adopt(
        self,
        opened: OpenedSession,
        reason: Literal["resume", "fork"],
        *,
        model: Model | None = None,
        thinking_level: ThinkingLevel | None = None,
    ) -> None: ...


async def switch_session(
    session: SwitchedSession, opened: OpenedSession, reason: Literal["resume", "fork"]
) -> str | None:
    """Leave the present session for an opened one, with the model and level it was left with.

    What runs is stopped first. Returns what the person should know about the model, if anything.
    Raises StorageError when the opened session cannot be read; then the present one is kept.
    """
    choice = await asyncio.to_thread(stored_choice, opened)
    level = next((one for one in THINKING_LEVELS if one == choice.thinking_level), None)
    model: Model | None = None
    notice: str | None = None
    if choice.model is not None and choice.model != session.model.full_name:
        model, notice = _usable(session.models, choice.model)
    await session.adopt(opened, reason, model=model, thinking_level=level)
    return f"{notice}; going on with {session.model.full_name}" if notice else None


def _usable(models: ModelSource, name: str) -> tuple[Model | None, str | None]:
    """The model, or why it cannot be used."""
    model = models.find(name)
    if model is None:
        return None, f"the session's model {name} is not known here"
    try:
        models.provider_for(model)
    except ModelError as error:
        return None, f"the session's model {name} cannot be used now ({error.text})"
    return model, None
