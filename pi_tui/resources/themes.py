"""Colour themes: JSON files found, checked and resolved to plain values.

A theme file has `name`, `appearance` ("dark", "light" or left out: whatever the terminal has),
`vars`, `colors` and optionally `export` (page colours for HTML). A colour is `#rrggbb` (or `#rgb`),
`oklch(L C H)`, a number 0 to 255 of the terminal's palette, the name of a variable, or "" for the
terminal's own colour. After loading, only hex strings, numbers and "" are left. How a colour is
drawn is the front ends' business: this module imports nothing that draws.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

import msgspec

from pi_tui.core.errors import SettingsError
from pi_tui.resources.text_file import read_start

Colour: TypeAlias = str | int
Appearance: TypeAlias = Literal["dark", "light"]

COLOUR_NAMES: tuple[str, ...] = tuple(
    re.findall(
        r"\w+",
        """
    accent border borderAccent borderMuted success error warning muted dim text thinkingText
    selectedBg scrollbarTrack scrollbarThumb searchMatchBg searchMatchText userMessageBg
    userMessageText customMessageBg customMessageText customMessageLabel toolPendingBg
    toolSuccessBg toolErrorBg toolTitle toolOutput mdHeading mdLink mdLinkUrl mdCode
    mdCodeBlock mdCodeBlockBorder mdQuote mdQuoteBorder mdHr mdListBullet toolDiffAdded
    toolDiffRemoved toolDiffContext syntaxComment syntaxKeyword syntaxFunction syntaxVariable
    syntaxString syntaxNumber syntaxType syntaxOperator syntaxPunctuation thinkingOff
    thinkingMinimal thinkingLow thinkingMedium thinkingHigh thinkingXhigh thinkingMax bashMode
    """,
    )
)

FALLBACKS: Mapping[str, str] = MappingProxyType(
    {
        "scrollbarTrack": "muted",
        "scrollbarThumb": "text",
        "searchMatchBg": "selectedBg",
        "searchMatchText": "text",
        "thinkingMax": "thinkingXhigh",
    }
)
"""Names a file may leave out, and whose colour they then have."""

MAX_THEME_BYTES = 256 * 1024

_HEX = re.compile(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_OKLCH = re.compile(
    r"oklch\(\s*(\d*\.?\d+)(%?)[\s,]+(\d*\.?\d+)[\s,]+(-?\d*\.?\d+)(?:deg)?\s*\)", re.IGNORECASE
)


class ThemeColours(msgspec.Struct, frozen=True):
    """A theme ready for use: every name of `COLOUR_NAMES` has a value.

    `export` may hold pageBg, cardBg and infoBg. `appearance` None: fits any terminal.
    """

    name: str
    appearance: Appearance | None
    colors: Mapping[str, Colour]
    export: Mapping[str, Colour]


class _ThemeFile(msgspec.Struct):
    name: str
    colors: dict[str, Colour]
    appearance: Appearance | None = None
    vars: dict[str, Colour] = msgspec.field(default_factory=dict)
    export: dict[str, Colour] = msgspec.field(default_factory=dict)


def parse_theme(data: bytes | str, file: str) -> ThemeColours:
    """Check and resolve one theme; `file` is its path as the user knows it.

    Raise SettingsError that names the wrong key.
    """
    try:
        theme = msgspec.json.decode(data, type=_ThemeFile)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        key = path.rstrip("`").lstrip(".")
        raise SettingsError(f"{file}: {what}", file=file, key=key) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not valid JSON: {error}", file=file) from error
    if not theme.name.strip() or "/" in theme.name:
        raise SettingsError(
            f"{file}: a theme needs a name, and no / in it (the slash separates a light/dark pair)",
            file=file,
            key="name",
        )
    _check_complete(theme, file)
    given = {
        name: _resolved(theme, f"colors.{name}", value, file)
        for name, value in theme.colors.items()
        if name in COLOUR_NAMES
    }
    colours = {
        name: given[name] if name in given else given[FALLBACKS[name]] for name in COLOUR_NAMES
    }
    export = {
        name: _resolved(theme, f"export.{name}", value, file)
        for name, value in theme.export.items()
    }
    return ThemeColours(
        theme.name,
        theme.appearance,
        MappingProxyType(colours),
        MappingProxyType(export),
    )


def _check_complete(theme: _ThemeFile, file: str) -> None:
    missing = [n for n in COLOUR_NAMES if n not in theme.colors and n not in FALLBACKS]
    if not missing:
        return
    unknown = [name for name in theme.colors if name not in COLOUR_NAMES]
    guesses = [(name, get_close_matches(name, missing, n=1)) for name in unknown]
    hint = "; ".join(f"{name!r} may mean {found[0]!r}" for name, found in guesses if found)
    raise SettingsError(
        f"{file}: theme {theme.name!r} lacks {len(missing)} colour(s): {', '.join(missing)}",
        file=file,
        key=f"colors.{missing[0]}",
        hint=hint or None,
    )


def _resolved(theme: _ThemeFile, key: str, value: Colour, file: str) -> Colour:
    seen: list[str] = []
    while isinstance(value, str) and value in theme.vars:
        if value in seen:
            chain = " -> ".join([*seen, value])
            raise SettingsError(
                f"{file}: the variables of {key} go in a circle: {chain}", file=file, key=key
            )
        seen.append(value)
        value = theme.vars[value]
    if isinstance(value, int):
        if 0 <= value <= 255:
            return value
    elif value == "":
        return value
    elif _HEX.fullmatch(value):
        digits = value[1:] if len(value) == 7 else "".join(digit * 2 for digit in value[1:])
        return f"#{digits.lower()}"
    elif match := _OKLCH.fullmatch(value):
        lightness = float(match[1]) / (100 if match[2] else 1)
        return _oklch_to_hex(lightness, float(match[3]), float(match[4]))
    raise SettingsError(
        f"{file}: {key} is {value!r}, which is no colour",
        file=file,
        key=key,
        hint="Write #rrggbb, oklch(0.7 0.1 200), a number 0 to 255, the name of a variable, "
        'or "" for the terminal\'s own colour.',
    )


def _oklch_to_hex(lightness: float, chroma: float, hue_degrees: float) -> str:
    """Convert to sRGB (matrices of the CSS Color 4 text); what is out of gamut is clipped."""
    hue = math.radians(hue_degrees)
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(channel)):02x}" for channel in linear)


def _gamma(linear: float) -> float:
    clipped = min(1.0, max(0.0, linear))
    return 12.92 * clipped if clipped <= 0.0031308 else 1.055 * clipped ** (1 / 2.4) - 0.055


def builtin_directory() -> Path:
    """The directory of the themes that come with the program.

    In a wheel they lie inside the package, in an editable install next to it.
    """
    package = Path(__file__).resolve().parent.parent
    inside = package / "themes"
    return inside if inside.is_dir() else package.parent / "themes"


def find_themes(directories: Sequence[Path] = ()) -> dict[str, Path]:
    """Theme files by file name without `.json`; later directories win over earlier and built-in."""
    found: dict[str, Path] = {}
    for directory in (builtin_directory(), *directories):
        if directory.is_dir():
            found |= {file.stem: file for file in sorted(directory.glob("*.json"))}
    return found


def theme_name(setting: str, *, terminal_is_dark: bool) -> str:
    """The theme a setting means: a name, or the half of a `light/dark` pair that suits."""
    light, slash, dark = setting.partition("/")
    return (dark if terminal_is_dark else light).strip() if slash else setting.strip()


def load_theme(name: str, directories: Sequence[Path] = ()) -> ThemeColours:
    """Load the theme with that file name.

    Raise SettingsError when there is none or it cannot be used.
    """
    themes = find_themes(directories)
    file = themes.get(name)
    if file is None:
        raise SettingsError(
            f"there is no theme {name!r}",
            file=str(directories[-1] if directories else builtin_directory()),
            key="theme",
            hint=f"Known themes: {', '.join(sorted(themes))}.",
        )
    try:
        data, size_bytes = read_start(file, MAX_THEME_BYTES)
    except OSError as error:
        raise SettingsError(
            f"the theme file {file} cannot be read: {error.strerror or error}",
            file=str(file),
            key="theme",
        ) from error
    if size_bytes > MAX_THEME_BYTES:
        raise SettingsError(
            f"the theme file {file} is too large: it has {size_bytes:,} bytes, and a theme at most "
            f"{MAX_THEME_BYTES:,}",
            file=str(file),
            key="theme",
        )
    return parse_theme(data, str(file))
