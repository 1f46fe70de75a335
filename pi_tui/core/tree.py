"""The session tree: which entry follows which, where the leaf is, what is labelled.

It works on entry heads and loads an entry's body only when somebody asks for it, through an
`EntrySource`, keeping a bounded number of decoded entries. It must not know where entries are
stored. Everything is iterative: a chain of 100,000 entries is ordinary.

Odd files are read as sensibly as they can be: with equal ids the later line wins; an entry whose
parent is missing or itself is a root; a ring of parents is opened at the member that stands first
in the file, which becomes a root, so that every entry can be reached and every walk ends.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator

from msgspec import UNSET, Struct, UnsetType

from pi_tui.core.entries import (
    CompactionEntry,
    Entry,
    EntryHead,
    LabelEntry,
    SessionInfoEntry,
    head_of,
    timestamp_ms,
)
from pi_tui.core.errors import StorageError
from pi_tui.core.pins import pin_targets, with_pin_partners
from pi_tui.core.protocols import EntrySource

DECODED_ENTRIES = 16_384
"""How many decoded entries a tree keeps: a path of 10,000 messages fits, a huge file does not."""


class Label(Struct, frozen=True):
    """A name given to an entry; `timestamp` is that of the label entry."""

    target_id: str
    text: str
    timestamp: str


class MemorySource:
    """Entries held in memory: the source of a session without a file."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries = {entry.id: entry for entry in entries}

    def add(self, entry: Entry) -> None:
        """Hold one more entry; one with the same id is replaced."""
        self._entries[entry.id] = entry

    def load(self, entry_id: str) -> Entry:
        """Give the entry back. Raises StorageError when it was never added."""
        try:
            return self._entries[entry_id]
        except KeyError:
            raise StorageError(f"The session has no entry {entry_id!r}.") from None


def tree_of(entries: Iterable[Entry], leaf_id: str | UnsetType | None = UNSET) -> SessionTree:
    """Build a tree over entries in memory, given in file order."""
    listed = list(entries)
    return SessionTree((head_of(entry) for entry in listed), MemorySource(listed), leaf_id)


class SessionTree:
    """The entries of one session by id, with a current position, the leaf.

    `heads` come in file order. Without `leaf_id` the leaf is the last entry; None is the position
    before the first entry. Unknown ids raise KeyError, but an unknown leaf means the last entry.
    """

    def __init__(
        self,
        heads: Iterable[EntryHead],
        source: EntrySource,
        leaf_id: str | UnsetType | None = UNSET,
        *,
        decoded_entries: int = DECODED_ENTRIES,
    ) -> None:
        self._source = source
        self._decoded: OrderedDict[str, Entry] = OrderedDict()
        self._decoded_limit = max(1, decoded_entries)
        self._heads: dict[str, EntryHead] = {}
        self._last_id: str | None = None
        self._opened_rings = self._index(heads)
        self._children: dict[str, list[str]] | None = None
        self._roots: list[str] = []
        self._sorted_children: dict[str, tuple[str, ...]] = {}
        self._labels: dict[str, Label] = {}
        self._session_name: str | None = None
        for head in list(self._heads.values()):
            if head.type in ("label", "session_info"):
                self._note(self.entry(head.id))
        self._path_leaf: str | None = None
        self._path: list[str] = []
        self._leaf_id = self._last_id if leaf_id is UNSET else self._known_leaf(leaf_id)

    # ------------------------------------------------------------ entries

    @property
    def leaf_id(self) -> str | None:
        """The current position; None before the first entry."""
        return self._leaf_id

    def __len__(self) -> int:
        return len(self._heads)

    def __contains__(self, entry_id: object) -> bool:
        return entry_id in self._heads

    def ids(self) -> list[str]:
        """All ids, in file order."""
        return list(self._heads)

    def head(self, entry_id: str) -> EntryHead:
        """What is known of an entry without decoding it."""
        return self._heads[entry_id]

    def entry(self, entry_id: str) -> Entry:
        """The entry itself. Raises StorageError when the source cannot give it."""
        found = self._decoded.get(entry_id)
        if found is not None:
            self._decoded.move_to_end(entry_id)
            return found
        if entry_id not in self._heads:
            raise KeyError(entry_id)
        loaded = self._source.load(entry_id)
        self._keep_decoded(loaded, entry_id)
        return loaded

    def append(self, entry: Entry) -> None:
        """Take in an entry that was just stored; it becomes the leaf."""
        if entry.id in self._heads:
            raise ValueError(f"the session already has an entry {entry.id!r}")
        self._heads[entry.id] = head_of(entry)
        self._last_id = entry.id
        self._keep_decoded(entry, entry.id)
        self._note(entry)
        parent = self.parent(entry.id)
        if self._children is not None:
            if parent is None:
                self._roots.append(entry.id)
            else:
                self._children.setdefault(parent, []).append(entry.id)
                self._sorted_children.pop(parent, None)
        if parent is not None and parent == self._path_leaf:
            self._path.append(entry.id)
            self._path_leaf = entry.id
        self._leaf_id = entry.id

    def move_leaf(self, entry_id: str | None) -> None:
        """Set the current position; None is the place before the first entry."""
        if entry_id is not None and entry_id not in self._heads:
            raise KeyError(entry_id)
        self._leaf_id = entry_id

    # ------------------------------------------------------------ shape

    def parent(self, entry_id: str) -> str | None:
        """The entry before this one; None for a root."""
        parent = self._heads[entry_id].parent_id
        if parent is None or parent == entry_id or parent not in self._heads:
            return None
        return None if entry_id in self._opened_rings else parent

    @property
    def roots(self) -> tuple[str, ...]:
        """Entries without a parent, in file order."""
        self._children_by_parent()
        return tuple(self._roots)

    def children(self, entry_id: str) -> tuple[str, ...]:
        """The entries after this one, oldest first; equal or unreadable times in file order."""
        if entry_id not in self._heads:
            raise KeyError(entry_id)
        known = self._sorted_children.get(entry_id)
        if known is None:
            known = tuple(self._by_time(self._children_by_parent().get(entry_id, [])))
            self._sorted_children[entry_id] = known
        return known

    def walk(self) -> Iterator[str]:
        """All ids depth first, children in their order."""
        waiting = list(reversed(self.roots))
        while waiting:
            entry_id = waiting.pop()
            yield entry_id
            waiting.extend(reversed(self.children(entry_id)))

    def path_ids(self, leaf_id: str | UnsetType | None = UNSET) -> list[str]:
        """The ids from the root to a leaf (the current one by default), both included."""
        leaf = self._leaf_id if leaf_id is UNSET else self._known_leaf(leaf_id)
        if leaf is None:
            return []
        if leaf != self._path_leaf:
            self._path = self._walk_up(leaf)
            self._path_leaf = leaf
        return list(self._path)

    def path(self, leaf_id: str | UnsetType | None = UNSET) -> list[Entry]:
        """The entries from the root to a leaf. Decodes all of them; see `context_path`."""
        return [self.entry(entry_id) for entry_id in self.path_ids(leaf_id)]

    def context_path(self, leaf_id: str | UnsetType | None = UNSET) -> list[Entry]:
        """The part of the path that decides the model context.

        Projection, estimate and preparation of a compaction give the same for it as for the whole
        path, but what an earlier compaction covers is not decoded.
        """
        ids = self.path_ids(leaf_id)
        newest = next(
            (i for i in reversed(range(len(ids))) if self._heads[ids[i]].type == "compaction"), None
        )
        if newest is None:
            return [self.entry(entry_id) for entry_id in ids]
        compaction = self.entry(ids[newest])
        kept = newest
        if isinstance(compaction, CompactionEntry) and compaction.first_kept_entry_id:
            wanted = compaction.first_kept_entry_id
            kept = next((i for i in range(newest) if ids[i] == wanted), newest)
        needed = self._deciding_entries(ids[:kept])
        needed.update(self._pinned(ids, kept))
        return [self.entry(ids[i]) for i in sorted(needed)] + [
            self.entry(entry_id) for entry_id in ids[kept:]
        ]

    def common_ancestor(self, a: str | None, b: str | None) -> str | None:
        """The deepest entry on both paths; None when they share nothing."""
        if a is None or b is None:
            return None
        on_path = set(self._walk_up(a))
        at: str | None = b
        while at is not None:
            if at in on_path:
                return at
            at = self.parent(at)
        return None

    # ------------------------------------------------------------ names

    @property
    def session_name(self) -> str | None:
        """The name the user gave the session."""
        return self._session_name

    def label(self, entry_id: str) -> str | None:
        """The label of an entry."""
        found = self._labels.get(entry_id)
        return None if found is None else found.text

    @property
    def labels(self) -> tuple[Label, ...]:
        """All labels, in the order in which they were first set."""
        return tuple(self._labels.values())

    def label_timestamp(self, entry_id: str) -> str | None:
        """When the label of an entry was set, as an ISO timestamp."""
        found = self._labels.get(entry_id)
        return None if found is None else found.timestamp

    # ------------------------------------------------------------ inside

    def _index(self, heads: Iterable[EntryHead]) -> frozenset[str]:
        """Take in the heads; returns the entries at which rings of parents are opened."""
        suspects: list[str] = []
        by_id = self._heads
        for head in heads:
            entry_id = head.id
            if entry_id in by_id:
                del by_id[entry_id]
                suspects.append(entry_id)
            elif head.parent_id is not None and head.parent_id not in by_id:
                suspects.append(entry_id)
            by_id[entry_id] = head
            self._last_id = entry_id
        # Without a repeated id or a parent that stands after its child there can be no ring.
        return self._find_rings(suspects) if suspects else frozenset()

    def _find_rings(self, suspects: Iterable[str]) -> frozenset[str]:
        opened: set[str] = set()
        done: set[str] = set()
        position: dict[str, int] = {}
        for suspect in suspects:
            walked: dict[str, None] = {}
            at: str | None = suspect
            while at is not None and at in self._heads and at not in done and at not in walked:
                walked[at] = None
                parent = self._heads[at].parent_id
                at = None if parent == at else parent
            if at is not None and at in walked:
                ring = list(walked)[list(walked).index(at) :]
                if not position:
                    position = {entry_id: i for i, entry_id in enumerate(self._heads)}
                opened.add(min(ring, key=position.__getitem__))
            done.update(walked)
        return frozenset(opened)

    def _known_leaf(self, leaf_id: str | None) -> str | None:
        return leaf_id if leaf_id is None or leaf_id in self._heads else self._last_id

    def _walk_up(self, leaf: str) -> list[str]:
        upward: list[str] = []
        at: str | None = leaf
        while at is not None:
            upward.append(at)
            at = self.parent(at)
        upward.reverse()
        return upward

    def _children_by_parent(self) -> dict[str, list[str]]:
        if self._children is None:
            children: dict[str, list[str]] = {}
            roots: list[str] = []
            for entry_id in self._heads:
                parent = self.parent(entry_id)
                if parent is None:
                    roots.append(entry_id)
                else:
                    children.setdefault(parent, []).append(entry_id)
            self._children, self._roots = children, roots
        return self._children

    def _by_time(self, siblings: list[str]) -> list[str]:
        if len(siblings) < 2:
            return siblings
        # An unreadable time takes that of the sibling before it in the file, so it stays there.
        times: dict[str, int] = {}
        latest = -(2**63)
        for entry_id in siblings:
            read = timestamp_ms(self._heads[entry_id].timestamp)
            latest = latest if read is None else read
            times[entry_id] = latest
        return sorted(siblings, key=times.__getitem__)

    def _keep_decoded(self, entry: Entry, entry_id: str) -> None:
        self._decoded[entry_id] = entry
        if len(self._decoded) > self._decoded_limit:
            self._decoded.popitem(last=False)

    def _note(self, entry: Entry) -> None:
        """Remember a label or a session name."""
        if isinstance(entry, LabelEntry):
            if entry.label:
                self._labels[entry.target_id] = Label(entry.target_id, entry.label, entry.timestamp)
            else:
                self._labels.pop(entry.target_id, None)
        elif isinstance(entry, SessionInfoEntry):
            self._session_name = entry.name.strip() or None

    def _deciding_entries(self, ids: list[str]) -> set[int]:
        """Indices of the last entries that set a thinking level and a model."""
        level = model = None
        for i in reversed(range(len(ids))):
            head = self._heads[ids[i]]
            if level is None and head.type == "thinking_level_change":
                level = i
            elif model is None and (
                head.type == "model_change" or (head.type == "message" and head.role == "assistant")
            ):
                model = i
            if level is not None and model is not None:
                break
        return {i for i in (level, model) if i is not None}

    def _pinned(self, ids: list[str], kept: int) -> set[int]:
        """Indices before `kept` that pins need: the pin entries and what they keep."""
        customs = [i for i, entry_id in enumerate(ids) if self._heads[entry_id].type == "custom"]
        targets = pin_targets(self.entry(ids[i]) for i in customs)
        if not targets:
            return set()
        needed = {i for i in customs if i < kept}
        before = [self._heads[entry_id] for entry_id in ids[:kept]]
        return needed | with_pin_partners(before, targets)
