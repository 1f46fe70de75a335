"""Random trees and random moves: path, context and editor text are those of a simple model.

The model knows only the stored lines: who is whose parent, which messages are the user's, and where
it stands. It shares no code with the program.
"""

from __future__ import annotations

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pi_tui.agent.navigator import NavigateRequest
from pi_tui.core.compaction.prompts import SUMMARISER_SYSTEM
from pi_tui.core.entries import entry_from_data, entry_to_data
from pi_tui.core.messages import text_of
from pi_tui.core.pairing import check_pairing
from pi_tui.providers.scripted import ScriptedProvider

KINDS = ("user", "assistant", "custom_message", "branch_summary", "label", "custom")


class Model:
    """Where one stands in a session, by the rules of the format and nothing else."""

    def __init__(self, stored) -> None:
        self.leaf = None
        self.left: list[str | None] = []
        self.lines: dict[str, dict] = {}
        for line in stored:
            if line["parentId"] != self.leaf:
                self.left.append(self.leaf)
            self.lines[line["id"]] = line
            self.leaf = line["id"]

    def take_in(self, stored) -> list[dict]:
        """The lines that are new."""
        new = [line for line in stored if line["id"] not in self.lines]
        self.lines.update({line["id"]: line for line in new})
        return new

    def path(self) -> list[dict]:
        path, at = [], self.leaf
        while at is not None:
            path.append(self.lines[at])
            at = self.lines[at]["parentId"]
        return path[::-1]

    def context(self) -> list[str]:
        return [text for line in self.path() if (text := self.said(line)) is not None]

    @staticmethod
    def said(line):
        if line["type"] == "message" and line["message"]["role"] in ("user", "assistant"):
            return line["message"]["content"][0]["text"]
        if line["type"] == "custom_message":
            return line["content"]
        return line["summary"] if line["type"] == "branch_summary" else None

    def is_taken_back(self, line) -> bool:
        users = line["type"] == "message" and line["message"]["role"] == "user"
        return users or line["type"] == "custom_message"

    def landing(self, target):
        """Where choosing an entry leads, and what the editor gets."""
        if target is None:
            return target, None
        line = self.lines[target]
        if line.get("customType") == "pi-tui.leaf":
            return self.or_here(line["parentId"]), None
        if self.is_taken_back(line) and self.or_here(target) != self.leaf:
            return self.or_here(line["parentId"]), self.said(line)
        return self.or_here(target), None

    def or_here(self, place):
        """The leaf, when nothing that was said lies between it and a place; else the place."""
        unseen = []
        for line in reversed(self.path()):
            unseen.append(line["id"])
            if line["type"] not in ("label", "custom"):
                break
        return self.leaf if place in unseen else place

    def summarises(self, target) -> bool:
        """True when something was said between here and what the target shares with here."""
        shared = set()
        while target is not None:
            shared.add(target)
            target = self.lines[target]["parentId"]
        return any(self.said(line) for line in self.path() if line["id"] not in shared)


def line_of(number, kind, parent):
    line = {
        "type": "message",
        "id": f"e{number:07d}",
        "parentId": parent,
        "timestamp": "2026-01-02T03:04:05.000Z",
    }
    text = f"{kind} {number}"
    if kind in ("user", "assistant"):
        message = {"role": kind, "content": [{"type": "text", "text": text}], "timestamp": 0}
        if kind == "assistant":
            message |= {"provider": "scripted", "model": "model", "api": "scripted"}
            message |= {"stopReason": "stop"}
        return line | {"message": message}
    extra = {
        "custom_message": {"customType": "note", "content": text, "display": True},
        "branch_summary": {"fromId": "gone", "summary": text},
        "label": {"targetId": "e0000000", "label": text},
        "custom": {"customType": "note", "data": number},
    }
    return line | {"type": kind} | extra[kind]


@st.composite
def trees(draw):
    """Stored lines of a random tree, in file order."""
    lines = []
    for number in range(draw(st.integers(0, 12))):
        earlier = [line["id"] for line in lines]
        last = earlier[-1] if earlier else None
        parent = draw(st.one_of(st.just(last), st.sampled_from([None, *earlier])))
        lines.append(line_of(number, draw(st.sampled_from(KINDS)), parent))
    return lines


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(("go", "go", "summary", "prompt", "undo", "reopen", "before first")),
        st.integers(0, 10_000),
    ),
    max_size=10,
)


def fresh(rig, lines):
    new = type(rig)()
    new.store.entries = [entry_from_data(line) for line in lines]
    new.provider = ScriptedProvider(
        fallback=lambda r: "learnt" if r.system == SUMMARISER_SYSTEM else f"said {len(r.messages)}"
    )
    return new


def stored(rig):
    return [entry_to_data(entry) for entry in rig.store.entries]


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=trees(), actions=ACTIONS)
def test_random_moves_agree_with_the_model(rig, lines, actions):
    asyncio.run(walk(fresh(rig, lines), Model(lines), actions))


async def walk(rig, model, actions):
    session = rig.session()
    for action, number in actions:
        ids = list(model.lines)
        if action == "reopen":
            session = rig.session()
        elif action == "prompt":
            await prompt(rig, session, model, f"prompt {number}")
        elif action == "undo":
            await undo(rig, session, model)
        else:
            target = ids[number % len(ids)] if ids and action != "before first" else None
            await go(rig, session, model, target, summarize=action == "summary")
        check(session, model)
    check(rig.session(), model)


def check(session, model):
    assert session.tree.leaf_id == model.leaf
    assert session.tree.path_ids() == [line["id"] for line in model.path()]
    assert session.activity == "idle"


async def prompt(rig, session, model, text):
    before = model.context()
    await session.prompt(text)
    sent = [text_of(m.content) for m in rig.ordinary_requests[-1].messages]
    assert len(sent) == len(before) + 1 and sent[-1] == text
    for said, expected in zip(sent, before, strict=False):
        assert expected in said  # a summary is framed
    assert check_pairing(rig.ordinary_requests[-1].messages) == []
    for line in model.take_in(stored(rig)):
        assert line["parentId"] == model.leaf
        model.leaf = line["id"]


async def undo(rig, session, model):
    outcome = await session.undo_navigation()
    model.take_in(stored(rig))
    if not model.left:
        assert outcome.kind == "failed"
        return
    model.leaf = model.left.pop()
    assert (outcome.kind, outcome.new_leaf_id) == ("moved", model.leaf)


async def go(rig, session, model, target, *, summarize):
    old = model.leaf
    leaf, editor = model.landing(target)
    is_marker = model.lines.get(target, {}).get("customType") == "pi-tui.leaf"
    makes_summary = summarize and model.summarises(leaf if is_marker else target)
    outcome = await session.navigate(NavigateRequest(target, summarize=summarize))
    new = model.take_in(stored(rig))
    if target == old or (leaf == old and editor is None):
        assert outcome.kind == "already-there" and not new
        return
    kind = "already-there" if leaf == old and not makes_summary else "moved"
    assert (outcome.kind, outcome.editor_text) == (kind, editor)
    model.leaf = leaf
    if makes_summary:
        (summary,) = new
        assert (summary["type"], summary["parentId"]) == ("branch_summary", leaf)
        assert summary["fromId"] == old
        model.leaf = summary["id"]
        if leaf == old:
            return  # it follows the place that was left: nothing to go back to
    else:
        assert [line["type"] for line in new] in ([], ["custom"])
    if leaf != old:
        model.left.append(old)
