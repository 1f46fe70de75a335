import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.color import Color
from textual.app import App

from pi_tui.core.errors import SettingsError
from pi_tui.resources.themes import (
    COLOUR_NAMES,
    find_themes,
    load_theme,
    parse_theme,
    theme_name,
)
from pi_tui.tui.theme import PLAIN, textual_theme, transcript_styles


def theme_file(**changes: object) -> str:
    colours: dict[str, object] = dict.fromkeys(COLOUR_NAMES, "")
    return json.dumps({"name": "mine", "colors": colours | changes.pop("colors", {})} | changes)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["dark", "light", "system"])
def test_the_themes_of_the_program_are_complete(name: str) -> None:
    theme = load_theme(name)
    assert theme.name == name
    assert list(theme.colors) == list(COLOUR_NAMES)
    assert len(COLOUR_NAMES) == 56
    assert theme.appearance == (None if name == "system" else name)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", ["dark", "light"])
def test_texts_can_be_read_on_every_background_they_stand_on(name: str) -> None:
    theme = load_theme(name)
    colours = {key: str(value) for key, value in theme.colors.items()}
    page = str(theme.export["pageBg"])
    tools = [page, *(colours[f"tool{state}Bg"] for state in ("Pending", "Success", "Error"))]
    pairs = [(colours["userMessageText"], colours["userMessageBg"])]
    pairs += [(colours["customMessageText"], colours["customMessageBg"])]
    pairs += [(colours["searchMatchText"], colours["searchMatchBg"])]
    pairs += [(colours["text"], colours["selectedBg"])]
    not_texts = ("Bg", "Muted", "Hr", "Border", "Track", "Thumb", "Minimal", "border")
    for key, colour in colours.items():
        if not key.endswith(not_texts) and not key.startswith("thinkingM"):
            pairs += [(colour, ground) for ground in tools]
    assert [pair for pair in pairs if _contrast(*pair) < 4.5] == []


def test_variables_numbers_and_short_forms_are_resolved() -> None:
    theme = parse_theme(
        theme_file(
            vars={"a": "b", "b": "#ABC"},
            colors={"accent": "a", "error": 203, "warning": "oklch(0.7 0.15 60)", "dim": "#FFFFFF"},
            export={"pageBg": "a"},
        ),
        "mine.json",
    )
    assert theme.colors["accent"] == "#aabbcc"
    assert theme.colors["error"] == 203
    assert theme.colors["dim"] == "#ffffff"
    assert theme.export["pageBg"] == "#aabbcc"
    assert Color.parse(str(theme.colors["warning"])).triplet is not None


def test_white_and_black_in_oklch() -> None:
    theme = parse_theme(
        theme_file(colors={"text": "oklch(100% 0 0)", "dim": "oklch(0 0 0)"}), "mine.json"
    )
    assert (theme.colors["text"], theme.colors["dim"]) == ("#ffffff", "#000000")


def test_optional_names_fall_back() -> None:
    colours: dict[str, object] = dict.fromkeys(COLOUR_NAMES, 1)
    for name in ("scrollbarTrack", "scrollbarThumb", "searchMatchBg", "searchMatchText"):
        del colours[name]
    del colours["thinkingMax"]
    colours |= {"muted": 2, "text": 3, "selectedBg": 4, "thinkingXhigh": 5}
    theme = parse_theme(json.dumps({"name": "mine", "colors": colours}), "mine.json")
    names = ("scrollbarTrack", "scrollbarThumb", "searchMatchBg", "searchMatchText", "thinkingMax")
    assert [theme.colors[name] for name in names] == [2, 3, 4, 3, 5]


@pytest.mark.parametrize(
    ("text", "key", "says"),
    [
        ("{", "", "not valid JSON"),
        ("[]", "", "Expected `object`"),
        ('{"colors": {}}', "", "missing required field `name`"),
        (theme_file(name="a/b"), "name", "needs a name"),
        (theme_file(appearance="pink"), "appearance", "Invalid enum value"),
        (theme_file(colors={"accent": "nope"}), "colors.accent", "'nope', which is no colour"),
        (theme_file(colors={"accent": 256}), "colors.accent", "no colour"),
        (theme_file(colors={"accent": "#12"}), "colors.accent", "no colour"),
        (theme_file(colors={"accent": "a"}, vars={"a": "b", "b": "a"}), "colors.accent", "circle"),
        (theme_file(export={"pageBg": "x"}), "export.pageBg", "no colour"),
        ('{"name": "x", "colors": {"acent": 1}}', "colors.accent", "lacks 51 colour(s)"),
    ],
)
def test_what_is_wrong_with_a_theme_is_said(text: str, key: str, says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_theme(text, "mine.json")
    assert "mine.json" in caught.value.message
    assert says in caught.value.message
    assert caught.value.key == key
    assert caught.value.file == "mine.json"


def test_a_wrong_name_is_guessed() -> None:
    colours = dict.fromkeys(COLOUR_NAMES, "")
    colours["acent"] = colours.pop("accent")
    with pytest.raises(SettingsError) as caught:
        parse_theme(json.dumps({"name": "x", "colors": colours}), "f")
    assert caught.value.hint == "'acent' may mean 'accent'"


def test_own_themes_are_found_and_win(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(theme_file())
    (tmp_path / "dark.json").write_text(theme_file(name="own-dark"))
    assert set(find_themes([tmp_path])) == {"dark", "light", "mine", "system"}
    assert load_theme("dark", [tmp_path]).name == "own-dark"
    assert load_theme("mine", [tmp_path, tmp_path / "missing"]).name == "mine"
    with pytest.raises(SettingsError, match="no theme 'other'") as caught:
        load_theme("other", [tmp_path])
    assert caught.value.hint == "Known themes: dark, light, mine, system."


def test_a_theme_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.json").mkdir()
    with pytest.raises(SettingsError, match="cannot be read"):
        load_theme("broken", [tmp_path])
    (tmp_path / "huge.json").write_text(" " * 300_000)
    with pytest.raises(SettingsError, match="too large"):
        load_theme("huge", [tmp_path])


@pytest.mark.parametrize(
    ("setting", "dark", "name"),
    [("system", True, "system"), ("light/dark", True, "dark"), ("light/dark", False, "light")],
)
def test_a_pair_follows_the_terminal(setting: str, dark: bool, name: str) -> None:
    assert theme_name(setting, terminal_is_dark=dark) == name


@pytest.mark.parametrize("name", ["dark", "light", "system", "plain"])
async def test_every_theme_starts_an_application(name: str) -> None:
    theme = PLAIN if name == "plain" else load_theme(name)
    app: App[None] = App()
    app.register_theme(textual_theme(theme))
    app.theme = theme.name
    async with app.run_test():
        assert app.current_theme.ansi is (theme.appearance is None)
        assert app.theme_variables["pi-user-message-bg" if theme.colors else "border"]


def test_without_colours_quiet_texts_are_dim() -> None:
    styles = transcript_styles(PLAIN)
    assert styles.dim.dim
    assert styles.thinking.dim
    assert styles.jump_hint.reverse
    assert styles.text.color is None


def test_loading_a_theme_imports_nothing_that_draws() -> None:
    code = (
        "import sys; from pi_tui.resources.themes import load_theme; load_theme('dark');"
        "sys.exit(any(m in sys.modules for m in ('rich', 'textual', 'pygments', 'markdown_it')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
