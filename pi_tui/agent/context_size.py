"""How full the context at the leaf is, asked after every message, so found from the end.

An ordinary path has a recent answer whose report covers everything before it: only what came
after is looked at. Where a compaction or a context edit makes reports doubtful, all is estimated.
"""

from __future__ import annotations

from pi_tui.core.entries import ContextEditEntry
from pi_tui.core.projection import messages_of, project
from pi_tui.core.protocols import TokenEstimator
from pi_tui.core.tokens import ContextEstimate, estimate_context, sent_tokens, valid_usage_tokens
from pi_tui.core.tree import SessionTree


def estimate_leaf_context(tree: SessionTree, estimator: TokenEstimator) -> ContextEstimate:
    """The same as `estimate_context` for the path to the leaf."""
    ids = tree.path_ids()
    edited = _edited_ids(tree, ids)
    trailing = 0
    for entry_id in reversed(ids):
        if tree.head(entry_id).type in ("compaction", "context_edit") or entry_id in edited:
            break
        for message in messages_of(tree.entry(entry_id)):
            reported = valid_usage_tokens(message)
            if reported is not None:
                return ContextEstimate(reported + trailing, reported, trailing, entry_id)
            trailing += sent_tokens(message, estimator)
    path = tree.context_path()
    return estimate_context(path, project(path), estimator)


def _edited_ids(tree: SessionTree, ids: list[str]) -> set[str]:
    """What context edits aim at; in odd files an edit may stand before its target."""
    edits = [tree.entry(entry_id) for entry_id in ids if tree.head(entry_id).type == "context_edit"]
    return {edit.target_id for edit in edits if isinstance(edit, ContextEditEntry)}
