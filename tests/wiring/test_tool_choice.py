"""`--tools` and `defaultTools` are written alike; only the command line refuses a wrong name."""

from __future__ import annotations

from typing import Any

import pytest

from pi_tui.core.errors import UsageError
from pi_tui.wiring.tool_choice import choose_tools, start_tools

USUAL = ("read", "bash", "edit", "write")


@pytest.mark.parametrize(
    ("asked", "names", "unknown"),
    [
        (["+grep", "-write"], ("read", "bash", "edit", "grep"), ()),
        (["read", "ls"], ("read", "ls"), ()),
        (["read", "+grep", "-read"], ("grep",), ()),
        (["read", "bogus"], ("read",), ("bogus",)),
        (["-powershell", "+codemode"], USUAL, ("powershell", "codemode")),
        (["*", "-bash"], ("read", "edit", "write", "grep", "find", "ls"), ()),
        ([" ", "+ ls"], (*USUAL, "ls"), ()),
        ([], (), ()),
        (["+read"], USUAL, ()),
    ],
)
def test_names_replace_and_signs_adjust(
    asked: list[str], names: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    choice = choose_tools(asked, USUAL)
    assert (set(choice.names), choice.unknown) == (set(names), unknown)


def test_the_command_line_adjusts_what_the_settings_chose() -> None:
    assert start_tools(["-write"], "+ls").names == ("read", "bash", "edit", "ls")
    assert start_tools(["-write"], "").names == ()
    assert start_tools(["bogus", "read"], None).unknown == ("bogus",)


@pytest.mark.parametrize("wrong", ["reed", "+reed", "-reed"])
def test_a_wrong_name_on_the_command_line_is_refused_with_the_nearest(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        start_tools(USUAL, wrong)
    assert "Did you mean read?" in caught.value.text


def test_a_wrong_name_in_the_settings_is_named_and_stops_nothing(desk: Any) -> None:
    desk.write("settings.json", {"defaultTools": ["+grep", "-write", "reed"]})
    prepared = desk.prepare("--no-session")
    told = [line for line in prepared.notices if "defaultTools" in line]
    assert len(told) == 1 and "'reed'" in told[0] and "Did you mean read?" in told[0]
    assert "settings.json" in told[0]
