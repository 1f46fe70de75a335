"""The program that pseudo-terminal tests run: the front end over a session double.

The first argument names what goes wrong, or "" for nothing.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import time
from pathlib import Path

from pi_tui.tui import terminal
from pi_tui.tui.terminal import silence_terminal

silence_terminal()

from pi_tui.commands.builtin import builtin_registry  # noqa: E402 - after the terminal is held
from pi_tui.core.events import ActivityChanged  # noqa: E402
from pi_tui.core.messages import UserMessage  # noqa: E402
from pi_tui.tui import app as app_module  # noqa: E402
from pi_tui.tui.options import StartupLine, TuiOptions  # noqa: E402
from pi_tui.tui.run import run_tui  # noqa: E402

spec = importlib.util.spec_from_file_location(
    "tui_session_double", Path(__file__).parents[1] / "tui" / "session_double.py"
)
assert spec is not None and spec.loader is not None
double = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = double
spec.loader.exec_module(double)

SECRET = "sk-live-0123456789abcdef0123"


class Faulty(app_module.StatusFooter):
    """Fails while a frame is drawn, once a key has asked for it."""

    broken = False

    def render_line(self, y: int):  # type: ignore[no-untyped-def]
        if Faulty.broken:
            api_key = SECRET
            raise RuntimeError(f"drawing failed with api_key={api_key}")
        return super().render_line(y)


async def after_paint(ui: object) -> None:
    kind = sys.argv[1] if len(sys.argv) > 1 else ""
    if kind == "busy":
        session.emit(ActivityChanged("running"))
        while True:
            session.answer("streamed text " * 20)
            await asyncio.sleep(0.01)
    if kind == "screen":
        Faulty.broken = True
        session.set_name("redraw")
    if kind == "task":
        raise RuntimeError(f"task failed with api_key={SECRET}")
    if kind == "stuck":
        child = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
        Path("child").write_text(str(child.pid))
        time.sleep(60)


class SlowlyClosed(double.SessionDouble):  # type: ignore[misc, name-defined]
    """Takes its time to end, and says that it has begun to."""

    async def close(self) -> tuple[str, ...]:
        Path("closing").touch()
        await asyncio.sleep(0.4)
        return await super().close()  # type: ignore[no-any-return]


KIND = sys.argv[1] if len(sys.argv) > 1 else ""
if KIND == "screen":
    app_module.StatusFooter = Faulty  # type: ignore[misc]
if KIND == "stuck":
    terminal.SAME_REQUEST_S = 0.1
session_class = SlowlyClosed if KIND == "closing" else double.SessionDouble
session = session_class(answers=True, cwd=str(Path.cwd()))
session.append(UserMessage("an earlier message", 0))
options = TuiOptions(
    home=os.environ.get("HOME", ""),
    startup=(StartupLine("ready to type"),),
    editor_command=os.environ.get("TEST_EDITOR", ""),
    secrets=(SECRET,),
    after_paint=after_paint,
)
code = run_tui(session, builtin_registry(), options)
if KIND == "lingering":
    Path("closing").touch()
    time.sleep(0.4)
sys.exit(code)
