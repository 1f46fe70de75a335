"""From the command line to one of the front ends. The only place that calls sys.exit.

Nothing but the standard library is imported before the arguments are known, so `--version` and
`--help` answer at once and wrong usage costs nothing.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Sequence
from typing import NoReturn, get_args

from pi_tui import __version__
from pi_tui.launch_options import LaunchOptions, Mode

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")

_EPILOG = """\
examples:
  pi-tui                               chat in the present directory
  pi-tui "explain this repository"     the same, with a first message
  pi-tui -p "what does main.py do?"    print the answer and exit
  git diff | pi-tui -p "review this"   piped text goes in front of the message
  pi-tui @notes.md "turn this into a plan"
  pi-tui -p -- "--help in ten words"   after -- everything is a message
  pi-tui --continue                    go on with the latest session of this directory
  pi-tui doctor FILE                   report what is odd in a session file

exit codes: 0 fine; 1 the run ended in an error, an abort or a cut answer; 2 wrong usage;
130 Ctrl+C, 143 SIGTERM, 129 SIGHUP
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        sys.stderr.write(
            f"pi-tui: {message}\nNothing was started. `pi-tui --help` lists all options.\n"
        )
        sys.exit(2)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = _Parser(
        prog="pi-tui",
        usage="pi-tui [options] [@file ...] [message ...] [-- message ...]",
        description="A coding agent in the terminal.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("words", nargs="*", metavar="message", help="messages; @path adds a file")
    run = parser.add_argument_group("how to run")
    run.add_argument("-p", "--print", action="store_true", dest="print_", help="print and exit")
    run.add_argument("--mode", choices=("text", "json"), help="output of a run without a screen")
    model = parser.add_argument_group("model")
    model.add_argument("--model", metavar="NAME", help="provider/id[:thinking] or a unique part")
    model.add_argument("--thinking", metavar="LEVEL", choices=LEVELS, help=", ".join(LEVELS))
    model.add_argument(
        "--api-key",
        metavar="KEY",
        help="for this run only; other users can see it in the list of processes, so rather set a "
        "variable",
    )
    model.add_argument(
        "--list-models", nargs="?", const="", metavar="QUERY", help="list models that can be used"
    )
    session = parser.add_argument_group("session")
    session.add_argument(
        "-c", "--continue", action="store_true", dest="continue_latest", help="the latest one here"
    )
    session.add_argument("-r", "--resume", action="store_true", help="choose one from a list")
    session.add_argument("--session", metavar="PATH|ID", help="open this session")
    session.add_argument("--session-dir", metavar="DIR", help="where sessions are kept")
    session.add_argument("--no-session", action="store_true", help="write no session file")
    session.add_argument("-n", "--name", metavar="TEXT", help="name the session")
    tools = parser.add_argument_group("tools and prompt")
    tools.add_argument(
        "-t", "--tools", metavar="LIST", help="comma separated; +name and -name change the default"
    )
    tools.add_argument("-nt", "--no-tools", action="store_true", help="no tools at all")
    tools.add_argument("--system-prompt", metavar="TEXT|FILE", help="instead of the built-in one")
    tools.add_argument(
        "--append-system-prompt", metavar="TEXT|FILE", action="append", default=[], help="after it"
    )
    parser.add_argument(
        "--debug-log", metavar="FILE", help="write what compactions do to a file, without texts"
    )
    parser.add_argument("-v", "--version", action="version", version=f"pi-tui {__version__}")
    return parser


def build_doctor_parser() -> argparse.ArgumentParser:
    """The parser of `pi-tui doctor`."""
    parser = _Parser(
        prog="pi-tui doctor",
        description="Report what is odd in a session file. The file itself is never changed.",
        epilog="exit codes: 0 nothing wrong; 1 something was found; 2 wrong usage",
        allow_abbrev=False,
    )
    parser.add_argument("doctor_file", metavar="FILE", help="the session file")
    parser.add_argument("--repair", metavar="OUT", help="write a repaired copy to a new file")
    return parser


def parse_arguments(
    argv: Sequence[str], *, stdin_is_terminal: bool, stdout_is_terminal: bool
) -> LaunchOptions:
    """Check the command line; exits with status 2 and one clear line when it is wrong."""
    parser = build_parser()
    if argv and argv[0] == "doctor":
        asked = build_doctor_parser().parse_args(list(argv[1:]))
        return LaunchOptions(parser.parse_args([], namespace=asked), "doctor")
    # Split here, because argparse forgets about `--` when options and words are mixed.
    end = list(argv).index("--") if "--" in argv else len(argv)
    args, unknown = parser.parse_known_intermixed_args(_joined_tool_lists(argv[:end]))
    if unknown:
        parser.error(_unknown_option(unknown[0], parser))
    _check_values(parser, args)
    if "-" in args.words and stdin_is_terminal:
        parser.error("- stands for standard input, but nothing is piped in")
    args.literal = list(argv[end + 1 :])
    given = [
        name
        for name, on in (
            ("--continue", args.continue_latest),
            ("--resume", args.resume),
            ("--session", args.session is not None),
            ("--no-session", args.no_session),
        )
        if on
    ]
    if len(given) > 1:
        parser.error(f"{' and '.join(given)} exclude each other")
    if args.no_tools and args.tools is not None:
        parser.error("--tools and --no-tools exclude each other")
    mode: Mode = "interactive"
    if args.list_models is not None:
        mode = "list-models"
    elif args.mode is not None:
        mode = args.mode
    elif args.print_ or not stdin_is_terminal or not stdout_is_terminal:
        mode = "text"
    assert mode in get_args(Mode)
    return LaunchOptions(args, mode)


def _unknown_option(word: str, parser: argparse.ArgumentParser) -> str:
    import difflib  # only who mistypes needs these
    import re

    name = word.partition("=")[0]
    known = re.findall(r"(?<![\w-])--?[a-z][\w-]*", parser.format_help())
    near = difflib.get_close_matches(name, dict.fromkeys(known), n=2, cutoff=0.75)
    guess = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"there is no option {name}.{guess} A message that begins with - goes after --."


_NEED_TEXT = ("model", "session", "session_dir", "name", "debug_log")


def _check_values(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Refuse options that were given as nothing, by a variable that is not set for instance."""
    for name in _NEED_TEXT:
        value = getattr(args, name)
        if value is not None and not value.strip():
            parser.error(f"--{name.replace('_', '-')} was given an empty value")


def _joined_tool_lists(argv: Sequence[str]) -> list[str]:
    """`--tools -bash` as `--tools=-bash`: argparse would take the list for an option."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] in ("-t", "--tools") and word[:1] == "-" and word[:2] != "--":
            joined[-1] = f"--tools={word}"
        else:
            joined.append(word)
    return joined


def main() -> NoReturn:
    """Run the program and exit with its status."""
    from pi_tui.headless.standard_streams import end_streams, hold_streams

    hold_streams()
    try:
        _run()
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BrokenPipeError:
        code = 1
    sys.exit(end_streams(code))


def _run() -> NoReturn:
    options = parse_arguments(
        sys.argv[1:],
        stdin_is_terminal=_is_terminal(sys.stdin),
        stdout_is_terminal=_is_terminal(sys.stdout),
    )
    if options.mode == "interactive":
        gc.disable()  # importing makes no garbage; `run_tui` enables it after the first paint
        from pi_tui.tui.terminal import hold_terminal

        hold_terminal()
    from pi_tui.wiring import launch

    sys.exit(launch(options))


def _is_terminal(stream: object) -> bool:
    return stream is not None and bool(getattr(stream, "isatty", lambda: False)())
