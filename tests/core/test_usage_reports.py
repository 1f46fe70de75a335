"""Which token reports of a provider are believed."""

from __future__ import annotations

import pytest

from pi_tui.core.messages import AssistantMessage, Usage
from pi_tui.core.tokens import valid_usage_tokens


@pytest.mark.parametrize(
    ("total", "stop_reason", "believed"),
    [
        (1200, "stop", 1200),
        (0, "stop", None),
        (-5, "stop", None),
        (10**30, "stop", None),
        (1200, "aborted", None),
        (1200, "error", None),
    ],
)
def test_only_sensible_reports_of_whole_answers_count(total, stop_reason, believed):
    message = AssistantMessage(
        content=(),
        api="a",
        provider="p",
        model="m",
        usage=Usage(total_tokens=total),
        stop_reason=stop_reason,
        timestamp=1,
    )
    assert valid_usage_tokens(message) == believed
