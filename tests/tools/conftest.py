"""Real files in a temporary directory, real processes, and an environment made for the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_tui.core.messages import TextContent
from pi_tui.core.protocols import ToolContext, ToolOutput
from pi_tui.tools import LocalShell, ToolOptions, builtin_tools

HANG_GUARD_S = 30.0


def text_of(output: ToolOutput) -> str:
    return "\n".join(block.text for block in output.content if isinstance(block, TextContent))


class Bench:
    """The built-in tools at work in one directory."""

    def __init__(self, directory: Path, **options: Any) -> None:
        self.directory = directory / "project"
        self.home = directory / "home"
        self.directory.mkdir()
        self.home.mkdir()
        self.spill = directory / "spill"
        self.options = ToolOptions(
            environment={
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "HOME": str(self.home),
                "LANG": "C.UTF-8",
            },
            spill_dir=str(self.spill),
            **options,
        )
        self.shell = LocalShell(self.options)
        self.tools = builtin_tools(self.options, self.shell.runner)
        self.updates: list[str] = []

    def path(self, name: str) -> Path:
        return self.directory / name

    def put(self, name: str, content: str | bytes) -> Path:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def output(self, tool: str, /, **arguments: Any) -> ToolOutput:
        context = ToolContext(
            "call-1",
            str(self.directory),
            lambda update: self.updates.append(text_of(update)),
            {"PI_SESSION_ID": "s-1"},
        )
        return await asyncio.wait_for(self.tools[tool].run(arguments, context), HANG_GUARD_S)

    async def text(self, tool: str, /, **arguments: Any) -> str:
        return text_of(await self.output(tool, **arguments))

    async def bash(self, command: str, timeout: float | None = None) -> ToolOutput:
        return await self.output("bash", command=command, timeout=timeout)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.shell.close()


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(**options: Any) -> Bench:
        made.append(Bench(tmp_path, **options))
        return made[-1]

    yield make
    for one in made:
        one.shell.close()


@pytest.fixture
def read_text() -> Callable[[ToolOutput], str]:
    return text_of


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """Wait for something another process does; fails when it does not happen."""

    async def wait(happened: Callable[[], bool]) -> None:
        async def poll() -> None:
            while not happened():
                await asyncio.sleep(0.01)

        await asyncio.wait_for(poll(), HANG_GUARD_S)

    return wait
