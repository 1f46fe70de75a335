"""Going to another session: directories that moved, sessions for reading only, the leaf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pi_tui.agent.session_switch import plan_opening, switch_session
from pi_tui.core.entries import (
    CustomEntry,
    Entry,
    EntryHead,
    MessageEntry,
    ModelChangeEntry,
    ThinkingLevelChangeEntry,
    entry_to_data,
    head_of,
)
from pi_tui.core.errors import UsageError
from pi_tui.core.events import LeafMoved, ModelChanged, Notice, SessionReplaced
from pi_tui.core.leaf import LEAF_TYPE, leaf_data, stored_leaf
from pi_tui.core.messages import UserMessage
from pi_tui.core.models import Model
from pi_tui.core.projection import project
from pi_tui.core.protocols import OpenedSession
from pi_tui.core.tree import tree_of
from pi_tui.providers.scripted import reply

TIME = "2026-01-02T03:04:05.000Z"


def user(entry_id: str, parent_id: str | None, text: str = "hello") -> MessageEntry:
    return MessageEntry(
        id=entry_id, parent_id=parent_id, timestamp=TIME, message=UserMessage(text, 1)
    )


def marker(entry_id: str, parent_id: str | None) -> CustomEntry:
    return CustomEntry(
        id=entry_id,
        parent_id=parent_id,
        timestamp=TIME,
        custom_type=LEAF_TYPE,
        data=leaf_data(parent_id),
    )


def reopened(entries: list[Entry]) -> Any:
    by_id = {entry.id: entry for entry in entries}
    heads = [head_of(entry) for entry in entries]
    return tree_of(entries, stored_leaf(heads, by_id.__getitem__))


# ---------------------------------------------------------------- the directory


@pytest.mark.parametrize(
    ("recorded", "exists", "kind"),
    [
        ("/home/demo/a", True, "here"),
        ("/home/demo/a/", False, "here"),
        ("/home/demo/x/../a", True, "here"),
        ("", False, "here"),
        ("/home/demo/b", True, "elsewhere"),
        ("/home/demo/b", False, "gone"),
    ],
)
def test_how_a_session_is_opened(recorded: str, exists: bool, kind: str) -> None:
    plan = plan_opening(recorded, "/home/demo/a", exists)
    assert plan.kind == kind
    assert plan.must_ask == (kind != "here")


def test_the_question_names_both_places() -> None:
    plan = plan_opening("/home/demo/b", "/home/demo/a", False)
    assert "~/b" in plan.question("~/b", "~/a")
    assert "does not exist any more" in plan.question("~/b", "~/a")
    assert isinstance(plan.refusal("~/b", "~/a"), UsageError)


# ---------------------------------------------------------------- the leaf


async def test_a_move_is_remembered(rig: Any) -> None:
    rig.provider.add(reply("one"), reply("two"))
    session = rig.session()
    await session.prompt("first")
    middle = session.tree.leaf_id
    await session.prompt("second")
    before = session.tree.path_ids(middle)
    session._journal.move_leaf(middle)
    assert session.tree.leaf_id == middle
    again = reopened(rig.store.entries)
    assert again.leaf_id == middle
    assert again.path_ids() == before == session.tree.path_ids()
    assert project(again.path()) == project(session.tree.path())
    assert [event.new_leaf_id for event in rig.of(LeafMoved)] == [middle]


async def test_a_reader_that_knows_nothing_of_it_ends_at_the_same_conversation(rig: Any) -> None:
    rig.provider.add(reply("one"), reply("two"))
    session = rig.session()
    await session.prompt("first")
    middle = session.tree.leaf_id
    await session.prompt("second")
    session._journal.move_leaf(middle)
    plain = tree_of(rig.store.entries)  # the leaf is the last entry of the file
    assert plain.leaf_id != middle
    assert plain.path_ids()[:-1] == session.tree.path_ids()
    assert project(plain.path()).messages == project(session.tree.path()).messages
    assert entry_to_data(rig.store.entries[-1]) | {"id": "", "timestamp": ""} == {
        "type": "custom",
        "id": "",
        "parentId": middle,
        "timestamp": "",
        "customType": "pi-tui.leaf",
        "data": {"leafId": middle},
    }


async def test_what_follows_a_move_is_a_child_of_the_place(rig: Any) -> None:
    rig.provider.add(reply("one"), reply("two"), reply("three"))
    session = rig.session()
    await session.prompt("first")
    middle = session.tree.leaf_id
    await session.prompt("second")
    session._journal.move_leaf(middle)
    await session.prompt("third")
    again = reopened(rig.store.entries)
    assert again.path_ids() == session.tree.path_ids()
    assert LEAF_TYPE not in [
        entry.custom_type for entry in again.path() if isinstance(entry, CustomEntry)
    ]


async def test_before_the_first_entry_is_remembered_too(rig: Any) -> None:
    rig.provider.add(reply("one"))
    session = rig.session()
    await session.prompt("first")
    session._journal.move_leaf(None)
    again = reopened(rig.store.entries)
    assert again.leaf_id is None
    assert again.path_ids() == []
    plain = tree_of(rig.store.entries)
    assert project(plain.path()).messages == ()


async def test_moving_to_the_end_of_the_file_needs_no_entry(rig: Any) -> None:
    rig.provider.add(reply("one"))
    session = rig.session()
    await session.prompt("first")
    end, entries = session.tree.leaf_id, len(rig.store.entries)
    session.tree.move_leaf(None)
    session._journal.move_leaf(end)
    session._journal.move_leaf(end)
    assert len(rig.store.entries) == entries


@pytest.mark.parametrize(
    ("entries", "leaf"),
    [
        ([], None),
        ([user("a", None)], "a"),
        ([user("a", None), user("b", "a"), marker("m", "a")], "a"),
        ([user("a", None), marker("m", "a"), user("b", "a")], "b"),
        ([user("a", None), marker("m", None)], None),
        ([user("a", None), marker("m", "lost")], "m"),
        ([user("a", None), marker("m", "a"), marker("n", "m")], "m"),
    ],
)
def test_which_leaf_a_file_has(entries: list[Entry], leaf: str | None) -> None:
    assert reopened(entries).leaf_id == leaf


def test_other_extension_entries_are_leaves_as_ever() -> None:
    other = CustomEntry(id="x", parent_id="a", timestamp=TIME, custom_type="x", data={"leafId": 1})
    assert reopened([user("a", None), other]).leaf_id == "x"
    cut = CustomEntry(id="x", parent_id=None, timestamp=TIME, custom_type=LEAF_TYPE, data="?")
    assert reopened([user("a", None), cut]).leaf_id == "x"


def test_ordinary_files_load_nothing_to_find_the_leaf() -> None:
    def load(entry_id: str) -> Entry:
        raise AssertionError(f"{entry_id} was loaded")

    heads = [EntryHead("a", None, "message", TIME, "user")]
    assert tree_of([user("a", None)], stored_leaf(heads, load)).leaf_id == "a"


# ---------------------------------------------------------------- reading only


async def test_a_session_for_reading_only_takes_nothing(rig: Any) -> None:
    rig.store.read_only = True
    session = rig.session()
    assert session.read_only
    assert session.submit("hello") == "refused"
    assert not session.start_shell("ls", excluded=False)
    notices = rig.of(Notice)
    assert len(notices) == 2
    assert "/fork" in notices[0].text
    for refused in (session.prompt("hello"),):
        with pytest.raises(UsageError, match="reading only"):
            await refused
    with pytest.raises(UsageError, match="reading only"):
        session.set_name("x")
    with pytest.raises(UsageError, match="reading only"):
        session.pin()
    assert rig.store.entries == []


async def test_moving_about_in_a_session_for_reading_only_writes_nothing(rig: Any) -> None:
    entries = [user("a", None), user("b", "a")]
    rig.store.entries = list(entries)
    rig.store.read_only = True
    session = rig.session()
    await session.adopt(OpenedSession(rig.store, tuple(head_of(e) for e in entries)), "resume")
    session._journal.move_leaf("a")
    session.set_thinking_level("high")
    assert session.tree.leaf_id == "a"
    assert rig.store.entries == entries


# ---------------------------------------------------------------- switching


def opened(make_store: Callable[[], Any], *entries: Entry) -> OpenedSession:
    store = make_store()
    store.entries = list(entries)
    return OpenedSession(store, tuple(head_of(entry) for entry in entries))


async def test_a_switch_restores_model_and_level(rig: Any) -> None:
    other = Model("scripted", "other", "scripted", reasoning=True, context_window=1000)
    session = rig.session()
    session.models.models = (rig.model, other)
    stored = opened(
        type(rig.store),
        ModelChangeEntry(
            id="a", parent_id=None, timestamp=TIME, provider="scripted", model_id="other"
        ),
        ThinkingLevelChangeEntry(id="b", parent_id="a", timestamp=TIME, thinking_level="high"),
    )
    assert await switch_session(session, stored, "resume") is None
    assert session.model == other
    assert session.thinking_level == "high"
    assert rig.of(SessionReplaced)[-1].reason == "resume"
    assert rig.of(ModelChanged)[-1].model_id == "other"
    assert len(stored.store.entries) == 2, "going there writes nothing"


async def test_a_model_that_is_gone_is_told(rig: Any) -> None:
    session = rig.session()
    stored = opened(
        type(rig.store),
        ModelChangeEntry(id="a", parent_id=None, timestamp=TIME, provider="no", model_id="more"),
    )
    told = await switch_session(session, stored, "resume")
    assert told is not None
    assert "no/more" in told
    assert session.model == rig.model


async def test_a_switch_stops_what_runs(rig: Any, gated_tool: Any, until: Any) -> None:
    session = rig.session()
    old = rig.store
    session.start_shell("sleep", excluded=False)
    await until(lambda: rig.shell.commands)
    await switch_session(session, opened(type(rig.store)), "fork")
    assert session.activity == "idle"
    assert old.closed
    assert session.store is not old
