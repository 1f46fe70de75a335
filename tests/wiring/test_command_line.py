"""The command line: what is a message, what is an option, and what is said about the rest."""

from __future__ import annotations

import pytest

from pi_tui.cli import parse_arguments
from pi_tui.launch_options import LaunchOptions


def parse(*argv: str, terminal: bool = True) -> LaunchOptions:
    return parse_arguments(argv, stdin_is_terminal=terminal, stdout_is_terminal=True)


@pytest.mark.parametrize(
    ("argv", "messages", "files"),
    [
        (["-p", "--", "--weird"], ["--weird"], []),
        (["-p", "a", "--", "-x", "--model", "b"], ["a", "-x", "--model", "b"], []),
        (["--", "a", "--", "b"], ["a", "--", "b"], []),
        (["a", "@f", "--", "@g", "-"], ["a", "@g", "-"], ["f"]),
        (["-p", "--"], [], []),
        (["--", "doctor", "x"], ["doctor", "x"], []),
        (["a", "-p", "b", "--name", "n", "c"], ["a", "b", "c"], []),
        (["-p", "", "a", " "], ["a"], []),
        (["-1", "- a list", "--two words"], ["-1", "- a list", "--two words"], []),
        (["@", "@f", "@f"], ["@"], ["f", "f"]),
        (["-t", "-bash", "a", "--", "-t", "-bash"], ["a", "-t", "-bash"], []),
    ],
)
def test_words(argv: list[str], messages: list[str], files: list[str]) -> None:
    options = parse(*argv)
    assert (options.messages, options.files) == (messages, files)


def test_a_dash_is_standard_input() -> None:
    assert parse("-p", "-", "a", terminal=False).messages == ["a"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--modle", "x"], "there is no option --modle. Did you mean --mode or --model?"),
        (["--contniue"], "there is no option --contniue. Did you mean --continue?"),
        (["--weird"], "there is no option --weird. A message that begins with - goes after --"),
        (["a", "-x"], "there is no option -x."),
        (["--naem=x"], "there is no option --naem. Did you mean --name?"),
        (["--model="], "--model was given an empty value"),
        (["--session-dir", ""], "--session-dir was given an empty value"),
        (["--name", " "], "--name was given an empty value"),
        (["--session", ""], "--session was given an empty value"),
        (["--name", "--", "x"], "expected one argument"),
        (["-p", "-"], "- stands for standard input, but nothing is piped in"),
        (["-c", "-r"], "--continue and --resume exclude each other"),
        (["--mode", "xml"], "invalid choice: 'xml'"),
    ],
)
def test_wrong_usage(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(*argv)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Nothing was started." in error
