import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.strip import Strip

from pi_tui.core.transcript import Block
from pi_tui.resources.themes import load_theme
from pi_tui.tui.theme import textual_theme
from pi_tui.tui.transcript import Transcript


class TranscriptApp(App[None]):
    CSS = "Transcript { height: 1fr; }"

    def __init__(self, theme_name: str, clock: Callable[[], float]) -> None:
        super().__init__()
        theme = load_theme(theme_name)
        self.register_theme(textual_theme(theme))
        self.theme = theme.name
        self.transcript = Transcript(theme, clock=clock)

    def compose(self) -> ComposeResult:
        yield self.transcript


class Desk:
    """A running app with a transcript, and eyes for it."""

    def __init__(self, app: TranscriptApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.transcript = app.transcript

    def strips(self) -> list[Strip]:
        """The lines as Textual's compositor has them, scrollbar included."""
        self.transcript.flush()
        return self.app.screen._compositor.render_strips()

    def lines(self) -> list[str]:
        """The texts of the lines without scrollbar and padding."""
        return [strip.text[:-1].rstrip() for strip in self.strips()]

    def screen(self) -> str:
        return "\n".join(self.lines())

    def terminal_output(self) -> str:
        """What a terminal would be sent for the screen, colours included."""
        return "".join(strip.render(self.app.console) for strip in self.strips())

    def line_of(self, text: str) -> int:
        """The screen line that holds a text."""
        return next(y for y, line in enumerate(self.lines()) if text in line)


Opener = Callable[..., AbstractAsyncContextManager[Desk]]


@pytest.fixture
def open_transcript() -> Opener:
    """`open_transcript(blocks, width=80, height=24)`: an app that shows them, as a Desk."""

    @asynccontextmanager
    async def opened(
        blocks: list[Block] | None = None,
        *,
        width: int = 80,
        height: int = 24,
        theme: str = "dark",
        clock: Callable[[], float] = lambda: 0.0,
    ):
        app = TranscriptApp(theme, clock)
        async with app.run_test(size=(width, height)) as pilot:
            if blocks is not None:
                app.transcript.set_blocks(blocks)
            app.transcript.flush()
            yield Desk(app, pilot)

    return opened


OWN_SEQUENCE = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;id=[^;]*;https?://[!-~]*\x1b\\|\x1b\]8;;\x1b\\")


@pytest.fixture
def foreign_controls() -> Callable[[str], list[str]]:
    """Control and turning characters in terminal output that the drawing did not make."""

    def found(output: str) -> list[str]:
        rest = OWN_SEQUENCE.sub("", output)
        return re.findall(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", rest)

    return found
