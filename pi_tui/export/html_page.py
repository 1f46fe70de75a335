"""The web page: one file, nothing fetched, every text escaped.

What is ours stands here and in `page_parts`; everything else passes `html_text`. Anchors are
numbers of ours, because ids of entries are foreign too. Neither the directory nor anything else of
the machine is named, unless the conversation itself does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pi_tui.core.entries import SessionHeader
from pi_tui.core.messages import ImageContent
from pi_tui.core.numbers import compact_count, short_duration
from pi_tui.core.transcript import (
    AssistantBlock,
    Block,
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
from pi_tui.export.html_text import line_html, markdown_html, pre_html, text_html
from pi_tui.export.outline import outline
from pi_tui.export.page_parts import POLICY, SCRIPT, STYLE

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def html_page(conversation: Conversation, header: SessionHeader) -> Iterator[str]:
    """The page, piece by piece."""
    page = _Page(conversation)
    title = line_html(conversation.title)
    yield (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n<meta name="generator" content="pi-tui">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
    )
    yield from page.outline()
    yield f"<main>\n<header>\n<h1>{title}</h1>\n{page.facts(header)}</header>\n"
    for number, branch in enumerate(conversation.branches()):
        pieces = conversation.pieces(branch)
        if number and not pieces:
            continue
        if number:
            yield page.branch_title(branch.parent_id)
        for piece in pieces:
            yield page.piece(piece)
        if number:
            yield "</section>\n"
    yield f"{page.footer()}</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"


class _Page:
    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._numbers = {i: n for n, i in enumerate(conversation.tree.ids(), 1)}
        self._anchored: set[str] = set()
        self._branches = 1

    # ------------------------------------------------------------ around

    def outline(self) -> Iterator[str]:
        yield '<nav aria-label="outline">\n<ol>\n'
        for row in outline(self._conversation):
            classes = f"d{row.depth}" + " on" * row.on_path + " leaf" * row.is_leaf
            label = self._label(row.entry_id)
            yield (
                f'<li class="{classes}"><a href="#n{self._numbers[row.entry_id]}">'
                f"{label}{line_html(row.text)}</a></li>\n"
            )
        yield "</ol>\n</nav>\n"

    def facts(self, header: SessionHeader) -> str:
        tree, totals = self._conversation.tree, self._conversation.totals()
        usage = totals.usage
        messages = sum(bool(tree.head(i).role) for i in tree.ids())
        facts = [
            line_html(header.timestamp[:10]),
            f"{messages:,} messages",
            f"{usage.sum_tokens - (usage.output or 0):,} tokens in "
            f"({usage.cache_read or 0:,} from the cache), {usage.output or 0:,} out",
            cost_text(usage.cost.total),
        ]
        costs = sorted(totals.cost_by_model().items())
        models = "".join(
            f"<br>{line_html(name)}: {cost_text(dollars)}" for name, dollars in costs if name
        )
        return f'<p class="facts">{" · ".join(fact for fact in facts if fact)}{models}</p>\n'

    def branch_title(self, parent_id: str | None) -> str:
        self._branches += 1
        origin = ""
        # A result stands with its call, and some entries are not shown at all.
        while parent_id is not None and parent_id not in self._anchored:
            parent_id = self._conversation.tree.parent(parent_id)
        if parent_id is not None:
            origin = f'<p class="meta">continues <a href="#n{self._numbers[parent_id]}">'
            origin += "an earlier message</a></p>\n"
        return f'<section class="branch">\n<h2>Branch {self._branches}</h2>\n{origin}'

    def footer(self) -> str:
        said = ["Exported by pi-tui.", *self._conversation.what_is_missing()]
        return f"<footer><p>{' '.join(said)}</p></footer>\n"

    def _label(self, entry_id: str) -> str:
        label = self._conversation.tree.label(entry_id)
        if not label:
            return ""
        return f'<span class="label">{line_html(self._conversation.glance(label, 200))}</span> '

    # ------------------------------------------------------------ pieces

    def piece(self, piece: Piece) -> str:
        anchor = label = ""
        if piece.entry_id not in self._anchored:
            self._anchored.add(piece.entry_id)
            anchor = f' id="n{self._numbers[piece.entry_id]}"'
            label = self._label(piece.entry_id)
        images = "".join(_image(image) for image in piece.images)
        meta = ""
        if piece.answer is not None:
            meta = f'<p class="meta">{line_html(answer_line(piece.answer))}</p>'
        return f"<article{anchor}>{label}{self._block(piece.block)}{images}{meta}</article>\n"

    def _block(self, block: Block) -> str:
        text = self._conversation.text
        if isinstance(block, UserBlock):
            body = markdown_html(text(block.text))
            return f'<div class="user"><div class="who">user</div>{body}</div>'
        if isinstance(block, AssistantBlock):
            return f'<div class="who">assistant</div>{markdown_html(text(block.text))}'
        if isinstance(block, ThinkingBlock):
            hidden = "(hidden by the provider)" if block.redacted else text(block.text)
            return (
                f'<details class="thinking"><summary>thinking</summary>{pre_html(hidden)}</details>'
            )
        if isinstance(block, ToolBlock):
            return self._tool(block)
        if isinstance(block, ShellBlock):
            return self._shell(block)
        if isinstance(block, SummaryBlock):
            return self._summary(block)
        if isinstance(block, CustomBlock):
            kind = line_html(self._conversation.glance(block.custom_type, 80))
            return f'<div class="who">{kind}</div>{markdown_html(text(block.text))}'
        return self._notice(block)

    def _notice(self, block: NoticeBlock) -> str:
        kind = block.level if block.level in ("info", "warning", "error") else "info"
        return f'<p class="notice {kind}">{text_html(self._conversation.text(block.text))}</p>'

    def _tool(self, block: ToolBlock) -> str:
        conversation = self._conversation
        state = block.state if block.state in ("ok", "error", "aborted") else "open"
        name = line_html(conversation.glance(block.name, 80))
        argument = line_html(conversation.glance(conversation.main_argument(block.arguments), 160))
        took = f" · {short_duration(block.duration_ms)}" if block.duration_ms is not None else ""
        said = "" if state == "ok" else f" · {'no result' if state == 'open' else state}"
        arguments = pre_html(conversation.arguments_text(block.arguments), "arguments")
        diff = _diff(conversation.text(diff_text(block.details)))
        output = pre_html(conversation.text(block.output), "output")
        return (
            f'<details class="tool {state}"><summary><b>{name}</b> {argument}'
            f'<span class="meta">{said}{took}</span></summary>{arguments}{diff}{output}</details>'
        )

    def _shell(self, block: ShellBlock) -> str:
        conversation = self._conversation
        command = line_html(conversation.glance(block.command, 160))
        ended = "cancelled" if block.cancelled else f"exit code {block.exit_code}"
        said = "" if block.exit_code == 0 and not block.cancelled else f" · {ended}"
        whole = pre_html(conversation.text(block.command), "arguments")
        output = pre_html(conversation.text(block.output), "output")
        return (
            f'<details class="tool" open><summary><b>$</b> {command}'
            f'<span class="meta">{said}</span></summary>{whole}{output}</details>'
        )

    def _summary(self, block: SummaryBlock) -> str:
        if block.kind == "branch":
            title = "Summary of another branch"
        else:
            before = f" from {block.tokens_before:,} tokens" if block.tokens_before else ""
            after = f" to about {compact_count(block.tokens_after)}" if block.tokens_after else ""
            title = f"Compacted{before}{after}"
        cost = f" · {cost_text(block.cost)}" if block.cost else ""
        body = markdown_html(self._conversation.text(block.summary))
        return f'<details class="sum"><summary>{title}{cost}</summary>{body}</details>'


def _diff(text: str) -> str:
    if not text:
        return ""
    lines = []
    for line in text.split("\n"):
        kind = {"+": "add", "-": "del"}.get(line[:1])
        shown = text_html(line)
        lines.append(f'<span class="{kind}">{shown}</span>' if kind else shown)
    return '<pre class="diff">\n' + "\n".join(lines) + "</pre>"


def _image(image: ImageContent) -> str:
    """An image within the page; anything that is not plainly one is named instead."""
    if image.mime_type in IMAGE_TYPES and _BASE64.fullmatch(image.data):
        return f'<p><img alt="image" src="data:{image.mime_type};base64,{image.data}"></p>'
    return f'<p class="notice">[image of type {line_html(image.mime_type)}, not shown]</p>'
