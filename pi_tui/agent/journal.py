"""The journal: the only writer of a session. Store first, then the tree, then the event.

Appending is synchronous, so between the moment an entry is decided and the moment it is durable no
other coroutine runs. When the disk refuses an entry the conversation goes on in memory: the store
keeps the entry and writes it when it can, and the user is told that it is not saved.
"""

from __future__ import annotations

from pi_tui.agent.bus import EventBus
from pi_tui.agent.navigation_log import mark_undo
from pi_tui.core.entries import (
    ContextEditEntry,
    CustomEntry,
    Entry,
    MessageEntry,
    ModelChangeEntry,
    SessionInfoEntry,
    ThinkingLevelChangeEntry,
    iso_timestamp,
)
from pi_tui.core.errors import StorageError
from pi_tui.core.events import EntryAppended, LeafMoved, MessageEnd, MessageStart, Notice
from pi_tui.core.leaf import LEAF_TYPE, leaf_data
from pi_tui.core.messages import JSON, Message
from pi_tui.core.pins import PIN_TYPE, pin_data
from pi_tui.core.protocols import Clock, IdSource, SessionStore
from pi_tui.core.tree import SessionTree


class Journal:
    """Appends entries at the leaf of one session."""

    def __init__(
        self, store: SessionStore, tree: SessionTree, clock: Clock, ids: IdSource, bus: EventBus
    ) -> None:
        self.store = store
        self.tree = tree
        self.clock = clock
        self._ids = ids
        self._bus = bus
        self._unsaved = False

    def next_fields(self) -> dict[str, JSON]:
        """Id, parent and timestamp of the entry that would be appended now."""
        return {
            "id": self._ids.entry_id(self.tree.__contains__),
            "parent_id": self.tree.leaf_id,
            "timestamp": iso_timestamp(self.clock.now_ms()),
        }

    def append(self, entry: Entry) -> None:
        """Make the entry durable, move the leaf to it and tell everybody."""
        try:
            self.store.append(entry)
        except StorageError as error:
            self._tell_unsaved(error)
        else:
            self._tell_saved()
        self.tree.append(entry)
        self._bus.emit(EntryAppended(entry))

    def append_or_fail(self, entry: Entry) -> None:
        """Like `append`, but an entry that cannot be made durable raises and changes nothing."""
        self.store.append(entry, keep_on_failure=False)
        self._tell_saved()
        self.tree.append(entry)
        self._bus.emit(EntryAppended(entry))

    def append_elsewhere(self, entry: Entry) -> None:
        """Like `append_or_fail` for an entry that does not follow the leaf: the leaf goes there.

        Once the entry is durable, listeners are told of the move to its parent and then of it.
        """
        old = self.tree.leaf_id
        self.store.append(entry, keep_on_failure=False)
        self._tell_saved()
        self.tree.move_leaf(entry.parent_id)
        self._bus.emit(LeafMoved(entry.parent_id, old))
        self.tree.append(entry)
        self._bus.emit(EntryAppended(entry))

    def message(self, message: Message, *, announced: bool = False) -> str:
        """Append a message and emit its start and end; returns the entry id.

        `announced`: the start was emitted already, while the message streamed.
        """
        if not announced:
            self._bus.emit(MessageStart(message))
        entry = MessageEntry(message=message, **self.next_fields())
        self.append(entry)
        self._bus.emit(MessageEnd(message))
        return entry.id

    def model_change(self, provider: str, model_id: str) -> None:
        self.append(ModelChangeEntry(provider=provider, model_id=model_id, **self.next_fields()))

    def thinking_level_change(self, level: str) -> None:
        self.append(ThinkingLevelChangeEntry(thinking_level=level, **self.next_fields()))

    def session_info(self, name: str) -> None:
        self.append(SessionInfoEntry(name=name, **self.next_fields()))

    def omit(self, entry_id: str | None) -> None:
        """Leave an entry out of the context from now on; it stays in the session."""
        if entry_id is not None:
            self.append(
                ContextEditEntry(target_id=entry_id, replacement=None, **self.next_fields())
            )

    def pin(self, entry_id: str, *, pinned: bool) -> None:
        """Pin an entry, or take its pin away."""
        self.append(
            CustomEntry(
                custom_type=PIN_TYPE,
                data=pin_data(entry_id, pinned=pinned),
                **self.next_fields(),
            )
        )

    def move_leaf(
        self, entry_id: str | None, *, remembered: bool = True, undoes: bool = False
    ) -> None:
        """Make another entry the leaf; what follows becomes its child.

        The place is remembered across restarts (see `core.leaf`), unless `remembered` is not set:
        when an entry is appended at once, that entry is the leaf and nothing need be remembered.
        `undoes`: this takes back an earlier move (see `agent.navigation_log`).
        """
        old = self.tree.leaf_id
        self.tree.move_leaf(entry_id)
        if remembered and entry_id != old and not self.store.read_only:
            self._remember_leaf(entry_id, undoes=undoes)
        self._bus.emit(LeafMoved(entry_id, old))

    def _remember_leaf(self, entry_id: str | None, *, undoes: bool) -> None:
        if entry_id == next(reversed(self.tree.ids()), None):
            return  # the last entry is the leaf without being told
        data = leaf_data(entry_id)
        if undoes:
            data = mark_undo(data)
        self.append(CustomEntry(custom_type=LEAF_TYPE, data=data, **self.next_fields()))
        self.tree.move_leaf(entry_id)

    def _tell_saved(self) -> None:
        if self._unsaved:
            self._unsaved = False
            self._bus.emit(Notice("info", "the session is saved again, nothing is missing"))

    def _tell_unsaved(self, error: StorageError) -> None:
        if self._unsaved:
            return
        self._unsaved = True
        hint = f"{error.hint} " if error.hint else ""
        self._bus.emit(
            Notice(
                "error",
                f"NOT SAVED: {(error.reason or error.message).rstrip('.')}. {hint}The conversation "
                "goes on in memory and is written as soon as that works; when the program ends "
                "before, it is saved to another place.",
            )
        )
