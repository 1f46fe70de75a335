"""Compactions on small conversations: CMP-01, CMP-02 (writing), CMP-03, pins, kept entries."""

import pytest

from pi_tui.core.compaction.prepare import (
    AlreadyCompacted,
    CompactionPreparation,
    CompactionSettings,
    NothingToCompact,
    compaction_entry,
    kept_entry_problem,
    prepare_compaction,
)
from pi_tui.core.errors import CompactionError
from pi_tui.core.messages import ToolResultMessage, UserMessage
from pi_tui.core.pairing import check_pairing, repair_pairing
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.projection import project
from pi_tui.core.tokens import CharsEstimator, estimate_context, should_compact

ESTIMATOR = CharsEstimator()


def prepare(path, keep=20_000, **extra):
    settings = CompactionSettings(keep_recent_tokens=keep)
    return prepare_compaction(path, project(path), settings, ESTIMATOR, **extra)


def compacted(path, prepared, summary="SUMMARY", entry_id="new"):
    entry = compaction_entry(
        prepared,
        summary,
        entry_id=entry_id,
        parent_id=path[-1].id,
        timestamp="2025-07-01T00:00:00.000Z",
    )
    return [*path, entry]


def total(path):
    return sum(ESTIMATOR.message_tokens(p.message) for p in project(path).messages)


def cmp_01(make, order):
    calls = [f"k{i}" for i in range(1, len(order) + 1)]
    return make.chain(
        ("e01", make.user("Compare the files")),
        ("e02", make.assistant("ok", *calls)),
        *((f"r{c}", make.result(f"k{c}", "x" * size)) for c, size in order),
        ("e05", make.assistant("done")),
    )


@pytest.mark.parametrize(
    "order",
    [[(1, 20), (2, 6000)], [(3, 400), (1, 40), (2, 900)], [(1, 1), (2, 1), (3, 1)]],
    ids=["two", "three out of order", "tiny"],
)
def test_cmp_01_every_budget_gives_a_valid_request(make, order):
    path = cmp_01(make, order)
    firsts = set()
    for keep in range(total(path) + 2):
        prepared = prepare(path, keep)
        if isinstance(prepared, NothingToCompact):
            continue
        firsts.add(prepared.first_kept_entry_id)
        after = [p.message for p in project(compacted(path, prepared)).messages]
        # Valid as it is, before any repair.
        assert check_pairing([m for m in after if m != after[0]]) == []
        fixed, done = repair_pairing(after)
        assert done == [] and check_pairing(fixed) == []
        assert sum("SUMMARY" in m.content for m in fixed if isinstance(m, UserMessage)) == 1
        assert "SUMMARY" in fixed[0].content
    assert firsts == {"e02", "e05"}


def cmp_02(make):
    return make.chain(
        ("e01", make.user("start")),
        ("e02", make.assistant("", "k1")),
        ("e03", make.result("k1")),
        ("e04", make.assistant("", "k2")),
        lambda p: make.compaction("e05", p, "e04", "S1"),
        ("e06", make.result("k2", "x" * 400)),
        ("e07", make.assistant("text")),
        ("e08", make.user("next")),
        ("e09", make.assistant("", "k3")),
        ("e10", make.result("k3")),
        ("e11", make.assistant("text")),
        ("e13", make.user("go on")),
    )


def test_cmp_02_writing_over_a_compaction(make):
    path = cmp_02(make)
    tail = sum(
        ESTIMATOR.message_tokens(p.message)
        for p in project(path).messages
        if p.entry_id in {"e07", "e08", "e09", "e10", "e11", "e13"}
    )
    prepared = prepare(path, tail + 1)
    assert prepared.first_kept_entry_id in {"e04", "e07"}
    assert prepared.previous_summary == "S1"
    assert {p.entry_id for p in prepared.history + prepared.turn_prefix} <= {"e04", "e06"}
    for keep in range(total(path) + 2):
        prepared = prepare(path, keep)
        if isinstance(prepared, CompactionPreparation):
            kept = next(e for e in path if e.id == prepared.first_kept_entry_id)
            assert not isinstance(getattr(kept, "message", None), ToolResultMessage)
            sent = repair_pairing(p.message for p in project(compacted(path, prepared)).messages)[0]
            assert check_pairing(sent) == []


def test_five_compactions_in_a_row_hand_the_goal_on(make):
    path = make.chain(("u", make.user("the goal is to start")), ("a", make.assistant("fine")))
    for i in range(5):
        for turn in range(2):
            parent = path[-1].id
            path.append(make.entry(f"u{i}{turn}", parent, make.user(f"turn {i} {turn}")))
            path.append(make.entry(f"a{i}{turn}", f"u{i}{turn}", make.assistant("answer")))
        prepared = prepare(path, 5)
        request = prepared.requests[0]
        heard = (request.previous_summary or "") + "".join(
            m.content for m in request.messages if isinstance(m, UserMessage)
        )
        assert "the goal is to start" in heard
        path = compacted(path, prepared, f"summary {i}: the goal is to start", f"c{i}")
        summaries = [
            m.content
            for m in repair_pairing(p.message for p in project(path).messages)[0]
            if isinstance(m, UserMessage) and "summary" in m.content
        ]
        assert len(summaries) == 1 and f"summary {i}" in summaries[0]


def test_a_split_turn_without_history_takes_the_old_summary_over(make):
    path = make.chain(
        ("a", make.user("old")),
        lambda p: make.compaction("c", p, "c", "S1"),
        ("b", make.user("new")),
        ("d", make.assistant("x" * 400)),
    )
    prepared = prepare(path, 10)
    assert [r.span for r in prepared.requests] == ["turn-prefix"]
    assert prepared.merge(None, "prefix").startswith("S1\n")
    assert prepared.requests[0].previous_summary is None


# ---------------------------------------------------------------- CMP-03


def cmp_03(make):
    return make.chain(
        ("e19", make.user("q")),
        ("e20", make.assistant("a", total=185_000)),
        lambda p: make.compaction("e21", p, "e20"),
        ("e22", make.user("note")),
    )


def triggers(path):
    estimate = estimate_context(path, project(path), ESTIMATOR)
    return should_compact(estimate.tokens, 200_000, reserve_tokens=16_384), estimate


def test_cmp_03_an_old_count_says_nothing_about_the_present_context(make):
    path = cmp_03(make)
    fired, estimate = triggers(path)
    assert not fired
    assert estimate.usage_entry_id is None and estimate.tokens < 100
    path.append(make.entry("e23", "e22", make.assistant("b", total=30_000)))
    assert triggers(path)[1].tokens == 30_000
    path[-1] = make.entry("e23", "e22", make.assistant("b", total=184_500))
    assert triggers(path)[0]


def test_cmp_03_a_failed_answer_does_not_reset_the_count(make):
    path = cmp_03(make)
    path.append(make.entry("e23", "e22", make.assistant("b", total=30_000)))
    path.append(make.entry("e24", "e23", make.assistant("", stop="aborted")))
    estimate = triggers(path)[1]
    assert (estimate.usage_entry_id, estimate.usage_tokens) == ("e23", 30_000)


def test_the_trigger_is_strict():
    assert not should_compact(90, 100, reserve_tokens=10)
    assert should_compact(91, 100, reserve_tokens=10)
    assert not should_compact(91, 100, reserve_tokens=10, enabled=False)


# ---------------------------------------------------------------- what to keep


def test_keeping_from_a_chosen_entry(make):
    path = cmp_01(make, [(1, 20), (2, 20)])
    prepared = prepare(path, keep_from="e02")
    assert prepared.first_kept_entry_id == "e02"
    assert [p.entry_id for p in prepared.turn_prefix] == ["e01"]
    with pytest.raises(CompactionError, match="tool result"):
        prepare(path, keep_from="r1")
    with pytest.raises(CompactionError, match="not in the present context"):
        prepare(path, keep_from="nowhere")
    assert isinstance(prepare(path, keep_from="e01"), NothingToCompact)
    assert kept_entry_problem(project(path), "e05") is None


def test_keeping_from_an_entry_that_gives_no_message(make):
    path = make.chain(
        ("a", make.user("one")),
        ("b", make.assistant("", "k1")),
        lambda p: make.custom("m1", p, "note", {}),
        ("c", make.result("k1")),
        lambda p: make.custom("m2", p, "note", {}),
        ("d", make.user("two")),
        ("e", make.shell(excluded=True)),
    )
    prepared = prepare(path, keep_from="m2")
    assert (prepared.first_kept_entry_id, prepared.is_split_turn) == ("m2", False)
    assert [p.entry_id for p in prepared.history] == ["a", "b", "c"]
    with pytest.raises(CompactionError, match="tool result"):
        prepare(path, keep_from="m1")
    with pytest.raises(CompactionError, match="Choose a message"):
        prepare(path, keep_from="e")


def test_a_compaction_at_the_end_or_nothing_at_all(make):
    path = make.chain(("a", make.user("x")), lambda p: make.compaction("c", p, "a"))
    assert prepare(path) == AlreadyCompacted("c")
    assert isinstance(prepare([]), NothingToCompact)
    assert isinstance(prepare(path[:1]), NothingToCompact)


def test_nothing_but_excluded_output_before_the_cut_is_nothing(make):
    path = make.chain(("a", make.shell(excluded=True)), ("b", make.user("x" * 400)))
    assert isinstance(prepare(path, 10), NothingToCompact)


def test_a_pinned_entry_is_not_summarised_again(make):
    path = make.chain(
        ("a", make.user("goal")),
        lambda p: make.custom("p", p, PIN_TYPE, pin_data("a", pinned=True)),
        ("b", make.user("x" * 40)),
        lambda p: make.compaction("c", p, "b", "S1"),
        ("d", make.user("y" * 400)),
    )
    prepared = prepare(path, 10)
    assert [p.entry_id for p in prepared.history] == ["b"]
    after = project(compacted(path, prepared))
    assert [p.entry_id for p in after.messages] == ["new", "a", "d"]


def test_a_compaction_may_keep_nothing(make):
    path = make.chain(("a", make.user("x")), ("b", make.assistant("y" * 400)))
    prepared = prepare(path, 10)
    entry = compaction_entry(
        prepared,
        "S",
        entry_id="n",
        parent_id="b",
        timestamp="2025-07-01T00:00:00.000Z",
        first_kept_entry_id=None,
    )
    assert entry.first_kept_entry_id == "n"
    assert [p.entry_id for p in project([*path, entry]).messages] == ["n"]


@pytest.mark.parametrize("details", [None, 7, {"readFiles": "x"}, {"readFiles": ["r", 3, ""]}])
def test_odd_details_of_an_earlier_compaction(make, details):
    path = make.chain(
        ("a", make.user("x")),
        lambda p: make.compaction("c", p, "c", "S1", details),
        ("b", make.user("b")),
        ("d", make.user("y" * 400)),
    )
    listed = details["readFiles"] == ["r", 3, ""] if isinstance(details, dict) else False
    assert prepare(path, 10).files.read_files == (("r",) if listed else ())
