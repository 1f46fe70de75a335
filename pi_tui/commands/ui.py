"""What a command may ask of the front end it runs in.

Each front end implements `CommandUI`; one that cannot ask a question answers None, and the command
then says what to type instead. Texts may be foreign: the front end sanitises them where it draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from pi_tui.agent.queues import Draft
from pi_tui.core.context_report import ContextReport
from pi_tui.core.events import NoticeLevel


class Choice(Struct, frozen=True):
    """One row of a question. `value` is what `choose` returns."""

    value: str
    label: str
    detail: str = ""


class CommandUI(Protocol):
    def notify(self, level: NoticeLevel, text: str) -> None:
        """Show one line."""
        ...

    def show(self, title: str, text: str) -> None:
        """Show a longer plain text that can be scrolled and closed."""
        ...

    async def choose(
        self, title: str, options: Sequence[Choice], current: str | None = None
    ) -> str | None:
        """Ask for one of the options; None when the person cancels or cannot be asked."""
        ...

    def set_editor_text(self, text: str) -> None:
        """Put text into the editor, unless a draft is there."""
        ...

    def copy(self, text: str) -> None:
        """Put plain text on the clipboard, as far as the terminal allows."""
        ...

    def key_rows(self) -> Sequence[tuple[str, str]]:
        """The keys that work here, as (keys, what they do)."""
        ...

    def quit(self) -> None:
        """End the program in the ordinary way."""
        ...


@runtime_checkable
class ShowsContext(Protocol):
    """What a front end that can draw the context offers besides `CommandUI`."""

    def show_context(self, report: ContextReport, window_tokens: int, notes: str) -> None:
        """Show what fills the window as a bar and a list, then the notes."""
        ...


@runtime_checkable
class TakesDrafts(Protocol):
    """What a front end whose editor can hold images offers besides `CommandUI`."""

    def put_back(self, drafts: Sequence[Draft]) -> None:
        """Put messages that were not sent in front of what the editor holds, and say so."""
        ...

    def set_editor_draft(self, draft: Draft) -> None:
        """Put a message and its images into the editor, unless a draft is there."""
        ...


@runtime_checkable
class OpensTree(Protocol):
    """What a front end with a tree panel offers besides `CommandUI`."""

    def open_tree(self) -> bool:
        """Open the panel; False when that cannot be done now, and the tree is printed instead."""
        ...
