"""The demo's answer to a request for a summary: sentences picked from the conversation itself.

It is what a scripted model can honestly do: quote, count and list. The headings are those the
program asks its summarisers for. Bounded, so that a summary is always shorter than a long branch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CONVERSATION = re.compile(r"<conversation>(.*)</conversation>", re.DOTALL)
_PREVIOUS = re.compile(r"<previous-summary>(.*)</previous-summary>", re.DOTALL)
_SPEAKER = re.compile(r"^\[(User|Assistant|Assistant tool calls|Tool result)\]: ?", re.MULTILINE)
_STEP = re.compile(r"^- Tour step done: (\w+)$", re.MULTILINE)
_TOUR_FILE = re.compile(r"^- Tour file: (\S+)$", re.MULTILINE)
_QUOTE_CHARS = 160
_LIST_LIMIT = 12


def is_summary_request(text: str, has_tools: bool) -> bool:
    """True for the program's own requests: no tools, and a conversation between tags."""
    return not has_tools and _CONVERSATION.search(text) is not None


def summarise(text: str) -> str:
    """A summary of the conversation in the request `text`, under the usual headings."""
    found = _CONVERSATION.search(text)
    said = _turns(found.group(1) if found else "")
    earlier = _PREVIOUS.search(text)
    old = earlier.group(1) if earlier else ""
    users = [_quote(body) for who, body in said if who == "User" and body.strip()]
    answers = [_quote(body) for who, body in said if who == "Assistant" and body.strip()]
    calls = [_quote(body) for who, body in said if who == "Assistant tool calls"]
    instructions = text[found.end() :] if found else ""
    goal = _section(old, "Goal") or [f"- The user began with: “{users[0]}”" if users else "- None."]
    lines = ["## Goal", *goal[:_LIST_LIMIT], "", "## Constraints & Preferences"]
    lines += ["- This summary was put together by the scripted demo: quotes, nothing understood."]
    lines += ["", "## Progress", "### Done"]
    lines += _limited([*_section(old, "Done"), *(f"- Called {call}" for call in calls)])
    lines += _tour_lines(old, calls)
    lines += ["", "### In Progress"]
    lines += [f"- Last message of the user: “{users[-1]}”" if users else "- Nothing."]
    lines += ["", "### Blocked", "- Nothing."]
    lines += ["", "## Key Decisions"]
    lines += _limited([f"- The user wrote: “{quote}”" for quote in users[1:]])
    lines += ["", "## Next Steps", "- Type `go` to go on with the tour, or `help`."]
    if "Critical Context" in instructions or not instructions.strip():
        lines += ["", "## Critical Context"]
        lines += [f"- Last answer began: “{answers[-1]}”" if answers else "- None."]
    return "\n".join(lines)


def steps_in_summary(text: str) -> frozenset[str]:
    """Tour steps that an earlier summary of this demo names as done."""
    return frozenset(_STEP.findall(text))


def file_in_summary(text: str) -> str | None:
    """The scratch file that an earlier summary of this demo names."""
    found = _TOUR_FILE.search(text)
    return found.group(1) if found else None


def _turns(conversation: str) -> list[tuple[str, str]]:
    """Who said what, in order."""
    marks = list(_SPEAKER.finditer(conversation))
    ends = [*(mark.start() for mark in marks[1:]), len(conversation)]
    return [
        (mark.group(1), conversation[mark.end() : ends[number]])
        for number, mark in enumerate(marks)
    ]


def _quote(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _QUOTE_CHARS else flat[: _QUOTE_CHARS - 1] + "…"


def _limited(lines: Iterable[str]) -> list[str]:
    unique = list(dict.fromkeys(lines))
    if not unique:
        return ["- Nothing."]
    left_out = len(unique) - _LIST_LIMIT
    kept = unique[-_LIST_LIMIT:]
    return [f"- ({left_out} older ones left out)", *kept] if left_out > 0 else kept


def _section(summary: str, heading: str) -> list[str]:
    """The list lines under a heading, without the tour's own notes."""
    found = re.search(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", summary, re.DOTALL | re.MULTILINE)
    lines = found.group(1).splitlines() if found else []
    notes = ("- Tour ", "- Nothing.", "- (")
    return [line for line in lines if line.startswith("- ") and not line.startswith(notes)]


def _tour_lines(old: str, calls: Iterable[str]) -> list[str]:
    """Notes for the demo itself, which remembers nothing but what it is sent."""
    steps = set(steps_in_summary(old))
    file = file_in_summary(old)
    for call in calls:
        for name, rest in re.findall(r"(?:^|, )(ls|read|write|edit|bash)\(([^,)]*)", call):
            listing = name == "ls" or rest.startswith('command="ls ')
            steps.add("list" if listing else "run" if name == "bash" else name)
        written = re.search(r"\"?(pi-tui-demo[\w-]*\.txt)", call)
        file = written.group(1) if written else file
    lines = [f"- Tour step done: {step}" for step in sorted(steps)]
    return [*lines, f"- Tour file: {file}"] if file else lines
