"""Requests that a provider takes: calls and answers, ids, empty answers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi_tui.core.messages import (
    AssistantMessage,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    role_of,
)
from pi_tui.core.pairing import (
    NO_RESULT_TEXT,
    check_pairing,
    is_valid_call_id,
    repair_pairing,
)


def roles(messages):
    return [role_of(message) for message in messages]


def ids(messages):
    """Calls and answers in order: `>x` for a call, `<x` for an answer."""
    found = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            found += [f">{call.id}" for call in message.tool_calls]
        elif isinstance(message, ToolResultMessage):
            found.append(f"<{message.tool_call_id}")
    return found


def repaired(*messages):
    fixed, done = repair_pairing(messages)
    assert check_pairing(fixed) == []
    return fixed, done


def test_a_sound_conversation_is_left_alone(make):
    messages = (
        make.user("do"),
        make.assistant("ok", "k1", "k2"),
        make.result("k2"),
        make.result("k1"),
        make.assistant("done"),
    )
    fixed, done = repaired(*messages)
    assert fixed == messages and done == []
    assert all(a is b for a, b in zip(fixed, messages, strict=True))


def test_a_call_without_an_answer_is_answered(make):
    fixed, done = repaired(make.user(), make.assistant("", "k1", "k2"), make.result("k1"))
    assert ids(fixed) == [">k1", ">k2", "<k1", "<k2"]
    assert fixed[-1].content == (TextContent(NO_RESULT_TEXT),) and fixed[-1].is_error
    assert len(done) == 1 and "k2" in done[0]


def test_an_answer_without_a_call_is_left_out(make):
    fixed, done = repaired(make.user(), make.result("gone"), make.assistant("hi"))
    assert roles(fixed) == ["user", "assistant"]
    assert len(done) == 1


def test_an_answer_moves_behind_its_call(make):
    fixed, done = repaired(
        make.assistant("", "k1"), make.user("wait"), make.result("k1"), make.assistant("ok")
    )
    assert roles(fixed) == ["assistant", "toolResult", "user", "assistant"]
    assert len(done) == 1 and "moved" in done[0]


def test_a_second_answer_to_one_call_is_left_out(make):
    fixed, _ = repaired(make.assistant("", "k1"), make.result("k1", "a"), make.result("k1", "b"))
    assert ids(fixed) == [">k1", "<k1"]
    assert fixed[1].content == (TextContent("a"),)


@pytest.mark.parametrize("stop", ["error", "aborted"])
def test_a_failed_answer_is_left_out_with_its_results(make, stop):
    """PROV-04.8: the history after an abort has no open call."""
    fixed, done = repaired(
        make.user("one"),
        make.assistant("half", "k1", stop=stop),
        make.result("k1"),
        make.user("two"),
    )
    assert roles(fixed) == ["user", "user"]
    assert len(done) == 2


def test_an_answer_cut_at_its_length_stays(make):
    fixed, done = repaired(make.user(), make.assistant("half", stop="length"))
    assert len(fixed) == 2 and done == []


def test_an_answer_of_nothing_but_thinking_is_not_sent(make):
    """PROV-04.6."""
    fixed, _ = repaired(make.user(), make.assistant(thinking="hm"), make.user("go on"))
    assert roles(fixed) == ["user", "user"]


def test_signed_thinking_is_untouched_beside_text(make):
    """PROV-04.3: order and bytes of a complete signature stay."""
    message = make.assistant("text", "k!", thinking="hm", signature="EqoBCk==")
    fixed, _ = repaired(make.user(), message, make.result("k!"))
    assert fixed[1].content[:2] == message.content[:2]
    assert isinstance(fixed[1].content[0], ThinkingContent)


def test_empty_texts_are_dropped_beside_a_call(make):
    message = make.assistant(" ", "k1")
    fixed, _ = repaired(make.user(), message, make.result("k1"))
    assert fixed[1].content == (ToolCall("k1", "read", {}),)


def test_an_empty_user_message_is_not_sent(make):
    fixed, done = repaired(make.user(" \n"), make.user("x"))
    assert [m.content for m in fixed] == ["x"] and len(done) == 1


# ---------------------------------------------------------------- PROV-02


def test_two_calls_with_one_id_in_one_answer(make):
    """PROV-02.1 and .7: answers stay with their own calls."""
    calls = [ToolCall("call_0", "read", {"path": p}) for p in "ab"]
    fixed, _ = repaired(
        make.assistant("", *calls), make.result("call_0", "of a"), make.result("call_0", "of b")
    )
    assert ids(fixed) == [">call_0", ">call_0_2", "<call_0", "<call_0_2"]
    assert [m.content[0].text for m in fixed[1:]] == ["of a", "of b"]


@pytest.mark.parametrize("call_id", ["", "run:0", "x" * 65, "é", "a b"])
def test_an_id_no_provider_takes(make, call_id):
    """PROV-02.2 and .3."""
    fixed, _ = repaired(make.assistant("", call_id), make.result(call_id))
    call, answer = ids(fixed)
    assert call[1:] == answer[1:] and is_valid_call_id(call[1:])


def test_one_id_again_in_each_turn(make):
    """PROV-02.4."""
    turns = [m for _ in range(3) for m in (make.assistant("", "run:0"), make.result("run:0"))]
    fixed, _ = repaired(*turns)
    assert len(set(ids(fixed))) == 6


def test_the_same_call_twice_with_one_answer_is_one_call(make):
    """PROV-02.5."""
    fixed, done = repaired(make.assistant("", "k1", "k1"), make.result("k1"))
    assert ids(fixed) == [">k1", "<k1"] and len(done) == 1
    fixed, _ = repaired(make.assistant("", "k1", "k1"))
    assert ids(fixed) == [">k1", "<k1"]


def test_ids_that_differ_only_in_forbidden_or_late_characters(make):
    """PROV-02.6."""
    long = "y" * 80
    names = ["abc|fc_1", "abc|fc_2", "abc_fc_1", "abc/fc_1", long + "1", long + "2"]
    fixed, _ = repaired(make.assistant("", *names), *(make.result(n, f"of {n}") for n in names))
    new = [i[1:] for i in ids(fixed)[:6]]
    assert len(set(new)) == 6 and all(map(is_valid_call_id, new))
    assert [m.content[0].text for m in fixed[1:]] == [f"of {n}" for n in names]
    assert [m.tool_call_id for m in fixed[1:]] == new


# ---------------------------------------------------------------- any conversation

CALL_IDS = ["k1", "k2", "", "run:0", "run|0", "x" * 70]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.sampled_from(["", "hi"])),
        st.tuples(
            st.just("assistant"),
            st.sampled_from(["", "text"]),
            st.lists(st.sampled_from(CALL_IDS), max_size=3),
            st.sampled_from(["stop", "aborted", "error", "length"]),
        ),
        st.tuples(st.just("result"), st.sampled_from(CALL_IDS)),
        st.tuples(st.just("shell"), st.booleans()),
    ),
    max_size=14,
)


def built(make, rows):
    messages = []
    for i, row in enumerate(rows):
        if row[0] == "user":
            messages.append(make.user(row[1]))
        elif row[0] == "assistant":
            calls = [ToolCall(c, "read", {"n": n}) for n, c in enumerate(row[2])]
            messages.append(make.assistant(row[1], *calls, stop=row[3]))
        elif row[0] == "result":
            messages.append(make.result(row[1], f"result {i}"))
        else:
            messages.append(make.shell(excluded=row[1]))
    return messages


@given(steps)
@settings(max_examples=400)
def test_whatever_stands_in_a_session_gives_a_valid_request(make, rows):
    messages = built(make, rows)
    fixed, _ = repair_pairing(messages)
    assert check_pairing(fixed) == []
    assert repair_pairing(messages)[0] == fixed
    assert repair_pairing(fixed) == (fixed, [])
    said = [m for m in messages if isinstance(m, UserMessage) and m.content]
    assert [m for m in fixed if m in said] == said


@given(steps)
@settings(max_examples=200)
def test_what_was_sent_is_sent_again_when_the_conversation_goes_on(make, rows):
    """A prompt cache is kept: a new question after a finished turn changes nothing before it."""
    messages = built(make, rows)
    now, _ = repair_pairing(messages)
    later, _ = repair_pairing([*messages, make.assistant("end"), make.user("more")])
    assert later[: len(now)] == now


def test_the_checker_sees_what_is_wrong(make):
    assert check_pairing([make.assistant("", "k1")])
    assert check_pairing([make.result("k1")])
    assert check_pairing([make.assistant("", "k1"), make.user(), make.result("k1")])
    assert check_pairing([make.assistant("", "k1"), make.result("k1"), make.result("k1")])
    assert check_pairing([make.assistant("", "k", "k"), make.result("k"), make.result("k")])
    assert check_pairing([make.assistant("", "run:0"), make.result("run:0")])
    assert check_pairing([make.assistant("")])
    assert check_pairing([make.assistant("x", stop="aborted")])
    assert check_pairing([make.assistant("", "k1"), make.result("k1")]) == []
