"""What is said when a request could be made again, but not before a very long wait."""

from __future__ import annotations

import pytest

from pi_tui.agent.compaction_plan import CompactRequest
from pi_tui.agent.retry_policy import RetryPolicy, plan_wait, too_long_a_wait
from pi_tui.core.errors import ErrorKind, ProviderError
from pi_tui.core.events import Notice

POLICY = RetryPolicy()


def overloaded(retry_after_s: float | None = None) -> ProviderError:
    return ProviderError("Overloaded.", kind=ErrorKind.OVERLOADED, retry_after_s=retry_after_s)


@pytest.mark.parametrize(
    ("asked_s", "words"), [(7200, "2h 00m"), (99_999_999_999, "more than a day")]
)
async def test_a_wait_that_is_too_long_is_told(rig, asked_s, words):
    rig.provider.add(overloaded(asked_s))
    await rig.session().prompt("go")
    assert rig.clock.sleeps == []
    (notice,) = rig.of(Notice)
    assert notice.level == "error"
    assert f"asks to wait {words}, which is longer than retry.maxAgentDelayMs (1m 00s)" in (
        notice.text
    )


async def test_the_wait_is_not_blamed_for_other_ends(rig):
    rig.provider.add(ProviderError("No credit.", kind=ErrorKind.QUOTA, retry_after_s=7200))
    await rig.session().prompt("go")
    assert rig.of(Notice) == []


@pytest.mark.parametrize(
    ("asked_s", "attempts", "policy"),
    [
        (None, 0, POLICY),
        (60, 0, POLICY),
        (7200, 3, POLICY),
        (7200, 0, RetryPolicy(enabled=False)),
    ],
)
def test_said_only_where_the_wait_decides(asked_s, attempts, policy):
    assert too_long_a_wait(overloaded(asked_s), attempts, policy) == ""


def test_either_a_wait_or_a_reason():
    for asked_s in (None, 0, 59, 60, 60.001, 1e12):
        error = overloaded(asked_s)
        assert bool(plan_wait(error, 0, POLICY)) != bool(too_long_a_wait(error, 0, POLICY))


async def test_a_summary_says_too_that_the_wait_is_too_long(rig):
    rig.store_talk(200)
    rig.provider.add(overloaded(7200))
    outcome = await rig.session().compact(CompactRequest("manual", keep_tokens=1000))
    assert rig.clock.sleeps == [] and len(rig.provider.requests) == 1
    assert outcome.kind == "failed"
    assert "Overloaded. The server asks to wait 2h 00m, which is longer than" in outcome.message
    assert "retry.maxAgentDelayMs (1m 00s)" in outcome.message


async def test_a_summary_does_not_blame_the_wait_for_other_ends(rig):
    rig.store_talk(200)
    rig.provider.add(ProviderError("No credit.", kind=ErrorKind.QUOTA, retry_after_s=7200))
    outcome = await rig.session().compact(CompactRequest("manual", keep_tokens=1000))
    assert "No credit. Nothing was changed." in outcome.message
    assert "asks to wait" not in outcome.message
