"""A theme's colours as what the full-screen front end draws with: Rich styles and a Textual theme.

A theme arrives as plain values (`ThemeSource`, loaded in `resources/`). The colour "" means the
terminal's own; quiet texts then become dim instead, so a theme without any colour still reads well.
`PLAIN` is that theme. Every one of the 56 names is also a CSS variable: `userMessageBg` is
`$pi-user-message-bg`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from rich.color import Color
from rich.style import Style
from textual.theme import BUILTIN_THEMES, Theme

Colour: TypeAlias = str | int

_PALETTE_NAMES = [
    f"ansi_{bright}{name}"
    for bright in ("", "bright_")
    for name in ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
]


class ThemeSource(Protocol):
    """A theme whose colours are `#rrggbb`, 0 to 255 or ""; a name that is absent counts as ""."""

    @property
    def name(self) -> str: ...
    @property
    def appearance(self) -> Literal["dark", "light"] | None: ...
    @property
    def colors(self) -> Mapping[str, Colour]: ...
    @property
    def export(self) -> Mapping[str, Colour]: ...


@dataclass(frozen=True, slots=True)
class SyntaxStyles:
    comment: Style
    keyword: Style
    function: Style
    variable: Style
    string: Style
    number: Style
    type: Style
    operator: Style
    punctuation: Style


@dataclass(frozen=True, slots=True)
class TranscriptStyles:
    """Styles of the transcript. Those ending in `_ground` are backgrounds of whole blocks."""

    text: Style
    muted: Style
    dim: Style
    accent: Style
    success: Style
    warning: Style
    error: Style
    thinking: Style
    user: Style
    user_ground: Style
    custom: Style
    custom_ground: Style
    custom_label: Style
    pending_ground: Style
    ok_ground: Style
    error_ground: Style
    tool_title: Style
    tool_output: Style
    heading: Style
    link: Style
    link_url: Style
    code: Style
    code_block: Style
    code_border: Style
    quote: Style
    quote_border: Style
    rule: Style
    bullet: Style
    added: Style
    removed: Style
    context: Style
    bash: Style
    jump_hint: Style
    syntax: SyntaxStyles


def transcript_styles(theme: ThemeSource) -> TranscriptStyles:
    """Build the styles of the transcript from a theme."""
    colors = theme.colors

    def ink(name: str, *, bold: bool = False, italic: bool = False) -> Style:
        return Style(
            color=_rich_colour(colors.get(name, "")), bold=bold or None, italic=italic or None
        )

    def quiet(name: str, *, italic: bool = False) -> Style:
        colour = _rich_colour(colors.get(name, ""))
        return Style(color=colour, dim=True if colour is None else None, italic=italic or None)

    def ground(name: str) -> Style:
        return Style(bgcolor=_rich_colour(colors.get(name, "")))

    selected = _rich_colour(colors.get("selectedBg", ""))
    return TranscriptStyles(
        text=ink("text"),
        muted=quiet("muted"),
        dim=quiet("dim"),
        accent=ink("accent"),
        success=ink("success"),
        warning=ink("warning"),
        error=ink("error"),
        thinking=quiet("thinkingText", italic=True),
        user=ink("userMessageText"),
        user_ground=ground("userMessageBg"),
        custom=ink("customMessageText"),
        custom_ground=ground("customMessageBg"),
        custom_label=ink("customMessageLabel", bold=True),
        pending_ground=ground("toolPendingBg"),
        ok_ground=ground("toolSuccessBg"),
        error_ground=ground("toolErrorBg"),
        tool_title=ink("toolTitle", bold=True),
        tool_output=ink("toolOutput"),
        heading=ink("mdHeading", bold=True),
        link=ink("mdLink") + Style(underline=True),
        link_url=quiet("mdLinkUrl"),
        code=ink("mdCode"),
        code_block=ink("mdCodeBlock"),
        code_border=quiet("mdCodeBlockBorder"),
        quote=ink("mdQuote", italic=True),
        quote_border=ink("mdQuoteBorder"),
        rule=quiet("mdHr"),
        bullet=ink("mdListBullet"),
        added=ink("toolDiffAdded"),
        removed=ink("toolDiffRemoved"),
        context=quiet("toolDiffContext"),
        bash=ink("bashMode"),
        jump_hint=Style(
            color=_rich_colour(colors.get("accent", "")),
            bgcolor=selected,
            reverse=True if selected is None else None,
            bold=True,
        ),
        syntax=SyntaxStyles(
            comment=quiet("syntaxComment", italic=True),
            keyword=ink("syntaxKeyword"),
            function=ink("syntaxFunction"),
            variable=ink("syntaxVariable"),
            string=ink("syntaxString"),
            number=ink("syntaxNumber"),
            type=ink("syntaxType"),
            operator=ink("syntaxOperator"),
            punctuation=ink("syntaxPunctuation"),
        ),
    )


def textual_theme(theme: ThemeSource) -> Theme:
    """Build the Textual theme of the whole application.

    A theme without appearance leaves the terminal its own colours and palette.
    """
    own = theme.appearance is None
    dark = theme.appearance != "light"
    page = _css_colour(theme.export.get("pageBg", ""), "")
    default_ink = "ansi_default" if own else ("#dfe3e8" if dark else "#23282e")
    default_ground = "ansi_default" if own else (page or ("#16191d" if dark else "#fbfaf7"))

    def ink(name: str) -> str:
        return _css_colour(theme.colors.get(name, ""), default_ink)

    def ground(name: str) -> str:
        return _css_colour(theme.colors.get(name, ""), default_ground)

    # Textual's style sheets ask for variables that only its own terminal-coloured themes define.
    variables = dict(BUILTIN_THEMES["ansi-dark"].variables) if own else {}
    variables |= {
        f"pi-{_kebab(name)}": ground(name) if _is_ground(name) else ink(name)
        for name in theme.colors
    }
    selected = ground("selectedBg")
    variables |= {
        "border": ink("border"),
        "border-blurred": ink("borderMuted"),
        "scrollbar": ink("scrollbarThumb"),
        "scrollbar-hover": ink("muted"),
        "scrollbar-active": ink("accent"),
        "scrollbar-background": ground("scrollbarTrack"),
        "scrollbar-background-hover": ground("scrollbarTrack"),
        "scrollbar-background-active": ground("scrollbarTrack"),
        "scrollbar-corner-color": ground("scrollbarTrack"),
        "screen-selection-background": "ansi_bright_blue" if own else selected,
        "screen-selection-foreground": "ansi_black" if own else ink("text"),
        "input-selection-background": "ansi_bright_blue" if own else selected,
        "input-selection-foreground": "ansi_black" if own else ink("text"),
        "block-cursor-background": "ansi_white" if own else ink("accent"),
        "block-cursor-foreground": "ansi_black" if own else default_ground,
    }
    return Theme(
        name=theme.name,
        primary=ink("accent"),
        secondary=ink("border"),
        warning=ink("warning"),
        error=ink("error"),
        success=ink("success"),
        accent=ink("accent"),
        foreground=ink("text"),
        background=default_ground,
        surface=default_ground,
        panel=default_ground,
        boost=default_ground if own else selected,
        dark=dark,
        ansi=own,
        variables=variables,
    )


@dataclass(frozen=True, slots=True)
class _NoColours:
    name: str = "plain"
    appearance: Literal["dark", "light"] | None = None

    @property
    def colors(self) -> Mapping[str, Colour]:
        return {}

    @property
    def export(self) -> Mapping[str, Colour]:
        return {}


PLAIN: ThemeSource = _NoColours()
"""No colours at all: what is drawn before a theme is chosen."""


def _rich_colour(colour: Colour) -> Color | None:
    if isinstance(colour, int):
        return Color.from_ansi(colour)
    return Color.parse(colour) if colour else None


def _css_colour(colour: Colour, default: str) -> str:
    if isinstance(colour, int):
        if colour < 16:
            return _PALETTE_NAMES[colour]
        return Color.from_ansi(colour).get_truecolor().hex
    return colour or default


def _is_ground(name: str) -> bool:
    return name.endswith("Bg") or name == "scrollbarTrack"


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
