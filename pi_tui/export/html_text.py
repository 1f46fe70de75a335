"""Foreign text as HTML that can do nothing: escaped, or drawn from Markdown with tags as text.

Markdown links lead to http, https and mailto addresses or stay text; images become links; no
attribute but those named here comes out. Control characters are shown, never passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pi_tui.core.sanitise import sanitise, sanitise_line

MAX_MARKDOWN_CHARS = 100_000
"""Longer texts are shown as they are: parsing them would take long and help nobody."""

_SAFE_LINK = re.compile(r"(?:https?://|mailto:)[^\s\"'<>`]", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9+#_-]{1,20}")
_ALIGNMENTS = {"left": "al", "center": "ac", "right": "ar"}


def text_html(text: str) -> str:
    """A text for an element: every character stands for itself."""
    return escape(sanitise(text), quote=True)


def line_html(text: str) -> str:
    """A text for one line, or for an attribute value."""
    return escape(sanitise_line(text), quote=True)


def pre_html(text: str, kind: str = "") -> str:
    """A text with its line breaks. `kind` is a class of ours."""
    # A first line break inside <pre> would be swallowed.
    return f'<pre class="{kind}">\n{text_html(text)}</pre>' if text else ""


def markdown_html(text: str) -> str:
    """Markdown as HTML."""
    if len(text) > MAX_MARKDOWN_CHARS:
        return pre_html(text)
    parser = _parser()
    tokens = parser.parse(sanitise(text))
    _make_safe(tokens)
    return str(parser.renderer.render(tokens, parser.options, {}))


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "maxNesting": 40})
    parser.enable(["table", "strikethrough"])
    # An image would be fetched from elsewhere; without the rule it is a mark and a link.
    parser.disable(["image"])
    parser.validateLink = is_safe_link  # type: ignore[method-assign]
    return parser


def is_safe_link(url: str) -> bool:
    """True for addresses that run nothing."""
    return _SAFE_LINK.match(url.strip()) is not None


def _make_safe(tokens: Iterable[Token]) -> None:
    """Keep only attributes that are known to be harmless; link targets were judged before."""
    for token in tokens:
        attributes: dict[str, str | int | float] = {}
        if token.type == "link_open":
            url = str(token.attrs.get("href", ""))
            if is_safe_link(url):
                attributes = {"href": url, "rel": "noopener noreferrer nofollow"}
        elif token.type in ("th_open", "td_open"):
            alignment = str(token.attrs.get("style", "")).removeprefix("text-align:")
            if alignment in _ALIGNMENTS:
                attributes = {"class": _ALIGNMENTS[alignment]}
        elif token.type == "ordered_list_open" and isinstance(token.attrs.get("start"), int):
            attributes = {"start": token.attrs["start"]}
        token.attrs = attributes
        if token.type == "fence":
            language: Sequence[str] = token.info.split(maxsplit=1)
            known = bool(language) and _LANGUAGE.fullmatch(language[0]) is not None
            token.info = language[0] if known else ""
        if token.children:
            _make_safe(token.children)
