"""What holds for all tests: the same examples every time, and nothing kept between runs.

Tests that start the real program, in a pseudo-terminal or beside a server, count as slow:
`pytest -m "not slow"` leaves them out, the plain command runs them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("pi-tui", derandomize=True, database=None, deadline=None)
settings.load_profile("pi-tui")

_REAL_PROCESSES = tuple(Path(__file__).parent / room for room in ("program", "pty"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(room in item.path.parents for room in _REAL_PROCESSES):
            item.add_marker(pytest.mark.slow)
