"""Text styles of the theme's colours for everything around the transcript."""

from __future__ import annotations

from rich.color import Color
from rich.style import Style

from pi_tui.tui.theme import Colour, ThemeSource

_QUIET = frozenset({"dim", "muted", "border", "borderMuted", "thinkingOff"})


class Palette:
    """Looks colours up by their theme names; asked for each line drawn, so answers are kept."""

    def __init__(self, theme: ThemeSource) -> None:
        self._theme = theme
        self._inks: dict[str, Style] = {}

    def ink(self, name: str) -> Style:
        """The colour as text colour; quiet ones without a colour of their own are dim."""
        style = self._inks.get(name)
        if style is None:
            value: Colour = self._theme.colors.get(name, "")
            colour = Color.from_ansi(value) if isinstance(value, int) else None
            if isinstance(value, str) and value:
                colour = Color.parse(value)
            dim = True if colour is None and name in _QUIET else None
            style = self._inks[name] = Style(color=colour, dim=dim)
        return style

    def ground(self, name: str) -> Style:
        """The colour as background; reversed text where the theme has none."""
        value = self._theme.colors.get(name, "")
        if isinstance(value, int):
            return Style(bgcolor=Color.from_ansi(value))
        return Style(bgcolor=Color.parse(value)) if value else Style(reverse=True)
