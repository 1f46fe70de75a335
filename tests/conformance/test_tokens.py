"""Estimates of messages and contexts, usage totals, the trigger."""

from pi_tui.core.messages import message_from_data, usage_from_data
from pi_tui.core.projection import project
from pi_tui.core.tokens import CharsEstimator, estimate_context, should_compact, usage_total

GROUP = "tokens"
ESTIMATOR = CharsEstimator()


def test_tokens(case, expected, check, tree_for):
    given = case["input"]
    if case["op"] == "message":
        found = {"tokens": ESTIMATOR.message_tokens(message_from_data(given["message"]))}
    elif case["op"] == "usage":
        found = {"tokens": usage_total(usage_from_data(given["usage"]))}
    elif case["op"] == "should_compact":
        compact = should_compact(
            given["contextTokens"],
            given["contextWindow"],
            reserve_tokens=given["reserveTokens"],
            enabled=given["enabled"],
        )
        found = {"compact": compact}
    else:
        path = tree_for(given["session"]).path(given["leafId"])
        estimate = estimate_context(path, project(path), ESTIMATOR)
        found = {
            "tokens": estimate.tokens,
            "usageTokens": estimate.usage_tokens,
            "trailingTokens": estimate.trailing_tokens,
            "usageEntryId": estimate.usage_entry_id,
        }
    check(found, expected)
