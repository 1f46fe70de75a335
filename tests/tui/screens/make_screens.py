"""Make the README's picture: the real program with the demo model, drawn by the program itself.

    python tests/tui/screens/make_screens.py

Writes `first-minutes.svg` beside this file. Nothing in it depends on the machine or the hour.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from pi_tui.agent.assembly import AgentSettings, AgentWorld
from pi_tui.agent.session import AgentSession
from pi_tui.agent.system_clock import RandomIds, SystemClock
from pi_tui.commands.builtin import builtin_registry
from pi_tui.core.entries import SessionHeader
from pi_tui.core.models import ModelChoice
from pi_tui.core.protocols import OpenedSession
from pi_tui.core.tokens import CharsEstimator
from pi_tui.providers.demo import DEMO_MODEL, DemoProvider
from pi_tui.resources.themes import load_theme
from pi_tui.storage.memory import MemoryStore
from pi_tui.tools.builtin import DEFAULT_TOOLS, builtin_tools
from pi_tui.tools.local_shell import LocalShell
from pi_tui.tools.options import ToolOptions
from pi_tui.tui.app import PiTuiApp
from pi_tui.tui.options import StartupLine, TuiOptions

SIZE = (100, 38)
HEADER = SessionHeader(id="picture", timestamp="2026-01-01T00:00:00.000Z", cwd="/home/you/project")
README = "# A small project\n\nIt counts words in files.\n"


class DemoOnly:
    """The demo model and nothing else."""

    def __init__(self) -> None:
        self._provider = DemoProvider(word_delay_s=0)

    def find(self, full_name: str):
        return DEMO_MODEL if full_name == DEMO_MODEL.full_name else None

    def available(self):
        return (DEMO_MODEL,)

    def resolve(self, reference: str):
        return ModelChoice(DEMO_MODEL)

    def provider_for(self, model):
        return self._provider


class MemorySessions:
    def create(self, parent: str | None = None) -> OpenedSession:
        return OpenedSession(MemoryStore(HEADER), ())


async def picture(project: Path) -> str:
    """Chat with the demo in `project`; returns the screen as SVG."""
    options = ToolOptions(environment=dict(os.environ))
    built = builtin_tools(options)
    world = AgentWorld(
        models=DemoOnly(),
        tools=tuple(built[name] for name in DEFAULT_TOOLS),
        shell=LocalShell(options),
        sections=lambda tools: {"preamble": "demo"},
        clock=SystemClock(),
        ids=RandomIds(),
        estimator=CharsEstimator(),
        sessions=MemorySessions(),
        cwd=str(project),
    )
    session = AgentSession(world, MemorySessions().create(), AgentSettings(DEMO_MODEL))
    screen = TuiOptions(
        theme=load_theme("dark"),
        home=str(project.parent),
        startup=(StartupLine("pi-tui · /help lists the commands, /hotkeys the keys"),),
    )
    app = PiTuiApp(session, builtin_registry(), screen)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for said in ("hi", "yes", "yes"):
            session.submit(said)
            await session.wait_idle()
            await pilot.pause(0.1)
        await pilot.pause(0.2)
        svg = app.export_screenshot(title="pi-tui")
    await session.close()
    return svg


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        project.mkdir()
        (project / "README.md").write_text(README)
        (project / "count.py").write_text("import sys\n\nprint(len(sys.stdin.read().split()))\n")
        svg = asyncio.run(picture(project))
    Path(__file__).with_name("first-minutes.svg").write_text(svg.rstrip() + "\n")


if __name__ == "__main__":
    main()
