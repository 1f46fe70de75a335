"""Messages that go back to the editor, and what is said where it cannot hold their images."""

from __future__ import annotations

from collections.abc import Sequence

from pi_tui.agent.queues import Draft
from pi_tui.commands.ui import CommandUI, TakesDrafts


def give_back(ui: CommandUI, drafts: Sequence[Draft]) -> None:
    """Put messages that were not sent back into the editor."""
    if isinstance(ui, TakesDrafts):
        ui.put_back(drafts)
        return
    ui.set_editor_text("\n\n".join(draft.text for draft in drafts))
    images = sum(len(draft.images) for draft in drafts)
    if images:
        ui.notify(
            "warning", f"{_images(images)} of messages that were not sent cannot be kept here"
        )


def edit_again(ui: CommandUI, draft: Draft) -> None:
    """Put a message that was sent before into the editor, unless a draft is there."""
    if isinstance(ui, TakesDrafts):
        ui.set_editor_draft(draft)
        return
    if draft.text:
        ui.set_editor_text(draft.text)
    if draft.images:
        ui.notify("warning", f"{_images(len(draft.images))} of the message cannot be kept here")


def _images(count: int) -> str:
    return "an image" if count == 1 else f"{count} images"
