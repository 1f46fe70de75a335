"""Two settings files and a model give the numbers of a compaction."""

from pi_tui.config.compaction import resolve_texts
from pi_tui.core.errors import SettingsError

GROUP = "settings"


def shown(value):
    return {"errorAt": value.key} if isinstance(value, SettingsError) else {"value": value}


def test_settings(case, expected):
    given = case["input"]
    model = given["model"]
    found = resolve_texts(
        given["globalText"],
        given["projectText"],
        project_trusted=given["projectTrusted"],
        model=(model["provider"], model["id"]) if model else None,
    )
    try:
        found.settings()
        resolved = "ok"
    except SettingsError:
        resolved = "error"
    assert {
        "loadErrors": list(found.unreadable),
        "enabled": shown(found.enabled),
        "reserveTokens": shown(found.reserve_tokens),
        "keepRecentTokens": shown(found.keep_recent_tokens),
        "resolved": resolved,
        "branchSummaryReserveTokens": found.branch_summary_reserve_tokens,
    } == expected
