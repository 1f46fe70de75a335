"""What a full-screen run is started with.

Imports nothing heavy: wiring builds it before Textual is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, field

from pi_tui.commands.ui import CommandUI
from pi_tui.core.events import NoticeLevel
from pi_tui.core.tree_shape import TreeFilter

if TYPE_CHECKING:
    from pi_tui.agent.session import AgentSession
    from pi_tui.tui.theme import ThemeSource


class StartupLine(Struct, frozen=True):
    """A line shown above the conversation when the program starts. `text` may be foreign.

    One with a `kind` ("model") holds only until something else is said of the same kind: it stands
    where that will stand, below the conversation.
    """

    text: str
    level: NoticeLevel = "info"
    kind: str = ""


class TuiOptions(Struct, frozen=True):
    """Settings and start values of the front end.

    `theme` None: the terminal's own colours. `keybindings` maps action ids to a key or keys.
    `initial_text` is put into the editor; `after_paint` runs once the first screen is there, for
    what nobody has to wait for. `editor_command` is the external editor as a shell-like command
    line. `secrets` are values that must not appear in a crash report, asked for when there is one.
    `remote`: the terminal is at the other end of a network.
    """

    theme: ThemeSource | None = None
    keybindings: Mapping[str, object] = field(default_factory=dict)
    home: str = ""
    initial_text: str = ""
    startup: tuple[StartupLine, ...] = ()
    double_escape: Literal["tree", "fork", "none"] = "tree"
    tree_filter: TreeFilter = "default"
    hide_thinking: bool = False
    completion_rows: int = 5
    editor_command: str = ""
    auto_compaction: bool = False
    escape_delay_s: float = 0.025
    remote: bool = False
    inside_tmux: bool = False
    secrets: Iterable[str] = ()
    resume_command: str = "pi-tui --session"
    resume_reference: Callable[[AgentSession], str] | None = None
    after_paint: Callable[[CommandUI], Coroutine[Any, Any, None]] | None = None
