"""Every setting does what it says, or the user is told that it does nothing."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from msgspec import Struct

import pi_tui
from pi_tui.config.schema import Settings
from pi_tui.config.settings import settings_from_texts
from pi_tui.config.unused import UNUSED_SETTINGS, unused_settings
from pi_tui.core.messages import ImageContent
from pi_tui.providers.enabled_models import enabled
from pi_tui.providers.http import HttpClient
from pi_tui.wiring.front_ends import _welcome, list_models


def _names(kind: type[Any], at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Path in the file and attribute of every setting."""
    hints = get_type_hints(kind)
    for name, key in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        if isinstance(hints[name], type) and issubclass(hints[name], Struct):
            yield from _names(hints[name], (*at, key))
        else:
            yield (*at, key), name


READ_BY_PATH = {("compaction", "reserveTokens"), ("compaction", "keepRecentTokens")}
"""`config.compaction` reads these from the merged object, because they depend on the model."""


def test_each_setting_is_read_somewhere_or_told_to_be_unused() -> None:
    root = Path(pi_tui.__file__).parent
    code = "\n".join(
        path.read_text()
        for path in root.rglob("*.py")
        if path.name != "schema.py" and path.parent.name in ("wiring", "config", "tui", "agent")
    )
    names = dict(_names(Settings))
    assert set(UNUSED_SETTINGS) <= set(names)
    for path, attribute in names.items():
        owner = re.sub(r"([A-Z])", r"_\1", path[-2]).lower() if path[1:] else "settings"
        read = re.search(rf"\b{owner}\.{attribute}\b", code) is not None
        used = read or path in READ_BY_PATH
        assert used != (path in UNUSED_SETTINGS), path


@pytest.mark.parametrize("path", UNUSED_SETTINGS, ids=".".join)
def test_an_unused_setting_is_told_once_and_only_when_given(
    desk: Any, path: tuple[str, ...]
) -> None:
    given: Any = {"defaultProjectTrust": "ask", "tuiMode": "regular"}.get(path[-1], 7)
    if path[-1] in ("autoResize", "showHardwareCursor"):
        given = True
    for key in reversed(path):
        given = {key: given}
    desk.write("settings.json", given)
    told = [n for n in desk.prepare("--no-session").notices if "is not used by this version" in n]
    assert [".".join(path) in line for line in told] == [True]
    desk.write("settings.json", {})
    assert not [n for n in desk.prepare("--no-session").notices if "not used" in n]


def test_a_value_that_says_what_happens_anyway_is_not_told() -> None:
    text = '{"tuiMode": "fullscreen", "retry": {"provider": {"maxRetries": 0}}, "images": 5}'
    assert unused_settings(settings_from_texts(text, None)) == ()


# ---------------------------------------------------------------- images


@pytest.mark.parametrize("blocked", [False, True])
async def test_blocked_images_are_not_sent(
    desk: Any, models_file: Any, serve: Callable[..., Any], blocked: bool
) -> None:
    server = await serve("fine", "fine")
    data = models_file(server.openai_url)
    claude = {**data["providers"]["mine"], "api": "anthropic-messages", "baseUrl": server.url}
    data["providers"]["claude"] = claude
    desk.write("models.json", data)
    desk.write("settings.json", {"images": {"blockImages": blocked}})
    image = ImageContent("SU1BR0U=", "image/png")
    for number, model in enumerate(("mine/big", "claude/big")):
        await desk.session("--model", model, "--no-session").prompt("look", [image])
        assert ("SU1BR0U=" in str(server.requests[number].body)) is not blocked
        assert "look" in str(server.requests[number].body)


# ---------------------------------------------------------------- connections


@pytest.mark.parametrize(
    "settings",
    [
        {"httpIdleTimeoutMs": 60},
        {"retry": {"provider": {"timeoutMs": 60}}},
        {"httpIdleTimeoutMs": 86_400_000, "retry": {"provider": {"timeoutMs": 60}}},
    ],
)
async def test_a_silent_server_is_given_up_after_the_set_time(
    desk: Any, models_file: Any, settings: dict[str, Any]
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    desk.write("models.json", models_file(f"http://127.0.0.1:{port}/v1"))
    desk.write(
        "settings.json", {**settings, "retry": {"enabled": False, **settings.get("retry", {})}}
    )
    session = desk.session("--model", "mine/big", "--no-session")
    async with asyncio.timeout(20):
        await session.prompt("anybody there?")
    last = session.tree.entry(session.tree.leaf_id).message
    assert last.stop_reason == "error"
    assert "sent nothing for too long" in last.error_message
    server.close()


def test_the_litellm_client_gets_time_limit_and_proxy(desk: Any, models_file: Any) -> None:
    desk.write("models.json", models_file(api="litellm", apiKey="k"))
    desk.write("settings.json", {"httpIdleTimeoutMs": 1500, "httpProxy": "http://proxy.test:3128"})
    models = desk.start().models
    client = models.provider_for(models.find("mine/big"))
    assert client._timeout_s == 1.5
    variables = client._process._environment
    assert variables["HTTPS_PROXY"] == variables["http_proxy"] == "http://proxy.test:3128"


async def test_requests_go_through_the_proxy(desk: Any, models_file: Any) -> None:
    asked: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(proxy, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    desk.write("models.json", models_file("http://models.invalid/v1"))
    desk.write("settings.json", {"httpProxy": address, "retry": {"enabled": False}})
    await desk.session("--model", "mine/big", "--no-session").prompt("hello")
    assert asked[0].startswith(b"POST http://models.invalid/v1/chat/completions")
    server.close()


@pytest.mark.parametrize(
    ("url", "exceptions", "proxied"),
    [
        ("https://models.invalid/v1", "", True),
        ("https://models.invalid/v1", "models.invalid", False),
        ("http://127.0.0.1:8080/v1", "", False),
        ("http://localhost:8080/v1", "", False),
    ],
)
def test_what_needs_no_proxy_gets_none(desk: Any, url: str, exceptions: str, proxied: bool) -> None:
    desk.set(NO_PROXY=exceptions)
    client = HttpClient(provider="p", base_url=url, proxy="http://proxy.test:3128")
    assert client._proxy_for_server() == ("http://proxy.test:3128" if proxied else None)


# ---------------------------------------------------------------- start and models


@pytest.mark.parametrize(
    ("value", "lines"), [(False, ("pi-tui", "instructions")), ("header", ("pi-tui",)), (True, ())]
)
def test_a_quiet_start(desk: Any, models_file: Any, value: object, lines: tuple[str, ...]) -> None:
    desk.write("models.json", models_file())
    desk.write("settings.json", {"quietStartup": value})
    Path("AGENTS.md").write_text("Be kind.")
    welcome = [line.text for line in _welcome(desk.start(), desk.prepare("--no-session"))]
    assert [line.split()[0].rstrip(":") for line in welcome] == list(lines)


def test_a_quiet_start_still_says_that_it_is_a_demo(desk: Any) -> None:
    desk.write("settings.json", {"quietStartup": True})
    lines = _welcome(desk.start(), desk.prepare("--no-session"))
    assert [("demo" in line.text, line.kind) for line in lines] == [(True, "model")]


def test_enabled_models_are_the_ones_to_choose_from(desk: Any, models_file: Any) -> None:
    desk.write("models.json", models_file())
    every = [m.full_name for m in desk.start().models.available()]
    assert every[:2] == ["mine/big", "mine/small"]
    desk.write("settings.json", {"enabledModels": ["*/small:high", "demo/*"]})
    models = desk.start().models
    assert [m.full_name for m in models.available()] == ["mine/small", "demo/tour"]
    assert models.resolve("big").model.full_name == "mine/big", "naming one is choosing enough"


def test_a_list_of_models_that_fits_none_locks_nobody_out(desk: Any, models_file: Any) -> None:
    desk.write("models.json", models_file())
    models = desk.start().models.available()
    assert enabled(models, ["gone/*"]) == models
    assert enabled(models, ["MINE/BIG"])[0].id == "big"


async def test_models_of_a_local_server_are_listed(
    desk: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    body = b'{"data": [{"id": "qwen-local"}]}'

    async def ollama(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(ollama, "127.0.0.1", 0)
    desk.set(OLLAMA_HOST=f"127.0.0.1:{server.sockets[0].getsockname()[1]}", GROQ_API_KEY="x" * 20)
    assert await asyncio.to_thread(list_models, desk.start("--list-models", "qwen-local")) == 0
    assert "ollama/qwen-local" in capsys.readouterr().out
    server.close()
