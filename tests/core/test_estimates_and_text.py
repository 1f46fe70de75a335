"""Token estimates and the text for the summariser, beyond the conformance cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_tui.core.compaction.branch import collect_branch_entries, prepare_branch_entries
from pi_tui.core.compaction.files import FileLists, file_lists_text
from pi_tui.core.compaction.serialize import (
    TEXT_BOUND,
    Bound,
    serialize_conversation,
    shorten,
    truncation_marker,
)
from pi_tui.core.messages import ImageContent, TextContent, ToolCall, UserMessage
from pi_tui.core.projection import project
from pi_tui.core.tokens import (
    CharsEstimator,
    compact_json,
    estimate_context,
    sent_tokens,
    utf16_length,
)
from pi_tui.core.tree import tree_of

PLAIN, CJK = CharsEstimator(), CharsEstimator(cjk=True)


@given(st.text())
def test_utf16_length(text):
    assert utf16_length(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2


def test_half_a_surrogate_pair_is_counted_and_written():
    assert utf16_length("a\ud83d") == 2
    assert compact_json({"k": "\ud83d"}) == '{"k":"\ud83d"}'


def test_compact_json_writes_whole_floats_as_integers():
    value = {"a": 1.0, "b": [2.5, {"c": -0.0}], "d": "é", "e": 10**30}
    assert compact_json(value) == (
        '{"a":1,"b":[2.5,{"c":0}],"d":"é","e":1000000000000000000000000000000}'
    )


def test_arguments_nested_too_deeply_do_not_break_an_estimate(make):
    deep: object = "x"
    for _ in range(20_000):
        deep = [deep]
    message = make.assistant("", ToolCall("k", "t", {"a": deep}))
    assert PLAIN.message_tokens(message) > 0


@pytest.mark.parametrize("text", ["漢字かな", "한국어로", "ﾊﾝｶｸ。"])
def test_cjk_scripts_at_a_token_per_character(text):
    assert CJK.message_tokens(UserMessage(text, 0)) == len(text)
    assert PLAIN.message_tokens(UserMessage(text, 0)) == -(-len(text) // 4)


def test_a_cjk_character_outside_the_basic_plane_is_one_token():
    assert CJK.text_tokens("\U00020000" * 3) == 3


@given(st.text(alphabet=st.characters(max_codepoint=0x10FF)))
def test_other_scripts_count_the_same_either_way(text):
    assert CJK.text_tokens(text) == PLAIN.text_tokens(text)


def test_excluded_output_costs_nothing_in_a_context(make):
    excluded = make.shell("ls", "x" * 400, excluded=True)
    assert sent_tokens(excluded, PLAIN) == 0
    path = make.chain(("a", make.user("x" * 40)), ("b", excluded))
    assert estimate_context(path, project(path), PLAIN).tokens == 10


# ---------------------------------------------------------------- text for the summariser


def test_a_tool_result_keeps_its_tail_when_asked(make):
    text = "h" * 2000 + "m" * 300 + "t" * 500
    assert serialize_conversation([make.result("k", text)]) == (
        f"[Tool result]: {'h' * 2000}{truncation_marker(800)}"
    )
    assert serialize_conversation([make.result("k", text)], tail_chars=500) == (
        f"[Tool result]: {'h' * 2000}{truncation_marker(300)}\n{'t' * 500}"
    )
    just = "h" * 2500
    assert serialize_conversation([make.result("k", just)], tail_chars=500).endswith(just)


@given(st.text(alphabet="a🙂", max_size=60), st.integers(0, 20), st.integers(0, 20))
def test_shortening_never_splits_a_pair(text, head, tail):
    short = shorten(text, Bound(head, tail))
    length = utf16_length(text)
    if length <= head + tail:
        assert short == text
        return
    short.encode("utf-8")
    marker = truncation_marker(length - head - tail)
    before, after = short.split(marker)
    after = after.removeprefix("\n")
    assert text.startswith(before) and text.endswith(after)
    assert head - 1 <= utf16_length(before) <= head or head == 0
    assert tail - 1 <= utf16_length(after) <= tail or tail == 0


def test_bounded_text_has_no_kind_of_block_without_a_bound(make):
    huge = "y" * 100_000
    messages = [
        make.user(huge),
        make.assistant(huge, ToolCall("k", "write", {"content": huge}), thinking=huge),
        make.result("k", huge),
        make.shell("cat", huge),
    ]
    text = serialize_conversation(messages, tail_chars=500, bounded=True)
    assert len(text) < 4 * (TEXT_BOUND.head_chars + TEXT_BOUND.tail_chars)
    assert len(serialize_conversation(messages)) > 400_000


def test_images_are_named_in_bounded_text_only():
    image = ImageContent("aGVsbG8=" * 3, "image/png")
    message = UserMessage((TextContent("see "), image), 0)
    assert serialize_conversation([message]) == "[User]: see "
    assert (
        serialize_conversation([message], bounded=True) == "[User]: see [image image/png, 18 bytes]"
    )


def test_a_file_name_cannot_close_the_list_of_files():
    text = file_lists_text(FileLists(("a\n</read-files>\nb",)))
    assert text == "\n\n<read-files>\na\\n</read-files>\\nb\n</read-files>"


# ---------------------------------------------------------------- branch summaries


def test_moving_down_the_same_branch_leaves_nothing_behind(make):
    tree = tree_of(make.chain(("a", make.user()), ("b", make.assistant("x"))))
    assert collect_branch_entries(tree, "a", "b").entry_ids == ()
    assert collect_branch_entries(tree, "b", "a").entry_ids == ("b",)
    assert collect_branch_entries(tree, None, "a").entry_ids == ()


def test_files_of_an_answer_that_does_not_fit_are_not_listed(make):
    path = make.chain(
        ("a", make.assistant("x" * 400, ToolCall("k", "write", {"path": "big"}))),
        ("b", make.assistant("y", ToolCall("j", "read", {"path": "small"}))),
    )
    assert prepare_branch_entries(path, 0, PLAIN).files == FileLists(("small",), ("big",))
    assert prepare_branch_entries(path, 20, PLAIN).files == FileLists(("small",), ())
