"""The model server as a program: what tests of the installed program rely on."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.messages import AssistantMessage, TextContent, ToolResultMessage, UserMessage
from pi_tui.core.models import Model
from pi_tui.core.protocols import ModelRequest, Provider
from pi_tui.providers.anthropic import AnthropicProvider
from pi_tui.providers.openai_compatible import OpenAICompatibleProvider

PROGRAM = Path(__file__).parent.parent / "doubles" / "model_server.py"
SCENARIO = {
    "rules": [
        {
            "match": "list files",
            "turns": [{"tools": [{"name": "bash", "args": {"command": "ls"}}]}, {"text": "done"}],
        },
        {"match": "busy", "seq": [{"error": {"kind": "overloaded"}}, {"text": "now"}]},
        {"match": "break", "turns": [{"text": "one two", "fault": {"kind": "reset", "after": 1}}]},
    ],
    "default": {"text": {"tokens": 80}, "thinking": "hm"},
}


@dataclass
class Running:
    base_url: str
    log: Path


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    scenario, log, port = tmp_path / "s.json", tmp_path / "l.jsonl", tmp_path / "port"
    scenario.write_text(json.dumps(SCENARIO))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(PROGRAM),
        *("--port-file", str(port), "--scenario", str(scenario), "--log", str(log)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    address = (await process.stdout.readline()).decode().strip()
    assert address == f"http://127.0.0.1:{port.read_text()}/v1"
    yield Running(address, log)
    process.kill()
    await process.wait()


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_a_scenario(running: Running, hear: Callable, wire: str) -> None:
    provider: Provider
    if wire == "openai":
        provider = OpenAICompatibleProvider(running.base_url, api_key="secret-key-1")
    else:
        provider = AnthropicProvider(running.base_url, api_key="secret-key-1")
    model = Model("fake", "fake-model", wire)

    async def ask(*history: object) -> AssistantMessage:
        said = (await hear(provider, ModelRequest(model, "sys", history))).message
        assert isinstance(said, AssistantMessage)
        return said

    def user(text: str) -> UserMessage:
        return UserMessage(text, 1)

    first = await ask(user("list files"))
    (call,) = first.tool_calls
    assert call.arguments == {"command": "ls"}
    result = ToolResultMessage(call.id, "bash", (TextContent("a.txt"),), False, 1)
    assert (await ask(user("list files"), first, result)).text == "done"
    with pytest.raises(ProviderError) as caught:
        await ask(user("busy?"))
    assert caught.value.kind is ErrorKind.OVERLOADED
    assert (await ask(user("busy?"))).text == "now"
    with pytest.raises(ProviderError) as caught:
        await ask(user("break"))
    assert caught.value.kind is ErrorKind.NETWORK
    assert "Goal" in (await ask(user("Please summarize this."))).text
    assert len((await ask(user("anything"))).text) > 200
    lines = [json.loads(line) for line in running.log.read_text().splitlines()]
    requests = [line for line in lines if "body" in line]
    assert len(requests) == 7
    assert requests[0]["body"]["messages"][-1]["role"] == "user"
    assert "secret-key-1" not in running.log.read_text()
