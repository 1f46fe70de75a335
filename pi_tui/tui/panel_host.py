"""What a panel with questions of its own needs of the application it is shown in."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

from pi_tui.agent.session import AgentSession
from pi_tui.tui.dialogs.panel import Panel
from pi_tui.tui.keys import KeyMap
from pi_tui.tui.palette import Palette

T = TypeVar("T")


class PanelHost(Protocol):
    """Shows panels, and runs work in the background; a fault in it becomes a line on screen."""

    @property
    def session(self) -> AgentSession: ...
    @property
    def palette(self) -> Palette: ...
    @property
    def keys(self) -> KeyMap: ...
    async def open_panel(self, panel: Panel[T]) -> T | None: ...
    def spawn(self, work: Coroutine[Any, Any, object]) -> object: ...
