"""Which blocks can be opened, which are at work, and about how high they are."""

from __future__ import annotations

from pi_tui.core.transcript import (
    AssistantBlock,
    CoveredBlock,
    CoveredEndBlock,
    NoticeBlock,
    ShellBlock,
    ShownBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)


def is_collapsible(block: ShownBlock) -> bool:
    if isinstance(block, ThinkingBlock):
        return not block.redacted
    return isinstance(block, ToolBlock | ShellBlock | SummaryBlock | CoveredBlock)


def is_running(block: ShownBlock) -> bool:
    if isinstance(block, ToolBlock):
        return block.state == "running"
    return isinstance(block, ShellBlock) and block.running


def estimated_rows(block: ShownBlock, width: int) -> int:
    """A guess at the height of a block, cheap enough for ten thousand of them."""
    if isinstance(block, AssistantBlock | ThinkingBlock | UserBlock):
        margin = 4 if isinstance(block, UserBlock) else 2
        return margin + len(block.text) // width + block.text.count("\n", 0, 4_000)
    if isinstance(block, ToolBlock):
        return 3 if block.name == "read" else 7
    if isinstance(block, NoticeBlock):
        return 2 + len(block.text) // width
    return 3 if isinstance(block, SummaryBlock | CoveredBlock | CoveredEndBlock) else 8
