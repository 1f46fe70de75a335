"""The installed program against a real model server, in a directory and a HOME of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).parent.parent / "doubles" / "model_server.py"
PATIENCE_S = 60


@dataclass
class Program:
    """Runs `python -m pi_tui`. `project` is the working directory, `root` is PI_TUI_DIR."""

    home: Path
    project: Path
    root: Path
    server_log: Path
    children: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return {
            **kept,
            "HOME": str(self.home),
            "PI_TUI_DIR": str(self.root),
            "TERM": "xterm-256color",
            "LC_ALL": "C.UTF-8",
            # No server of this machine may answer instead of the one of the test.
            "OLLAMA_HOST": "127.0.0.1:1",
        }

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "pi_tui", *arguments],
            cwd=self.project,
            env=self.environment(),
            input=stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(
            [sys.executable, "-m", "pi_tui", *arguments],
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.children.append(child)
        return child

    def session_files(self) -> list[Path]:
        return sorted(self.root.glob("sessions/*/*.jsonl"))

    def entries(self) -> list[dict[str, Any]]:
        """The entries of the only session."""
        (path,) = self.session_files()
        return [json.loads(line) for line in path.read_bytes().splitlines()][1:]

    def messages(self) -> list[dict[str, Any]]:
        return [entry["message"] for entry in self.entries() if entry["type"] == "message"]

    def requests(self) -> list[dict[str, Any]]:
        """Bodies of the requests the server got."""
        lines = self.server_log.read_text().splitlines() if self.server_log.exists() else []
        return [line["body"] for line in map(json.loads, lines) if line.get("body")]

    def wait(self, condition: Callable[[], bool]) -> None:
        """Poll until something outside this process is true; fails instead of hanging."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "it never came true"
            time.sleep(0.02)


SCENARIO = {
    "rules": [
        {
            "match": "change it",
            "turns": [
                {
                    "text": "I look first.",
                    "tools": [{"name": "read", "args": {"path": "a.txt"}}],
                },
                {
                    "tools": [
                        {
                            "name": "edit",
                            "args": {
                                "path": "a.txt",
                                "edits": [{"oldText": "two", "newText": "TWO"}],
                            },
                        }
                    ]
                },
                {"tools": [{"name": "bash", "args": {"command": "cat a.txt; echo $PI_MODEL"}}]},
                {"text": "Changed **two** to `TWO`."},
            ],
        },
        {"match": "slowly", "turns": [{"text": {"tokens": 4000}, "rate": 100}]},
        {
            "match": "sleep",
            "turns": [
                {"tools": [{"name": "bash", "args": {"command": "echo $$ > pid; sleep 600"}}]},
                {"text": "slept"},
            ],
        },
        {
            "match": "loop",
            "turns": [{"tools": [{"name": "bash", "args": {"command": "echo again"}}]}],
        },
        {
            "match": "cut",
            "turns": [
                {
                    "text": "half an answ",
                    "finish": "length",
                    "usage": {"input": 100, "output": 8000},
                }
            ],
        },
        {"match": "refuse", "turns": [{"error": {"kind": "auth"}}]},
    ],
    "default": {"text": "Hello from the server."},
}


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """The program, and a model server that speaks both wire formats."""
    port_file, log = tmp_path / "port", tmp_path / "requests.jsonl"
    (tmp_path / "scenario.json").write_text(json.dumps(SCENARIO))
    server = subprocess.Popen(
        [
            sys.executable,
            str(SERVER),
            "--port-file",
            str(port_file),
            "--scenario",
            str(tmp_path / "scenario.json"),
            "--log",
            str(log),
        ]
    )
    made = Program(tmp_path / "home", tmp_path / "project", tmp_path / "pi", log)
    for directory in (made.home, made.project, made.root):
        directory.mkdir()
    try:
        made.wait(lambda: port_file.exists() and bool(port_file.read_text()))
        url = f"http://127.0.0.1:{port_file.read_text().strip()}/v1"
        models = [{"id": "m", "contextWindow": 100000, "maxTokens": 8000}]
        (made.root / "models.json").write_text(
            json.dumps(
                {
                    "providers": {
                        "chat": {
                            "baseUrl": url,
                            "api": "openai-completions",
                            "apiKey": "k",
                            "models": models,
                        },
                        "messages": {
                            "baseUrl": url,
                            "api": "anthropic-messages",
                            "apiKey": "k",
                            "models": models,
                        },
                        "lite": {
                            "baseUrl": url,
                            "api": "litellm",
                            "apiKey": "k",
                            "models": [{**models[0], "id": "openai/m"}],
                        },
                    }
                }
            )
        )
        yield made
    finally:
        for child in made.children:
            child.kill()
            child.communicate()
        server.kill()
        server.wait()
