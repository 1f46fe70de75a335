"""Names, hiding, leaving out, finding, comparing, dumping: entries are appended, never deleted."""

from __future__ import annotations

import json

import pytest

from pi_tui.agent.navigator import NavigateRequest
from pi_tui.core.entries import (
    BranchSummaryEntry,
    CustomEntry,
    LabelEntry,
    MessageEntry,
    entry_to_data,
    iso_timestamp,
)
from pi_tui.core.errors import UsageError
from pi_tui.core.messages import UserMessage, text_of
from pi_tui.core.pairing import check_pairing
from pi_tui.providers.scripted import Call, reply


def request_texts(request):
    return [text_of(m.content) for m in request.messages]


async def branched(rig):
    """one - 1 - two - 2, and from 1 also three - 3, where the leaf is."""
    rig.provider.add("1", "2", "3")
    session = rig.session()
    await session.prompt("one")
    place = session.tree.leaf_id
    await session.prompt("two")
    other = session.tree.leaf_id
    await session.navigate(NavigateRequest(place))
    await session.prompt("three")
    return session, place, other


# ---------------------------------------------------------------- labels


async def test_a_label_is_an_entry_at_the_leaf(rig):
    session, place, _ = await branched(rig)
    leaf = session.tree.leaf_id
    assert session.set_label(place, " a\n b ") == "a b"
    entry = rig.store.entries[-1]
    assert isinstance(entry, LabelEntry)
    assert (entry.target_id, entry.label, entry.parent_id) == (place, "a b", leaf)
    count = len(rig.store.entries)
    session.set_label(place, "a b")
    assert len(rig.store.entries) == count  # nothing changed, so nothing is appended
    assert session.set_label(place, None) is None
    assert session.tree.label(place) is None
    assert "label" not in entry_to_data(rig.store.entries[-1])
    count = len(rig.store.entries)
    session.set_label(place, "")
    assert len(rig.store.entries) == count
    with pytest.raises(UsageError):
        session.set_label("ffffffff", "x")


async def test_nothing_is_written_where_nothing_may_be(rig):
    session, place, other = await branched(rig)
    rig.store.read_only = True
    for change in (
        lambda: session.set_label(place, "x"),
        lambda: session.branches.hide(other),
        lambda: session.branches.unhide(),
        lambda: session.branches.leave_out(place),
        lambda: session.branches.restore(place),
    ):
        with pytest.raises(UsageError):
            change()


# ---------------------------------------------------------------- finding


async def test_entries_are_found_by_id_beginning_label_and_leaf(rig):
    session, place, _ = await branched(rig)
    find = session.branches.find
    session.set_label(place, "Start Here")
    assert find(place) == find("start here") == place
    assert find("leaf") == find("LEAF") == session.tree.leaf_id
    rig.store_message(UserMessage("x", 0), "abcd0001")
    rig.store_message(UserMessage("y", 0), "abcd0002")
    session = rig.session()
    assert session.branches.find("abcd0002") == "abcd0002"
    with pytest.raises(UsageError, match="abcd0001, abcd0002"):
        session.branches.find("abcd")
    with pytest.raises(UsageError, match="no entry"):
        session.branches.find("zz")
    with pytest.raises(UsageError):
        session.branches.find("a")


# ---------------------------------------------------------------- hiding


async def test_hiding_is_kept_with_the_session_and_deletes_nothing(rig):
    session, place, other = await branched(rig)
    top = session.tree.parent(other)
    before = len(rig.store.entries)
    session.branches.hide(top)
    session.branches.hide(top)
    assert len(rig.store.entries) == before + 1
    assert isinstance(rig.store.entries[-1], CustomEntry)
    assert session.branches.hidden == {top}
    with pytest.raises(UsageError, match="on this branch"):
        session.branches.hide(place)

    session = rig.session()
    assert session.branches.hidden == {top}
    await session.navigate(NavigateRequest(other))  # on another branch it is hidden all the same
    assert session.branches.hidden == {top}
    assert session.branches.unhide(other) == (top,)  # an entry inside means the branch
    assert session.branches.hidden == frozenset()
    with pytest.raises(UsageError):
        session.branches.unhide()
    assert rig.session().branches.hidden == frozenset()


async def test_all_hidden_branches_are_shown_again_at_once(rig):
    session, _, other = await branched(rig)
    session.branches.hide(other)
    session.branches.hide(session.tree.parent(other))
    assert len(session.branches.unhide()) == 2


async def test_another_session_has_its_own_hidden_branches(rig):
    session, _, other = await branched(rig)
    session.branches.hide(other)
    await session.new_session()
    assert session.branches.hidden == frozenset()


# ---------------------------------------------------------------- leaving out


async def test_a_message_is_left_out_and_taken_back_byte_for_byte(rig):
    rig.provider.add("1", "2", "3", "4")
    session = rig.session()
    await session.prompt("one")
    await session.prompt("two")
    before = rig.provider.requests[-1].messages
    asked = session.tree.path_ids()[-2]
    assert session.branches.leave_out(asked) == (asked,)
    assert session.branches.left_out == {asked}
    with pytest.raises(UsageError, match="already"):
        session.branches.leave_out(asked)
    await session.prompt("three")
    assert request_texts(rig.provider.requests[-1]) == ["one", "1", "2", "three"]
    assert session.branches.restore(asked) == (asked,)
    assert session.branches.left_out == frozenset()
    await session.prompt("four")
    assert rig.provider.requests[-1].messages[: len(before)] == before
    with pytest.raises(UsageError):
        session.branches.restore(asked)


async def test_an_answer_with_calls_takes_its_results_along(rig, gated_tool):
    rig.tools = (gated_tool(),)
    rig.provider.add(reply("I look", Call("work", {"n": "a"}), Call("work", {"n": "b"})), "done")
    session = rig.session()
    await session.prompt("go")
    before = rig.provider.requests[-1].messages
    call = next(i for i in session.tree.path_ids() if session.tree.head(i).role == "assistant")
    left_out = session.branches.leave_out(call)
    assert len(left_out) == 3 and left_out[0] == call
    rig.provider.add("after", "again")
    await session.prompt("more")
    assert request_texts(rig.provider.requests[-1]) == ["go", "done", "more"]
    assert session.branches.restore(call) == left_out
    await session.prompt("back")
    assert rig.provider.requests[-1].messages[: len(before)] == before


async def test_a_result_keeps_a_line_in_its_place(rig, gated_tool):
    rig.tools = (gated_tool(),)
    rig.provider.add(reply(Call("work", {"n": "a"}), Call("work", {"n": "b"})), "done", "after")
    session = rig.session()
    await session.prompt("go")
    result = next(i for i in session.tree.path_ids() if session.tree.head(i).role == "toolResult")
    assert session.branches.leave_out(result) == (result,)
    assert session.branches.left_out == {result}
    await session.prompt("more")
    request = rig.provider.requests[-1]
    assert check_pairing(request.messages) == []
    texts = request_texts(request)
    assert "(left out of the context by the user)" in texts and "result b" in texts
    assert "result a" not in texts
    assert session.branches.restore(result) == (result,)
    rig.provider.add("end")
    await session.prompt("even more")
    assert "result a" in request_texts(rig.provider.requests[-1])


async def test_what_cannot_be_left_out_is_told_why(rig):
    session, _, other = await branched(rig)
    system = next(i for i in session.tree.path_ids() if session.tree.head(i).role == "system")
    for entry_id, why in (
        (other, "not on this branch"),
        (system, "no message of the conversation"),
        ("ffffffff", "no entry"),
    ):
        with pytest.raises(UsageError, match=why):
            session.branches.leave_out(entry_id)


# ---------------------------------------------------------------- comparing


async def test_two_branches_side_by_side(rig, gated_tool):
    rig.tools = (gated_tool("edit"), gated_tool("read"))
    rig.provider.add(
        "1",
        reply(Call("edit", {"path": "both.py"}), Call("read", {"path": "r.py"})),
        "A is done",
        reply(Call("edit", {"path": "both.py"}), Call("edit", {"path": "b.py"})),
        "B is done",
    )
    session = rig.session()
    await session.prompt("one")
    place = session.tree.leaf_id
    await session.prompt("try A")
    a_id = session.tree.leaf_id
    await session.navigate(NavigateRequest(place))
    await session.prompt("try B")
    found = await session.branches.compare(a_id, session.tree.leaf_id)
    assert found.ancestor_id == place
    assert found.shared_entries == len(session.tree.path_ids(place))
    assert found.a.prompts == ("try A",) and found.b.prompts == ("try B",)
    assert found.a.answers == 2 and found.a.entries == 5
    assert found.a.tool_calls == (("edit", 1), ("read", 1))
    assert found.b.tool_calls == (("edit", 2),)
    assert found.a.files.modified_files == ("both.py",) and found.a.files.read_files == ("r.py",)
    assert found.b.files.modified_files == ("b.py", "both.py")
    assert found.changed_by_both == ("both.py",)
    assert (found.a.last_answer, found.b.last_answer) == ("A is done", "B is done")
    assert found.a.tokens > 0 and found.a.ended >= found.a.started

    own = await session.branches.compare(place, a_id)
    assert own.ancestor_id == place and own.a.entries == 0 and own.b.entries == 5
    assert own.changed_by_both == ()


async def test_branches_without_a_common_root(rig):
    first = rig.store_message(UserMessage("x", 0), "aaaaaaaa")
    rig.store.entries.append(
        MessageEntry(
            id="bbbbbbbb",
            parent_id=None,
            timestamp=iso_timestamp(rig.clock.ms),
            message=UserMessage("y", 0),
        )
    )
    found = await rig.session().branches.compare(first, "bbbbbbbb")
    assert (found.ancestor_id, found.shared_entries) == (None, 0)
    assert (found.a.prompts, found.b.prompts) == (("x",), ("y",))


# ---------------------------------------------------------------- the dump


async def test_the_dump_describes_every_entry(rig):
    session, place, other = await branched(rig)
    session.set_label(place, "\x1b[31mred\x07")
    session.branches.hide(session.tree.parent(other))
    session.branches.leave_out(place)
    dump = await session.tree_dump()
    json.dumps(dump)
    assert dump["leafId"] == session.tree.leaf_id
    nodes = {node["id"]: node for node in dump["nodes"]}
    assert set(nodes) == set(session.tree.ids())
    seen = set()
    for node in dump["nodes"]:
        assert node["parentId"] is None or node["parentId"] in seen
        seen.add(node["id"])
    assert nodes[place] | {"timestamp": ""} == {
        "id": place,
        "parentId": session.tree.parent(place),
        "type": "message",
        "role": "assistant",
        "timestamp": "",
        "label": "red␇",
        "text": "1",
        "onPath": True,
        "leaf": False,
        "hidden": False,
        "leftOut": True,
    }
    assert nodes[session.tree.parent(other)]["hidden"] and not nodes[other]["onPath"]
    assert [node["id"] for node in dump["nodes"] if node["leaf"]] == [session.tree.leaf_id]


async def test_texts_of_the_dump_are_short_safe_lines(rig, gated_tool):
    rig.tools = (gated_tool(),)
    rig.provider.add(reply(Call("work", {"n": "a", "raise": 1})), "long " * 1000)
    session = rig.session()
    await session.prompt("evil \x1b]0;title\x07 \n\n\ttext \u202e")
    rig.store.entries.append(
        BranchSummaryEntry(
            id="ffffffff",
            parent_id=session.tree.leaf_id,
            timestamp="x",
            from_id="gone",
            summary="notes",
        )
    )
    nodes = (await rig.session().tree_dump())["nodes"]
    texts = [node["text"] for node in nodes]
    assert "evil text ‹U+202E›" in texts
    assert "[calls work]" in texts
    assert any(text.startswith("[work failed] ") for text in texts)
    assert "[branch summary] notes" in texts
    assert all(len(text) <= 160 and "\n" not in text and "\x1b" not in text for text in texts)


async def test_a_chain_of_many_entries_is_no_problem(rig):
    rig.store_talk(1)
    session = rig.session()
    for number in range(3_000):
        session.set_label(rig.store.entries[0].id, str(number))
    dump = await session.tree_dump()
    assert len(dump["nodes"]) == 3_002
    preview = await session.preview_navigation(rig.store.entries[0].id)
    assert preview.entries == 1  # labels are nothing people see as left behind
