"""Where the leaf goes when the user chooses an entry of the tree, and what the editor gets."""

from __future__ import annotations

from msgspec import Struct

from pi_tui.core.entries import CustomMessageEntry, MessageEntry
from pi_tui.core.messages import ContentList, ImageContent, UserMessage, images_of, text_of
from pi_tui.core.tree import SessionTree

_SAID_TYPES = frozenset({"message", "compaction", "branch_summary", "custom_message"})


def is_said(type_name: str) -> bool:
    """True for entries that are part of the conversation; labels, pins, settings are not."""
    return type_name in _SAID_TYPES


def stands_at(tree: SessionTree, entry_id: str | None) -> bool:
    """True when the leaf is this entry, or only entries that nobody sees lie between the two.

    A label or a pin is appended at the leaf and becomes it; who set one did not go anywhere.
    """
    at = tree.leaf_id
    while at != entry_id:
        if at is None or entry_id is None or is_said(tree.head(at).type):
            return False
        at = tree.parent(at)
    return True


class Navigation(Struct, frozen=True):
    """`leaf_id` None: before the first entry. `editor_text` None: the editor is left alone.

    `editor_images` belong to the text.
    """

    leaf_id: str | None
    editor_text: str | None = None
    editor_images: tuple[ImageContent, ...] = ()


def plan_navigation(tree: SessionTree, target_id: str) -> Navigation:
    """Decide where choosing an entry leads.

    A message of the user is taken back for editing, so the leaf becomes its parent; anything else
    becomes the leaf itself. Choosing the current leaf changes nothing.
    """
    if target_id == tree.leaf_id:
        return Navigation(tree.leaf_id)
    entry = tree.entry(target_id)
    if isinstance(entry, CustomMessageEntry):
        return _edited_again(tree.parent(target_id), entry.content)
    if isinstance(entry, MessageEntry) and isinstance(entry.message, UserMessage):
        return _edited_again(tree.parent(target_id), entry.message.content)
    return Navigation(target_id)


def _edited_again(leaf_id: str | None, content: str | ContentList) -> Navigation:
    return Navigation(leaf_id, text_of(content), images_of(content))
