"""A start as the program makes it: command line, environment, files, and a model server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer, Reply

from pi_tui.agent.session import AgentSession
from pi_tui.cli import parse_arguments
from pi_tui.wiring.agent import Prepared, prepare
from pi_tui.wiring.sessions import Sessions
from pi_tui.wiring.start import Start, read_start


class Desk:
    """Writes the user's files and starts from them."""

    def __init__(self, root: Path, environment: pytest.MonkeyPatch) -> None:
        self.root = root
        self._environment = environment
        self.prepared: list[Prepared] = []

    def set(self, **variables: str) -> None:
        for name, value in variables.items():
            self._environment.setenv(name, value)

    def write(self, name: str, value: Any) -> None:
        self.root.mkdir(exist_ok=True)
        (self.root / name).write_text(json.dumps(value))

    def start(self, *argv: str) -> Start:
        return read_start(parse_arguments(argv, stdin_is_terminal=True, stdout_is_terminal=True))

    def prepare(self, *argv: str) -> Prepared:
        start = self.start(*argv)
        sessions = Sessions(start)
        self.prepared.append(prepare(start, sessions, sessions.create()))
        return self.prepared[-1]

    def session(self, *argv: str) -> AgentSession:
        return self.prepare(*argv).session


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    for name in ("HOME", "project"):
        (tmp_path / name).mkdir()
    import os

    for name in tuple(os.environ):
        if name not in ("PATH", "LANG", "PYTHONPATH", "TMPDIR"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "HOME"))
    monkeypatch.setenv("PI_TUI_DIR", str(tmp_path / "root"))
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    monkeypatch.chdir(tmp_path / "project")
    made = Desk(tmp_path / "root", monkeypatch)
    yield made
    for prepared in made.prepared:
        await prepared.session.close()


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Any]]:
    """Start a model server with replies."""
    async with AsyncExitStack() as stack:

        async def start(*texts: str) -> Any:
            replies = [Reply(text=text) for text in texts]
            return await stack.enter_async_context(ModelServer(replies))

        yield start


@pytest.fixture
def models_file() -> Callable[..., dict[str, Any]]:
    """`models.json` with one server of the user's own."""

    def make(base_url: str = "http://127.0.0.1:1/v1", **more: Any) -> dict[str, Any]:
        entry = {
            "baseUrl": base_url,
            "api": "openai-completions",
            "models": [{"id": "big", "input": ["text", "image"]}, {"id": "small"}],
        }
        return {"providers": {"mine": {**entry, **more}}}

    return make
