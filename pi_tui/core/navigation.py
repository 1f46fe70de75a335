"""Where the leaf goes when the user chooses an entry of the tree, and what the editor gets."""

from __future__ import annotations

from msgspec import Struct

from pi_tui.core.entries import CustomMessageEntry, MessageEntry
from pi_tui.core.messages import ContentList, ImageContent, UserMessage, images_of, text_of
from pi_tui.core.tree import SessionTree


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
