"""The parts of the front end that need no screen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual import events
from textual._xterm_parser import XTermParser

from pi_tui.core.events import (
    ActivityChanged,
    AutoRetryStart,
    BashExecutionEnd,
    BashExecutionStart,
    CompactionEnd,
    CompactionProgress,
    CompactionStart,
    SummarizationRetryAttemptStart,
    SummarizationRetryScheduled,
)
from pi_tui.tui.clipboard import MAX_COPY_BYTES, copy_sequence
from pi_tui.tui.crash import crash_report, hide_secrets
from pi_tui.tui.driver import PasteSplitter, map_alt_keys
from pi_tui.tui.editor.completion import Completion, CompletionItem, CompletionList
from pi_tui.tui.git_branch import git_branch
from pi_tui.tui.keys import KeyMap, normalise_key
from pi_tui.tui.terminal_input import TypedText
from pi_tui.tui.view_state import (
    FooterFacts,
    FooterPart,
    StatusState,
    fitting,
    model_parts,
    number_parts,
    place_parts,
    short_directory,
)

# ---------------------------------------------------------------- status line


def test_status_line_of_a_run() -> None:
    status = StatusState("idle", 0)
    assert status.text(5, "esc") == "" and not status.busy
    assert status.handle(ActivityChanged("running"), 10)
    assert status.text(12.9, "esc") == "Working 2s · esc to interrupt"
    status.handle(ActivityChanged("retrying"), 20)
    status.handle(AutoRetryStart(1, 3, 4000, "overloaded"), 20)
    assert status.text(20.5, "esc") == "retrying (1/3) in 4s · esc to cancel"
    assert status.text(23.2, "esc") == "retrying (1/3) in 1s · esc to cancel"
    status.handle(ActivityChanged("running"), 24)
    assert status.text(75, "esc") == "Working 1m 05s · esc to interrupt"
    status.handle(ActivityChanged("idle"), 80)
    assert status.text(81, "esc") == ""


def test_status_line_of_a_compaction() -> None:
    status = StatusState("running", 0)
    status.handle(CompactionStart("threshold"), 100)
    status.handle(CompactionProgress(2, 3, 1200), 102)
    text = status.text(103, "esc")
    assert "compacting" in text and "part 2 of 3" in text and "1.2k" in text and "esc" in text
    status.handle(CompactionEnd("threshold", None), 110)
    assert status.text(110, "esc").startswith("Working")


def test_a_summary_that_waits_for_its_retry_is_still_a_summary() -> None:
    status = StatusState("running", 0)
    status.handle(CompactionStart("manual"), 100)
    status.handle(CompactionProgress(2, 3, 0), 102)
    status.handle(SummarizationRetryScheduled("compaction", 1, 2, 4000, "busy"), 112)
    assert status.text(115.5, "esc") == (
        "compacting the context 15s, part 2 of 3, retrying (1/2) in 1s · esc to cancel"
    )
    assert status.text(115.5, "esc", 60) == (
        "compacting 15s, 2/3, retrying (1/2) in 1s · esc to cancel"
    )
    assert status.text(115.5, "esc", 24) == "compacting 15s · esc"
    status.handle(SummarizationRetryAttemptStart("compaction", 1), 116)
    assert "retrying" not in status.text(117, "esc")
    status = StatusState("summarising_branch", 0)
    status.handle(SummarizationRetryScheduled("branchSummary", 1, 2, 4000, "busy"), 1)
    assert status.text(2, "") == "summarising the branch 2s, retrying (1/2) in 3s"


def test_status_line_of_a_branch_summary_and_a_command() -> None:
    status = StatusState("summarising_branch", 0)
    assert "summarising" in status.text(1, "esc")
    status = StatusState("idle", 0)
    status.handle(BashExecutionStart("1", "ls", False), 5)
    assert status.text(7, "esc") == "running a command 2s · esc to interrupt"
    status.handle(BashExecutionEnd("1"), 8)
    assert not status.busy


def test_a_key_without_a_name_is_not_named() -> None:
    assert StatusState("running", 0).text(1, "") == "Working 1s"


# ---------------------------------------------------------------- footer


def facts(**changes: object) -> FooterFacts:
    values: dict[str, object] = {
        "directory": "~/dir", "branch": "main", "session_name": "name", "input_tokens": 1234,
        "output_tokens": 56, "cache_read_tokens": 0, "cache_write_tokens": 12_345, "cost": 0.1234,
        "context_tokens": 50_000, "window": 200_000, "context_estimated": False, "model": "m",
        "thinking": "high",
    }  # fmt: skip
    return FooterFacts(**(values | changes))  # type: ignore[arg-type]


def texts(parts: list[FooterPart]) -> list[str]:
    return [part.text for part in parts]


def test_footer_texts() -> None:
    assert texts(place_parts(facts())) == ["~/dir", "(main)", "• name"]
    assert texts(place_parts(facts(unsaved_entries=2)))[0] == "NOT SAVED"
    assert texts(place_parts(facts(read_only=True)))[0] == "read-only"
    assert texts(number_parts(facts())) == ["↑1.2k", "↓56", "W12k", "$0.123", "25.0%/200k"]
    assert texts(model_parts(facts())) == ["m", "• high"]
    assert texts(model_parts(facts(thinking="off"))) == ["m", "• thinking off"]
    assert texts(model_parts(facts(thinking=None))) == ["m"]
    quiet = facts(input_tokens=0, output_tokens=0, cache_write_tokens=0, cost=0.0)
    assert texts(number_parts(quiet)) == ["25.0%/200k"]


@pytest.mark.parametrize(
    ("tokens", "role"),
    [
        (None, "dim"),
        (140_000, "dim"),
        (140_001, "warning"),
        (180_000, "warning"),
        (180_001, "error"),
    ],
)
def test_footer_warns_as_the_window_fills(tokens: int | None, role: str) -> None:
    assert number_parts(facts(context_tokens=tokens))[-1].role == role


def test_unknown_and_estimated_context() -> None:
    assert number_parts(facts(context_tokens=None))[-1].text == "?/200k"
    assert number_parts(facts(context_estimated=True))[-1].text == "~25.0%/200k"


def test_the_least_important_part_goes_first() -> None:
    parts = [FooterPart("aaaa", 3), FooterPart("bbbb", 1), FooterPart("cccc", 2)]
    assert fitting(parts, 14, [4, 4, 4]) == {0: 4, 1: 4, 2: 4}
    assert fitting(parts, 13, [4, 4, 4]) == {0: 4, 2: 4}
    assert fitting(parts, 5, [4, 4, 4]) == {0: 4}
    assert fitting(parts, 1, [4, 4, 4]) == {0: 1}


def test_home_is_a_tilde_only_as_a_whole_name() -> None:
    assert short_directory("/home/me/x", "/home/me") == "~/x"
    assert short_directory("/home/me", "/home/me") == "~"
    assert short_directory("/home/meow", "/home/me") == "/home/meow"
    assert short_directory("/x", "") == "/x"


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ("ctrl+underscore", "ctrl+-"),
        ("ctrl+minus", "ctrl+-"),
        ("Shift+Ctrl+P", "ctrl+shift+p"),
        ("shift+\r", "shift+enter"),
        ("ctrl+right_square_bracket", "ctrl+]"),
        ("pageUp", "pageup"),
        ("Esc", "escape"),
        ("alt+B", "alt+shift+b"),
        ("ctrl++", "ctrl++"),
        ("control+x", "ctrl+x"),
    ],
)
def test_one_spelling_for_a_key(written: str, same: str) -> None:
    assert normalise_key(written) == same


def test_user_keys_replace_the_defaults() -> None:
    keys = KeyMap({"app.exit": ["ctrl+q", "f10"], "app.suspend": [], "tui.editor.yank": "alt+p"})
    assert keys.keys("app.exit") == ("ctrl+q", "f10")
    assert keys.keys("app.suspend") == ()
    assert keys.actions("ctrl+d", ["app.", "tui.editor."]) == [
        "app.session.delete",
        "app.tree.filter.default",
        "tui.editor.deleteCharForward",
    ]
    assert keys.means("alt+p", "tui.editor.yank")
    assert keys.problems == []


def test_wrong_entries_are_told_and_leave_the_default() -> None:
    keys = KeyMap({"app.nosuch": "x", "app.exit": ["hyper+q"], "app.clear": 7})
    assert len(keys.problems) == 3
    assert "app.nosuch" in keys.problems[0]
    assert keys.keys("app.exit") == ("ctrl+d",) and keys.keys("app.clear") == ("ctrl+c",)


# ---------------------------------------------------------------- git


def test_branch_of_a_directory_below_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/feature/x\n")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert git_branch(str(below)) == "feature/x"


def test_branch_of_a_worktree_and_a_detached_head(tmp_path: Path) -> None:
    real = tmp_path / "main" / ".git" / "worktrees" / "w"
    real.mkdir(parents=True)
    (real / "HEAD").write_text("0123456789abcdef0123456789abcdef01234567\n")
    tree = tmp_path / "w"
    tree.mkdir()
    (tree / ".git").write_text("gitdir: ../main/.git/worktrees/w\n")
    assert git_branch(str(tree)) == "0123456"


def test_no_branch_where_git_is_broken(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere\n")
    assert git_branch(str(tmp_path)) is None


def test_no_branch_where_head_is_a_pipe_nobody_writes_to(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    assert git_branch(str(tmp_path)) is None


# ---------------------------------------------------------------- crash, clipboard


@pytest.mark.parametrize(
    "line",
    [
        "api_key='SECRETVALUE123456'",
        "Authorization: Bearer SECRETVALUE123456",
        '{"x-api-key": "SECRETVALUE123456"}',
        "https://user:SECRETVALUE123456@host/",
        "password=SECRETVALUE123456",
    ],
)
def test_secrets_are_hidden(line: str) -> None:
    assert "SECRETVALUE123456" not in hide_secrets(line)


def test_known_secrets_and_key_shapes_are_hidden() -> None:
    assert hide_secrets("a hunter22 b", ["hunter22", "b"]) == "a <hidden> b"
    assert "abcdefghijklmnop" not in hide_secrets("failed with sk-proj-abcdefghijklmnop")


def test_a_crash_report_has_the_trace_without_values_or_escapes() -> None:
    secret = "verysecretvalue"
    try:
        raise ValueError(f"bad \x1b[31m thing {secret}")
    except ValueError as error:
        report = crash_report(error, [secret])
    assert "ValueError: bad  thing <hidden>" in report and "Traceback" in report
    assert "\x1b" not in report and secret not in report


def test_copying_is_bounded_and_wrapped_for_tmux() -> None:
    assert copy_sequence("é") == "\x1b]52;c;w6k=\x07"
    assert copy_sequence("x" * (MAX_COPY_BYTES + 1)) is None
    assert (copy_sequence("a", inside_tmux=True) or "").startswith("\x1bPtmux;\x1b\x1b]52")


# ---------------------------------------------------------------- input


def parsed(pieces: list[str]) -> list[str]:
    splitter = PasteSplitter(XTermParser())
    seen = []
    for piece in pieces:
        for event in splitter.feed(piece):
            if isinstance(event, events.Paste):
                seen.append(f"paste:{event.text}")
            elif isinstance(event, events.Key):
                seen.append(event.key)
            elif isinstance(event, TypedText):
                seen.extend(event.text)
    return seen


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 10_000])
def test_a_paste_arrives_whole_however_it_is_cut(size: int) -> None:
    text = "first\r\n\x1b[A not a key \x1b[200 ~ " + "é🙂" * 50 + "\x1b[201"
    stream = f"ab\x1b[200~{text}\x1b[201~c\x1b[200~x\x1b[201~\x1b[Dd"
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    assert parsed(pieces) == ["a", "b", f"paste:{text}", "c", "paste:x", "left", "d"]


def test_an_empty_paste_is_a_paste_and_nul_is_dropped() -> None:
    assert parsed(["\x1b[200~\x1b[201~", "\x1b[200~a\x00b\x1b[201~"])[-1] == "paste:ab"


def test_alt_keys_are_known_without_waiting() -> None:
    map_alt_keys()
    assert [normalise_key(key) for key in parsed(["\x1bdx\x1b\r\x1b\x7f\x1bB\x1b\x01"])] == [
        "alt+d", "x", "alt+enter", "alt+backspace", "alt+shift+b", "alt+ctrl+a",
    ]  # fmt: skip


# ---------------------------------------------------------------- completion list


def items(*names: str) -> Completion:
    return Completion(0, tuple(CompletionItem(name, name) for name in names))


def test_the_choice_follows_its_row_and_wraps() -> None:
    menu = CompletionList(2)
    menu.update(items("a", "b", "c"), "/")
    menu.move(1)
    menu.update(items("b", "c"), "/b")
    assert menu.items[menu.chosen].insert == "b"
    menu.move(-1)
    assert menu.items[menu.chosen].insert == "c" and menu.top == 0
    menu.move(1)
    assert menu.chosen == 0


def test_a_closed_list_stays_closed_for_the_word() -> None:
    menu = CompletionList(5)
    menu.update(items("/model"), "/mo")
    menu.dismiss("/mo")
    menu.update(items("/model"), "/mod")
    assert not menu.is_open
    menu.update(None, "")
    menu.update(items("/model"), "/m")
    assert menu.is_open
