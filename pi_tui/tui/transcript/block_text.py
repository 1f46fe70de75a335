"""What a block says as plain text, all of it: what a search looks at, and what a copy gives.

The texts are foreign and raw; `copied_block` makes them safe for a clipboard.
"""

from __future__ import annotations

from collections.abc import Iterable

from pi_tui.core.sanitise import sanitise
from pi_tui.core.transcript import (
    AssistantBlock,
    CoveredBlock,
    CustomBlock,
    NoticeBlock,
    ShellBlock,
    ShownBlock,
    SummaryBlock,
    ThinkingBlock,
    ToolBlock,
    UserBlock,
)
from pi_tui.tui.transcript.tool_header import argument_text, main_argument


def block_text(block: ShownBlock) -> str:
    """The whole text of a block, whether it is open or not."""
    if isinstance(block, UserBlock | AssistantBlock | ThinkingBlock | NoticeBlock):
        return block.text
    if isinstance(block, ToolBlock):
        return _joined((f"{block.name} {main_argument(block)}".rstrip(), _tool_body(block)))
    if isinstance(block, ShellBlock):
        return _joined((f"$ {block.command}", block.output))
    if isinstance(block, SummaryBlock):
        return block.summary
    if isinstance(block, CustomBlock):
        return _joined((block.custom_type, block.text))
    return ""


MAX_COPIED_CHARS = 4_000_000
"""No terminal takes as much as a copy; what is behind a divider may be very much more."""


def copied_block(blocks: Iterable[ShownBlock]) -> str:
    """The texts of blocks for the clipboard, a blank line between them; the rest is left out."""
    texts: list[str] = []
    chars = 0
    for block in blocks:
        text = sanitise(block_text(block)).strip("\n")
        if text:
            texts.append(text)
            chars += len(text)
        if chars > MAX_COPIED_CHARS:
            break
    return "\n\n".join(texts)


def covered_title(block: CoveredBlock) -> str:
    """What stands instead of the messages a summary replaces."""
    if not block.messages:
        what = "an earlier summary"
    else:
        what = "1 message" if block.messages == 1 else f"{block.messages:,} messages"
    return f"{what}, in the model's context as the summary below"


def _tool_body(block: ToolBlock) -> str:
    """What the open block shows below its head: a diff, a written text, or the output."""
    if block.state not in ("error", "aborted"):
        diff = block.details.get("diff") if isinstance(block.details, dict) else None
        if block.name == "edit" and isinstance(diff, str) and diff.strip():
            return diff
        if block.name == "write" and (content := argument_text(block, "content")):
            return content
    return block.output


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(text for text in texts if text)
