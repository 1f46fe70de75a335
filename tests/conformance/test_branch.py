"""What a branch summary covers."""

from pi_tui.core.compaction.branch import collect_branch_entries, prepare_branch_entries
from pi_tui.core.messages import role_of
from pi_tui.core.tokens import CharsEstimator

GROUP = "branch"
ESTIMATOR = CharsEstimator()


def test_branch(case, expected, check, tree_for):
    given = case["input"]
    tree = tree_for(given["session"])
    collected = collect_branch_entries(tree, given["oldLeafId"], given["targetId"])
    assert collected.common_ancestor_id == expected["commonAncestorId"]
    assert list(collected.entry_ids) == expected["entryIds"]
    entries = [tree.entry(entry_id) for entry_id in collected.entry_ids]
    for wanted in expected["prepared"]:
        prepared = prepare_branch_entries(entries, wanted["tokenBudget"], ESTIMATOR)
        found = {
            "tokenBudget": wanted["tokenBudget"],
            "messageEntryIds": [p.entry_id for p in prepared.messages],
            "roles": " ".join(role_of(p.message) for p in prepared.messages),
            "totalTokens": prepared.total_tokens,
            "readFiles": list(prepared.files.read_files),
            "modifiedFiles": list(prepared.files.modified_files),
        }
        sane = {**wanted, **wanted.get("alternative", {})}
        sane.pop("alternative", None)
        check(found, sane)
