"""What holds for all tests: the same examples every time, and nothing kept between runs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("pi-tui", derandomize=True, database=None, deadline=None)
settings.load_profile("pi-tui")
