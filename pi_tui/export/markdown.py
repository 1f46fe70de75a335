"""The current branch as Markdown for people to read and quote.

What a model wrote is Markdown already and stays so, with its fences closed and tags shown as text;
everything else goes into fences that no text can end. A reader that draws HTML draws none of ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pi_tui.core.numbers import compact_count
from pi_tui.core.sanitise import sanitise
from pi_tui.core.transcript import (
    AssistantBlock,
    CustomBlock,
    NoticeBlock,
    ShellBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.export.contents import (
    Conversation,
    Piece,
    answer_line,
    cost_text,
    diff_text,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>~&-])")
_FENCE = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<info>.*)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_TICKS = re.compile(r"`+")


def markdown_text(conversation: Conversation) -> Iterator[str]:
    """The file, piece by piece."""
    yield f"# {plain(conversation.title)}\n"
    branch = next(conversation.branches())
    pieces = conversation.pieces(branch)
    usage = conversation.totals().usage
    others = len(conversation.tree) - len(branch.ids)
    facts = [f"{len(pieces)} parts", f"{usage.sum_tokens:,} tokens", cost_text(usage.cost.total)]
    if others:
        facts.append(f"{others} entries of the session are not on this branch")
    yield "\n" + " · ".join(facts) + "\n"
    for piece in pieces:
        yield "\n" + "\n".join(_lines(conversation, piece)) + "\n"
    if missing := conversation.what_is_missing():
        yield f"\n---\n\n*{plain(' '.join(missing))}*\n"


def plain(text: str) -> str:
    """A text on one line in which nothing is markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(sanitise(text).split()))


def fenced(text: str, info: str = "") -> str:
    """A text between fences it cannot end."""
    shown = sanitise(text)
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{info}\n{shown}{'' if shown.endswith(chr(10)) else chr(10)}{fence}"


def closed(text: str) -> str:
    """Markdown of a model with tags shown as text and the last fence closed."""
    lines: list[str] = []
    prose: list[str] = []
    fence = ""
    for line in sanitise(text).split("\n"):
        found = _FENCE.match(line)
        if fence:
            lines.append(line)
            if found and found["fence"].startswith(fence) and not found["info"].strip():
                fence = ""
        elif found and not (found["fence"][0] == "`" and "`" in found["info"]):
            lines += _without_tags(prose)
            prose = []
            lines.append(_TAG.sub("&lt;", line))
            fence = found["fence"]
        else:
            prose.append(line)
    lines += _without_tags(prose)
    if fence:
        lines.append(fence)
    return "\n".join(lines)


def _without_tags(prose: list[str]) -> list[str]:
    """Show tags as text, except within code between backticks, where they are text already."""
    text = "\n".join(prose)
    if not prose or "<" not in text:
        return prose
    runs = list(_TICKS.finditer(text))
    later: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        later.setdefault(len(run.group()), []).append(number)
    out: list[str] = []
    at = number = 0
    while number < len(runs):
        run = runs[number]
        same = later[len(run.group())]
        while same and same[0] <= number:
            same.pop(0)
        if not same:
            number += 1
            continue
        end = runs[same[0]].end()
        out.append(_TAG.sub("&lt;", text[at : run.start()]))
        out.append(text[run.start() : end])
        at, number = end, same[0] + 1
    out.append(_TAG.sub("&lt;", text[at:]))
    return "".join(out).split("\n")


def _lines(conversation: Conversation, piece: Piece) -> list[str]:
    block = piece.block
    lines: list[str] = []
    label = conversation.tree.label(piece.entry_id)
    if label:
        lines += [f"**{plain(conversation.glance(label, 200))}**", ""]
    if isinstance(block, UserBlock):
        lines += ["## User", "", fenced(conversation.text(block.text), "text")]
    elif isinstance(block, AssistantBlock):
        lines += ["## Assistant", "", closed(conversation.text(block.text))]
    elif isinstance(block, ThinkingBlock):
        text = conversation.text(block.text) if not block.redacted else "(hidden by the provider)"
        lines += ["### Thinking", "", fenced(text, "text")]
    elif isinstance(block, ToolBlock):
        lines += _tool(conversation, block)
    elif isinstance(block, ShellBlock):
        lines += ["### Command of the user", "", fenced(conversation.text(block.command), "sh")]
        lines += ["", fenced(conversation.text(block.output), "text")]
    elif isinstance(block, SummaryBlock):
        lines += [_summary_title(block), "", closed(conversation.text(block.summary))]
    elif isinstance(block, CustomBlock):
        title = plain(conversation.glance(block.custom_type, 80))
        lines += [f"### {title}", "", fenced(conversation.text(block.text), "text")]
    elif isinstance(block, NoticeBlock):
        lines += [f"*{plain(conversation.glance(block.text, 500))}*"]
    if piece.images:
        lines += ["", f"({len(piece.images)} images, not in this file)"]
    if piece.answer is not None and piece.answer.usage is not None:
        lines += ["", f"*{plain(answer_line(piece.answer))}*"]
    return lines


def _tool(conversation: Conversation, block: ToolBlock) -> list[str]:
    name = plain(conversation.glance(block.name, 80))
    argument = plain(conversation.glance(conversation.main_argument(block.arguments), 120))
    lines = [f"### Tool: {name} {argument}".rstrip(), ""]
    if block.arguments:
        lines += [fenced(conversation.arguments_text(block.arguments), "json"), ""]
    if diff := diff_text(block.details):
        lines += [fenced(conversation.text(diff), "diff"), ""]
    lines += [
        "Result, an error:" if block.state == "error" else f"Result ({block.state}):",
        "",
        fenced(conversation.text(block.output), "text"),
    ]
    return lines


def _summary_title(block: SummaryBlock) -> str:
    if block.kind == "branch":
        return "## Summary of another branch"
    tokens = f" of {compact_count(block.tokens_before)} tokens" if block.tokens_before else ""
    return f"## Compaction{tokens}"
