"""From a path to what the model sees; CMP-02 (reading), pins, the folded system prompt."""

from pi_tui.core.messages import (
    SystemMessage,
    UserMessage,
    message_from_data,
    message_to_data,
    role_of,
)
from pi_tui.core.pairing import check_pairing, repair_pairing
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.projection import (
    convert_to_llm,
    declared_tools,
    fold_system,
    project,
    system_text,
    to_llm,
)


def sent(path):
    return repair_pairing(p.message for p in project(path).messages)[0]


def ids(path):
    return [p.entry_id for p in project(path).messages]


def twice_compacted(make):
    """CMP-02: the second compaction was written by a program that cut at a tool result."""
    return make.chain(
        ("e01", make.user("start")),
        ("e02", make.assistant("", "k1")),
        ("e03", make.result("k1")),
        ("e04", make.assistant("", "k2")),
        lambda p: make.compaction("e05", p, "e04", "S1"),
        ("e06", make.result("k2")),
        ("e07", make.assistant("text")),
        ("e08", make.user("next")),
        ("e09", make.assistant("", "k3")),
        ("e10", make.result("k3")),
        ("e11", make.assistant("text")),
        lambda p: make.compaction("e12", p, "e06", "S2"),
        ("e13", make.user("go on")),
    )


def test_reading_a_second_compaction_over_the_first(make):
    path = twice_compacted(make)
    assert ids(path) == ["e12", "e06", "e07", "e08", "e09", "e10", "e11", "e13"]
    messages = sent(path)
    assert check_pairing(messages) == []
    assert [role_of(m) for m in messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "toolResult",
        "assistant",
        "user",
    ]
    texts = [m.content for m in messages if isinstance(m, UserMessage)]
    assert "S2" in texts[0] and not any("S1" in text for text in texts)


def test_an_older_compaction_in_the_kept_range_says_nothing(make):
    path = make.chain(
        ("a", make.user("a")),
        lambda p: make.compaction("c1", p, "a", "S1"),
        ("b", make.user("b")),
        lambda p: make.compaction("c2", p, "a", "S2"),
    )
    assert ids(path) == ["c2", "a", "b"]


def test_a_pinned_entry_survives_every_compaction(make):
    path = make.chain(
        ("a", make.user("goal")),
        ("b", make.assistant("", "k1")),
        ("c", make.result("k1")),
        ("d", make.assistant("done")),
        lambda p: make.custom("p1", p, PIN_TYPE, pin_data("c", pinned=True)),
        lambda p: make.custom("p2", p, PIN_TYPE, pin_data("a", pinned=True)),
        ("e", make.user("more")),
        lambda p: make.compaction("f", p, "e", "S1"),
        ("g", make.user("and more")),
        lambda p: make.compaction("h", p, "g", "S2"),
    )
    assert ids(path) == ["h", "a", "b", "c", "g"]
    assert check_pairing(sent(path)) == []
    unpinned = [*path, make.custom("p3", "h", PIN_TYPE, pin_data("a", pinned=False))]
    assert ids(unpinned) == ["h", "b", "c", "g"]


def test_a_pin_within_the_kept_range_adds_nothing(make):
    path = make.chain(
        ("a", make.user("old")),
        ("b", make.user("kept")),
        lambda p: make.custom("p", p, PIN_TYPE, pin_data("b", pinned=True)),
        lambda p: make.compaction("c", p, "b"),
    )
    assert ids(path) == ["c", "b"]


def test_an_edit_that_cannot_be_read_changes_nothing(make):
    path = make.chain(
        ("a", make.user("text")),
        lambda p: make.edit("b", p, "a", {"content": 7}),
        lambda p: make.edit("c", p, "nowhere"),
    )
    assert [p.message.content for p in project(path).messages] == ["text"]


# ---------------------------------------------------------------- system prompt


def tool(name, description="d"):
    return {"name": name, "description": description, "parameters": {"type": "object"}}


def test_folding_keeps_places_and_moves_what_came_again_to_the_end():
    folded = fold_system(
        [
            SystemMessage("base", 1, {"a": "A", "b": "B", "c": "C"}, (tool("x"), tool("y"))),
            SystemMessage("", 2, {"a": None, "b": "B2"}, None, ("x",)),
            SystemMessage("more", 3, {"a": "A2"}, (tool("x", "new"), tool("y", "newer"))),
        ]
    )
    assert folded.content == "base\n\nmore"
    assert list(folded.sections.items()) == [("b", "B2"), ("c", "C"), ("a", "A2")]
    assert system_text(folded) == "base\n\nmore\n\nB2\n\nC\n\nA2"
    assert [(t.name, t.description) for t in declared_tools(folded)] == [
        ("y", "newer"),
        ("x", "new"),
    ]


def test_folding_what_is_folded_gives_the_same_bytes():
    """So the request after a compaction begins with the same bytes as the one before it."""
    messages = [
        SystemMessage("one", 1, {"a": "A"}, (tool("x"),)),
        SystemMessage("two", 2, {"b": "B"}),
    ]
    folded = fold_system(messages)
    stored = message_from_data(message_to_data(folded))
    assert system_text(fold_system([stored])) == system_text(folded)
    assert declared_tools(fold_system([stored])) == declared_tools(folded)


def test_nothing_folds_to_nothing():
    assert fold_system([]) is None
    empty = fold_system([SystemMessage("", 1, {"a": "x"}), SystemMessage("", 2, {"a": None})])
    assert (empty.content, empty.sections, empty.tools_added) == ("", None, None)


def test_removed_tools_are_read_and_written_as_the_format_has_them():
    message = message_from_data({"role": "system", "toolsRemoved": [{"name": "x"}, "y", 3]})
    assert message.tools_removed == ("x", "y")
    assert message_to_data(message)["toolsRemoved"] == [{"name": "x"}, {"name": "y"}]


def test_what_is_no_declaration_is_passed_over():
    message = SystemMessage("", 1, None, (tool("x"), {"name": 3}, "y", {"name": "z"}))
    assert [t.name for t in declared_tools(message)] == ["x", "z"]


# ---------------------------------------------------------------- roles of the model


def test_shell_output_cannot_leave_its_fence(make):
    text = to_llm(make.shell("cat notes", "```\nnot the end\n```")).content
    assert text.count("````") == 2
    assert text.index("cat notes") < text.index("not the end")


def test_excluded_shell_output_is_not_sent(make):
    assert convert_to_llm([make.shell(excluded=True), make.user("x")]) == (make.user("x"),)
