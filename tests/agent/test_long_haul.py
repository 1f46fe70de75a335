"""A long session with tools in a small window, checked at every single request.

The provider counts what it is sent and refuses what exceeds the window. The user aborts, pins,
moves between branches and asks for compactions; tools return small and very large results. The
default settings hold throughout.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from itertools import count

import msgspec
import pytest
from msgspec import structs
from request_size import request_chars

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.core.compaction.prompts import SUMMARISER_SYSTEM
from pi_tui.core.entries import CompactionEntry, MessageEntry, SessionHeader
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import CompactionEnd, MessageUpdate
from pi_tui.core.messages import (
    AssistantMessage,
    ToolDeclaration,
    ToolResultMessage,
    Usage,
    content_to_data,
    text_content,
    text_of,
)
from pi_tui.core.pairing import check_pairing, repair_pairing
from pi_tui.core.projection import convert_to_llm, declared_tools, project, system_text
from pi_tui.core.protocols import OpenedSession, ToolOutput
from pi_tui.core.tree import SessionTree
from pi_tui.providers.scripted import Call, ScriptedProvider, Text, reply
from pi_tui.storage.jsonl import create_session, open_session

WINDOW = 32_768
FILES = 150


def request_text(request) -> str:
    return "\n".join(
        message.content
        if isinstance(message.content, str)
        else msgspec.json.encode(content_to_data(message.content)).decode()
        for message in request.messages
    )


class FakeTool:
    """Returns as many characters as it is told to."""

    prompt_line = "works"

    def __init__(self, name):
        self.declaration = ToolDeclaration(name, f"the {name} tool", {"type": "object"})

    def check(self, arguments):
        return None

    def written_path(self, arguments, cwd):
        return None

    async def run(self, arguments, context):
        await asyncio.sleep(0)
        return ToolOutput(text_content("r" * arguments["chars"]))


class Haul:
    """One long session and its checks."""

    def __init__(self, rig, directory, seed):
        self.random = random.Random(seed)
        self.directory = directory
        self.numbers = count(1)
        self.turns_left = 0
        self.refused = 0
        self.reopened = 0
        self.first = None
        self.pins = {}
        rig.model = structs.replace(rig.model, context_window=WINDOW, max_tokens=4096)
        rig.tools = tuple(FakeTool(name) for name in ("read", "write", "edit", "bash"))
        rig.system = "Rules of the house. " * 300
        rig.provider = ScriptedProvider(fallback=self.answer)
        self.rig = rig
        header = SessionHeader(id="haul", timestamp="2026-01-02T03:04:05.000Z", cwd="/work")
        self.store = create_session(directory, header)
        self.session = rig.session(OpenedSession(self.store, ()))
        self.session.subscribe(self.listen)
        self.abort_soon = False

    # ------------------------------------------------------------ the model

    def answer(self, request):
        tokens = request_chars(request) // 4
        if tokens > WINDOW:
            self.refused += 1
            return ProviderError("prompt is too long", kind=ErrorKind.OVERFLOW)
        if request.system == SUMMARISER_SYSTEM:
            assert request.tools == () and request.max_tokens + tokens <= WINDOW
            return f"## Goal\nnotes number {next(self.numbers)} " + "of the work " * 60
        self.check(request)
        if self.random.random() < 0.01:  # this server's window is smaller than it says, at times
            self.refused += 1
            return ProviderError("prompt is too long", kind=ErrorKind.OVERFLOW)
        usage = Usage(input=tokens, output=50, total_tokens=tokens + 50)
        if self.turns_left <= 0:
            return reply(Text.of("all ", f"done {next(self.numbers)}"), usage=usage)
        self.turns_left -= 1
        calls = [self.call() for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
        return reply("next step", *calls, usage=usage)

    def call(self):
        name = self.random.choice(("read", "write", "edit", "bash"))
        chars = self.random.choice((50, 200, 800, 2000, 5000))
        if self.random.random() < 0.01:
            chars = 50_000  # the most a tool returns
        arguments = {"chars": chars}
        if name != "bash":
            arguments["path"] = f"src/part_{self.random.randrange(FILES)}.py"
        return Call(name, arguments)

    # ------------------------------------------------------------ the checks

    def check(self, request):
        assert check_pairing(request.messages) == []
        prefix = (request.system.encode(), msgspec.json.encode(request.tools))
        self.first = self.first or prefix
        assert prefix == self.first
        text = request_text(request)
        path = self.session.tree.path()
        for file in self.written(path):
            assert file in text, f"{file} is not named any more"
        on_path = {entry.id for entry in path}
        for entry_id, words in self.pins.items():
            if entry_id in on_path:
                assert words in text, "a pinned message is not there word for word"
        if len(self.rig.provider.requests) % 20 == 0:
            self.check_file(request)

    def written(self, path):
        answered = {
            e.message.tool_call_id
            for e in path
            if isinstance(e, MessageEntry)
            and isinstance(e.message, ToolResultMessage)
            and not e.message.is_error
        }
        return {
            call.arguments["path"]
            for e in path
            if isinstance(e, MessageEntry) and isinstance(e.message, AssistantMessage)
            for call in e.message.tool_calls
            if call.name in ("write", "edit") and call.id in answered
        }

    def check_file(self, request):
        """What is on disk at this moment opens and gives the same request."""
        copy = self.directory / "copy" / "copy.jsonl"
        copy.parent.mkdir(exist_ok=True)
        shutil.copy(self.store.path, copy)
        opened = open_session(copy)
        try:
            tree = SessionTree(opened.heads, opened.store, self.session.tree.leaf_id)
            projection = project(tree.context_path())
            sent, _ = repair_pairing(convert_to_llm(p.message for p in projection.messages))
            assert sent == request.messages
            assert system_text(projection.system_message) == request.system
            assert declared_tools(projection.system_message) == request.tools
        finally:
            opened.store.close()
        self.reopened += 1

    # ------------------------------------------------------------ the user

    def listen(self, event):
        if isinstance(event, MessageUpdate) and self.abort_soon:
            self.abort_soon = False
            asyncio.get_running_loop().call_soon(self.session.abort)

    async def prompt(self):
        number = next(self.numbers)
        text = f"prompt {number}: " + "please go on " * self.random.randrange(1, 30)
        self.turns_left = self.random.randrange(1, 9)
        self.abort_soon = self.random.random() < 0.06
        await self.session.prompt(text)
        assert self.session.activity == "idle"
        chance = self.random.random()
        if chance < 0.04 and len(self.pins) < 25:
            self.pin(text)
        elif chance < 0.09:
            self.move()
        elif chance < 0.12:
            await self.session.compact(CompactRequest("manual", instructions="mind the files"))

    def pin(self, text):
        tree = self.session.tree
        for entry_id in reversed(tree.path_ids()):
            if tree.head(entry_id).role == "user":
                if text_of(tree.entry(entry_id).message.content) == text:
                    self.session.pin(entry_id)
                    self.pins[entry_id] = text
                return

    def move(self):
        """Back by some turns, onto a branch of its own."""
        tree = self.session.tree
        ids = tree.path_ids()
        users = [i for i in ids[-60:] if tree.head(i).role == "user"]
        target = tree.parent(self.random.choice(users)) if users else None
        if target is not None:
            self.session._journal.move_leaf(target)

    async def run(self, turns):
        while len(self.rig.ordinary_requests) < turns:
            await self.prompt()
        await self.session.close()
        opened = open_session(self.store.path)
        opened.store.close()
        assert len(opened.heads) == len(self.session.tree)


@pytest.fixture
def haul(rig, tmp_path):
    return lambda seed: Haul(rig, tmp_path, seed)


async def check_haul(haul, turns):
    await haul.run(turns)
    rig = haul.rig
    entries = [haul.session.tree.entry(i) for i in haul.session.tree.ids()]
    compactions = [e for e in entries if isinstance(e, CompactionEntry)]
    assert len(compactions) >= turns // 40
    assert haul.refused <= turns // 50 + 2
    assert haul.reopened >= turns // 25
    failed = [e.error_message for e in rig.of(CompactionEnd) if e.error_message]
    assert [text for text in failed if "not smaller" not in text] == []
    assert len(failed) <= turns // 200
    for entry in compactions:
        assert entry.details["estimatedTokensAfter"] < WINDOW
    return compactions


async def test_two_hundred_turns(haul):
    compactions = await check_haul(haul(1), 200)
    assert {e.details["reason"] for e in compactions} >= {"threshold", "overflow"}


@pytest.mark.slow
async def test_two_thousand_turns(haul):
    hauled = haul(2)
    compactions = await check_haul(hauled, 2000)
    assert {e.details["reason"] for e in compactions} == {"threshold", "manual", "overflow"}
    assert len(hauled.pins) > 5
