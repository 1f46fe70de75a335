"""The inside of a Markdown paragraph: markdown-it tokens to styled spans.

Only http, https and mailto may become a terminal hyperlink, and only in printable ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rich.style import Style

from pi_tui.core.sanitise import sanitise, sanitise_line
from pi_tui.tui.theme import TranscriptStyles
from pi_tui.tui.transcript.rows import Span

if TYPE_CHECKING:
    from markdown_it.token import Token

_HYPERLINK = re.compile(r"(?:https?://|mailto:)[!-~]+", re.IGNORECASE)
MAX_HYPERLINK_CHARS = 2_000

_ATTRIBUTES = {
    "strong_open": Style(bold=True),
    "em_open": Style(italic=True),
    "s_open": Style(strike=True),
}


def inline_spans(tokens: Sequence[Token], base: Style, styles: TranscriptStyles) -> list[Span]:
    """The text of inline tokens; line breaks stay line ends."""
    spans: list[Span] = []
    stack = [base]
    links: list[tuple[str, int]] = []
    for token in tokens:
        kind = token.type
        if kind == "text":
            # An entity may stand for any character, also for one that a terminal would act on.
            text = sanitise(token.content).replace("\n", " ")
            spans.append((text.replace("\t", "    "), stack[-1]))
        elif kind in ("softbreak", "hardbreak"):
            spans.append(("\n", stack[-1]))
        elif kind == "code_inline":
            spans.append((token.content.replace("\t", "    "), stack[-1] + styles.code))
        elif kind in _ATTRIBUTES:
            stack.append(stack[-1] + _ATTRIBUTES[kind])
        elif kind == "link_open":
            url = sanitise_line(str(token.attrs.get("href", "")))
            links.append((url, len(spans)))
            stack.append(stack[-1] + styles.link + hyperlink(url))
        elif kind == "link_close":
            stack.pop()
            url, start = links.pop()
            if not _says(spans[start:], url):
                spans.append((f" ({url})", stack[-1] + styles.link_url))
        elif kind == "image":
            url = sanitise_line(str(token.attrs.get("src", "")))
            spans.append((f"[image: {token.content or 'no description'}]", stack[-1]))
            spans.append((f" ({url})", stack[-1] + styles.link_url + hyperlink(url)))
        elif kind.endswith("_close"):
            stack.pop()
        else:
            spans.append((token.content.replace("\t", "    "), stack[-1]))
    return [span for span in spans if span[0]]


def hyperlink(url: str) -> Style:
    """A style that makes text a terminal hyperlink, if the address may be one."""
    if len(url) <= MAX_HYPERLINK_CHARS and _HYPERLINK.fullmatch(url):
        return Style(link=url)
    return Style()


def _says(spans: Sequence[Span], url: str) -> bool:
    """True when the text of a link is its address already."""
    text = "".join(text for text, _ in spans).strip()
    return text in (url, unquote(url)) or f"mailto:{text}" == url
