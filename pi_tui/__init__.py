"""pi-tui: a terminal coding agent with a tree of conversations and a compaction engine.

The names in `__all__` are for other programs, `open_agent` first of all, and for extensions. They
are loaded when they are first used; importing the package itself loads nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pi_tui.agent.summary_api import (
        SummaryModel,
        collect_entries_for_branch_summary,
        compact,
        estimate_tokens,
        generate_branch_summary,
        generate_summary,
        generate_summary_with_usage,
    )
    from pi_tui.core.compaction.branch import prepare_branch_entries
    from pi_tui.core.compaction.prepare import prepare_compaction
    from pi_tui.core.compaction.serialize import serialize_conversation
    from pi_tui.core.projection import convert_to_llm
    from pi_tui.wiring.open_agent import Agent, open_agent

__version__ = "0.1.0"

_HOMES = {
    "Agent": "pi_tui.wiring.open_agent",
    "SummaryModel": "pi_tui.agent.summary_api",
    "collect_entries_for_branch_summary": "pi_tui.agent.summary_api",
    "compact": "pi_tui.agent.summary_api",
    "convert_to_llm": "pi_tui.core.projection",
    "estimate_tokens": "pi_tui.agent.summary_api",
    "generate_branch_summary": "pi_tui.agent.summary_api",
    "generate_summary": "pi_tui.agent.summary_api",
    "generate_summary_with_usage": "pi_tui.agent.summary_api",
    "open_agent": "pi_tui.wiring.open_agent",
    "prepare_branch_entries": "pi_tui.core.compaction.branch",
    "prepare_compaction": "pi_tui.core.compaction.prepare",
    "serialize_conversation": "pi_tui.core.compaction.serialize",
}

__all__ = [
    "Agent",
    "SummaryModel",
    "__version__",
    "collect_entries_for_branch_summary",
    "compact",
    "convert_to_llm",
    "estimate_tokens",
    "generate_branch_summary",
    "generate_summary",
    "generate_summary_with_usage",
    "open_agent",
    "prepare_branch_entries",
    "prepare_compaction",
    "serialize_conversation",
]


def __getattr__(name: str) -> object:
    """Load a public name from where it lives."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
