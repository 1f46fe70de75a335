import json

import pytest

from pi_tui.core.transcript import (
    AssistantBlock,
    Block,
    NoticeBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.resources.themes import load_theme
from pi_tui.tui.transcript.artist import Artist
from pi_tui.tui.transcript.diff_lines import DiffLine, parse_diff
from pi_tui.tui.transcript.drawn import Drawn
from pi_tui.tui.transcript.key_hints import KeyHints
from pi_tui.tui.transcript.summary_view import summary_line

ARTIST = Artist(load_theme("dark"), KeyHints())


def draw(block: Block, width: int = 60, *, expanded: bool = False) -> Drawn:
    return ARTIST.draw(block, width, expanded=expanded, elapsed_ms=None)


def lines(block: Block, width: int = 60, *, expanded: bool = False) -> list[str]:
    drawn = draw(block, width, expanded=expanded)
    assert all(drawn.strip(n).cell_length == width for n in range(drawn.height))
    return [drawn.row(n).text[2:] for n in range(1, drawn.height)]


def numbered(count: int) -> str:
    return "\n".join(f"line {n}" for n in range(1, count + 1))


@pytest.mark.parametrize(
    ("name", "arguments", "shown", "first", "hidden"),
    [
        ("read", {"path": "a.py"}, 0, None, 0),
        ("bash", {"command": "x"}, 5, "line 36", 35),
        ("grep", {"pattern": "p"}, 15, "line 1", 25),
        ("ls", {}, 20, "line 1", 20),
        ("find", {"pattern": "*"}, 20, "line 1", 20),
        ("other", {}, 10, "line 1", 30),
    ],
)
def test_how_much_is_shown_of_each_tool(name, arguments, shown, first, hidden) -> None:
    block = ToolBlock("k", "c", name, arguments, "ok", numbered(40))
    body = [line for line in lines(block)[1:] if line.startswith("line")]
    assert len(body) == shown
    assert (body[0] if body else None) == first
    hints = [line for line in lines(block) if line.startswith("…")]
    which = "earlier" if name == "bash" else "more"
    assert hints == ([f"… {hidden} {which} lines (ctrl+o)"] if hidden else [])
    everything = [line for line in lines(block, expanded=True) if line.startswith("line")]
    assert len(everything) == 40


@pytest.mark.parametrize(
    ("name", "arguments", "head"),
    [
        ("read", {"path": "src/a.py"}, "✓ read src/a.py"),
        ("read", {"path": "a", "offset": 10, "limit": 5}, "✓ read a:10-14"),
        ("read", {"path": "a", "offset": 10}, "✓ read a:10-"),
        ("bash", {"command": "make all", "timeout": 9}, "✓ bash $ make all · limit 9s"),
        ("grep", {"pattern": "x y", "path": "src", "glob": "*.py"}, "✓ grep x y in src · *.py"),
        ("find", {"pattern": "*.c"}, "✓ find *.c in ."),
        ("ls", {}, "✓ ls ."),
        ("edit", {"path": "a", "edits": [{}]}, "✓ edit a · 1 edit"),
        ("write", {"path": "a\nb"}, "✓ write a␊b"),
        ("other", {"city": "Zürich"}, '✓ other {"city": "Zürich"}'),
        ("bash", {"command": 5}, "✓ bash $"),
        ("bash", {"__invalid_json__": '{"command": "l\x1b'}, '✓ bash not JSON: {"command": "l␛'),
        ("read", {"__invalid_json__": "x" * 20_000}, "✓ read not JSON:"),
    ],
)
def test_heads_name_the_tool_and_its_main_argument(name, arguments, head) -> None:
    assert lines(ToolBlock("k", "c", name, arguments, "ok"))[0].rstrip() == head


def test_states_differ_in_more_than_colour() -> None:
    states = ["pending", "running", "ok", "error", "aborted"]
    heads = [lines(ToolBlock("k", "c", "ls", {}, state))[0] for state in states]  # type: ignore[arg-type]
    assert len(set(heads)) == 5
    assert heads[4] == "⊘ ls . · aborted"


def test_an_error_is_shown_even_by_tools_that_show_nothing() -> None:
    block = ToolBlock("k", "c", "read", {"path": "x"}, "error", "no such file: x")
    assert lines(block) == ["✗ read x", "no such file: x"]


def test_duration_stands_at_the_end() -> None:
    block = ToolBlock("k", "c", "bash", {"command": "x"}, "ok", "out", duration_ms=4_890)
    assert lines(block)[-1] == "4.9s"
    block = ToolBlock("k", "c", "read", {"path": "x"}, "ok", "out", duration_ms=4_890)
    assert lines(block) == ["✓ read x · 4.9s"]


def test_one_enormous_line_is_cut_off_when_collapsed() -> None:
    block = ToolBlock("k", "c", "bash", {"command": "x"}, "ok", "y" * 100_000)
    assert len(lines(block)) <= 5
    assert lines(block)[-1].endswith("…")
    assert "".join(lines(block, expanded=True)[1:]) == "y" * 100_000


def test_a_long_command_is_cut_off_when_collapsed() -> None:
    block = ToolBlock("k", "c", "bash", {"command": "\n".join(map(str, range(50)))}, "ok")
    assert lines(block) == ["✓ bash $ 0", "1", "2", "… 47 more lines (ctrl+o)"]
    assert len(lines(block, expanded=True)) == 50


@pytest.mark.parametrize(
    ("partial", "head"),
    [
        ('{"command": "git st', "○ bash $ git st"),
        ('{"timeout": 5, "command": "a\\nb', "○ bash $ a␊b"),
        ('{"comm', "○ bash"),
        ('{"command": "x\\', "○ bash $ x"),
    ],
)
def test_arguments_that_are_still_arriving(partial, head) -> None:
    block = ToolBlock("k", "c", "bash", {}, partial_arguments=partial)
    assert lines(block)[0].rstrip() == head


def test_write_shows_the_beginning_of_the_content_in_colour() -> None:
    code = "def f():\n    return 1\n" + numbered(20)
    block = ToolBlock("k", "c", "write", {"path": "a.py", "content": code}, "ok", "written")
    assert lines(block)[1:3] == ["def f():", "    return 1"]
    assert lines(block)[-1] == "… 12 more lines (ctrl+o)"
    assert len({str(style) for _, style in draw(block).row(2).spans[1:]}) > 1
    assert len(lines(block, expanded=True)) == 23


DIFF = "    1 same\n-   2 old word here\n+   2 new word here\n...\n   90 end"


def test_edit_shows_a_diff_with_numbers_colours_and_changed_words() -> None:
    block = ToolBlock("k", "c", "edit", {"path": "a"}, "ok", "done", details={"diff": DIFF})
    assert lines(block)[1:] == [
        " 1   same",
        " 2 - old word here",
        " 2 + new word here",
        "   ...",
        "90   end",
    ]
    removed = draw(block).row(3)
    emphasised = [text for text, style in removed.spans if style.underline]
    assert emphasised == ["old"]
    styles = ARTIST.styles
    assert removed.spans[-1][1] == styles.removed
    assert draw(block).row(2).spans[-1][1] == styles.context
    failed = ToolBlock("k", "c", "edit", {"path": "a"}, "error", "no match", details={"diff": DIFF})
    assert lines(failed)[1:] == ["no match"]


def test_a_unified_diff_is_understood() -> None:
    diff = "--- a\n+++ b\n@@ -4,2 +4,3 @@ def f\n same\n-old\n+new\n+more\n\\ No newline"
    assert parse_diff(diff)[2:] == [
        DiffLine("", "", "... def f"),
        DiffLine(" ", "4", "same"),
        DiffLine("-", "5", "old"),
        DiffLine("+", "5", "new"),
        DiffLine("+", "6", "more"),
        DiffLine("", "", "\\ No newline"),
    ]


@pytest.mark.parametrize("details", [{"diff": 5}, {"diff": ""}, [], None, {"diff": "\n\n"}])
def test_details_of_another_shape_are_ignored(details) -> None:
    block = ToolBlock("k", "c", "edit", {"path": "a"}, "ok", "done", details=details)
    assert lines(block)[1:] == ["done"]


def test_arguments_of_any_shape_can_be_drawn() -> None:
    shapes = json.loads('[{"path": null}, {"path": ["x"]}, {"edits": 5}, {"a": {"b": [1, {}]}}]')
    for name in ("read", "write", "edit", "bash", "grep", "find", "ls", "x"):
        for arguments in shapes:
            for width in (1, 5, 60):
                assert lines(ToolBlock("k", "c", name, arguments, "running", "o"), width)


def test_user_text_is_shown_as_typed_with_a_blank_row_above_and_below() -> None:
    assert lines(UserBlock("u", "# not a *title*\n  indented", 2)) == [
        "", "# not a *title*", "  indented", "2 images", "",
    ]  # fmt: skip


def test_thinking_shown_hidden_and_redacted() -> None:
    assert lines(ThinkingBlock("t", "one\ntwo"), expanded=True) == ["one", "two"]
    assert lines(ThinkingBlock("t", "one")) == ["thinking (ctrl+t shows it)"]
    assert lines(ThinkingBlock("t", "one", streaming=True)) == ["thinking … (ctrl+t shows it)"]
    assert lines(ThinkingBlock("t", "", redacted=True)) == ["thinking (hidden by the provider)"]
    styles = {style for _, style in draw(ThinkingBlock("t", "one"), expanded=True).row(1).spans[1:]}
    assert all(style.italic for style in styles)


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (
            SummaryBlock("s", "compaction", "x", 84_210, 9_120, 12_300, 0.031),
            "compacted 84k → 9.1k tokens · 12s · $0.03",
        ),
        (SummaryBlock("s", "compaction", "x", 84_210), "compacted 84k tokens"),
        (SummaryBlock("s", "compaction", "x"), "compacted"),
        (SummaryBlock("s", "branch", "x", cost=0.004), "branch summary · $0.0040"),
    ],
)
def test_summaries_on_one_line(block: SummaryBlock, line: str) -> None:
    assert summary_line(block) == line
    assert lines(block, 80) == [f"{line}  ctrl+o shows it"]


def test_notices_say_in_words_what_they_are() -> None:
    assert lines(NoticeBlock("n", "info", "saved")) == ["saved"]
    assert lines(NoticeBlock("n", "warning", "aborted")) == ["Warning: aborted"]
    assert lines(NoticeBlock("n", "error", "bad")) == ["Error: bad"]


def test_an_answer_without_text_takes_no_room() -> None:
    assert draw(AssistantBlock("a", " \n ")).height == 0
