"""Source code as coloured lines. Pygments is imported at the first piece of code, not before.

Code that is too long to be worth it, or in an unknown language, stays plain. The text is never
changed: what the lexer gives back must add up to what went in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

from rich.style import Style

from pi_tui.tui.theme import SyntaxStyles
from pi_tui.tui.transcript.rows import Span

MAX_HIGHLIGHTED_CHARS = 30_000
MAX_HIGHLIGHTED_LINE_CHARS = 1_000


class _Token(Protocol):
    """Pygments ships no types; this is what is used of a token type."""

    @property
    def parent(self) -> _Token | None: ...


class _Lexer(Protocol):
    def get_tokens(self, text: str) -> Iterable[tuple[_Token, str]]: ...


def highlight(code: str, language: str, syntax: SyntaxStyles, base: Style) -> list[list[Span]]:
    """Colour code by the name of its language; one list of spans for each line."""
    return _coloured(code, _lexer_by_name(language.lower()) if language else None, syntax, base)


def highlight_file(code: str, path: str, syntax: SyntaxStyles, base: Style) -> list[list[Span]]:
    """Colour code by the name of the file it is in."""
    name = path.rpartition("/")[2]
    return _coloured(code, _lexer_by_file_name(name) if name else None, syntax, base)


def _coloured(
    code: str, lexer: _Lexer | None, syntax: SyntaxStyles, base: Style
) -> list[list[Span]]:
    lines = code.split("\n")
    plain = [[(line, base)] for line in lines]
    if (
        lexer is None
        or len(code) > MAX_HIGHLIGHTED_CHARS
        or max(map(len, lines)) > MAX_HIGHLIGHTED_LINE_CHARS
    ):
        return plain
    style_of = _style_chooser(syntax)
    coloured: list[list[Span]] = [[]]
    for token, text in lexer.get_tokens(code):
        style = base + style_of(token)
        first, *rest = text.split("\n")
        if first:
            coloured[-1].append((first, style))
        coloured += [[(piece, style)] if piece else [] for piece in rest]
    if len(coloured) == len(lines) + 1 and not coloured[-1]:
        coloured.pop()  # some lexers insist on a last line end
    same = ["".join(text for text, _ in spans) for spans in coloured] == lines
    return coloured if same else plain


@lru_cache(maxsize=64)
def _lexer_by_name(language: str) -> _Lexer | None:
    from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        lexer: _Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return lexer


@lru_cache(maxsize=64)
def _lexer_by_file_name(name: str) -> _Lexer | None:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer: _Lexer = get_lexer_for_filename(name, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
    return lexer


def _style_chooser(syntax: SyntaxStyles) -> Callable[[_Token], Style]:
    from pygments.token import Token  # type: ignore[import-untyped]

    by_token: dict[_Token, Style] = {
        Token: Style(),
        Token.Comment: syntax.comment,
        Token.Keyword: syntax.keyword,
        Token.Keyword.Type: syntax.type,
        Token.Keyword.Constant: syntax.number,
        Token.Name: syntax.variable,
        Token.Name.Function: syntax.function,
        Token.Name.Decorator: syntax.function,
        Token.Name.Builtin: syntax.function,
        Token.Name.Class: syntax.type,
        Token.Name.Exception: syntax.type,
        Token.Name.Namespace: syntax.type,
        Token.Name.Tag: syntax.keyword,
        Token.Name.Attribute: syntax.function,
        Token.Literal.String: syntax.string,
        Token.Literal.Number: syntax.number,
        Token.Operator: syntax.operator,
        Token.Operator.Word: syntax.keyword,
        Token.Punctuation: syntax.punctuation,
        Token.Generic.Deleted: syntax.keyword,
        Token.Generic.Inserted: syntax.string,
        Token.Generic.Heading: syntax.function,
        Token.Generic.Subheading: syntax.function,
    }

    def style_of(token: _Token) -> Style:
        style = by_token.get(token)
        if style is None:
            style = by_token[token] = style_of(token.parent) if token.parent else Style()
        return style

    return style_of
