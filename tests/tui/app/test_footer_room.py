"""What the footer says where there is little room: shorter, and only then less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rich.cells import cell_len

from pi_tui.core.messages import Cost, Usage
from pi_tui.tui.view_state import FooterPart, fitting

Make = Callable[..., Any]

NAME = "Refactor the parser so that it can stream 解析器"
DIRECTORY = "/nowhere/code/customers/a-rather-long-name/service"


@pytest.mark.parametrize("width", [120, 80, 60, 40])
async def test_long_places_are_shortened(bench: Make, double: Any, width: int) -> None:
    b = bench(double.SessionDouble(cwd=DIRECTORY), home="/nowhere")
    b.session.name = NAME
    async with b.app.run_test(size=(width, 20)) as pilot:
        await pilot.pause(0.05)
        b.app._branch_changed("feature/streaming-parser")
        await pilot.pause()
        line = b.lines()[-2]
        assert cell_len(line) <= width
        assert "service" in line and "(featur" in line and "• Refactor" in line
        if width < 120:
            assert "…" in line and NAME not in line


@pytest.mark.parametrize("width", [60, 40])
async def test_what_is_not_saved_stays_in_sight(bench: Make, double: Any, width: int) -> None:
    b = bench(double.SessionDouble(cwd=DIRECTORY), home="/nowhere")
    b.session.name = NAME
    b.session.store.pending = 2
    async with b.app.run_test(size=(width, 12)) as pilot:
        await pilot.pause(0.05)
        assert b.lines()[-2].startswith("NOT SAVED …") and "service" in b.lines()[-2]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, " another-provider/a-model-with-a-very-long-name-2026-01-01 • thinking off"),
        (60, " a-model-with-a-very-long-name-2026-01-01"),
        (40, "  a-model-with-a-very-…"),
    ],
)
async def test_a_long_model_loses_its_provider_then_its_end(
    bench: Make, double: Any, width: int, shown: str
) -> None:
    model = double.Model(
        "another-provider", "a-model-with-a-very-long-name-2026-01-01", "scripted",
        context_window=100_000, reasoning=True,
    )  # fmt: skip
    b = bench(double.SessionDouble(models=(model, double.OTHER_MODEL)))
    b.session.usage = Usage(123_456, 7890, 55_000, 1000, 0, Cost(total=1.5))
    async with b.app.run_test(size=(width, 12)) as pilot:
        await pilot.pause(0.05)
        line = b.lines()[-1]
        assert cell_len(line) == width and line.endswith(shown)
        assert "$1.500 12.3%/100k " in line


def test_what_is_less_important_goes_before_the_rest_is_shortened() -> None:
    parts = [FooterPart("", 9, least_cells=3), FooterPart("", 7), FooterPart("", 2)]
    assert fitting(parts, 16, [8, 4, 2]) == {0: 8, 1: 4, 2: 2}
    assert fitting(parts, 13, [8, 4, 2]) == {0: 8, 1: 4}
    assert fitting(parts, 12, [8, 4, 2]) == {0: 7, 1: 4}
    assert fitting(parts, 8, [8, 4, 2]) == {0: 3, 1: 4}
    assert fitting(parts, 7, [8, 4, 2]) == {0: 7}
    assert fitting(parts, 2, [8, 4, 2]) == {0: 2}


async def test_a_long_message_that_waits_ends_in_an_ellipsis(bench: Make) -> None:
    b = bench()
    async with b.app.run_test(size=(40, 20)) as pilot:
        b.app.queue_changed(("short", "a message that is longer than the row it is on"), ())
        await pilot.pause()
        assert "  Steering: a message that is longer th…" in b.lines()
        assert "  Steering: short" in b.lines()
