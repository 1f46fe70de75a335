import pytest

from pi_tui.core.entries import (
    BranchSummaryEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    UnknownEntry,
)
from pi_tui.core.messages import ToolCall, ToolResultMessage, text_content
from pi_tui.core.tokens import CharsEstimator
from pi_tui.core.tree import tree_of
from pi_tui.core.tree_rows import (
    RowMarks,
    age_text,
    full_text,
    main_argument,
    path_tokens,
    row_parts,
    search_texts,
)

BASE = {"parent_id": None, "timestamp": "2025-06-15T15:00:00.000Z"}


def text(tree, entry_id, **marks):
    return "".join(part for part, _ in row_parts(tree, entry_id, RowMarks(**marks)))


def of(entry):
    return tree_of([entry])


def test_rows_of_messages(make):
    call = ToolCall("c", "read", {"path": "notes.txt"})
    failed = ToolResultMessage("c", "read", text_content("no such file"), True, 0)
    entries = make.chain(
        ("u", make.user("first\n  question")),
        ("a", make.assistant("some\n\nanswer")),
        ("q", make.assistant("", call)),
        ("t", failed),
        ("s", make.shell("git  status")),
        ("x", make.assistant("half", stop="aborted")),
        ("e", make.assistant("")),
    )
    tree = tree_of(entries)
    assert text(tree, "u") == "user: first question"
    assert text(tree, "a") == "assistant: some answer"
    assert text(tree, "q") == "assistant: (calls read)"
    assert row_parts(tree, "t") == (("[read: notes.txt]", "error"),)
    assert text(tree, "s") == "[bash]: git  status"
    assert text(tree, "x") == "assistant: half (aborted)"
    assert text(tree, "e") == "assistant: (no content)"


def test_rows_of_other_entries(make):
    assert text(of(make.compaction("c", None, None, "sum")), "c") == "[compaction: 1 tokens] sum"
    branch = BranchSummaryEntry(id="b", from_id="x", summary="learnt", **BASE)
    assert text(of(branch), "b") == "[branch summary]: learnt"
    title = SessionInfoEntry(id="i", name="my title", **BASE)
    assert text(of(title), "i") == "[title: my title]"
    model = ModelChangeEntry(id="m", provider="acme", model_id="big", **BASE)
    assert text(of(model), "m") == "[model: acme/big]"
    unknown = UnknownEntry(id="z", type_name="odd", data={"type": "odd"}, **BASE)
    assert text(of(unknown), "z") == "[odd]"


def test_labels_and_marks_stand_before_the_text(make):
    entries = [*make.chain(("u", make.user("hi"))), make.label("l", "u", "u", "good [/]")]
    tree = tree_of(entries)
    assert text(tree, "u") == "[good [/]] user: hi"
    marked = text(tree, "u", pinned=True, left_out=True, compared=True, label_time="12:00")
    assert marked == "[good [/] 12:00] [marked] [pinned] [left out] user: hi"
    assert text(tree, "l") == "[label: good [/] at user u]"


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ("a\x1b]52;c;aGk=\x07b", "ab"),
        ("a\x1b[2Jb\x85c", "ab‹U+0085›c"),
        ("a\rb\x08", "a␍b␈"),
        ("a\u202eb", "a‹U+202E›b"),
        ("[link=x]y[/]", "[link=x]y[/]"),
    ],
)
def test_foreign_text_is_safe_in_a_row(make, payload, shown):
    tree = of(make.entry("u", None, make.user(payload)))
    assert text(tree, "u") == f"user: {shown}"


def test_a_command_shows_what_it_hides():
    assert main_argument({"command": "echo ok\rrm -rf x"}) == "echo ok␍rm -rf x"
    assert main_argument({"pattern": "def .*", "path": "src"}) == "def .* in src"
    assert main_argument({"odd": [1]}) == '{"odd": [1]}'
    assert main_argument({}) == ""


def test_a_result_is_found_by_tool_command_path_and_output(make):
    call = ToolCall("c", "bash", {"command": "make test", "timeout": 5})
    result = ToolResultMessage("c", "bash", text_content("x" * 5000 + " all passed"), False, 0)
    tree = tree_of(
        make.chain(("u", make.user("go")), ("q", make.assistant("", call)), ("t", result))
    )
    found = search_texts(tree, "t")
    joined = "\n".join(found.names + found.bodies)
    for wanted in ("bash", "make test", "all passed", "tool"):
        assert wanted in joined
    assert full_text(tree, "t").endswith("all passed")
    assert full_text(tree, "q") == 'bash {"command": "make test", "timeout": 5}'


def test_the_call_of_another_turn_is_not_taken(make):
    call = ToolCall("c", "bash", {"command": "old"})
    result = ToolResultMessage("c", "bash", text_content("late"), False, 0)
    tree = tree_of(
        make.chain(("q", make.assistant("", call)), ("u", make.user("go")), ("t", result))
    )
    assert text(tree, "t") == "[bash]"


def test_path_tokens_go_on_from_the_last_report(make):
    entries = make.chain(
        ("u", make.user("x" * 40)),
        ("a", make.assistant("y", total=1000)),
        ("v", make.user("z" * 40)),
    )
    tree = tree_of(entries)
    estimator = CharsEstimator()
    assert path_tokens(tree, "u", estimator) == 10
    assert path_tokens(tree, "a", estimator) == 1000
    assert path_tokens(tree, "v", estimator) == 1010
    compacted = tree_of([*entries, make.compaction("c", "v", None)])
    assert path_tokens(compacted, "c", estimator) is None


@pytest.mark.parametrize(
    ("minutes", "shown"),
    [(0, "now"), (5, "5m"), (59, "59m"), (60, "1h"), (47 * 60, "47h"), (3 * 1440, "3d"),
     (20 * 1440, "2w"), (800 * 1440, "2y")],
)  # fmt: skip
def test_ages(minutes, shown):
    start_ms = 1_750_000_000_000
    from pi_tui.core.entries import iso_timestamp

    assert age_text(iso_timestamp(start_ms), start_ms + minutes * 60_000) == shown
    assert age_text("not a time", start_ms) == ""
